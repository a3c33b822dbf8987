"""Daily metrics, computed from the executions."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from jobtable.albums.entities import ExecutionStatus, WorkflowMetrics, WorkflowType
from jobtable.albums.service import AlbumWorkflows, MetricsComparison
from jobtable.store import Store

_LAST_INSTANT = timedelta(days=1) - timedelta(microseconds=1)
_LAST_SECOND = timedelta(days=1) - timedelta(seconds=1)
"""From the begin of a day: the day behind the last one of the calendar cannot be named."""


def compute_metrics(store: Store, day: date, workflow_type: WorkflowType) -> WorkflowMetrics:
    """Count the executions of a workflow type that were created on a day (UTC), and store what they come to.

    Computed again, it takes the place of what was stored; from the same executions it gives the same item.
    """
    metrics = count_executions(store, day, workflow_type)
    AlbumWorkflows(store).put_metrics(metrics)
    return metrics


def count_executions(store: Store, day: date, workflow_type: WorkflowType) -> WorkflowMetrics:
    """What the executions of a workflow type that were created on a day (UTC) come to, as they are now."""
    records = AlbumWorkflows(store)
    begin = datetime.combine(day, time(), UTC)
    counts = dict.fromkeys(ExecutionStatus, 0)
    durations: list[int] = []
    costs: list[float] = []
    for status in ExecutionStatus:
        created = (begin, begin + _LAST_INSTANT)
        for execution in records.list_executions_by_status(workflow_type, status, created=created):
            counts[status] += 1
            durations += [] if execution.duration_ms is None else [execution.duration_ms]
            costs += [] if execution.estimated_cost is None else [execution.estimated_cost]
    total = sum(counts.values())
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
        created_at=begin + _LAST_SECOND,
    )


def count_and_compare(store: Store, day: date) -> MetricsComparison:
    """What the executions of a day come to for both workflow types, side by side; nothing is stored."""
    return MetricsComparison(
        step_functions=count_executions(store, day, WorkflowType.STEP_FUNCTIONS),
        durable_functions=count_executions(store, day, WorkflowType.DURABLE_FUNCTIONS),
    )


def compute_and_compare(store: Store, day: date) -> MetricsComparison:
    """The metrics of both workflow types for a day, computed anew, side by side."""
    for workflow_type in WorkflowType:
        compute_metrics(store, day, workflow_type)
    return AlbumWorkflows(store).compare_metrics(day)
