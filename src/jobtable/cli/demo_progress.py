"""The demonstration in the terminal: started in the background, and shown until every part has come to rest."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jobtable.app import Services
from jobtable.cli.background import beside
from jobtable.cli.output import colour_of, say
from jobtable.demo import DemoPart, DemoState, parts
from jobtable.errors import JobtableError

_LOOK_SECONDS = 0.5


def demonstrated(services: Services, folder: Path, address: str) -> AbstractContextManager[None]:
    """Start the parts of the demonstration and tell how far they are, while the block runs."""

    def demonstrate(is_over: threading.Event) -> None:
        try:
            started = parts()  # loading them takes seconds: the address is printed before
            for part in started:
                if is_over.is_set():
                    return
                part.start(services, folder)
            _show(started, services, address, is_over)
        except JobtableError as error:
            say(f"The demonstration stopped: {error}")

    return beside(demonstrate, "demonstration")


def _show(shown: Sequence[DemoPart], services: Services, address: str, is_over: threading.Event) -> None:
    """Show how far the parts are until all have come to rest, and then where each is seen."""
    console = Console(stderr=True, highlight=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            states = [(part, part.look(services)) for part in shown]
            live.update(_table(states), refresh=console.is_terminal)
            if all(state.is_settled for _, state in states) or is_over.wait(_LOOK_SECONDS):
                break
    console.print(_table(states))
    for part in shown:
        say(f"  {address}{part.page}")


def _table(states: list[tuple[DemoPart, DemoState]]) -> Table:
    drawn = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(3):
        drawn.add_column(no_wrap=True)
    for part, state in states:
        status = Text(state.status, colour_of(state.status) or "")
        drawn.add_row(part.title, status, f"{state.percent:.0f} %", state.detail)
    return drawn
