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
    assert "there is no system 'nothing'; the systems are jobs, " in refused.stderr


def test_all_tables_are_created_once(url: str) -> None:
    created = run("create", "--store", url)
    assert created.exit_code == 0
    assert created.output.splitlines() == [f"{table.name} created" for table in tables()]
    again = run("create", environment={"JOBTABLE_STORE": url})
    assert again.output.splitlines() == [f"{table.name} already exists" for table in tables()]
    assert run("diff", "--store", url).exit_code == 0


def test_only_the_chosen_systems_are_created(url: str) -> None:
    *others, last = systems()
    done = run("create", "--store", url, "--system", last)
    created = [table.name for table in systems()[last]]
    assert done.output.splitlines() == [f"{name} created" for name in created]
    rows = json.loads(run("list", "--store", url, "--json").output)
    assert [row["table"] for row in rows if row["deployed"]] == created
    assert bool(others) == any(not row["deployed"] for row in rows)
    assert created[0] in run("list", "--store", url).output


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


def test_without_a_store_it_is_the_one_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("create", "--system", "jobs", environment={"JOBTABLE_STORE": ""})
    assert done.output.splitlines() == ["jobtable created"]
    with connect(f"file:{tmp_path}/.jobtable/jobtable.db") as store:
        assert store.tables.names() == ["jobtable"]


def test_the_reference_names_every_kind_of_item() -> None:
    listed = json.loads(run("reference", "--json").output)
    assert len(listed) == sum(len(table.entities) for table in tables())
    metric = next(each for each in listed if each["entity"] == "JobMetric")
    assert metric["system"] == "jobs"
    assert metric["type"] == "JOB_METRIC"
    assert metric["keys"]["PK"] == "JOB#{job_id}"
    assert metric["keys"]["GSI1PK"] == "METRIC#{metric_name}"
    assert {"value", "unit", "step", "epoch"} <= set(metric["attributes"])
    assert run("reference").output.startswith("# Entities")
