"""Executions of state machines of a server: read from its store, changed by its REST API."""

from __future__ import annotations

from typing import Any

from jobtable.remote.server_requests import Server, path_of
from jobtable.store import Store
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import ActivityTask, Execution, MapRun
from jobtable.workflows.asl.execution.execution_reads import ExecutionReads
from jobtable.workflows.asl.verbs import ExecutionVerbs, RunnableMachine, SyncResult

_EXPRESS_TIMEOUT_SECONDS = 330.0
"""An express execution runs for up to five minutes."""
_LONGEST_POLL_SECONDS = 20.0
"""How long one request for a task may wait."""


class ServerExecutions(ExecutionReads, ExecutionVerbs):
    """The executions of a server. It runs the definition that it has under the name and version of a machine."""

    def __init__(self, server: Server, store: Store) -> None:
        super().__init__(store)
        self._server = server

    def start(
        self,
        machine: RunnableMachine,
        payload: str,
        name: str | None = None,
        *,
        arns: Arns,
        trace: str | None = None,
        user: str = "local",
    ) -> Execution:
        body = {**_started(machine, payload, name, arns), "trace": trace}
        return Execution.model_validate(self._server.create(path_of("machines", machine.name, "executions"), body))

    def run_express(self, machine: RunnableMachine, payload: str, name: str | None = None, *, arns: Arns) -> SyncResult:
        answer = self._server.write(
            "POST",
            path_of("machines", machine.name, "express-runs"),
            _started(machine, payload, name, arns),
            timeout_seconds=_EXPRESS_TIMEOUT_SECONDS,
        )
        return SyncResult(Execution.model_validate(answer["execution"]), answer["billed_ms"], answer["billed_mb"])

    def stop(self, machine: str, name: str, *, error: str | None = None, cause: str | None = None) -> Execution:
        return Execution.model_validate(
            self._write("POST", machine, name, "stop", body={"error": error, "cause": cause})
        )

    def redrive(self, machine: str, name: str) -> Execution:
        return Execution.model_validate(self._write("POST", machine, name, "redrive"))

    def delete(self, machine: str, name: str) -> int:
        return int(self._write("DELETE", machine, name)["count"])

    def succeed(self, token: str, output: str) -> None:
        self._server.write("POST", "/task-tokens/success", {"token": token, "output": output})

    def fail(self, token: str, error: str | None, cause: str | None) -> None:
        self._server.write("POST", "/task-tokens/failure", {"token": token, "error": error, "cause": cause})

    def beat(self, token: str) -> None:
        self._server.write("POST", "/task-tokens/heartbeat", {"token": token})

    def poll(self, activity: str, worker: str, *, wait_seconds: float = 60.0) -> ActivityTask | None:
        clock = self._store.clock
        until = clock.monotonic() + wait_seconds
        while True:
            left = until - clock.monotonic()
            body = {"worker": worker, "wait_seconds": min(max(left, 0.0), _LONGEST_POLL_SECONDS)}
            answer = self._server.write("POST", path_of("activities", activity, "poll"), body)
            if answer is not None:
                return ActivityTask.model_validate(answer)
            if left <= _LONGEST_POLL_SECONDS:
                return None

    def change_map_run(
        self,
        map_run_id: str,
        *,
        max_concurrency: int | None = None,
        tolerated_failure_count: int | None = None,
        tolerated_failure_percentage: float | None = None,
    ) -> MapRun:
        body = {
            "max_concurrency": max_concurrency,
            "tolerated_failure_count": tolerated_failure_count,
            "tolerated_failure_percentage": tolerated_failure_percentage,
        }
        return MapRun.model_validate(self._server.write("PATCH", path_of("map-runs", map_run_id), body))

    def _write(self, method: str, machine: str, name: str, *verb: str, body: Any = None) -> Any:
        return self._server.write(method, path_of("machines", machine, "executions", name, *verb), body)


def _started(machine: RunnableMachine, payload: str, name: str | None, arns: Arns) -> dict[str, Any]:
    version = None if machine.version is None else int(machine.version)
    return {"input": payload, "name": name, "qualifier": machine.qualifier, "version": version, **vars(arns)}
