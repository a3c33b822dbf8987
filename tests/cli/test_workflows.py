"""`jobtable workflows`: executions are started, followed, answered and ended on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import CommandLine
from tests.remote import machines
from tests.remote.functions import driving, wait_until

from jobtable.app import Services
from jobtable.cli.output import ExitCode


@pytest.fixture
def line(cli: CommandLine) -> CommandLine:
    """A command line with the machines of the tests."""
    for name in ("ADD", "WAIT", "PASS", "PACK", "FAIL", "MAP"):
        file = Path(f"{name.lower()}.asl.json")
        file.write_text(getattr(machines, name))
        cli.run("machines", "create", name.lower(), str(file))
    cli.run("machines", "create", "fast", "pass.asl.json", "--type", "express")
    return cli


@pytest.fixture
def worked(line: CommandLine) -> Iterator[Services]:
    """The services of its store, on which a worker runs."""
    with Services.open(line.store) as services, driving(services):
        yield services


def test_an_execution_is_started_awaited_and_shown(line: CommandLine, worked: Services) -> None:
    Path("input.json").write_text('{"a": 1, "b": 2}')
    assert line.run("workflows", "start", "add", "--input", "@input.json", "--wait").stdout == "3\n"
    assert line.run("workflows", "start", "add", "--input", '{"a": 1, "b": 1}', "--name", "sum").stdout == "add/sum\n"
    assert line.run("workflows", "wait", "add/sum").stdout == "2\n"
    shown = line.json("workflows", "show", "add/sum")
    assert (json.loads(shown["input"]), shown["output"]) == ({"a": 1, "b": 1}, "2")
    assert "SUCCEEDED" in line.run("workflows", "show", "add/sum").stdout
    line.run("workflows", "start", "add", "--name", "sum", code=ExitCode.CONFLICT)
    failed = line.run("workflows", "start", "fail", "--name", "one", "--wait", code=ExitCode.NOT_COMPLETED)
    assert "fail/one is FAILED: Lost: nobody knows" in failed.stderr
    names = [f"{each['machine']}/{each['name']}" for each in line.json("workflows", "list")]
    assert names[:2] == ["fail/one", "add/sum"]
    assert len(names) == 3
    succeeded = [each["name"] for each in line.json("workflows", "list", "add", "--status", "succeeded")]
    assert (len(succeeded), succeeded[0]) == (2, "sum")
    assert line.json("workflows", "list", "add", "--status", "failed") == []


def test_the_history_is_printed_and_followed(line: CommandLine, worked: Services) -> None:
    line.run("workflows", "start", "add", "--input", '{"a": 1, "b": 1}', "--name", "sum", "--wait")
    printed = line.run("workflows", "history", "add/sum").stdout
    assert line.run("workflows", "history", "add/sum", "--follow").stdout == printed
    events = [json.loads(each) for each in line.run("workflows", "history", "add/sum", "--json").stdout.splitlines()]
    assert [event["event_id"] for event in events] == list(range(1, len(events) + 1))
    assert [row.split()[2] for row in printed.splitlines()] == [event["type"] for event in events]
    assert events[0]["type"] == "ExecutionStarted"
    shown = [json.loads(row.split(maxsplit=3)[3]) for row in printed.splitlines() if len(row.split()) > 3]
    assert shown[-1] == {"output": "2"}


def test_an_execution_is_stopped_redriven_and_deleted(line: CommandLine, worked: Services) -> None:
    line.run("workflows", "start", "wait", "--name", "long")
    late = line.run("workflows", "wait", "wait/long", "--timeout", "0", code=ExitCode.NOT_COMPLETED)
    assert "Not ended after 0 seconds" in late.stderr
    line.run("workflows", "delete", "wait/long", "--yes", code=ExitCode.CONFLICT)
    stopped = line.json("workflows", "stop", "wait/long", "--error", "Enough", "--cause", "it is late")
    assert (stopped["status"], stopped["error"]) == ("ABORTED", "Enough")
    wait_until(lambda: worked.jobs.queries.get_job(stopped["job_id"]).is_final)
    redriven = line.json("workflows", "redrive", "wait/long")
    assert redriven["redrive_count"] == 1
    line.run("workflows", "stop", "wait/long")
    wait_until(lambda: worked.jobs.queries.get_job(redriven["job_id"]).is_final)
    assert "wait/long deleted (" in line.run("workflows", "delete", "wait/long", "--yes").stdout
    line.run("workflows", "show", "wait/long", code=ExitCode.NOT_FOUND)


def test_tasks_of_an_activity_are_taken_and_answered(line: CommandLine, worked: Services) -> None:
    line.run("activities", "create", "pack-orders")
    line.run("activities", "poll", "pack-orders", "--wait", "0", code=ExitCode.NOT_FOUND)
    for name in ("good", "bad"):
        line.run("workflows", "start", "pack", "--name", name)
        token = line.json("activities", "poll", "pack-orders")["token"]
        line.run("workflows", "answer", token, "--beat")
        if name == "good":
            line.run("workflows", "answer", token, "--output", "{", code=ExitCode.USAGE)
            line.run("workflows", "answer", token, "--output", '{"packed": true}')
            line.run("workflows", "answer", token, "--output", "1", code=ExitCode.CONFLICT)
        else:
            line.run("workflows", "answer", token, "--error", "Broken", "--cause", "it fell")
    assert json.loads(line.run("workflows", "wait", "pack/good").stdout) == {"packed": True}
    broken = line.run("workflows", "wait", "pack/bad", code=ExitCode.NOT_COMPLETED)
    assert "pack/bad is FAILED: Broken: it fell" in broken.stderr
    line.run("workflows", "answer", "made-up", "--beat", code=ExitCode.FAILED)
    line.run("workflows", "answer", "made-up", code=ExitCode.USAGE)


def test_an_express_machine_is_run_here(line: CommandLine) -> None:
    assert json.loads(line.run("workflows", "run", "fast").stdout) == {"done": True}
    refused = line.run("workflows", "run", "pass", code=ExitCode.CONFLICT)
    assert "state machine pass is not express; start an execution of it" in refused.stderr


def test_runs_of_distributed_maps_are_listed(line: CommandLine, worked: Services) -> None:
    line.run("workflows", "start", "map", "--input", "[1, 2]", "--name", "items", "--wait")
    (run,) = line.json("workflows", "map-runs", "map/items")
    assert run["succeeded_count"] == 2
    assert "Each" in line.run("workflows", "map-runs", "map/items").stdout
    children = line.json("workflows", "list", "map/Each")
    assert line.json("workflows", "show", f"map/Each/{children[0]['name']}")["output"] is not None


def test_what_is_written_wrongly_is_refused(line: CommandLine) -> None:
    for wrong in ("orders", "/order", "orders/"):
        refused = line.run("workflows", "show", wrong, code=ExitCode.FAILED)
        assert "write MACHINE/NAME" in refused.stderr
    line.run("workflows", "start", "pass", "--name", "a b", code=ExitCode.FAILED)
    line.run("workflows", "start", "pass", "--input", "{", code=ExitCode.USAGE)
    missing = line.run("workflows", "start", "none", code=ExitCode.NOT_FOUND)
    assert "there is no state machine none; `jobtable machines list` lists them" in missing.stderr


def test_a_machine_is_deleted_with_its_executions_stopped(line: CommandLine, worked: Services) -> None:
    line.run("workflows", "start", "wait", "--name", "long")
    line.run("machines", "delete", "wait", "--stop", "--yes")
    wait_until(lambda: worked.executions.get("wait", "long").stopped_at is not None)
    line.run("machines", "show", "wait", code=ExitCode.NOT_FOUND)
