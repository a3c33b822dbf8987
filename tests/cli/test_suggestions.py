"""Commands that messages and pages tell people to type are there, with their options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.core import TyperGroup

from jobtable import web
from jobtable.cli.main import COMMANDS, load
from jobtable.cli.output import LISTING_OF_KIND

TEMPLATES = Path(web.__path__[0]) / "templates"
PAGES = "".join(file.read_text() for file in sorted(TEMPLATES.glob("*.html")))
IN_PAGES = sorted(set(re.findall(r'jobtable ([a-z][^"<{]*)', PAGES)))


@pytest.mark.parametrize("command", [*IN_PAGES, *LISTING_OF_KIND.values()])
def test_a_suggested_command_is_there(command: str) -> None:
    name, *rest = command.split()
    assert name in COMMANDS, command
    found = load(name)
    if isinstance(found, TyperGroup):
        found = found.commands[rest[0]]
    options = {option for parameter in found.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= options, command


def test_the_pages_suggest_something() -> None:
    assert len(IN_PAGES) > 8
