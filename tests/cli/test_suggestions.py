"""Commands that messages and pages tell people to type are there, with their options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.conftest import CommandLine
from tests.contributions import contributions
from typer.core import TyperGroup

import jobtable
from jobtable.cli.main import commands, load
from jobtable.cli.output import listing_commands

PAGES = "".join(file.read_text() for file in sorted(Path(jobtable.__path__[0]).rglob("templates/*.html")))
IN_PAGES = sorted(set(re.findall(r'jobtable ([a-z][^"<{]*)', PAGES)))


EMPTY = {"jobs": "jobs submit --task MODULE:FUNCTION"}
for system in contributions("lists"):
    EMPTY |= system.EMPTY


@pytest.mark.parametrize("command", [*EMPTY.values(), *IN_PAGES, *listing_commands().values()])
def test_a_suggested_command_is_there(command: str) -> None:
    name, *rest = command.split()
    assert name in commands(), command
    found = load(name)
    if isinstance(found, TyperGroup):
        found = found.commands[rest[0]]
    options = {option for parameter in found.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= options, command


@pytest.mark.parametrize("name", EMPTY)
def test_a_list_in_an_empty_store_says_how_its_first_line_is_made(cli: CommandLine, name: str) -> None:
    cli.make_store()
    said = cli.run(name, "list").stderr
    assert said.startswith(f"There are no {name} yet; ")
    assert f"with `jobtable {EMPTY[name]}`." in said


def test_the_pages_suggest_something() -> None:
    assert len(IN_PAGES) > 8
