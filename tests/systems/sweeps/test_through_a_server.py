"""Sweeps through a server, in Python and on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_up import up
from tests.remote.conftest import REPOSITORY, run_far, working
from tests.running import run_jobs
from tests.web.conftest import Served
from typer.testing import CliRunner

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.cli.main import app
from jobtable.errors import (
    ConflictError,
    NotFoundError,
    ValueRefusedError,
)
from jobtable.jobs.stored.field_types import Status
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep

SQUARES = """
from jobtable.jobs.tasks import task

@task(inline=True)
def square(x: int) -> int:
    return x * x
"""

SPACE: dict[str, Any] = {"x": [0, 1, 2]}


def sweep(**changed: Any) -> Sweep:
    values = {"name": "squares", "task": "tests.remote.tasks:square", "space": SPACE, "sampler": "grid", **changed}
    return Sweep(**values)


class TestSweeps:
    def test_is_submitted_stopped_and_resumed(self, served: Served, remote: Services) -> None:
        parent = remote.get(Sweeps).submit(sweep(), sweep_id="s1", user="somebody else")
        assert (parent.job_id, parent.created_by) == ("s1", "full")
        assert remote.get(Sweeps).submit(sweep(), sweep_id="s1") == parent
        with pytest.raises(ConflictError, match="another definition"):
            remote.get(Sweeps).submit(sweep(name="other"), sweep_id="s1")
        assert remote.get(Sweeps).stop("s1").job_id == "s1"
        remote.get(Sweeps).resume("s1")
        run_jobs(served.services.engine, "default")
        progress = remote.get(Sweeps).get_progress("s1")
        assert (progress.status, progress.completed) == (Status.COMPLETED, 3)
        best = remote.get(Sweeps).find_best("s1")
        assert best is not None
        assert best.params == {"x": 0}

    def test_is_extended(self, served: Served, remote: Services) -> None:
        remote.get(Sweeps).submit(sweep(trials=1, queue="more"), sweep_id="more")
        run_jobs(served.services.engine, "more")
        assert remote.get(Sweeps).extend("more", trials=1) == 2
        assert remote.get(Sweeps).extend("more", total=3) == 3
        with pytest.raises(ValueRefusedError, match="the grid of sweep more has only 3 points, not 4"):
            remote.get(Sweeps).extend("more", trials=1)
        run_jobs(served.services.engine, "more")
        assert remote.get(Sweeps).get_progress("more").completed == 3

    def test_what_is_no_sweep_is_not_there(self, remote: Services) -> None:
        with pytest.raises(NotFoundError):
            remote.get(Sweeps).stop("none")

    @pytest.mark.parametrize(
        ("changed", "status"),
        [
            ({}, 201),
            ({"sampler": {"name": "grid"}}, 201),
            ({"sampler": "random"}, 400),
            ({"sampler": "nobody's"}, 422),
            ({"sampler": 3}, 422),
            ({"space": {"x": []}}, 422),
            ({"trials": "3"}, 422),
            ({"params": {"x": 1}}, 400),
            ({"unknown": 1}, 422),
        ],
    )
    def test_the_api_takes_a_definition_as_its_file_has_it(
        self, served: Served, changed: dict[str, Any], status: int
    ) -> None:
        definition = {
            "name": "n",
            "task": "tests.remote.tasks:square",
            "space": SPACE,
            "sampler": "grid",
            "queue": "api",
            **changed,
        }
        answer = served.client(Role.FULL).post("/api/v1/sweeps", json={"sweep": definition})
        assert answer.status_code in (status, 422 if status == 400 else status), answer.text


def test_a_sweep_is_run_and_followed(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "sweep.json"
    file.write_text(sweep(queue="cli").model_dump_json())
    with working(served, "cli"):
        done = run_far(served, "sweeps", "run", str(file), "--follow", "--json")
    assert (json.loads(done.stdout)["status"], json.loads(done.stdout)["completed"]) == ("COMPLETED", 3)
    assert "No worker serves the queue cli yet" in done.stderr
    sweep_id = run_far(served, "sweeps", "run", str(file)).stdout.strip()
    run_far(served, "sweeps", "stop", sweep_id)


def test_a_sweep_of_the_server_is_run_by_workers_here(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    file = tmp_path / "sweep.json"
    file.write_text(sweep(queue="here").model_dump_json())
    done = run_far(served, "sweeps", "run", str(file), "--id", "here", "--workers", "2", "--json")
    assert (json.loads(done.stdout)["status"], json.loads(done.stdout)["completed"]) == ("COMPLETED", 3)
    assert served.services.get(Sweeps).get_progress("here").completed == 3
    assert run_far(served, "sweeps", "resume", "here", "--workers", "1").exit_code == 0


def test_a_whole_product_is_used_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server and its worker are processes of their own; nothing here but its address."""
    (tmp_path / "squares.py").write_text(SQUARES)
    file = tmp_path / "sweep.json"
    file.write_text(sweep(task="squares:square").model_dump_json())
    with up(tmp_path) as server:
        url = re.search(r"http://\S+", server.read_until("http://", seconds=60))
        assert url is not None
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        command = ["--server", url[0].rstrip("."), "sweeps", "run", str(file), "--follow", "--json"]
        done = CliRunner().invoke(app, command, env={"JOBTABLE_STORE": ""})
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["completed"] == 3
        assert list(elsewhere.iterdir()) == []
        assert server.interrupt() == 0
