"""Every command has a purpose, help with an example, and stands in the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobtable.cli import main, reference
from jobtable.cli.job_submission import new_job
from jobtable.cli.main import load
from jobtable.cli.output import ExitCode

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "cli.md"
WITHOUT_DATA = {
    "jobtable functions answer",
    "jobtable workflows answer",
    "jobtable up",
    "jobtable aws serve",
    "jobtable dynamodb serve",
    "jobtable objects get",
    "jobtable conversations example",
    "jobtable journeys example",
    "jobtable journeys pause",
    "jobtable journeys cancel",
    "jobtable journeys rule",
    "jobtable journeys delete",
    "jobtable journeys report",
}
"""Commands that print nothing that a program would read, or, as the last one, nothing but JSON."""


def commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    under = getattr(command, "commands", None)
    if under is None:
        yield path, command
    else:
        for name, each in under.items():
            yield from commands(f"{path} {name}", each)


ALL = dict(pair for name in main.commands() for pair in commands(f"jobtable {name}", load(name)))


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == reference.render_page(), "run `make reference`"


@pytest.mark.parametrize("name", main.commands())
def test_the_list_of_commands_says_what_the_command_says(name: str) -> None:
    told = " ".join(load(name).help.split())
    assert told.startswith(main.commands()[name][1].help)


@pytest.mark.parametrize("path", ALL)
def test_every_command_has_help_with_an_example_of_itself(path: str) -> None:
    assert "Example" in ALL[path].help
    assert f"{path} " in ALL[path].help + " " or f"{path}\n" in ALL[path].help + "\n"


@pytest.mark.parametrize("path", ALL)
def test_every_option_is_explained(path: str) -> None:
    assert [each.name for each in ALL[path].params if not each.help] == []


@pytest.mark.parametrize("path", sorted(ALL.keys() - WITHOUT_DATA))
def test_every_command_that_prints_data_can_print_json(path: str) -> None:
    assert any("--json" in each.opts for each in ALL[path].params)


def test_every_exit_code_is_documented() -> None:
    codes = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert [int(code) for code in codes] == [code.value for code in ExitCode]


def test_the_definition_in_the_documentation_defines_a_job() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    new = new_job(yaml.safe_load(block))
    assert (new.task, new.queue, new.max_attempts, len(new.depends_on)) == ("training:train", "gpu", 3, 1)
