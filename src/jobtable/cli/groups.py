"""Groups of commands, as in `jobtable jobs`."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup


class Group(TyperGroup):
    """Its help tells of each command in a whole sentence, which goes on in the next line where it is long."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, self.commands[name].get_short_help_str(sys.maxsize)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def new_group() -> typer.Typer:
    """A group, to be filled with commands."""
    return typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode=None)
