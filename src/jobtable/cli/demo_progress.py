"""The demonstration in the terminal: started in the background, and shown until every part has come to rest."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jobtable.app import Services
from jobtable.cli.output import colour_of, say
from jobtable.errors import JobtableError

_LOOK_SECONDS = 0.5


class DemoProgress:
    """Starts the parts of the demonstration and tells how far they are, while its block runs."""

    def __init__(self, services: Services, folder: Path, address: str) -> None:
        self._services = services
        self._folder = folder
        self._address = address
        self._console = Console(stderr=True, highlight=False)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demonstration")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        # Brings scikit-learn along, which takes seconds: the address is told before.
        from jobtable.demo.parts import PARTS, Part, State  # noqa: PLC0415

        def table(states: list[tuple[Part, State]]) -> Table:
            drawn = Table(box=None, show_header=False, pad_edge=False)
            for _ in range(3):
                drawn.add_column(no_wrap=True)
            for part, state in states:
                status = Text(state.status, colour_of(state.status) or "")
                drawn.add_row(part.title, status, f"{state.percent:.0f} %", state.detail)
            return drawn

        try:
            for part in PARTS:
                if self._is_over.is_set():
                    return
                part.start(self._services, self._folder)
            with Live(console=self._console, auto_refresh=False, transient=True) as live:
                while True:
                    states = [(part, part.look(self._services)) for part in PARTS]
                    live.update(table(states), refresh=self._console.is_terminal)
                    if all(state.is_settled for _, state in states) or self._is_over.wait(_LOOK_SECONDS):
                        break
            self._console.print(table(states))
            for part, _ in states:
                say(f"  {self._address}{part.page}")
        except JobtableError as error:
            say(f"The demonstration cannot go on: {error}")
