"""The album executions of a server: read through its store, changed through its REST API."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Unpack

from jobtable.jobs.engine import Jobs
from jobtable.remote.server_requests import Server, only_at_store, path_of
from jobtable.systems.albums.album_executions import ANSWER_WITHIN, Executions, Question
from jobtable.systems.albums.answers import Answers, with_field_names
from jobtable.systems.albums.entities import Comparison, Execution, WorkflowType
from jobtable.systems.albums.style_comparison import Comparisons
from jobtable.systems.albums.watch import Watch, WatchReport


@only_at_store("fail", "resume")
class ServerExecutions(Executions):
    """Executions that a server's workers run."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(jobs)
        self._server = server

    def start(
        self,
        workflow_type: WorkflowType,
        image: bytes,
        name: str,
        *,
        execution_id: str | None = None,
        user: str = "local",  # ignored: the server records the user of the token
        **question: Unpack[Question],
    ) -> Execution:
        body = {
            "workflow_type": workflow_type,
            "image": base64.b64encode(image).decode(),
            "name": name,
            "execution_id": execution_id,
            "answer_within_seconds": question.get("answer_within", ANSWER_WITHIN).total_seconds(),
            "on_timeout": question.get("on_timeout"),
            "deliver": question.get("deliver"),
        }
        return Execution.model_validate(self._server.create("/execution-runs", body))

    def retry(self, execution_id: str) -> Execution:
        return Execution.model_validate(self._server.write("POST", path_of("executions", execution_id, "retry")))

    def delete(self, execution_id: str, *, stop: bool = False, by: str = "local") -> int:
        return int(self._server.write("DELETE", path_of("executions", execution_id), query={"stop": stop})["count"])


@only_at_store("time_out")
class ServerAnswers(Answers):
    """Answers tasks through a server."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(jobs)
        self._server = server

    def complete(self, task_id: str, token: str, answered: Any) -> Execution:
        return self._complete_there(task_id, {"albums": with_field_names(answered), "token": token})

    def complete_by_right(self, task_id: str, answered: Any) -> Execution:
        return self._complete_there(task_id, {"albums": with_field_names(answered)})

    def _complete_there(self, task_id: str, body: dict[str, Any]) -> Execution:
        return Execution.model_validate(self._server.write("POST", path_of("tasks", task_id, "complete"), body))

    def renew_token(self, task_id: str) -> str:
        return str(self._server.write("POST", path_of("tasks", task_id, "token"))["token"])


class ServerComparisons(Comparisons):
    """Comparisons that a server's workers run."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(jobs)
        self._server = server

    def start(
        self,
        images: Sequence[tuple[str, bytes]],
        runs: int,
        *,
        comparison_id: str | None = None,
        user: str = "local",  # as above
    ) -> Comparison:
        encoded = [{"name": name, "image": base64.b64encode(image).decode()} for name, image in images]
        body = {"images": encoded, "runs": runs, "comparison_id": comparison_id}
        return Comparison.model_validate(self._server.create("/comparisons", body))

    def confirm(self, comparison_id: str) -> int:
        return int(self._server.write("POST", path_of("comparisons", comparison_id, "confirm"))["count"])


class ServerWatch(Watch):
    """The watch over the executions of a server, which runs it itself."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(jobs)

    def expire_due(self) -> WatchReport:
        return WatchReport()

    def check(self, execution_id: str) -> Execution:
        return self._executions.records.get_execution(execution_id)
