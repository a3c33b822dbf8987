"""Daily metrics, computed from the executions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain

from jobtable.store import Query, Store
from jobtable.systems.albums.entities import Execution, ExecutionStatus, WorkflowMetrics, WorkflowType
from jobtable.systems.albums.service import AlbumWorkflows, MetricsComparison

_LAST_INSTANT = timedelta(days=1) - timedelta(microseconds=1)
_LAST_SECOND = timedelta(days=1) - timedelta(seconds=1)
"""Both count from the start of a day, because no day follows the last one of the calendar."""


def compute_metrics(store: Store, day: date, workflow_type: WorkflowType) -> WorkflowMetrics:
    """Compute and store the metrics of the executions of a workflow type that were created on a day (UTC).

    Computing them again replaces the stored item; the same executions result in the same item.
    """
    return AlbumWorkflows(store).put_metrics(count_executions(store, day, workflow_type))


def count_executions(store: Store, day: date, workflow_type: WorkflowType) -> WorkflowMetrics:
    """Compute the metrics of the executions of a workflow type that were created on a day (UTC)."""
    return _summed(day, workflow_type, chain.from_iterable(_by_status(store, day, workflow_type)))


def count_if_few(store: Store, day: date, workflow_type: WorkflowType, *, most: int) -> WorkflowMetrics | None:
    """Compute the metrics, or return None if there are more than `most` executions to read."""
    some = list(chain.from_iterable(found.take(most + 1) for found in _by_status(store, day, workflow_type)))
    return None if len(some) > most else _summed(day, workflow_type, some)


def _by_status(store: Store, day: date, workflow_type: WorkflowType) -> Iterator[Query[Execution]]:
    begin = datetime.combine(day, time(), UTC)
    created = (begin, begin + _LAST_INSTANT)
    records = AlbumWorkflows(store)
    return (records.list_executions_by_status(workflow_type, each, created=created) for each in ExecutionStatus)


def _summed(day: date, workflow_type: WorkflowType, executions: Iterable[Execution]) -> WorkflowMetrics:
    # By id, because an execution that moves on while they are listed may appear twice.
    found: dict[str, tuple[ExecutionStatus, int | None, float | None]] = {}
    for execution in executions:
        found[execution.execution_id] = (execution.status, execution.duration_ms, execution.estimated_cost)
    counts = Counter(status for status, _, _ in found.values())
    durations = [duration for _, duration, _ in found.values() if duration is not None]
    costs = [cost for _, _, cost in found.values() if cost is not None]
    total = len(found)
    cost = round(sum(costs), 9)
    return WorkflowMetrics(
        date=day,
        workflow_type=workflow_type,
        execution_count=total,
        success_count=counts[ExecutionStatus.COMPLETED],
        failure_count=counts[ExecutionStatus.FAILED],
        avg_duration_ms=round(sum(durations) / len(durations), 3) if durations else 0.0,
        total_cost=cost,
        avg_cost_per_execution=round(cost / total, 9) if total else 0.0,
        created_at=datetime.combine(day, time(), UTC) + _LAST_SECOND,
    )


def count_and_compare(store: Store, day: date) -> MetricsComparison:
    """Compute the metrics of both workflow types for a day without storing them."""
    return MetricsComparison(*(count_executions(store, day, each) for each in WorkflowType))


def compute_and_compare(store: Store, day: date) -> MetricsComparison:
    """Compute and store the metrics of both workflow types for a day."""
    return MetricsComparison(*(compute_metrics(store, day, each) for each in WorkflowType))
