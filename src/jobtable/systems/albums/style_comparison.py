"""Both styles side by side: the same images, answers and timeouts, as often as asked, and what was measured of each."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from jobtable.errors import TaskClosedError, ValueRefusedError, missing
from jobtable.jobs.engine import Jobs
from jobtable.store import Store
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import Comparison, Execution, ExecutionStatus, TaskStatus, WorkflowType

MOST_RUNS = 100
_MOST_SHOWN = 20
SHORT = {WorkflowType.STEP_FUNCTIONS: "sf", WorkflowType.DURABLE_FUNCTIONS: "df"}
MEASURES = (
    ("elapsed_ms", "Elapsed without people", "ms"),
    ("work_ms", "Work of the functions", "ms"),
    ("queue_ms", "Waiting for a worker", "ms"),
    ("wait_ms", "Waiting for people", "ms"),
    ("transitions", "State transitions", ""),
    ("operations", "Durable operations", ""),
    ("state_bytes", "State stored by the workflow", "bytes"),
    ("attempts", "Jobs taken by workers", ""),
    ("requests", "Lambda requests", ""),
    ("gb_seconds", "Lambda compute", "GB-s"),
    ("write_units", "DynamoDB write units of records", ""),
    ("recovery_ms", "Recovery after the loss of a worker", "ms"),
    ("cost", "Cost on AWS", "$"),
)
"""The figures that are compared: their names, titles and units."""


@dataclass(frozen=True)
class Measured:
    """One figure of both styles."""

    name: str
    title: str
    unit: str
    values: dict[WorkflowType, list[float]]
    """One for each execution in which it was measured."""

    @property
    def medians(self) -> dict[WorkflowType, float | None]:
        """The median of each style; None if nothing was measured."""
        return {kind: median(values) if values else None for kind, values in self.values.items()}


@dataclass(frozen=True)
class Compared:
    """A comparison with what its executions measured so far."""

    comparison: Comparison
    executions: list[Execution]
    measured: list[Measured]
    prices: list[str]
    """The versions of the price tables by which costs were computed."""

    @property
    def is_settled(self) -> bool:
        """Whether every execution has been measured, has failed, or was deleted."""
        return all(each.figures is not None or each.status is ExecutionStatus.FAILED for each in self.executions)


class Comparisons:
    """Starts comparisons, answers their tasks, and reads what they measured."""

    def __init__(self, jobs: Jobs) -> None:
        self._store = jobs.store
        self._clock = jobs.clock
        self._executions = Executions(jobs)
        self._answers = Answers(jobs)

    def start(
        self, images: Sequence[tuple[str, bytes]], runs: int, *, comparison_id: str | None = None, user: str = "local"
    ) -> Comparison:
        """Start executions of both styles, in turn; repeating the call with the same id completes it."""
        if not images or not 1 <= runs <= MOST_RUNS:
            raise ValueRefusedError(f"a comparison needs images and from 1 to {MOST_RUNS} runs, not {runs}")
        comparison_id = comparison_id or str(uuid.uuid4())
        planned = [
            (f"{comparison_id}-{number}-{run}-{SHORT[kind]}", kind, name, image)
            for run in range(1, runs + 1)
            for number, (name, image) in enumerate(images, start=1)
            for kind in WorkflowType
        ]
        comparison = self._store.find(Comparison.key(comparison_id=comparison_id))
        if comparison is None:
            comparison = Comparison(
                comparison_id=comparison_id,
                created_at=self._clock.now(),
                images=[name for name, _ in images],
                runs=runs,
                execution_ids=[execution_id for execution_id, *_ in planned],
            )
            self._store.add(comparison)
        for execution_id, kind, name, image in planned:
            self._executions.start(kind, image, name, execution_id=execution_id, user=user)
        return comparison

    def confirm(self, comparison_id: str) -> int:
        """Answer every waiting task of a comparison: all its albums are right. Return the number of answers."""
        answered = 0
        for execution in self.read(comparison_id).executions:
            if execution.status is not ExecutionStatus.WAITING or not execution.task_ids:
                continue
            task = self._executions.records.get_task(execution.task_ids[-1])
            if task.status is not TaskStatus.PENDING:
                continue
            try:
                self._answers.complete_by_right(task.task_id, [album.model_dump() for album in task.albums])
            except TaskClosedError:  # a person was faster
                continue
            answered += 1
        return answered

    def read(self, comparison_id: str) -> Compared:
        """Return a comparison with the figures of its executions, or raise NotFoundError."""
        comparison = self._store.find(Comparison.key(comparison_id=comparison_id))
        if comparison is None:
            raise missing("comparison", comparison_id)
        return read_comparison(self._store, comparison)

    def list_newest(self) -> list[Comparison]:
        """List the newest comparisons."""
        selected = Comparison.by_created(workflow_type="any")
        return list(self._store.query(selected, newest_first=True, limit=_MOST_SHOWN))


def read_comparison(store: Store, comparison: Comparison) -> Compared:
    """Return a comparison with the figures of those of its executions that still exist."""
    found = store.batch_get(Execution.key(execution_id=each) for each in comparison.execution_ids)
    executions = [each for each in found if each is not None]
    figures: list[tuple[WorkflowType, dict[str, Any]]] = [
        (each.workflow_type, each.figures) for each in executions if isinstance(each.figures, dict)
    ]
    measured = [
        Measured(
            name,
            title,
            unit,
            {
                kind: [each[name] for of, each in figures if of is kind and each.get(name) is not None]
                for kind in WorkflowType
            },
        )
        for name, title, unit in MEASURES
    ]
    prices = sorted({str(each["prices"]) for _, each in figures})
    return Compared(comparison, executions, measured, prices)
