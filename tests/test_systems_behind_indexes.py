"""Every system on a store whose indexes are some writes behind, by a seed: nothing is lost, nothing is done twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.fields import Status
from jobtable.store import Store
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import ExecutionStatus, TaskStatus, workflows
from jobtable.systems.albums.executions import QUEUE as ALBUMS
from jobtable.systems.albums.executions import Executions
from jobtable.systems.albums.watch import Watch
from jobtable.systems.conversations.example import generate_export
from jobtable.systems.conversations.runs import QUEUE as CONVERSATIONS
from jobtable.systems.conversations.runs import ConversationRuns
from jobtable.systems.conversations.service import tables
from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.entities import journeys
from jobtable.systems.journeys.parts import JourneyStatus
from jobtable.systems.journeys.runner import QUEUE as JOURNEYS
from jobtable.systems.sweeps.parameters import float_range
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.testing import FakeClock, Faults, FaultyBackend
from tests.jobs.engines import check_records
from tests.running import jobs_in_memory, run_jobs
from tests.systems.albums import workflows as flows
from tests.systems.conversations.test_runs import files_of
from tests.systems.journeys.stages import Scripted
from tests.systems.journeys.worlds import STEPS, world_on
from tests.systems.sweeps import sweep_tasks

SEEDS = range(3)
MOST_BEHIND = 60
"""Items of a transaction count one by one, so these are the last five transactions or so."""
A_MOMENT = 10.0
"""Longer than who waits for a job needs to be told of its end by another process."""


@pytest.fixture(autouse=True)
def _forget_flows() -> None:
    """What the workflows of the tests note while they run is of one test alone."""
    flows.forget()


@contextmanager
def behind(seed: int) -> Iterator[tuple[Jobs, FakeClock]]:
    """An engine that is shown old indexes in half of the cases, at random; and what it has done, it has done once."""
    clock, lag = FakeClock(), Faults(index_lag=0.5)
    backend = FaultyBackend(
        EmbeddedBackend(None, clock=clock), lag, seed=seed, lagging=MOST_BEHIND, lagging_seconds=A_MOMENT, clock=clock
    )
    with Store(backend, clock=clock) as store:
        store.tables.create(main, workflows, journeys, *tables())
        yield jobs_in_memory(store), clock
        assert backend.injected["index_lag"] > 0
        backend.stop()
        check_records(jobs_in_memory(store))


def work(jobs: Jobs, clock: FakeClock, queue: str) -> None:
    """Run what is ready, as often as time brings something to the light that was not shown before."""
    idle = 0
    while idle < 3:
        idle = 0 if run_jobs(jobs, queue) else idle + 1
        clock.advance(A_MOMENT + 1)
        jobs.promote_due(queue)
        Watch(jobs).expire_due()


def check_once(jobs: Jobs, but: str = "") -> None:
    """Every job is COMPLETED and, but for those of whose id this is a part, was claimed once."""
    found = [job for job in jobs.queries.list_jobs() if not job.definition.is_group]
    assert {job.status for job in found} == {Status.COMPLETED}
    assert {job.lease_epoch for job in found if not but or but not in job.job_id} == {1}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sweep_makes_and_runs_each_trial_once_and_finds_the_best(seed: int) -> None:
    with behind(seed) as (jobs, clock):
        sweeps = Sweeps(jobs)
        space = {"x": float_range(-5, 5), "y": float_range(-5, 5)}
        sweep = Sweep(name="plane", task=sweep_tasks.bowl, space=space, trials=20, sampler="tpe", target=-1.0)
        sweeps.submit(sweep, sweep_id="s")
        work(jobs, clock, "default")
        sweeps.extend("s", total=24)
        work(jobs, clock, "default")
        progress = sweeps.get_progress("s")
        assert (progress.status, progress.completed, progress.made) == (Status.COMPLETED, 24, 24)
        values = {trial.number: trial.value for trial in sweeps.list_trials("s")}
        assert len(values) == 24
        assert progress.best is not None
        assert progress.best.value == min(value for value in values.values() if value is not None)
        check_once(jobs, but="planning")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sweep_that_is_stopped_and_resumed_comes_to_its_end(seed: int) -> None:
    random = Random(seed)
    with behind(seed) as (jobs, clock):
        sweeps = Sweeps(jobs)
        space = {"x": float_range(-5, 5), "y": float_range(-5, 5)}
        sweeps.submit(Sweep(name="plane", task=sweep_tasks.bowl, space=space, trials=20), sweep_id="s")
        for _ in range(4):
            run_jobs(jobs, "default", most=random.randint(0, 4))
            sweeps.stop("s")
            clock.advance(A_MOMENT)
            sweeps.resume("s")
        work(jobs, clock, "default")
        progress = sweeps.get_progress("s")
        assert (progress.status, progress.completed, progress.made) == (Status.COMPLETED, 20, 20)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_journey_runs_each_step_once_and_leaves_nothing_behind(seed: int) -> None:
    with behind(seed) as (jobs, clock):
        world = world_on(jobs.store, jobs.objects)
        world.runner.run("J1")
        work(jobs, clock, JOURNEYS)
        assert world.journey().status is JourneyStatus.COMPLETED
        assert Scripted.ran == [f"{stage}.{step}" for stage in ("one", "two") for step in STEPS]
        world.check_sums()
        check_once(jobs)
        JourneyBackups(world.runner).delete_journey("J1")
        assert everything(jobs) == {"QUEUE"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["STEP", "DURABLE"])
def test_an_execution_asks_once_runs_each_step_once_and_leaves_nothing_behind(name: str, seed: int) -> None:
    with behind(seed) as (jobs, clock):
        executions = Executions(jobs)
        execution_id = executions.start(f"tests.systems.albums.workflows:{name}", b"image", "image.jpg").execution_id
        work(jobs, clock, ALBUMS)
        ((asked, token),) = flows.DELIVERED
        Answers(jobs).complete(asked.task_id, token, [])
        work(jobs, clock, ALBUMS)
        assert executions.records.get_execution(execution_id).status is ExecutionStatus.COMPLETED
        assert executions.records.get_task(asked.task_id).status is TaskStatus.COMPLETED
        assert flows.RAN == ["one", "two", "three"]
        check_once(jobs)
        executions.delete(execution_id)
        assert everything(jobs) == {"QUEUE"}


@pytest.mark.parametrize("seed", SEEDS)
def test_an_analysis_runs_each_stage_once_and_leaves_nothing_behind(tmp_path: Path, seed: int) -> None:
    files = files_of(generate_export(1, comments=20, voters=10, votes_per_voter=10), tmp_path)
    with behind(seed) as (jobs, clock):
        runs = ConversationRuns(jobs)
        runs.start("c", *files, run_id="r")
        work(jobs, clock, CONVERSATIONS)
        assert runs.get("r").status is Status.COMPLETED
        check_once(jobs)
        runs.delete("r")
        assert everything(jobs) == {"QUEUE"}


def everything(jobs: Jobs) -> set[str]:
    """The kinds of items that are left in all tables, and of objects."""
    left = {found.key for found in jobs.objects.list()}
    for table in (main, workflows, journeys, *tables()):
        for item in jobs.store.backend.execute("Scan", {"TableName": table.name})["Items"]:
            left.add(item[table.type_attribute]["S"] if table.type_attribute else table.name)
    return left
