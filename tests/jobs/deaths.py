"""What processes do that die between any two of their writes, and what workers and people make of what they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.interruptions import dies_after
from tests.jobs.engines import LEASE_SECONDS, check_ended, check_records, engine
from tests.running import NEVER

from jobtable.clock import Clock
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConflictError, JobStateError, NotFoundError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.lifecycle.transitions import SETTLING_TIME
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.objects import ObjectStore
from jobtable.store import Store

NOTHING = "x:y"
"""A task that is not run, but completed at once."""


Fault: TypeAlias = Callable[[Store, ObjectStore, int, Callable[[Store, Any], object]], bool]
"""Lets something be done that goes wrong behind so many writes; says whether it did."""


@dataclass(frozen=True)
class Verb:
    """What a process does, and what is there when it begins."""

    act: Callable[[Jobs], object]
    before: Callable[[Jobs], object] = lambda jobs: None
    in_parts: bool = False
    """What is done of it holds, and the same call again does the rest; else workers do the rest, or undo it."""


def one_by_one(*acts: Callable[[Jobs], object]) -> Callable[[Jobs], object]:
    """All of this."""
    return lambda jobs: [act(jobs) for act in acts]


def check_all_deaths(verb: Verb, *, does_it_again: bool, happens: Fault = dies_after) -> None:
    """Let a process die after each of its writes; then workers go on, behind the same verb once more or at once."""
    with world(verb) as jobs:
        undone = run_to_the_end(jobs)
    with world(verb) as jobs:
        verb.act(jobs)
        done = run_to_the_end(jobs)
    has_died, writes = True, 0
    while has_died:
        with world(verb) as jobs:
            has_died = happens(jobs.store, jobs.objects, writes, on_clock(jobs.clock, verb.act))
            if does_it_again:
                again(jobs, verb)
            ended = run_to_the_end(jobs)
        if does_it_again or not has_died:
            assert ended == done, f"dead after {writes} writes"
        elif not verb.in_parts:
            assert ended in (undone, done), f"dead after {writes} writes"
        writes += 1


@contextmanager
def world(verb: Verb) -> Iterator[Jobs]:
    with Store(EmbeddedBackend(None)) as store:
        jobs = engine(store)
        verb.before(jobs)
        yield jobs


def on_clock(clock: Clock, act: Callable[[Jobs], object]) -> Callable[[Store, ObjectStore], object]:
    """What is done, in another process of the same time."""
    return lambda store, objects: act(Jobs(store, objects, clock=clock))


def again(jobs: Jobs, verb: Verb) -> None:
    """The same once more; a process that is told that it is done already, or not its job any more, is content."""
    try:
        verb.act(jobs)
    except (ConflictError, JobStateError, NotFoundError):
        return


def run_to_the_end(jobs: Jobs) -> dict[str, Status]:
    """Let people resume queues and seal groups, workers do all there is to do, and look at what they leave."""
    check_records(jobs)
    for each in jobs.queries.list_jobs_by_status(Status.RUNNING):
        if each.definition.is_group:
            jobs.seal(each.job_id)
    observer = jobs.observer()
    is_quiet = False
    while not is_quiet:
        observer.recover()
        jobs.clock.sleep(max(LEASE_SECONDS, SETTLING_TIME.total_seconds()) + 1)
        is_quiet = not observer.recover()
        for queue in jobs.queries.list_queues():
            name = jobs.resume_queue(queue.queue_name).queue_name
            is_quiet &= not jobs.promote_due(name)
            leases = jobs.claim(name, limit=100, instance_id="last", lease_seconds=LEASE_SECONDS)
            jobs.finish_many([(lease, run(jobs, lease)) for lease in leases])
            is_quiet &= not leases
    check_ended(jobs)
    return {found.name: found.status for found in jobs.queries.list_jobs()}


def run(jobs: Jobs, lease: Lease) -> Outcome:
    """Run a claimed job as its worker would; gives how it ended."""
    if lease.job.definition.task == NOTHING:
        return Outcome.completed()
    with JobContext(jobs, lease, flush_seconds=NEVER) as context:
        return run_task(lease.job.definition, StopFlag(), lambda: context).outcome()
