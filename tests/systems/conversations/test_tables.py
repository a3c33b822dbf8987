"""The tables of conversations on the command line, with and without their optional index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.access_patterns.jobs import START
from typer.testing import CliRunner, Result

from jobtable import connect
from jobtable.cli.main import app
from jobtable.systems.conversations.entities import TopicName, embeddings


def run(*arguments: str, environment: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, ["tables", *arguments], env=environment)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file:{tmp_path / 'tables.db'}"


def test_the_conversation_index_can_be_left_out(url: str) -> None:
    run("create", "--store", url, "--system", "conversations", "--without-index", "ConversationIndex")
    same = run("diff", "--store", url, "--system", "conversations", "--without-index", "ConversationIndex")
    assert (same.exit_code, same.stdout) == (0, "")
    other = run("diff", "--store", url, "--system", "conversations")
    assert other.exit_code == 1
    assert f"{embeddings.name} " in other.stdout
    assert "index ConversationIndex is declared, but not deployed" in other.stdout


def test_what_is_missing_is_added_and_holds_what_was_there(url: str) -> None:
    run("create", "--store", url, "--system", "conversations", "--without-index", "ConversationIndex")
    name = TopicName(
        job_id="j",
        conversation_id="town",
        created_at=START,
        topic_key="layer0_1",
        layer_id=0,
        cluster_id=1,
        topic_name="Parks",
        model_name="m",
    )
    with connect(url) as store:
        store.add(name)
    updated = run("update", "--store", url, "--json")
    added = json.loads(updated.stdout)
    assert {(row["table"].startswith("Delphi_"), row["added"]) for row in added} == {(True, "index ConversationIndex")}
    counts = {row["table"]: 1 if row["table"] == TopicName.__schema__.table.name else 0 for row in added}
    assert updated.stderr.splitlines() == [
        f"{table}: filling the index ConversationIndex (items: {count}) ..." for table, count in counts.items()
    ]
    assert run("diff", "--store", url, "--system", "conversations").exit_code == 0
    with connect(url) as store:
        assert list(store.query(TopicName.by_conversation(conversation_id="town"))) == [name]
    again = run("update", "--store", url)
    assert (again.exit_code, again.stdout, again.stderr) == (0, "", "Every table is complete.\n")
