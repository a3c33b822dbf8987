"""Runs of a server: read through its store, changed through its REST API."""

from __future__ import annotations

from jobtable.errors import ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.remote.server_requests import Server, path_of
from jobtable.systems.conversations.conversation_runs import (
    QUEUE,
    ConversationRuns,
    Deleted,
    Run,
    RunSettings,
    checked_settings,
)
from jobtable.systems.conversations.pipeline import PipelineStage


class ServerRuns(ConversationRuns):
    """Analyses by the workers of a server; the token decides in whose name."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(jobs)
        self._server = server

    def start(
        self,
        conversation_id: str,
        comments_csv: bytes,
        votes_csv: bytes,
        settings: RunSettings | None = None,
        *,
        run_id: str | None = None,
        user: str = "local",  # ignored: the server records the user of the token
        queue: str = QUEUE,  # a server runs analyses on its own queue only
    ) -> Run:
        _refuse_another_queue(queue)
        settings = checked_settings(settings, comments_csv, votes_csv)
        body = {
            "conversation_id": conversation_id,
            "comments_csv": comments_csv.decode(),
            "votes_csv": votes_csv.decode(),
            **vars(settings),
            "run_id": run_id,
        }
        return self._run(self._server.create("/conversation-runs", body))

    def rerun(
        self,
        run_id: str,
        first: PipelineStage,
        *,
        seed: int | None = None,
        new_run_id: str | None = None,
        user: str = "local",  # as above
        queue: str = QUEUE,  # as above
    ) -> Run:
        _refuse_another_queue(queue)
        path = path_of("conversation-runs", run_id, "rerun")
        body = {"first": first.value, "seed": seed, "new_run_id": new_run_id}
        return self._run(self._server.create(path, body))

    def delete(self, run_id: str, *, stop: bool = False, by: str = "local") -> Deleted:
        return Deleted(**self._server.write("DELETE", path_of("conversation-runs", run_id), query={"stop": stop}))

    def _run(self, answer: dict[str, dict[str, str]]) -> Run:
        return self.get(answer["record"]["run_id"])


def _refuse_another_queue(queue: str) -> None:
    if queue != QUEUE:
        raise ValueRefusedError(f"runs on a server use its queue {QUEUE!r}, not {queue!r}")
