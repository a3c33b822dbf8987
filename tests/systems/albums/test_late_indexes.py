"""Executions on a store whose indexes lag: nothing is lost, nothing is done twice."""

from __future__ import annotations

import pytest
from tests.late_indexes import SEEDS, behind, check_once, everything, work
from tests.systems.albums import workflows as flows

from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import ExecutionStatus, TaskStatus, workflows
from jobtable.systems.albums.executions import QUEUE as ALBUMS
from jobtable.systems.albums.executions import Executions
from jobtable.systems.albums.watch import Watch


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["STEP", "DURABLE"])
def test_an_execution_asks_once_runs_each_step_once_and_leaves_nothing_behind(name: str, seed: int) -> None:
    with behind(seed, workflows) as (jobs, clock):
        executions = Executions(jobs)
        execution_id = executions.start(f"tests.systems.albums.workflows:{name}", b"image", "image.jpg").execution_id
        work(jobs, clock, ALBUMS, Watch(jobs).expire_due)
        ((asked, token),) = flows.DELIVERED
        Answers(jobs).complete(asked.task_id, token, [])
        work(jobs, clock, ALBUMS, Watch(jobs).expire_due)
        assert executions.records.get_execution(execution_id).status is ExecutionStatus.COMPLETED
        assert executions.records.get_task(asked.task_id).status is TaskStatus.COMPLETED
        assert flows.RAN == ["one", "two", "three"]
        check_once(jobs)
        executions.delete(execution_id)
        assert everything(jobs, workflows) == {"QUEUE"}
