"""`jobtable conversations`: analyse, list, show, compare, run again and delete, on the embedded default."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from jobtable.cli.main import app


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JOBTABLE_STORE", raising=False)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["conversations", *arguments])


def answer(*arguments: str) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_conversation_from_export_to_deletion() -> None:
    assert run("example", "town", "--seed", "3", "--comments", "30", "--voters", "12").exit_code == 0
    first = answer("analyze", "town", "--seed", "7")
    run_id = first["run"]["run_id"]
    assert first["root"]["status"] == "COMPLETED"
    assert {stage: job["status"] for stage, job in first["stages"].items()} == dict.fromkeys(
        ("EMBEDDING", "CLUSTERING", "LAYOUT", "KEYWORDS", "TOPICS", "OPINIONS", "EXTREMITY"), "COMPLETED"
    )
    assert all(first["results"].values())
    again = answer("rerun", run_id, "--from", "topics")["run"]["run_id"]
    assert [each["run_id"] for each in answer("runs", "town")] == [again, run_id]
    compared = answer("compare", run_id, again)
    assert all(table["one"] == table["other"] == table["same"] for table in compared["tables"])
    assert "The results are the same." in run("compare", run_id, again).stderr
    for table in ("embeddings", "assignments", "clusters", "edges", "topics", "extremity", "opinions", "participants"):
        assert len(answer("show", run_id, "--table", table, "--limit", "2")) == 2
        assert run("show", run_id, "--table", table).exit_code == 0
    assert answer("delete", run_id, "--yes")["results"] == sum(first["results"].values())
    gone = run("show", run_id)
    assert gone.exit_code == 3
    assert gone.stderr == f"Error: there is no run {run_id}; `jobtable conversations runs CONVERSATION` lists them\n"
    shown = run("show", again).stdout
    assert again in shown
    assert run_id in shown


def test_an_example_takes_the_place_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "town").mkdir()
    (tmp_path / "town" / "votes.csv").write_text("mine")
    refused = run("example", "town")
    assert refused.exit_code == 2
    assert "votes.csv already exists" in refused.stderr
    assert [path.read_text() for path in (tmp_path / "town").iterdir()] == ["mine"]


def test_without_a_worker_the_run_is_only_submitted() -> None:
    run("example", "town", "--comments", "8", "--voters", "2")
    assert answer("analyze", "town", "--submit-only", "--id", "36324")["root"]["status"] == "RUNNING"
    (record,) = answer("runs", "36324")
    refused = run("delete", record["run_id"], "--yes")
    assert refused.exit_code == 4
    assert "cancel its job" in refused.stderr
    assert run("rerun", record["run_id"], "--from", "topics").exit_code == 4


def test_what_is_no_export_is_told_in_one_line(tmp_path: Path) -> None:
    missing = run("analyze", "nowhere")
    assert missing.exit_code == 1
    assert missing.stderr.startswith("Error: nowhere is not the folder of a Polis export")
    (tmp_path / "comments.csv").write_text("comment-id,comment-body\nx,y\n")
    (tmp_path / "votes.csv").write_text("comment-id,voter-id,vote\n")
    broken = run("analyze", ".")
    assert broken.stderr == "Error: comments.csv, line 2: comment-id must be a whole number, not 'x'\n"
    assert run("runs", "nobody").stderr == "Conversation nobody has no runs.\n"
