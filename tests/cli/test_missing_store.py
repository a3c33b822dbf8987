"""A store that is not there: who only asks is told so and leaves nothing behind, who brings something makes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import CommandLine
from typer.core import TyperGroup
from typer.testing import CliRunner

from jobtable.cli import main
from jobtable.cli.main import app, load
from jobtable.cli.output import ExitCode

CREATING = {
    "assist try",
    "activities create",
    "aws serve",
    "conversations analyze",
    "dynamodb serve",
    "executions compare",
    "executions start",
    "functions publish",
    "import",
    "jobs submit",
    "journeys create",
    "journeys import",
    "machines create",
    "queues create",
    "receipts add",
    "sweeps run",
    "tables create",
    "tokens create",
    "up",
    "worker",
}
WITHOUT_STORE = {
    "assist providers",
    "config show",
    "conversations example",
    "journeys example",
    "machines validate",
    "receipts migrate",  # reads one, and makes another
    "tables reference",
    "tables template",
    "workflows template",
}


def commands() -> Iterator[str]:
    """Every command, by the words that it is written with."""
    for name in main.commands():
        command = load(name)
        if isinstance(command, TyperGroup):
            yield from (f"{name} {each}" for each in command.commands)
        else:
            yield name


ASKING = sorted(set(commands()) - CREATING - WITHOUT_STORE)
ARGUMENTS = {
    "conversations compare": ("A", "B"),
    "conversations rerun": ("X", "--from", "layout"),
    "export": ("jobtable", "out.jsonl"),
    "jobs prioritise": ("X", "--priority", "1"),
    "journeys rule": ("X", "Y", "active"),
    "machines alias": ("X", "Y", "--route", "1"),
    "machines delete-version": ("X", "1"),
    "objects get": ("x", "out"),
    "objects sweep": ("--yes",),
    "queues change": ("X", "--priority", "1"),
    "receipts show": ("X", "1"),
    "sweeps extend": ("X", "--trials", "1"),
    "tasks complete": ("X", "--token", "t", "--confirm"),
}


def arguments_of(command: str) -> tuple[str, ...]:
    """What a command needs, and what keeps it from asking."""
    first, *rest = command.split()
    found = load(first)
    if rest:
        found = found.commands[rest[0]]
    given = ARGUMENTS.get(command)
    if given is None:
        given = tuple("X" for each in found.params if each.required and each.param_type_name == "argument")
    return (*given, "--yes") if any("--yes" in each.opts for each in found.params) and "--yes" not in given else given


def test_every_command_is_judged_here() -> None:
    assert set(commands()) >= CREATING | WITHOUT_STORE
    assert len(ASKING) > 40


@pytest.mark.parametrize("command", ASKING)
def test_who_asks_a_store_that_is_not_there_is_told_so_and_makes_none(
    cli: CommandLine, tmp_path: Path, command: str
) -> None:
    done = cli.run(*command.split(), *arguments_of(command), code=ExitCode.USAGE)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: there is no store at {tmp_path / 'jobs.db'} (JOBTABLE_STORE); "), line
    assert "`jobtable up`" in line
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_where_the_store_is_named_is_said(cli: CommandLine, tmp_path: Path) -> None:
    assert "(--store)" in cli.run("jobs", "list", "--store", "file:mistyped/jobs.db", code=2).stderr
    plain = CliRunner().invoke(app, ["tables", "list"], env={"JOBTABLE_STORE": ""})
    assert (plain.exit_code, plain.stderr.partition(":")[2].partition(";")[0]) == (
        2,
        " there is no store at .jobtable/jobtable.db (the default)",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda cli: cli.run("jobs", "submit", "--task", "m:f"),
        lambda cli: cli.run("queues", "create", "gpu"),
        lambda cli: cli.run("tables", "create"),
        lambda cli: cli.run("tokens", "create", "--role", "read"),
        lambda cli: cli.run("worker", "--until-empty"),
    ],
)
def test_who_brings_something_makes_the_store(cli: CommandLine, make: Callable[[CommandLine], object]) -> None:
    make(cli)
    assert json.loads(cli.run("tables", "list", "--system", "jobs", "--json").stdout)[0]["deployed"]


def test_items_come_into_a_store_that_was_not_there(cli: CommandLine, tmp_path: Path) -> None:
    cli.run("queues", "create", "gpu")
    cli.run("export", "jobtable", "items.jsonl")
    cli.run("import", "items.jsonl", "--store", "file:copy.db")
    assert "gpu" in cli.run("queues", "list", "--store", "file:copy.db").stdout
    refused = cli.run("receipts", "migrate", "--store", "file:none.db", "--to", "file:new.db", code=2)
    assert "there is no store at none.db (--store)" in refused.stderr
    assert not (tmp_path / "new.db").exists()
