"""The command line itself: help, version, and errors that are one clear line."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import JOBTABLE, CommandLine
from typer.core import TyperGroup
from typer.testing import CliRunner

import jobtable
from jobtable.cli.main import app, commands, load
from jobtable.testing.servers import free_port


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}
    return subprocess.run(
        [str(JOBTABLE), *arguments], capture_output=True, text=True, timeout=240, check=False, env=environment
    )


def test_the_version_is_that_of_the_package() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"jobtable {jobtable.__version__}\n")


def test_what_each_command_is_for_is_told_whole_in_a_narrow_terminal() -> None:
    listed = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout.partition("Commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines()] == list(commands())
    assert "..." not in listed


@pytest.mark.parametrize("group", [name for name in commands() if isinstance(load(name), TyperGroup)])
def test_what_each_command_of_a_group_does_is_told_in_a_whole_sentence(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = " ".join(cli.run(group, "--help").stdout.partition("Commands:")[2].split())
    for name, command in load(group).commands.items():
        sentence, *_ = re.split(r"(?<=\.)\s", command.help)
        assert f"{name} {' '.join(sentence.split())}" in listed


def test_the_help_of_serve_has_an_example_and_every_option() -> None:
    done = run("dynamodb", "serve", "--help")
    assert done.returncode == 0
    assert "jobtable dynamodb serve --data ./tables --port 8000" in done.stdout
    for option in ("--port", "--host", "--data", "--memory", "--access-key", "--secret-key", "--durability"):
        assert option in done.stdout


def test_a_store_is_named_before_the_command_or_behind_it_which_wins(tmp_path: Path) -> None:
    one, other = (f"file:{tmp_path / name}" for name in ("one.db", "other.db"))
    assert run("--store", one, "jobs", "submit", "--task", "m:f").returncode == 0
    for arguments in (("--store", one, "jobs", "list"), ("jobs", "list", "--store", one)):
        assert "m:f" in run(*arguments, "--json").stdout
    assert run("--store", other, "tables", "create").returncode == 0
    assert run("--store", one, "jobs", "list", "--store", other, "--json").stdout.strip() == "[]"
    both = run("--store", one, "up", "--data", str(tmp_path / "data"))
    assert (both.returncode, "--data and --store cannot be combined" in both.stderr) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--server", "URL", "jobs", "list", "-n", "2"),
        ("jobs", "list", "--server", "URL", "-n", "2"),
        ("jobs", "list", "-n", "2", "--server=URL"),
    ],
    ids=" ".join,
)
def test_a_server_is_named_before_the_command_or_behind_it(cli: CommandLine, arguments: tuple[str, ...]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = cli.run(*(each.replace("URL", url) for each in arguments), code=1)
    assert done.stderr == f"Error: {url} cannot be reached: Connection refused\n"


@pytest.mark.parametrize("command", [("queues", "list"), ("tables", "list"), ("worker",), ("config", "show")])
def test_nobody_is_told_the_password_in_the_address_of_a_server(cli: CommandLine, command: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["--server", "http://me:hidden@127.0.0.1:1", *command], env={"JOBTABLE_STORE": ""})
    assert done.exit_code == (0 if "config" in command else 2), done.output
    assert "hidden" not in done.output


def test_what_stands_behind_two_dashes_is_no_server(cli: CommandLine) -> None:
    cli.make_store()
    assert "there is no job --server" in cli.run("jobs", "show", "--", "--server", code=3).stderr


def test_a_store_without_a_place_for_objects_says_which_option_names_one(cli: CommandLine) -> None:
    done = cli.run("jobs", "list", "--store", "dynamodb://eu-west-1", code=2)
    assert "needs a URL for objects; name one with `--objects`, as in s3://BUCKET" in done.stderr


def test_a_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", 'cd "$1" && rmdir "$1" && exec "$2" jobs list', "sh", str(tmp_path / "gone"), str(JOBTABLE)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: the current folder no longer exists; change to another one\n"


@pytest.mark.parametrize(
    "command",
    [
        ["jobs", "submit", "--task", "mine:work"],
        ["queues", "list"],
        ["tokens", "create", "--role", "read"],
        ["tables", "create"],
        ["worker", "--inline", "--until-empty"],
        ["objects", "sweep", "--objects", "file:objects", "--yes"],
    ],
)
def test_a_store_that_would_end_with_the_command_is_refused(cli: CommandLine, command: list[str]) -> None:
    refused = cli.run(*command, "--store", "memory:", code=2)
    assert refused.stdout == ""
    assert "a store in memory ends with this process; use --store file:PATH" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "use either --data DIR or --memory"),
        (("--memory", "--data", "x"), "use either --data DIR or --memory"),
        (("--memory", "--access-key", "k"), "--access-key and --secret-key must be given together"),
        (("--memory", "--port", "70000"), "--port"),
        (("--memory", "--durability", "none"), "none"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], complaint: str) -> None:
    done = run("dynamodb", "serve", *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "list", "--limit", "9" * 30),
        ("jobs", "logs", "x", "--search", "y", "--limit", "9" * 30),
        ("queues", "show", "x", "--limit", "9" * 30),
        ("workers", "show", "x", "--limit", "9" * 30),
        ("objects", "list", "--limit", "9" * 30),
        ("objects", "sweep", "--dry-run", "--grace", "999999d"),
        ("tokens", "create", "--role", "read", "--expires", "9" * 30 + "s"),
    ],
    ids=" ".join,
)
def test_a_number_that_is_too_large_is_wrong_usage(cli: CommandLine, arguments: tuple[str, ...]) -> None:
    assert "Error: Invalid value" in cli.run(*arguments, code=2).stderr


@pytest.mark.parametrize(
    "command", [("objects", "sweep", "--yes", "--grace"), ("tokens", "create", "--role", "read", "--expires")]
)
def test_a_thousand_years_can_be_counted(cli: CommandLine, command: tuple[str, ...]) -> None:
    cli.make_store()
    cli.run(*command, "365000d")


@pytest.mark.parametrize("command", [["tables", "list"], ["tables", "list", "--json"], ["--help"], ["--version"]])
def test_output_that_cannot_be_written_is_one_line(cli: CommandLine, command: list[str]) -> None:
    cli.make_store()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [JOBTABLE, "--store", cli.store, *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=240,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "Error: the output could not be written: No space left on device\n")


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_output_is_utf_8_in_every_locale(cli: CommandLine, form: list[str]) -> None:
    cli.run("queues", "create", "q", "--description", "schön → ✓")
    printed = subprocess.run(
        [JOBTABLE, "queues", "show", "q", "--store", cli.store, *form],
        capture_output=True,
        timeout=240,
        check=True,
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
    )
    assert "schön → ✓" in printed.stdout.decode("utf-8")


def test_a_busy_port_is_one_line_and_ends_with_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("dynamodb", "serve", "--memory", "--port", str(port))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"Error: cannot listen on 127.0.0.1:{port}: Address already in use; choose another --port or --host"
    ]


def test_an_unknown_host_is_one_line_and_ends_with_1() -> None:
    done = run("dynamodb", "serve", "--memory", "--host", "no-such-host.invalid", "--port", "0")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("Error: cannot listen on no-such-host.invalid:0")


def test_a_data_folder_that_is_a_file_is_one_line_and_ends_with_1(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    done = run("dynamodb", "serve", "--data", str(file), "--port", "0")
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: cannot use {file} as the data folder")
    assert len(done.stderr.splitlines()) == 1


def test_a_damaged_file_is_one_line_and_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "jobtable.db").write_bytes(b"this is no database" * 1000)
    done = run("dynamodb", "serve", "--data", str(tmp_path), "--port", "0")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1
