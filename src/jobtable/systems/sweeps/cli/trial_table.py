"""The live table of a sweep: its progress, best trials and latest reports, with the same few reads at any size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jobtable.cli.output import visible
from jobtable.clock import Clock
from jobtable.jobs.stored.entities import JobMetric
from jobtable.jobs.stored.field_types import FINAL
from jobtable.systems.sweeps.service import Progress, Sweeps

_BEST = 5
_LATEST = 8
_PAUSE_SECONDS = 0.5


def follow(sweeps: Sweeps, sweep_id: str, clock: Clock, check: Callable[[], None]) -> Progress:
    """Show a sweep on stderr until it ends, only on a terminal; `check` may raise at any time."""
    console = Console(stderr=True)
    progress = sweeps.get_progress(sweep_id)
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while True:
            if console.is_terminal:
                live.update(drawn(sweeps, progress), refresh=True)
            if progress.status in FINAL:
                return progress
            check()
            clock.sleep(_PAUSE_SECONDS)
            progress = sweeps.get_progress(sweep_id)


def drawn(sweeps: Sweeps, progress: Progress) -> RenderableType:
    """Return the table as it is now."""
    best = sweeps.list_best(progress.sweep_id, limit=_BEST)
    latest = _latest_of_each(sweeps.list_latest_reports(progress.sweep_id, limit=_LATEST * 10))
    bar = ProgressBar(progress.total, progress.made - progress.open)
    told = f"{progress.name}  {progress.status}  {counts(progress)} of {progress.total} trials"
    headline = Text(visible(told), style="bold")
    parts: list[RenderableType] = [headline, Padding(bar, 0)]  # a bar alone does not end its line
    if best:
        rows = ((str(trial.number), f"{trial.value:.6g}", params_text(trial.params)) for trial in best)
        parts.append(_table("best", progress.objective, rows))
    if latest:
        parts.append(_table("latest reports", progress.objective, map(_report_row, latest)))
    return Group(*parts)


def counts(progress: Progress) -> str:
    """Return the counts of trials by outcome, in words."""
    by_outcome = [("completed", progress.completed), ("stopped", progress.stopped), ("failed", progress.failed)]
    by_outcome += [("cancelled", progress.cancelled), ("open", progress.open)]
    return ", ".join(f"{count} {what}" for what, count in by_outcome if count or what == "completed")


def params_text(params: Mapping[str, Any]) -> str:
    """Return parameters on one line."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in params.items()
    )


def _latest_of_each(reports: list[JobMetric]) -> list[JobMetric]:
    last: dict[str, JobMetric] = {}
    for report in reports:
        last.setdefault(str(report.child_job_id), report)
    return list(last.values())[:_LATEST]


def _report_row(report: JobMetric) -> tuple[str, str, str]:
    number = int(str(report.child_job_id).rpartition("-")[2])
    at = report.epoch if report.epoch is not None else report.step
    return str(number), f"{report.value:.6g}", "" if at is None else f"epoch {at}"


def _table(title: str, objective: str, rows: Iterable[tuple[str, str, str]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("trial", justify="right")
    table.add_column(Text(visible(objective)), justify="right")
    table.add_column("", overflow="ellipsis", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table
