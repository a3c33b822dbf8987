"""The sums over everything that a journey has: how a change moves them, and what a recount gives."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from jobtable.model import Update
from jobtable.systems.journeys.entities import JobExecution, Journey, SecondBrainRule
from jobtable.systems.journeys.parts import Aggregates, JobExecutionStatus, LogCounts, RuleStatus

ENDED = frozenset({JobExecutionStatus.COMPLETED, JobExecutionStatus.FAILED, JobExecutionStatus.CANCELLED})


def with_new_job(sums: Aggregates) -> Aggregates:
    """The sums with one more execution."""
    return sums.replace(total_jobs=sums.total_jobs + 1)


def with_ended_job(sums: Aggregates, status: JobExecutionStatus, duration: float | None) -> Aggregates:
    """The sums after an execution has ended."""
    seconds = (sums.total_execution_seconds or Decimal(0)) + exact_seconds(duration)
    return sums.replace(
        completed_jobs=sums.completed_jobs + (status is JobExecutionStatus.COMPLETED),
        failed_jobs=sums.failed_jobs + (status is JobExecutionStatus.FAILED),
        total_execution_seconds=seconds,
        total_execution_time=_minutes(seconds),
    )


def with_logs(sums: Aggregates, logged: LogCounts) -> Aggregates:
    """The sums after a step has logged."""
    return sums.replace(
        total_logs=sums.total_logs + logged.total_logs,
        total_errors=sums.total_errors + logged.error_count,
        total_warnings=sums.total_warnings + logged.warning_count,
    )


def recount(executions: Iterable[JobExecution], rules: Iterable[SecondBrainRule]) -> Aggregates:
    """The sums, counted anew from what they are sums of."""
    sums = Aggregates()
    for execution in executions:
        sums = with_logs(with_new_job(sums), execution.metrics)
        if execution.status in ENDED:
            sums = with_ended_job(sums, execution.status, execution.duration)
    listed = list(rules)
    active = sum(rule.status is RuleStatus.ACTIVE for rule in listed)
    return sums.replace(total_rules=len(listed), active_rules=active)


def added(one: LogCounts, other: LogCounts) -> LogCounts:
    """Two counts together."""
    if other.total_logs == 0:
        return one
    return LogCounts(
        total_logs=one.total_logs + other.total_logs,
        error_count=one.error_count + other.error_count,
        warning_count=one.warning_count + other.warning_count,
        info_count=one.info_count + other.info_count,
        debug_count=one.debug_count + other.debug_count,
    )


def counting(logged: LogCounts) -> list[Update]:
    """How the sums of the journey move; nothing where nothing was logged."""
    moves = {
        "total_logs": logged.total_logs,
        "total_errors": logged.error_count,
        "total_warnings": logged.warning_count,
    }
    return [Journey.aggregates[name].increment(by) for name, by in moves.items() if by]


def since(before: LogCounts, now: LogCounts) -> LogCounts:
    """What was counted since."""
    return LogCounts(
        total_logs=now.total_logs - before.total_logs,
        error_count=now.error_count - before.error_count,
        warning_count=now.warning_count - before.warning_count,
        info_count=now.info_count - before.info_count,
        debug_count=now.debug_count - before.debug_count,
    )


def exact_seconds(duration: float | None) -> Decimal:
    """A duration to the microsecond, which sums up without rounding."""
    return Decimal(str(round(duration or 0.0, 6)))


def _minutes(seconds: Decimal) -> str:
    return f"{int(seconds // 60)}m"
