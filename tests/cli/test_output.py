"""How commands print: what fits into a terminal, and what a program reads."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from jobtable import connect
from jobtable.cli import output
from jobtable.cli.output import ExitCode, bar, exit_code_of, line_of, print_fields, print_json, print_table, say
from jobtable.errors import (
    AlreadyExistsError,
    ConnectionUrlError,
    JobtableError,
    NotFoundError,
    StorageError,
    TableNotFound,
)
from jobtable.jobs.stored.entities import Queue

ROWS: list[dict[str, Any]] = [
    {"job": "5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11", "status": "FAILED", "name": "a name " * 9, "attempts": 3},
    {"job": "5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b12", "status": "RUNNING", "name": "two\nlines", "attempts": None},
]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Prints to a terminal with some columns, and gives the lines."""

    def lines(columns: int, rows: list[dict[str, Any]]) -> list[str]:
        written = io.StringIO()
        console = Console(file=written, force_terminal=True, width=columns, color_system=None)
        monkeypatch.setattr(output, "_console", lambda: console)
        print_table(rows)
        return written.getvalue().splitlines()

    return lines


@pytest.mark.parametrize("columns", [36, 40, 60, 80, 120, 200])
def test_a_table_has_a_line_for_each_row_and_never_cuts_what_names_it(terminal: Any, columns: int) -> None:
    lines = terminal(columns, ROWS)
    assert len(lines) == 3
    assert [line.split()[0] for line in lines] == ["job", ROWS[0]["job"], ROWS[1]["job"]]
    assert all(len(line) <= columns for line in lines)


def test_a_wider_terminal_shows_more(terminal: Any) -> None:
    assert "name" not in terminal(50, ROWS)[0]
    assert "…" in terminal(80, ROWS)[1]
    assert "attempts" in terminal(120, ROWS)[0]
    assert "two lines" in terminal(120, ROWS)[2]


@given(st.lists(st.integers(1, 200), min_size=1, max_size=12), st.integers(20, 300))
def test_columns_fit_unless_the_first_alone_does_not(widths: list[int], available: int) -> None:
    chosen = output._fitting(widths, available)
    assert 1 <= len(chosen) <= len(widths)
    assert chosen[0] >= widths[0]
    assert sum(chosen) + 2 * (len(chosen) - 1) <= max(available, widths[0])


def test_where_no_one_looks_on_nothing_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(
        [{"id": 1, "text": "x" * 500, "flag": True, "at": datetime(2025, 1, 2, tzinfo=UTC), "tags": {"b", "a"}}]
    )
    (_, line) = capsys.readouterr().out.splitlines()
    assert line.split() == ["1", "x" * 500, "yes", "2025-01-02", "00:00:00Z", "a,", "b"]
    print_fields({"empty": None, "blank": "", "kept": 0.5, "more": {"a": [1]}})
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["kept", "0.5"],
        ["more", '{"a":', "[1]}"],
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1211111111, "0.121111"),
        (1234567.8, "1234568"),
        (-123456789.5, "-123456790"),
        (1e15, "1e+15"),
        (1e6, "1000000"),
    ],
)
def test_a_number_has_all_digits_in_front_of_the_point(
    capsys: pytest.CaptureFixture[str], value: float, shown: str
) -> None:
    print_fields({"value": value})
    assert capsys.readouterr().out.split() == ["value", shown]


def test_texts_that_would_steer_the_terminal_are_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    say("\x1b[31m \u202e日本")
    assert capsys.readouterr().err == "\\x1b[31m \\u202e日本\n"
    print_fields({"value": {"a": "\x1b[31m \u202e日本"}})
    assert capsys.readouterr().out.split(maxsplit=1)[1] == '{"a": "\\u001b[31m \\u202e日本"}\n'


@given(st.text())
def test_json_comes_back_and_holds_no_control_character(text: str) -> None:
    written = output._json_text({"text": text})
    assert json.loads(written) == {"text": text}
    assert not any(ord(character) in (*range(32), *range(127, 160), 0x202E, 0x2066) for character in written)


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([datetime(2025, 1, 2, tzinfo=UTC), {"ü"}])
    assert json.loads(capsys.readouterr().out) == ["2025-01-02T00:00:00Z", ["ü"]]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFoundError("x"), ExitCode.NOT_FOUND),
        (AlreadyExistsError("x"), ExitCode.CONFLICT),
        (StorageError("x"), ExitCode.FAILED),
        (ConnectionUrlError("x"), ExitCode.USAGE),
    ],
)
def test_errors_have_codes(error: JobtableError, code: ExitCode) -> None:
    assert exit_code_of(error) is code


def test_an_error_is_one_line() -> None:
    assert line_of(StorageError("first\n  second")) == "Error: first second"
    with connect("memory:") as store, pytest.raises(TableNotFound) as raised:
        store.get(Queue.key(queue_name="gpu"))
    advice = "create it with `jobtable tables create` (your own tables with `--module MODULE`)"
    assert line_of(raised.value).endswith(f": jobtable; {advice}")


def test_no_bar_is_drawn_where_no_one_looks_on(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("[bold]", 3) as shown:
        shown.advance(1)
        shown.reach(3)
    assert capsys.readouterr() == ("", "")
