"""How fast durable steps are: the time from the first step to the last, without the start and the end of a workflow.

A step does nothing but note the time, so what is measured is what makes it durable. Starts and ends differ in what they
do, so they are left out.
"""

# The peer is installed for the benchmarks only, and has no types where it is not.
# mypy: disable-error-code="import-not-found, untyped-decorator, misc, no-untyped-call, unused-ignore"
# pyright: reportMissingImports=false
from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from bench.measure import report

STEPS, AT_ONCE, ROUNDS = 25, 16, 5
Workflow = Callable[[list[float]], None]
"""Runs a workflow of so many steps, which note their times."""


def compare_steps(bench: str, ours: Workflow, peer_name: str, peer: Workflow, *, target: float) -> None:
    """Print the steps per second of one workflow alone, and of several at once, in turns with a peer."""
    _compare(f"{bench}, one after the other", ours, peer_name, peer, workflows=1, target=target)
    _compare(f"{bench}, {AT_ONCE} workflows at once", ours, peer_name, peer, workflows=AT_ONCE, target=target)


def _compare(bench: str, ours: Workflow, peer_name: str, peer: Workflow, *, workflows: int, target: float) -> None:
    rates = [(_rate(ours, workflows), _rate(peer, workflows)) for _ in range(ROUNDS)]
    our_rate, peer_rate = (statistics.median(column) for column in zip(*rates, strict=True))
    report(bench, our_rate, peer_name, peer_rate, target=target)


def _rate(workflow: Workflow, workflows: int) -> float:
    times: list[list[float]] = [[] for _ in range(workflows)]
    with ThreadPoolExecutor(workflows) as threads:
        list(threads.map(workflow, times))
    every = [moment for noted in times for moment in noted]
    return (len(every) - workflows) / (max(every) - min(every))


@contextmanager
def dbos_steps(folder: Path) -> Iterator[Workflow]:
    """A workflow of DBOS with its system database in a SQLite file."""
    from dbos import DBOS  # noqa: PLC0415 - one of the peers, which not everyone has installed

    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{folder / 'dbos.sqlite'}",
            "log_level": "ERROR",
            "run_admin_server": False,
        }
    )
    noted: dict[str, list[float]] = {}

    @DBOS.step()
    def step(name: str, number: int) -> int:
        noted[name].append(time.perf_counter())
        return number + 1

    @DBOS.workflow()
    def flow(name: str) -> int:
        number = 0
        for _ in range(STEPS):
            number = step(name, number)
        return number

    DBOS.launch()

    def workflow(times: list[float]) -> None:
        name = str(time.perf_counter_ns())
        noted[name] = times
        flow(name)

    try:
        yield workflow
    finally:
        DBOS.destroy()
