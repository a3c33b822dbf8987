"""Asking before something is gone for good."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]


def confirm(question: str, *, yes: bool) -> None:
    """Go on if the person has said yes, or says so now; where nobody can be asked, refuse."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():  # None: it is closed
        raise typer.BadParameter(f"{question} There is no terminal to ask in: add --yes")
    try:
        is_wanted = typer.confirm(question, err=True)
    except typer.Abort as abort:
        if isinstance(abort.__context__, KeyboardInterrupt):  # which ends every other command with 130
            raise KeyboardInterrupt from abort
        raise
    if not is_wanted:
        raise typer.Abort
