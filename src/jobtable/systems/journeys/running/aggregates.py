"""A journey's aggregates: how each change moves them, and what a recount yields."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from jobtable.model import Update
from jobtable.systems.journeys.entities import JobExecution, Journey, SecondBrainRule
from jobtable.systems.journeys.parts import Aggregates, JobExecutionStatus, LogCounts, RuleStatus

ENDED = frozenset({JobExecutionStatus.COMPLETED, JobExecutionStatus.FAILED, JobExecutionStatus.CANCELLED})


def with_new_job(sums: Aggregates) -> Aggregates:
    """Count one more execution."""
    return sums.replace(total_jobs=sums.total_jobs + 1)


def with_ended_job(sums: Aggregates, status: JobExecutionStatus, duration: float | None) -> Aggregates:
    """Count the end of an execution; durations are summed to the microsecond, without rounding."""
    seconds = (sums.total_execution_seconds or Decimal(0)) + Decimal(str(round(duration or 0.0, 6)))
    return sums.replace(
        completed_jobs=sums.completed_jobs + (status is JobExecutionStatus.COMPLETED),
        failed_jobs=sums.failed_jobs + (status is JobExecutionStatus.FAILED),
        total_execution_seconds=seconds,
        total_execution_time=f"{int(seconds // 60)}m",
    )


def with_logs(sums: Aggregates, logged: LogCounts) -> Aggregates:
    """Count the lines that a step logged."""
    return sums.replace(
        total_logs=sums.total_logs + logged.total_logs,
        total_errors=sums.total_errors + logged.error_count,
        total_warnings=sums.total_warnings + logged.warning_count,
    )


def log_increments(logged: LogCounts) -> list[Update]:
    """Return the same as updates of the journey; none if nothing was logged."""
    moves = {
        "total_logs": logged.total_logs,
        "total_errors": logged.error_count,
        "total_warnings": logged.warning_count,
    }
    return [Journey.aggregates[name].increment(by) for name, by in moves.items() if by]


def recount(executions: Iterable[JobExecution], rules: Iterable[SecondBrainRule]) -> Aggregates:
    """Count everything again."""
    sums = Aggregates()
    for execution in executions:
        sums = with_logs(with_new_job(sums), execution.metrics)
        if execution.status in ENDED:
            sums = with_ended_job(sums, execution.status, execution.duration)
    listed = list(rules)
    active = sum(rule.status is RuleStatus.ACTIVE for rule in listed)
    return sums.replace(total_rules=len(listed), active_rules=active)
