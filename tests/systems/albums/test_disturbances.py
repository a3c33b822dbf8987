"""Executions under clocks that go wrong, with jobs that people end, and on a store that is busy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.clouds import BusyItems
from tests.running import jobs_in_memory
from tests.systems.albums.driving import DELIVERED, answer, checked, start, waiting
from tests.systems.albums.test_executions import FUNCTIONS, each_kind

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.store import Store
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import ExecutionStatus, TaskStatus, WorkflowType, workflows
from jobtable.systems.albums.found_albums import find_albums
from jobtable.systems.albums.watch import Watch
from jobtable.testing import FakeClock
from jobtable.workflows.table_and_queues import QUEUES
from jobtable.workflows.table_and_queues import workflows as runs

# --- clocks -----------------------------------------------------------------------------------------------------------


@each_kind
def test_a_clock_that_was_ahead_for_a_while_times_no_task_out(jobs: Jobs, clock: FakeClock, kind: WorkflowType) -> None:
    execution, asked, token = waiting(jobs, kind)
    right = clock.now()
    clock.set(asked.expires_at + timedelta(days=1))
    clock.now()
    clock.set(right)
    assert Watch(jobs).expire_due().looked_at == 0
    assert sum(jobs.promote_due(queue) for queue in QUEUES) == 0
    Answers(jobs).complete(asked.task_id, token, answer(asked))
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.COMPLETED
    assert Executions(jobs).records.get_task(asked.task_id).status is TaskStatus.COMPLETED


@each_kind
def test_after_a_clock_was_ahead_deadlines_are_as_far_away_as_they_were(
    jobs: Jobs, clock: FakeClock, kind: WorkflowType
) -> None:
    right = clock.now()
    clock.set(right + timedelta(days=365))
    clock.now()
    clock.set(right)
    execution, asked, _ = waiting(jobs, kind)
    assert right < asked.expires_at < right + timedelta(days=1)
    clock.set(asked.expires_at - timedelta(milliseconds=1))
    assert Watch(jobs).expire_due().timed_out == 0
    clock.advance(0.002)
    assert Watch(jobs).expire_due().timed_out == 1
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.FAILED


# --- jobs that people end ---------------------------------------------------------------------------------------------


@each_kind
def test_no_step_begins_in_an_execution_whose_jobs_were_ended_until_it_is_retried(
    jobs: Jobs, clock: FakeClock, kind: WorkflowType
) -> None:
    """The answer that came meanwhile is kept."""
    execution, asked, token = waiting(jobs, kind)
    for job in list(jobs.queries.list_jobs()):
        if not job.is_final:
            jobs.cancel(job.job_id)
    Answers(jobs).complete(asked.task_id, token, answer(asked)[:1])
    ended = checked(jobs, execution.execution_id)
    assert ended.status is ExecutionStatus.FAILED
    assert "cancelled" in str(ended.failure).lower()
    assert len(Executions(jobs).records.list_albums(execution.execution_id)) == 3, "the answer was not applied"
    Executions(jobs).retry(execution.execution_id)
    assert checked(jobs, execution.execution_id).status is ExecutionStatus.COMPLETED
    assert len(Executions(jobs).records.list_albums(execution.execution_id)) == 1
    assert len(DELIVERED) == 1, "nobody was asked again"


@each_kind
def test_a_question_whose_workflow_was_ended_is_closed_before_its_time_is_over(
    jobs: Jobs, clock: FakeClock, kind: WorkflowType
) -> None:
    execution, asked, _ = waiting(jobs, kind)
    for job in list(jobs.queries.list_jobs()):
        if not job.is_final:
            jobs.cancel(job.job_id)
    clock.advance(20)
    assert Watch(jobs).expire_due().failed == 1
    assert clock.now() < asked.expires_at
    assert Executions(jobs).records.get_execution(execution.execution_id).status is ExecutionStatus.FAILED


def test_an_execution_that_waits_is_looked_at_ever_more_rarely(jobs: Jobs, clock: FakeClock) -> None:
    waiting(jobs, WorkflowType.STEP_FUNCTIONS, answer_within=timedelta(days=366))
    looks = []
    for _ in range(24):
        clock.advance(3600)
        looks.append(Watch(jobs).expire_due().looked_at)
    assert looks[0] == 1
    assert 4 <= sum(looks) <= 7


# --- a busy store -----------------------------------------------------------------------------------------------------


@each_kind
def test_a_step_whose_end_others_are_in_the_way_of_goes_on(
    clock: FakeClock, kind: WorkflowType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conflict says nothing about the execution."""
    backend, conflicts = BusyItems(EmbeddedBackend(None, clock=clock)), iter([8])

    def find_and_disturb(read: Any) -> Any:
        backend.conflicts = next(conflicts, 0)
        return find_albums(read)

    with Store(backend, clock=clock) as store:
        store.tables.create(main, workflows, runs)
        jobs = jobs_in_memory(store)
        execution_id = start(jobs, kind).execution_id
        monkeypatch.setattr(f"{FUNCTIONS}.find_albums", find_and_disturb)
        assert (found := checked(jobs, execution_id)).status is ExecutionStatus.WAITING, found.failure
        assert backend.conflicts == 0
        assert len(Executions(jobs).records.list_albums(execution_id)) == 3
