"""Executions on a store whose indexes lag: nothing is lost, nothing is done twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.late_indexes import SEEDS, behind, everything, work
from tests.systems.albums.driving import DELIVERED, KINDS, answer, start

from jobtable.jobs.stored.field_types import Status
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import ExecutionStatus, FunctionCall, TaskStatus, WorkflowType, workflows
from jobtable.systems.albums.watch import Watch
from jobtable.workflows.table_and_queues import QUEUES
from jobtable.workflows.table_and_queues import workflows as runs

_OF_THE_STORE = {"QUEUE", "FUNCTION", "DURABLE_KEY", "STATE_MACHINE", "MACHINE_DEFINITION", "TASK_TOKEN"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_execution_asks_once_and_leaves_nothing_behind(kind: WorkflowType, seed: int) -> None:
    with behind(seed, workflows, runs) as (jobs, clock):
        execution_id = start(jobs, kind, answer_within=timedelta(hours=9)).execution_id

        def work_on() -> None:
            for _ in range(8):
                for queue in QUEUES:
                    work(jobs, clock, queue, Watch(jobs).expire_due)

        def calls() -> list[str]:
            return sorted(str(call.step) for call in jobs.store.query(FunctionCall.key(execution_id=execution_id)))

        work_on()
        ((asked, token),) = DELIVERED
        Answers(jobs).complete(asked.task_id, token, answer(asked))
        work_on()
        executions = Executions(jobs)
        assert executions.records.get_execution(execution_id).status is ExecutionStatus.COMPLETED
        assert executions.records.get_task(asked.task_id).status is TaskStatus.COMPLETED
        assert len(executions.records.list_albums(execution_id)) == 3
        assert {job.status for job in jobs.queries.list_jobs()} == {Status.COMPLETED}
        assert calls() == sorted(["read-image", *["check-years"] * 3, "validate", "apply-answer", *["price"] * 4])
        executions.delete(execution_id)
        assert everything(jobs, workflows, runs) - _OF_THE_STORE == set()
