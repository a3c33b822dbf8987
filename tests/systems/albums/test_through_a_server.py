"""Executions through a server, in Python and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.remote.conftest import json_far, run_far, working
from tests.systems.albums.driving import checked, work
from tests.systems.albums.test_executions import each_kind
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.errors import (
    ConflictError,
    NotFoundError,
    RequestRefused,
    TokenRefusedError,
    ValueRefusedError,
)
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import ExecutionStatus, WorkflowType
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.style_comparison import Comparisons
from jobtable.systems.albums.watch import Watch
from jobtable.workflows.table_and_queues import QUEUES

SHELF = b"Radiohead - OK Computer (1997)\nPortishead - Dummy\n"


@each_kind
class TestAlbums:
    def test_is_started_answered_and_counted(self, served: Served, remote: Services, kind: WorkflowType) -> None:
        executions, e1 = remote.get(Executions), f"e1-{kind}"
        started = executions.start(kind, SHELF, "shelf.txt", execution_id=e1)
        assert executions.start(kind, SHELF, "shelf.txt", execution_id=e1) == started
        with pytest.raises(RequestRefused):
            executions.start(kind, SHELF, "shelf.txt", on_timeout="no such act")
        work(served.services.engine)
        waiting = remote.get(AlbumWorkflows).get_execution(e1)
        assert waiting.status is ExecutionStatus.WAITING
        (task_id,) = waiting.task_ids or []
        answer = [album.model_dump(mode="json") for album in remote.get(AlbumWorkflows).get_task(task_id).albums]
        with pytest.raises(TokenRefusedError):
            remote.get(Answers).complete(task_id, "wrong", answer)
        token = remote.get(Answers).renew_token(task_id)
        with pytest.raises(RequestRefused):
            remote.get(Answers).complete(task_id, token, "no list")
        with pytest.raises(ValueRefusedError, match="does not ask about album 999"):
            remote.get(Answers).complete_by_right(task_id, [{**answer[0], "album_index": 999}])
        camel = [{"albumName" if name == "album_name" else name: each[name] for name in each} for each in answer]
        assert remote.get(Answers).complete(task_id, token, camel).status is not ExecutionStatus.WAITING
        assert checked(served.services.engine, e1).status is ExecutionStatus.COMPLETED
        assert remote.get(Watch).check(e1).figures is not None
        assert remote.get(Watch).expire_due().looked_at == 0
        day = remote.get(AlbumWorkflows).get_execution(e1).created_at.date()
        counted = served.client(Role.FULL).post(f"/api/v1/workflow-metrics/{day}/compute").json()
        assert counted[kind.replace("-", "_")]["execution_count"] == 1

    def test_is_retried_and_deleted(self, served: Served, remote: Services, kind: WorkflowType) -> None:
        executions, e2 = remote.get(Executions), f"e2-{kind}"
        executions.start(kind, b"nothing", "shelf.txt", execution_id=e2)
        checked(served.services.engine, e2)
        assert (executions.retry(e2).attempt, remote.get(AlbumWorkflows).get_execution(e2).status) == (
            2,
            ExecutionStatus.RUNNING,
        )
        with pytest.raises(ConflictError, match="stop it or wait"):
            executions.delete(e2)
        assert executions.delete(e2, stop=True) > 2
        with pytest.raises(NotFoundError):
            executions.retry(e2)


def test_styles_are_compared(served: Served, remote: Services) -> None:
    comparisons = remote.get(Comparisons)
    started = comparisons.start([("shelf.txt", SHELF)], 1, comparison_id="c1")
    assert comparisons.start([("shelf.txt", SHELF)], 1, comparison_id="c1") == started
    work(served.services.engine)
    assert comparisons.confirm("c1") == 2
    for execution_id in started.execution_ids:
        checked(served.services.engine, execution_id)
    assert comparisons.read("c1").is_settled


def test_an_execution_is_started_followed_and_answered(served: Served, tmp_path: Path) -> None:
    (tmp_path / "shelf.txt").write_bytes(SHELF)
    with working(served, *QUEUES):
        started = json_far(served, "executions", "start", str(tmp_path / "shelf.txt"))
        assert started["execution"]["status"] == "waiting"
        task_id = started["tasks"][0]["task_id"]
        token = run_far(served, "tasks", "token", task_id).stdout.strip()
        done = json_far(served, "tasks", "complete", task_id, "--token", token, "--confirm")
    assert done["execution"]["status"] == "completed"
    run_far(served, "executions", "metrics")
