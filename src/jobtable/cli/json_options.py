"""Options and arguments that are JSON, as text or in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer


def json_text(given: str, what: str) -> str:
    """Return JSON as it was written: the text itself, or with `@FILE` the content of the file (`@-`: of stdin)."""
    text = read_text(Path(given[1:])) if given.startswith("@") else given
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{what}: {text!r:.200} is not JSON: {error}; a file is named as @FILE") from error
    return text


def read_text(file: Path) -> str:
    """Return the text of a file; `-` stands for stdin."""
    try:
        return sys.stdin.read() if file == Path("-") else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise typer.BadParameter(f"cannot read {file}: {reason}") from error
