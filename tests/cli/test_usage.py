"""A command that is written wrongly: one line says what is wrong, what was given and what is possible."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest
from tests.cli.conftest import CommandLine
from typer.core import TyperGroup

from jobtable.cli import main
from jobtable.cli.main import load


def commands(command: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command under one, with the words that lead to it."""
    if isinstance(command, TyperGroup):
        for name, each in command.commands.items():
            yield from commands(each, *names, name)
    else:
        yield names, command


def typed_options() -> Iterator[tuple[str, ...]]:
    """Each option that takes not just any text: a command, the option, and what its values are."""
    for name in main.commands():
        for words, command in commands(load(name), name):
            for each in command.params:
                kind = each.type_descriptor.annotation
                if kind in (int, float) or (isinstance(kind, type) and issubclass(kind, Enum)):
                    yield (*words, each.opts[-1])


def complaint(cli: CommandLine, *arguments: str) -> str:
    """The line that says what is wrong; the usage stands above it."""
    usage, *_, empty, line = cli.run(*arguments, code=2).stderr.splitlines()
    assert (usage[:15], empty) == ("Usage: jobtable", "")
    return line


@pytest.mark.parametrize("option", [option for option in typed_options() if option[-1].startswith("-")], ids=" ".join)
def test_a_wrong_value_is_told_in_one_line_of_our_own_words(cli: CommandLine, option: tuple[str, ...]) -> None:
    line = complaint(cli, *option, "foo\nbar")
    assert line.startswith("Error: Invalid value for '-")
    assert "'foo\\nbar' is no" in line
    assert "Value error" not in line
    assert "Input should" not in line


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("jobs list --status gone", "'--status': 'gone' is not one of 'pending', 'running', 'completed', "),
        ("jobs list --limit 1.5", "'--limit' / '-n': '1.5' is not a whole number"),
        ("jobs list --limit 0", "'--limit' / '-n': '0' is too small; the minimum is 1"),
        ("dynamodb serve --memory --port 70000", "'--port': '70000' is too large; the maximum is 65535"),
        ("jobs wait x --timeout soon", "'--timeout': 'soon' is not a number"),
        ("tokens create", "Error: Missing option '--role'. Choose from: read, full, worker"),
    ],
)
def test_what_is_possible_is_told(cli: CommandLine, arguments: str, told: str) -> None:
    assert told in complaint(cli, *arguments.split())


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("jobs show", "Job: job_id is empty, but PK (JOB#{job_id}) is built from it"),
        ("jobs logs", "Job: job_id is empty, but PK (JOB#{job_id}) is built from it"),
        ("queues show", "Queue: queue_name is empty, but PK (QUEUE#{queue_name}) is built from it"),
        ("jobs list --queue", "Queue: queue_name is empty, but PK (QUEUE#{queue_name}) is built from it"),
        ("jobs list --parent", "Job: job_id is empty, but PK (JOB#{job_id}) is built from it"),
        ("journeys show", "Journey: journey_id is empty, but PK (JOURNEY#{journey_id}) is built from it"),
    ],
)
def test_a_variable_of_the_shell_that_is_not_set_is_told_as_what_it_is(
    cli: CommandLine, command: str, told: str
) -> None:
    cli.run("tables", "create")
    assert cli.run(*command.split(), "", code=1).stderr == f"Error: {told}\n"


def test_the_source_of_a_journey_is_a_file_and_may_be_elsewhere(cli: CommandLine) -> None:
    assert "'' is a directory" in complaint(cli, "journeys", "create", "")
    assert "gone.db does not exist here" in cli.run("journeys", "create", "gone.db").stderr
