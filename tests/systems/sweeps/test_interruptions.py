"""Every verb of sweeps in a process that dies between any two of its writes, or with another one in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.interruptions import Surroundings, interleaved
from tests.jobs.deaths import Verb, check_all_deaths, one_by_one, run
from tests.jobs.engines import LEASE_SECONDS, check_records
from tests.systems.sweeps import sweep_tasks
from tests.systems.sweeps.driving import Driver

from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.transitions import SETTLING_TIME, ensure_queue
from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Status
from jobtable.systems.sweeps.adaptation import Adaptation
from jobtable.systems.sweeps.parameters import float_range
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.testing import FakeClock

TRIALS = 4


def plane(task: Any = sweep_tasks.bowl, **changes: Any) -> Sweep:
    """A sweep of some generations."""
    given = {"trials": TRIALS, "generation_size": 2, "stopper": {"name": "asha", "last_epoch": 9}, **changes}
    space = {"x": float_range(-5, 5), "y": float_range(-5, 5)}
    return Sweep(name="plane", task=task, space=space, objective="loss", **given)


def submit(jobs: Jobs) -> None:
    Sweeps(jobs).submit(plane(), sweep_id="s")


def submit_many(jobs: Jobs) -> None:
    Sweeps(jobs).submit(plane(stopper=None, trials=40), sweep_id="s")


def submit_failing(jobs: Jobs) -> None:
    Sweeps(jobs).submit(plane(sweep_tasks.fail_below, stopper=None, trials=8), sweep_id="s")


def work(jobs: Jobs) -> None:
    """Claim what is ready, run it, and say how it ended."""
    leases = jobs.claim("default", limit=30, instance_id="here", lease_seconds=LEASE_SECONDS)
    jobs.finish_many([(lease, run(jobs, lease)) for lease in leases])


def work_to_the_end(jobs: Jobs) -> None:
    while jobs.queries.list_ready("default").count():
        work(jobs)


def stop(jobs: Jobs) -> None:
    Sweeps(jobs).stop("s")


def resume(jobs: Jobs) -> None:
    Sweeps(jobs).resume("s")


def adapt(jobs: Jobs) -> None:
    Adaptation(jobs).adapt("s", plane(stopper=None, trials=40))


def delete(jobs: Jobs) -> None:
    jobs.delete("s", tree=True)


VERBS = {
    "submit": Verb(submit),
    "plan a generation": Verb(work, submit),
    "plan more than fits into a transaction": Verb(work, submit_many),
    "run a generation, and plan the next": Verb(one_by_one(work, work), one_by_one(submit, work)),
    "run many, and end": Verb(work_to_the_end, one_by_one(submit_many, work)),
    "stop before it is planned": Verb(stop, submit, in_parts=True),
    "stop": Verb(stop, one_by_one(submit, work, work), in_parts=True),
    "resume what was stopped": Verb(resume, one_by_one(submit, work, work, stop), in_parts=True),
    "resume what was stopped at once": Verb(resume, one_by_one(submit, stop), in_parts=True),
    "resume what failed": Verb(resume, one_by_one(submit_failing, work_to_the_end), in_parts=True),
    "adapt": Verb(adapt, one_by_one(submit_many, work, work), in_parts=True),
    "delete": Verb(delete, one_by_one(submit, work_to_the_end), in_parts=True),
}


@pytest.mark.parametrize("does_it_again", [False, True], ids=["workers go on", "the same again"])
@pytest.mark.parametrize("name", VERBS)
def test_after_a_death_a_sweep_comes_to_its_end(name: str, does_it_again: bool) -> None:
    check_all_deaths(VERBS[name], does_it_again=does_it_again)


# --- two at once ------------------------------------------------------------------------------------------------------


def extend(jobs: Jobs) -> None:
    Sweeps(jobs).extend("s", total=TRIALS + 3)


def submit_plain(jobs: Jobs) -> None:
    ensure_queue(jobs.store, jobs.clock, "default")
    Sweeps(jobs).submit(plane(stopper=None), sweep_id="s")


def go_on(jobs: Jobs) -> None:
    """What workers do, until nothing is left for them."""
    assert isinstance(jobs.clock, FakeClock)
    for _ in range(3):
        Driver(jobs, jobs.clock).run()
        jobs.clock.sleep(SETTLING_TIME.total_seconds() + 1)
        jobs.promote_due("default")


def come_to_the_end(jobs: Jobs) -> None:
    """Whoever resumes a sweep that was stopped gets every trial that it has."""
    go_on(jobs)
    resume(jobs)
    go_on(jobs)
    progress = Sweeps(jobs).get_progress("s")
    assert (progress.status, progress.completed) == (Status.COMPLETED, progress.total)


Act = Callable[[Jobs], object]
TWO_AT_ONCE: dict[str, tuple[Act, Act, Act]] = {
    "plan, and stop": (submit_plain, work, stop),
    "stop, and run the last trials": (one_by_one(submit_plain, work), stop, work),
    "stop again, and resume": (one_by_one(submit_plain, work, stop), stop, resume),
    "extend, and stop": (one_by_one(submit_plain, work, work), extend, stop),
}


@pytest.mark.parametrize("name", TWO_AT_ONCE)
def test_a_sweep_that_was_stopped_at_any_time_is_resumed_to_its_end(name: str) -> None:
    before, act, other = TWO_AT_ONCE[name]
    here = Surroundings((main,), check_records, come_to_the_end)
    assert list(interleaved(here, before, lambda jobs, _: act(jobs), lambda jobs, _: other(jobs)))
