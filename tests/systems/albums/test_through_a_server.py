"""Executions through a server, in Python and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.remote.conftest import json_far, run_far, working
from tests.running import run_jobs
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.errors import (
    ConflictError,
    DefinitionError,
    NotFoundError,
    RequestRefused,
    TokenRefusedError,
    ValueRefusedError,
)
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import ExecutionStatus
from jobtable.systems.albums.example import PATHS
from jobtable.systems.albums.executions import Executions
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.watch import Watch

SHELF = b"Radiohead - OK Computer (1997)\nPortishead - Dummy\n"


class TestAlbums:
    def test_is_started_answered_and_counted(self, served: Served, remote: Services) -> None:
        executions = remote.get(Executions)
        started = executions.start(next(iter(PATHS.values())), SHELF, "shelf.txt", execution_id="e1")
        assert executions.start(next(iter(PATHS.values())), SHELF, "shelf.txt", execution_id="e1") == started
        assert executions.get_definition("e1").steps
        with pytest.raises((DefinitionError, NotFoundError)):
            executions.start("no.such:DEFINITION", SHELF, "shelf.txt")
        run_jobs(served.services.engine, "albums")
        assert remote.get(AlbumWorkflows).get_execution("e1").status is ExecutionStatus.WAITING
        task_id = executions.get_watch("e1").task_id
        assert task_id is not None
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
        run_jobs(served.services.engine, "albums")
        assert remote.get(AlbumWorkflows).get_execution("e1").status is ExecutionStatus.COMPLETED
        assert remote.get(Watch).expire_due().looked_at == 0
        day = remote.get(AlbumWorkflows).get_execution("e1").created_at.date()
        counted = served.client(Role.FULL).post(f"/api/v1/workflow-metrics/{day}/compute").json()
        assert counted["step_functions"]["execution_count"] == 1

    def test_is_retried_and_deleted(self, served: Served, remote: Services) -> None:
        executions = remote.get(Executions)
        executions.start(next(iter(PATHS.values())), b"nothing", "shelf.txt", execution_id="e2")
        run_jobs(served.services.engine, "albums")
        assert (executions.retry("e2").attempt, remote.get(AlbumWorkflows).get_execution("e2").status) == (
            2,
            ExecutionStatus.RUNNING,
        )
        with pytest.raises(ConflictError, match="stop it or wait"):
            executions.delete("e2")
        assert executions.delete("e2", stop=True) > 2
        with pytest.raises(NotFoundError):
            executions.retry("e2")


def test_an_execution_is_started_followed_and_answered(served: Served, tmp_path: Path) -> None:
    (tmp_path / "shelf.txt").write_bytes(SHELF)
    with working(served, "albums"):
        started = json_far(served, "executions", "start", str(tmp_path / "shelf.txt"))
        assert started["execution"]["status"] == "waiting"
        task_id = started["tasks"][0]["task_id"]
        token = run_far(served, "tasks", "token", task_id).stdout.strip()
        done = json_far(served, "tasks", "complete", task_id, "--token", token, "--confirm")
    assert done["execution"]["status"] == "completed"
    run_far(served, "executions", "metrics")


def test_a_definition_that_only_the_server_has_is_run(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    executions = served.services.get(Executions)
    started = executions.start("tests.systems.albums.workflows:TWO_QUESTIONS", b"", "image.jpg")
    run_jobs(served.services.engine, "albums")
    task_id = str(executions.get_watch(started.execution_id).task_id)
    token = run_far(served, "tasks", "token", task_id).stdout.strip()

    def refuse(*_: object) -> None:
        raise DefinitionError("there is no such module here")

    monkeypatch.setattr(Executions, "get_definition", refuse)
    shown = run_far(served, "tasks", "complete", task_id, "--token", token, "--confirm").stdout
    assert "ask-again" in shown
