"""`jobtable functions`: functions are published, called, and watched if they are durable."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.cli.conftest import CommandLine
from tests.registered_functions import only_functions_of
from tests.remote.functions import driving, wait_until

from jobtable.app import Services
from jobtable.cli.output import ExitCode
from jobtable.workflows.durable.entities import OperationType

MODULE = "tests.cli.functions"


@pytest.fixture(autouse=True)
def _own_functions() -> Iterator[None]:
    with only_functions_of(MODULE):
        yield


@pytest.fixture
def published(cli: CommandLine) -> CommandLine:
    cli.run("functions", "publish", MODULE)
    return cli


def test_functions_of_a_module_are_published_and_listed(cli: CommandLine) -> None:
    rows = {row["name"]: row for row in cli.json("functions", "publish", MODULE)}
    assert rows["cli-double"]["path"] == f"{MODULE}:double"
    assert rows["cli-settle"]["durable"] is not None
    listed = {row["name"]: row for row in cli.json("functions", "list")}
    assert {name: listed[name] for name in rows} == rows
    wrong = cli.run("functions", "publish", "tests.none", code=ExitCode.USAGE)
    assert "cannot import tests.none: ModuleNotFoundError" in wrong.stderr


def test_a_function_is_called_and_its_answer_printed(published: CommandLine) -> None:
    with Services.open(published.store) as services, driving(services):
        assert published.run("functions", "invoke", "cli-double", "--payload", '{"number": 4}').stdout == "8\n"
        failed = published.run("functions", "invoke", "cli-double", "--payload", "{}", code=ExitCode.NOT_COMPLETED)
        assert "cli-double failed" in failed.stderr
        assert "KeyError" in failed.stderr
    late = published.run(
        *("functions", "invoke", "cli-double", "--payload", '{"number": 4}', "--timeout", "0"),
        code=ExitCode.NOT_COMPLETED,
    )
    assert "No worker serves the queue functions yet" in late.stderr
    assert "The call continues as job " in late.stderr
    unknown = published.run("functions", "invoke", "none", code=ExitCode.NOT_FOUND)
    assert "there is no function none; `jobtable functions list` lists them" in unknown.stderr
    wrong = published.run("functions", "invoke", "cli-double", "--payload", "{", code=ExitCode.USAGE)
    assert "is not JSON" in wrong.stderr


def test_a_durable_execution_waits_for_an_answer_and_goes_on(published: CommandLine) -> None:
    run = published.run
    started = run("functions", "start", "cli-settle", "--payload", '{"question": "ok?"}', "--name", "november").stdout
    assert started == "cli-settle/november\n"
    taken = ("functions", "start", "cli-settle", "--payload", '{"question": "no?"}', "--name", "november")
    run(*taken, code=ExitCode.CONFLICT)
    with Services.open(published.store) as services, driving(services):
        operations = services.durable.operations
        wait_until(lambda: any(each.type is OperationType.CALLBACK for each in operations("cli-settle", "november")))
        shown = run("functions", "show", "cli-settle/november").stdout
        (callback,) = [each for each in operations("cli-settle", "november") if each.type is OperationType.CALLBACK]
        callback_id = services.durable.callback_id(callback)
        assert callback_id in shown
        run("functions", "answer", callback_id, "--beat")
        run("functions", "answer", callback_id, "--result", '"yes"')
        run("functions", "answer", callback_id, "--result", '"yes"', code=ExitCode.CONFLICT)
        assert json.loads(run("functions", "wait", "cli-settle/november").stdout) == '"yes"'
    assert published.json("functions", "show", "cli-settle/november")["output"] is not None
    (row,) = published.json("functions", "executions", "cli-settle", "--status", "succeeded")
    assert row["name"] == "november"
    printed = run("functions", "history", "cli-settle/november").stdout
    assert "ExecutionStarted" in printed
    assert printed.splitlines()[-1].split()[2].startswith(("ExecutionSucceeded", "InvocationCompleted"))
    run("functions", "delete", "cli-settle/november", "--yes")
    run("functions", "show", "cli-settle/november", code=ExitCode.NOT_FOUND)


def test_a_durable_execution_is_stopped(published: CommandLine) -> None:
    published.run("functions", "start", "cli-settle", "--payload", '{"question": "ok?"}', "--name", "stopped")
    published.run("functions", "delete", "cli-settle/stopped", "--yes", code=ExitCode.CONFLICT)
    assert published.json("functions", "stop", "cli-settle/stopped", "--message", "late")["status"] == "STOPPED"
    ended = published.run("functions", "wait", "cli-settle/stopped", code=ExitCode.NOT_COMPLETED)
    assert "cli-settle/stopped is STOPPED" in ended.stderr
    for wrong in ("stopped", "/stopped", "cli-settle/"):
        refused = published.run("functions", "show", wrong, code=ExitCode.FAILED)
        assert "write FUNCTION/NAME" in refused.stderr


def test_an_answer_is_one_thing(published: CommandLine) -> None:
    for words in ([], ["--beat", "--result", "1"], ["--error", "x", "--result", "1"]):
        refused = published.run("functions", "answer", "Q2FsbGJhY2s=", *words, code=ExitCode.USAGE)
        assert "use one of --result, --error and --beat" in refused.stderr
    published.run("functions", "answer", "made-up", "--beat", code=ExitCode.FAILED)
