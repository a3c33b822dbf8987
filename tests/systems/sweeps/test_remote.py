"""Sweeps whose trials are planned and run by workers that have only a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.remote.conftest import REPOSITORY
from tests.systems.sweeps import sweep_tasks
from tests.systems.sweeps.test_sweeps import ASHA, KINDS, plane, undisturbed
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.errors import LeaseLostError, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.worker import Worker
from jobtable.remote.work import ServerWork, open_work
from jobtable.systems.sweeps.desk import SweepDesk
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.trials import find_rungs


def run_far(served: Served, sweep: Sweep, **options: Any) -> list[Any]:
    """Submit a sweep to the server, and let a worker elsewhere do all the rest."""
    sweeps = served.services.get(Sweeps)
    sweep_id = sweeps.submit(sweep).job_id
    opener = partial(open_work, served.url, served.token(Role.WORKER))
    Worker(opener, [sweep.queue], until_empty=True, **options).run()
    progress = sweeps.get_progress(sweep_id)
    assert progress.status is Status.COMPLETED, progress.problem
    return [(trial.params, trial.status, trial.value) for trial in sweeps.list_trials(sweep_id)]


@pytest.mark.parametrize("kind", ["random with ASHA", "TPE with ASHA", "TPE"])
def test_a_worker_elsewhere_makes_the_same_decisions(served: Served, kind: str) -> None:
    far = run_far(served, plane(**KINDS[kind], queue=kind), mode="inline")
    assert far == [(trial.params, trial.status, trial.value) for trial in undisturbed(kind).trials]


def test_a_trial_that_stops_itself_elsewhere_says_so_to_the_server(served: Served) -> None:
    far = run_far(served, plane(sweep_tasks.give_up, trials=8, queue="itself"), mode="inline")
    assert [(status, value) for params, status, value in far if params["x"] < 0] == [
        (Status.STOPPED, params["x"]) for params, _, _ in far if params["x"] < 0
    ]
    assert {status for _, status, _ in far} == {Status.STOPPED, Status.COMPLETED}


def test_trials_of_very_many_steps_are_compared_elsewhere_as_here(served: Served) -> None:
    asha = {"name": "asha", "first_epoch": 1_000, "factor": 99_999}
    sweep = plane(sweep_tasks.take_steps, stopper=asha, trials=2, generation_size=1, queue="steps")
    assert [status for _, status, _ in run_far(served, sweep, mode="inline")] == [Status.COMPLETED] * 2
    parent = served.services.get(Sweeps).list_sweeps().first()
    assert parent is not None
    rungs = [rung for rung, _ in find_rungs(served.services.store, parent.job_id, "loss")]
    assert rungs == [1_000, 1_000, 99_999_000, 99_999_000]


def test_trials_run_in_processes_of_their_own(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY))
    far = run_far(served, plane(sweep_tasks.train, trials=4, queue="processes"), slots=2)
    assert [status for _, status, _ in far] == [Status.COMPLETED] * 4


def test_trials_are_compared_with_whoever_is_there_and_put_in_order(served: Served) -> None:
    """What a worker must ask for while trials run: what others have, and that those that wait are put in order."""
    sweep = plane(stopper={**ASHA, "peers": "now"}, adapt_every=4, trials=24, queue="now")
    statuses = Counter(status for _, status, _ in run_far(served, sweep, mode="inline"))
    assert statuses[Status.STOPPED] >= 5
    assert statuses[Status.COMPLETED] >= 5


def claim_trial(served: Served, work: ServerWork, queue: str) -> Lease:
    """The first trial of a new sweep, held by a worker elsewhere."""
    served.services.get(Sweeps).submit(plane(stopper={**ASHA, "peers": "now"}, trials=3, queue=queue))
    (planning,) = work.claim(queue, limit=1, instance_id="far", lease_seconds=60)
    assert work.desk(SweepDesk, planning).plan(is_inline=True) == 3
    (trial,) = work.claim(queue, limit=1, instance_id="far", lease_seconds=60)
    return trial


def test_a_trial_knows_what_its_earlier_runs_have_left(served: Served, work: ServerWork) -> None:
    lease = claim_trial(served, work, "again")
    desk = work.desk(SweepDesk, lease)
    assert desk.find_earlier_runs().model_dump() == {"at_rungs": {}, "stopped_at": None, "last_report": None}
    desk.keep_rung(0, 8.0, epoch=1, is_stopped=False)
    desk.keep_rung(1, 7.5, epoch=3, is_stopped=True)
    desk.keep_rung(1, 7.5, epoch=3, is_stopped=True)  # its answer was lost: nothing is there twice
    assert desk.find_earlier_runs().model_dump() == {
        "at_rungs": {0: 8.0, 1: 7.5},
        "stopped_at": 3,
        "last_report": None,
    }
    assert desk.list_others_at(1) == []
    (other,) = work.claim("again", limit=1, instance_id="far", lease_seconds=60)
    assert work.desk(SweepDesk, other).list_others_at(1) == [7.5]


def test_who_has_lost_a_trial_is_refused(served: Served, work: ServerWork) -> None:
    lease = claim_trial(served, work, "lost")
    desk = work.desk(SweepDesk, lease)
    work.release(lease, "gone")
    refused: list[Callable[[], object]] = [
        desk.get_definition,
        desk.find_earlier_runs,
        desk.adapt,
        lambda: desk.plan(is_inline=True),
        lambda: desk.list_others_at(0),
        lambda: desk.keep_rung(0, 1.0, epoch=1, is_stopped=False),
    ]
    for act in refused:
        with pytest.raises(LeaseLostError):
            act()


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        ({}, "is not a trial of a sweep"),
        ({"config": {"sweep": {"sweep_id": "s"}}}, "has no valid trial configuration: objective: Field required"),
        ({"job_type": "planning", "params": {"sweep_id": "s"}}, "has invalid planning parameters: Field required"),
    ],
)
def test_what_is_no_job_of_a_sweep_has_none(
    served: Served, work: ServerWork, new: dict[str, Any], problem: str
) -> None:
    served.services.engine.submit(NewJob(name="other", task="tests.remote.tasks:wait", queue="other", **new))
    (lease,) = work.claim("other", limit=1, instance_id="far", lease_seconds=60)
    with pytest.raises(ValueRefusedError, match=problem):
        work.desk(SweepDesk, lease).get_definition()
    if new.get("job_type") != "planning":
        with pytest.raises(ValueRefusedError, match="does not plan trials"):
            work.desk(SweepDesk, lease).plan(is_inline=True)
