"""Runs executions in this process as a worker of their queues does, and jumps over short pauses."""

from __future__ import annotations

from datetime import timedelta

from tests.running import run_jobs

from jobtable.clock import wall_time
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import QueueJob
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.entities import Execution, ExecutionStatus, ValidationTask, WorkflowType
from jobtable.systems.albums.watch import Watch
from jobtable.testing import FakeClock
from jobtable.workflows.table_and_queues import QUEUES

DELIVER = f"{__name__}:deliver"
DELIVERED: list[tuple[ValidationTask, str]] = []
LISTING = b"""Pink Floyd - The Dark Side of the Moon (1973)
The Beatles - Abbey Road (1996)
this is no album
Nobody - Nothing (1066)
Kraftwerk - Autobahn (1974)
"""
KINDS = list(WorkflowType)
_SHORT = timedelta(seconds=20)
"""What is due later is not waited for: it is a question's end."""


def deliver(asked: ValidationTask, token: str) -> None:
    DELIVERED.append((asked, token))


def fail_to_deliver(asked: ValidationTask, token: str) -> None:
    raise RuntimeError("the mail server is down")


def work(jobs: Jobs, *, most: int | None = None) -> int:
    """Run the jobs that are ready, and those that become ready by that or after a short pause; return their number."""
    ran = 0
    while ran != most:
        for queue in QUEUES:
            jobs.promote_due(queue)
        done = sum(run_jobs(jobs, queue, most=None if most is None else most - ran, retryable=True) for queue in QUEUES)
        ran += done
        if not done and not _jump(jobs):
            break
    return ran


def _jump(jobs: Jobs) -> bool:
    """Let a fake clock come to the next job that is due soon."""
    entries = [jobs.store.query(QueueJob.delayed(queue_name=queue), limit=1).first() for queue in QUEUES]
    due = [each.not_before for each in entries if each is not None and each.not_before is not None]
    if not isinstance(jobs.clock, FakeClock) or not due or min(due) > wall_time(jobs.clock) + _SHORT:
        return False
    jobs.clock.set(max(wall_time(jobs.clock), min(due) + timedelta(milliseconds=1)))
    return True


def start(jobs: Jobs, kind: WorkflowType, image: bytes = LISTING, **options: object) -> Execution:
    """An execution whose question has five minutes, and is delivered to this module."""
    given = {"answer_within": timedelta(minutes=5), "deliver": DELIVER, **options}
    return Executions(jobs).start(kind, image, "list.txt", **given)  # type: ignore[arg-type] # what a test hands on


def waiting(
    jobs: Jobs, kind: WorkflowType, image: bytes = LISTING, **options: object
) -> tuple[Execution, ValidationTask, str]:
    """An execution that waits for a person, its task, and the token."""
    started = start(jobs, kind, image, **options)
    work(jobs)
    execution = Executions(jobs).records.get_execution(started.execution_id)
    assert execution.status is ExecutionStatus.WAITING, execution
    return execution, *DELIVERED[-1]


def checked(jobs: Jobs, execution_id: str) -> Execution:
    """An execution after everything that can run has run, and the watch has looked at it."""
    for _ in range(3):
        work(jobs)
        Watch(jobs).check(execution_id)
    return Executions(jobs).records.get_execution(execution_id)


def answer(task: ValidationTask) -> list[object]:
    """The answer that all albums of a task are right."""
    return [album.model_dump(mode="json") for album in task.albums]
