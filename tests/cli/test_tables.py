"""`jobtable tables`: create, list, diff, reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.access_patterns.jobs import START
from typer.testing import CliRunner, Result

from jobtable import connect
from jobtable.cli.main import app
from jobtable.jobs.stored.entities import Queue, main
from jobtable.reference import systems, tables
from jobtable.systems.conversations.entities import TopicName, embeddings


def run(*arguments: str, environment: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, ["tables", *arguments], env=environment)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file:{tmp_path / 'tables.db'}"


def test_every_system_can_be_named_and_no_other(url: str) -> None:
    assert run("create", "--store", url).exit_code == 0
    for name, used in systems().items():
        listed = run("list", "--store", url, "--system", name, "--json")
        assert [row["table"] for row in json.loads(listed.output)] == [table.name for table in used]
    refused = run("list", "--store", url, "--system", "nothing")
    assert refused.exit_code == 2
    assert "no system 'nothing' is installed; choose from jobs, " in refused.stderr


def test_all_tables_are_created_once(url: str) -> None:
    created = run("create", "--store", url)
    assert created.exit_code == 0
    assert created.output.splitlines() == [f"{table.name} created" for table in tables()]
    again = run("create", environment={"JOBTABLE_STORE": url})
    assert again.output.splitlines() == [f"{table.name} is there" for table in tables()]
    assert run("diff", "--store", url).exit_code == 0


def test_only_the_chosen_systems_are_created(url: str) -> None:
    done = run("create", "--store", url, "--system", "albums", "--system", "journeys")
    assert done.output.splitlines() == ["AlbumWorkflows created", "TransformationSystem created"]
    rows = json.loads(run("list", "--store", url, "--json").output)
    assert [row["table"] for row in rows if row["deployed"]] == ["TransformationSystem", "AlbumWorkflows"]
    assert "AlbumWorkflows" in run("list", "--store", url).output


def test_existing_tables_are_deleted_only_when_told(url: str) -> None:
    run("create", "--store", url, "--system", "jobs")
    queue = Queue(queue_name="gpu", created_at=START)
    with connect(url) as store:
        store.add(queue)
    run("create", "--store", url, "--system", "jobs")
    with connect(url) as store:
        assert store.find(Queue.key(queue_name="gpu")) == queue
    run("create", "--store", url, "--system", "jobs", "--delete-existing", "--yes")
    with connect(url) as store:
        assert store.find(Queue.key(queue_name="gpu")) is None
        assert store.tables.differences(main) == []


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
    assert (again.exit_code, again.stdout, again.stderr) == (0, "", "Nothing is missing.\n")


def test_without_a_store_it_is_the_one_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("create", "--system", "jobs", environment={"JOBTABLE_STORE": ""})
    assert done.output.splitlines() == ["jobtable created"]
    with connect(f"file:{tmp_path}/.jobtable/jobtable.db") as store:
        assert store.tables.names() == ["jobtable"]


def test_the_reference_names_every_kind_of_item() -> None:
    listed = json.loads(run("reference", "--json").output)
    assert len(listed) == sum(len(table.entities) for table in tables())
    label = next(each for each in listed if each["entity"] == "ReceiptWordLabel")
    assert label["system"] == "receipts"
    assert label["type"] == "RECEIPT_WORD_LABEL"
    assert label["keys"]["PK"] == "IMAGE#{image_id}"
    assert label["keys"]["GSI3PK"] == "VALIDATION_STATUS#{validation_status}"
    assert {"reasoning", "validation_status", "label_proposed_by"} <= set(label["attributes"])
    assert run("reference").output.startswith("# Entities")
