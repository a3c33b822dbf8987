"""Durable functions of a server: read from its store, called and answered by its REST API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from jobtable.objects import ObjectStore
from jobtable.remote.server_requests import Server, path_of
from jobtable.store import Store
from jobtable.workflows.durable.durable_reads import DurableReads
from jobtable.workflows.durable.entities import DurableExecution, DurableOperation
from jobtable.workflows.durable.verbs import (
    LONGEST_INVOKE_SECONDS,
    Called,
    DurableVerbs,
    Invoked,
    refuse_late,
    wait_for,
)

_EVENTS_A_REQUEST = 500


class ServerDurable(DurableReads, DurableVerbs):
    """The durable functions of a server, whose workers have their code."""

    def __init__(self, server: Server, store: Store, objects: ObjectStore) -> None:
        super().__init__(store, objects)
        self._server = server

    def start(
        self, function: str, payload: Any = None, *, name: str | None = None, user: str = "local"
    ) -> DurableExecution:
        body = {"payload": payload, "name": name}
        return DurableExecution.model_validate(self._server.create(path_of("functions", function, "executions"), body))

    def history(
        self, function: str, name: str, *, newest_first: bool = False, after: int = 0
    ) -> Iterator[dict[str, Any]]:
        path = path_of("functions", function, "executions", name, "history")
        query: dict[str, Any] = {"newest_first": newest_first, "limit": _EVENTS_A_REQUEST, "cursor": after or None}
        while True:
            page = self._server.read("GET", path, query=query)
            yield from (_with_times(event) for event in page["items"])
            if page["cursor"] is None:
                return
            query["cursor"] = page["cursor"]

    def callback_id(self, operation: DurableOperation) -> str:
        path = path_of("functions", operation.function, "executions", operation.execution, "callbacks")
        return str(self._server.read("GET", f"{path}/{operation.number}")["callback_id"])

    def stop(self, function: str, name: str, *, error: Mapping[str, Any] | None = None) -> DurableExecution:
        body = {"error": None if error is None else dict(error)}
        path = path_of("functions", function, "executions", name, "stop")
        return DurableExecution.model_validate(self._server.write("POST", path, body))

    def delete(self, function: str, name: str) -> int:
        return int(self._server.write("DELETE", path_of("functions", function, "executions", name))["count"])

    def succeed_callback(self, callback_id: str, result: str | None = None) -> None:
        self._server.write("POST", "/callbacks/success", {"callback_id": callback_id, "result": result})

    def fail_callback(self, callback_id: str, error: Mapping[str, Any] | None = None) -> None:
        body = {"callback_id": callback_id, "error": None if error is None else dict(error)}
        self._server.write("POST", "/callbacks/failure", body)

    def beat_callback(self, callback_id: str) -> None:
        self._server.write("POST", "/callbacks/heartbeat", {"callback_id": callback_id})

    def invoke(
        self, function: str, payload: str = "null", *, name: str | None = None, wait_seconds: float | None = None
    ) -> Invoked:
        called = self.call(function, payload, name=name)
        seconds = LONGEST_INVOKE_SECONDS if wait_seconds is None else wait_seconds
        found = wait_for(lambda: self.find_answer(function, called.job_id), seconds, self._store.clock)
        return found or refuse_late(called, function, seconds)

    def call(self, function: str, payload: str = "null", *, name: str | None = None, user: str = "local") -> Called:
        body = {"payload": payload, "name": name}
        answer = self._server.create(path_of("functions", function, "calls"), body)
        return Called(answer["job_id"], _execution(answer["execution"]))

    def find_answer(self, function: str, job_id: str) -> Invoked | None:
        answer = self._server.read("GET", path_of("functions", function, "calls", job_id))
        if answer is None:
            return None
        return Invoked(**{**answer, "execution": _execution(answer["execution"])})


def _execution(answer: Any) -> DurableExecution | None:
    return None if answer is None else DurableExecution.model_validate(answer)


def _with_times(value: Any) -> Any:
    """Return an event with its times, which are texts in JSON."""
    if isinstance(value, list):
        return [_with_times(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _instant(each) if name.endswith("Timestamp") else _with_times(each) for name, each in value.items()}


def _instant(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else value
