"""The tutorial on state machines, as a reader follows it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import CommandLine
from tests.remote.functions import driving

from jobtable.app import Services
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine_definition import check_definition

PAGE = Path(__file__).parent.parent.parent / "docs" / "guides" / "workflows.md"
SECTION = PAGE.read_text().partition("## State machines")[2].partition("\n## ")[0]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)


@pytest.fixture
def reader(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """A reader in a new folder, with the files of the tutorial."""
    (definition,), (shop, *_) = blocks("json"), blocks("python")
    check_definition(definition, MachineType.STANDARD)
    Path("orders.asl.json").write_text(definition.replace('"Seconds": 30', '"Seconds": 0'))
    Path("shop.py").write_text(shop)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    cli.store = "file:.jobtable/jobtable.db"
    yield cli
    sys.modules.pop("shop", None)


def test_the_tutorial_works_as_it_is_written(reader: CommandLine) -> None:
    starting, serving, watching, *_ = blocks("sh")
    assert serving == "jobtable up\n"
    printed = ""
    for command in starting.splitlines():
        printed = reader.run(*shlex.split(command, comments=True)[1:]).stdout
    assert printed == "orders/order-7\n"
    with Services.open(reader.store) as services, driving(services):
        for command in watching.splitlines():
            printed = reader.run(*shlex.split(command)[1:]).stdout
    assert printed == '"order 7 is on its way"\n'
    _, in_python = blocks("python")
    namespace: dict[str, object] = {}
    exec(compile(in_python, "documentation", "exec", dont_inherit=True), namespace)
    assert namespace["names"] == ["order-8", "order-7"]


def test_each_command_of_the_table_is_one(reader: CommandLine) -> None:
    commands = re.findall(r"`jobtable (.*?)`", SECTION)
    assert len(commands) >= 10
    for command in commands:
        words = [word for word in shlex.split(command) if not word.startswith("-")][:2]
        if words[0] in {"up", "URL"}:
            continue
        assert words[1] in reader.run(words[0], words[1], "--help").stdout
