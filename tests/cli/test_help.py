"""Help in plain words, and the internals of Typer that it needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.conftest import CommandLine

from jobtable import cli as cli_package
from jobtable.cli import framework
from jobtable.cli.framework import help_of, walk
from jobtable.cli.main import commands, load

ALL = dict(pair for name in commands() for pair in walk(load(name), f"jobtable {name}"))


@pytest.mark.parametrize("path", ALL)
def test_help_shows_no_types_of_click(path: str) -> None:
    shown = help_of(ALL[path], path, width=100)
    assert not re.search(r"<\w|x[<>]=|[<>]=x|\{[A-Z]+\}|\|[a-z]+[|>]", shown), shown
    assert "Common options:" in shown
    assert "-h, --help" in shown.partition("Common options:")[2]


@pytest.mark.parametrize("path", ALL)
def test_a_commands_own_options_are_read_first(path: str) -> None:
    own, _, common = help_of(ALL[path], path, width=100).partition("Common options:")
    for option in ("--store", "--objects", "--json", "--yes", "--user"):
        if re.search(rf"^  (-\w, )?{option}\b", own, re.MULTILINE):
            assert path == "jobtable jobs list", "which asks for the jobs of a user"
    assert "--param" not in common


@pytest.mark.parametrize("words", ["", "jobs", "jobs list", "up", "export", "config show"])
def test_help_is_asked_for_shortly(cli: CommandLine, words: str) -> None:
    short, long = (cli.run(*words.split(), option).stdout for option in ("-h", "--help"))
    assert short == long != ""


def test_values_ranges_and_defaults_are_written_out() -> None:
    listed = " ".join(help_of(ALL["jobtable jobs list"], "", width=100).split())
    assert "--status STATUS Only jobs with this status: pending, running, completed, " in listed
    assert "-n, --limit N Maximum number to show (at least 1; default: 50)" in listed
    submitted = " ".join(help_of(ALL["jobtable jobs submit"], "", width=100).split())
    assert "--priority N Priority; higher goes first (0 to 999)" in submitted
    shown = help_of(ALL["jobtable jobs cancel"], "jobtable jobs cancel", width=100)
    assert shown.startswith("Usage: jobtable jobs cancel [OPTIONS] ID...\n")


def test_only_one_file_uses_the_internals_of_typer() -> None:
    internal = re.compile(
        r"typer\.(core|main|utils|models|_\w+)|type_descriptor|param_type_name|format_message|\bclick\b"
    )
    users = {
        file.name for file in Path(cli_package.__path__[0]).parent.rglob("*.py") if internal.search(file.read_text())
    }
    assert users <= {Path(framework.__file__).name}
