"""`jobtable executions` and `jobtable tasks`: a workflow with a person in it, on the embedded default."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import JOBTABLE
from typer.testing import CliRunner, Result

from jobtable.cli.main import app


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JOBTABLE_STORE", raising=False)
    (tmp_path / "shelf.txt").write_text("Pink Floyd - Animals (1977)\nThe Beatles - Abbey Road (1996)\n")


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


def answer(*arguments: str, stdin: str | None = None) -> Any:
    done = run(*arguments, "--json", stdin=stdin)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["step-functions", "durable-functions"])
def test_an_execution_waits_for_a_person_and_goes_on(kind: str) -> None:
    started = answer("executions", "start", "shelf.txt", "-t", kind)
    execution_id = started["execution"]["execution_id"]
    assert (started["execution"]["status"], started["execution"]["current_step"]) == ("waiting", "validate")
    (task,) = answer("tasks", "list")
    assert answer("executions", "show", execution_id)["tasks"] == [task] == [answer("tasks", "show", task["task_id"])]
    assert task["execution_id"] == execution_id
    assert "token_sha256" not in json.dumps([started, task])
    expires = f"{task['expires_at'][:10]} {task['expires_at'][11:19]}Z"
    for shown in (run("tasks", "list").stdout, run("tasks", "show", task["task_id"]).stdout):
        assert expires in shown
    token = run("tasks", "token", task["task_id"]).stdout.strip()
    albums = answer("tasks", "show", task["task_id"])["albums"]
    albums[1]["year"] = 1969
    forged = run("tasks", "complete", task["task_id"], "--token", "forged", "--confirm")
    assert (forged.exit_code, len(forged.stderr.splitlines())) == (1, 1)
    complete = ("tasks", "complete", task["task_id"], "--token", token)
    closed = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", str(JOBTABLE), *complete, "--answer", "-"]
    assert "stdin is closed" in subprocess.run(closed, capture_output=True, text=True, timeout=240, check=False).stderr
    malformed = run(*complete, "--answer", "-", stdin='[{"year": 1}]')
    assert malformed.exit_code == 1
    assert "must be a list of albums" in malformed.stderr
    ended = answer(*complete, "--answer", "-", stdin=json.dumps(albums))
    assert ended["execution"]["status"] == "completed"
    assert [album["year"] for album in ended["albums"]] == [1977, 1969]
    repeated = run(*complete, "--confirm")
    assert repeated.exit_code == 4
    assert "already answered" in repeated.stderr
    assert answer("executions", "list", "--status", "completed")[0]["execution_id"] == execution_id
    assert "Abbey Road" in run("executions", "show", execution_id).stdout
    metrics = answer("executions", "metrics")
    other = "durable_functions" if kind == "step-functions" else "step_functions"
    assert metrics[kind.replace("-", "_")]["success_count"] == 1
    assert metrics[other]["execution_count"] == 0
    assert answer("tasks", "expire")["looked_at"] == 0


def test_what_cannot_be_run_is_told(tmp_path: Path) -> None:
    (tmp_path / "junk.txt").write_text("nothing")
    failed = run("executions", "start", "junk.txt", "-t", "durable-functions")
    assert failed.exit_code == 5
    assert "names no albums" in failed.stdout
    assert "jobtable executions retry" in failed.stderr
    (execution,) = answer("executions", "list", "--status", "failed")
    for job in json.loads(run("jobs", "list", "--json").stdout):
        assert job["status"] in ("COMPLETED", "FAILED"), "its worker is stopped only when it has ended"
    again = run("executions", "retry", execution["execution_id"])
    assert again.exit_code == 5
    assert answer("executions", "show", execution["execution_id"])["execution"]["attempt"] == 2
    assert answer("executions", "delete", execution["execution_id"], "--yes")["items"] > 2
    assert run("executions", "show", execution["execution_id"]).exit_code == 3
    assert json.loads(run("jobs", "list", "--json").stdout) == []
    assert run("executions", "start", "missing.txt").exit_code == 2
    assert run("executions", "metrics", "yesterday").exit_code == 2
    assert run("executions", "start", "shelf.txt", "--deliver", "no.such:THING").exit_code == 1
    assert run("executions", "start", "shelf.txt", "--on-timeout", "wait").exit_code == 1
    assert run("tasks", "complete", "x", "--token", "y").exit_code == 2
    assert run("tasks", "token", "x").exit_code == 3
    assert run("tasks", "list").stderr == "No tasks match.\n"


def test_both_styles_are_compared(tmp_path: Path) -> None:
    compared = answer("executions", "compare", "shelf.txt", "--runs", "2")
    executions = compared["executions"]
    assert [each["workflow_type"] for each in executions] == ["step-functions", "durable-functions"] * 2
    assert {each["status"] for each in executions} == {"completed"}
    for each in executions:
        figures = each["figures"]
        assert figures["cost"] == each["estimated_cost"] > 0
        assert figures["prices"] == "2026-01-12 us-east-1"
        assert (figures["transitions"] > 0) == (each["workflow_type"] == "step-functions")
        assert (figures["operations"] > 0) == (each["workflow_type"] == "durable-functions")
        assert min(figures["work_ms"], figures["state_bytes"], figures["attempts"], figures["gb_seconds"]) > 0
    assert run("executions", "compare", "missing.txt").exit_code == 2


def test_a_sender_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "senders_of_mine.py").write_text(
        "def send(task, token):\n    open('sent', 'w').write(f'{task.task_id} {token}')\n"
    )
    started = answer("executions", "start", "shelf.txt", "--deliver", "senders_of_mine:send")
    task_id, token = (tmp_path / "sent").read_text().split()
    assert task_id == started["tasks"][0]["task_id"]
    assert answer("tasks", "complete", task_id, "--token", token, "--confirm")["execution"]["status"] == "completed"
