"""Journeys on a store whose indexes lag: nothing is lost, nothing is done twice."""

from __future__ import annotations

import pytest
from tests.late_indexes import SEEDS, behind, check_once, everything, work
from tests.systems.journeys.stages import Scripted
from tests.systems.journeys.worlds import STEPS, world_on

from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.entities import journeys
from jobtable.systems.journeys.parts import JourneyStatus
from jobtable.systems.journeys.runner import QUEUE as JOURNEYS


@pytest.mark.parametrize("seed", SEEDS)
def test_a_journey_runs_each_step_once_and_leaves_nothing_behind(seed: int) -> None:
    with behind(seed, journeys) as (jobs, clock):
        world = world_on(jobs.store, jobs.objects)
        world.runner.run("J1")
        work(jobs, clock, JOURNEYS)
        assert world.journey().status is JourneyStatus.COMPLETED
        assert Scripted.ran == [f"{stage}.{step}" for stage in ("one", "two") for step in STEPS]
        world.check_sums()
        check_once(jobs)
        JourneyBackups(world.runner).delete_journey("J1")
        assert everything(jobs, journeys) == {"QUEUE"}
