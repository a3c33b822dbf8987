"""Every verb of the job engine in a process that dies between any two of its writes, and what becomes of it then."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.interruptions import dies_after, loses_an_answer
from tests.jobs.deaths import NOTHING, Verb, check_all_deaths, on_clock, one_by_one
from tests.jobs.engines import LEASE_SECONDS

from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.instances import InstanceInfo, new_instance
from jobtable.jobs.lifecycle.leases import Lease, Outcome, has_lease
from jobtable.jobs.report.checkpoints import SavedState
from jobtable.jobs.report.log_text import PART_BYTES, UPLOAD_SECONDS
from jobtable.jobs.stored.entities import Instance
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob, ParentWaits
from jobtable.jobs.submit.submission import copy_of
from jobtable.testing import FakeClock

CHILDREN = [f"child {number}" for number in range(26)]
FAILED = Outcome.failed("boom")
INSTANCE = Instance(
    instance_id="machine", instance_type="test", launched_at=FakeClock().now(), lease_seconds=LEASE_SECONDS
)


# --- the parts of worlds ------------------------------------------------------------------------------------------


def job(name: str, *on: DependsOn, parent: str | None = None, **more: object) -> NewJob:
    """A job whose id is its name; its parent waits for it."""
    waits = None if parent is None else ParentWaits()
    given = {"task": NOTHING, "depends_on": on, "parent_job_id": parent, "parent_waits": waits, **more}
    return NewJob(name=name, job_id=name, **given)  # type: ignore[arg-type]  # as it is given


def finished(name: str) -> DependsOn:
    return DependsOn(name, condition=EdgeCondition.FINISHED)


def started(name: str) -> DependsOn:
    return DependsOn(name, condition=EdgeCondition.STARTED)


def claim(jobs: Jobs, *names: str, instance: Instance | None = None) -> None:
    """Let a worker have these jobs; the others that it gets are given back."""
    for lease in jobs.claim(
        "default", limit=100, instance_id="machine", lease_seconds=LEASE_SECONDS, instance=instance
    ):
        if lease.job.job_id not in names:
            jobs.release(lease, "not meant")


def lease_of(jobs: Jobs, name: str, *, is_recorded: bool = False) -> Lease:
    lease = Lease(jobs.queries.get_job(name), "machine", is_recorded)
    if not has_lease(lease.job):
        raise lease.lost()
    return lease


def end(jobs: Jobs, name: str, outcome: Outcome = FAILED) -> None:
    """Let a job run and end."""
    claim(jobs, name)
    jobs.finish(lease_of(jobs, name), outcome)


def chain(jobs: Jobs) -> None:
    """Jobs that wait for each other's completion, one that waits for the first end, and one that runs already."""
    jobs.submit_many([job("a"), job("b", DependsOn("a")), job("c", DependsOn("b")), job("d", finished("a"))])
    claim(jobs, "a")


def failed_chain(jobs: Jobs) -> None:
    chain(jobs)
    jobs.finish(lease_of(jobs, "a"), FAILED)
    jobs.submit(job("late", finished("a")))


def nested_groups(jobs: Jobs) -> None:
    """A group in a group, both of which another job waits for, and a child that waits for another."""
    jobs.open_group(job("outer", task=None))
    jobs.open_group(job("inner", task=None, parent="outer"))
    jobs.submit_many([job("a", parent="inner"), job("b", parent="inner"), job("c", DependsOn("a"), parent="inner")])
    jobs.submit_many([job("last", DependsOn("outer")), job("anyhow", finished("inner"))])
    jobs.seal("inner")
    jobs.seal("outer")


def failed_groups(jobs: Jobs) -> None:
    nested_groups(jobs)
    end(jobs, "a")
    end(jobs, "b")


def untold_groups(jobs: Jobs) -> None:
    """Cancelled groups with a child that has failed, of which nobody was told."""
    nested_groups(jobs)
    claim(jobs, "a")
    fail = on_clock(jobs.clock, lambda dying: dying.finish(lease_of(dying, "a"), FAILED))
    assert dies_after(jobs.store, jobs.objects, 1, fail)
    jobs.cancel("outer")


def groups_of_two_clocks(jobs: Jobs) -> None:
    """Cancelled groups with a child from a process whose clock is late."""
    nested_groups(jobs)
    late = Jobs(jobs.store, jobs.objects, clock=FakeClock(jobs.clock.now() - timedelta(hours=1)))
    late.submit(job("late", parent="inner"))
    jobs.cancel("outer")


def half_retried(jobs: Jobs) -> None:
    """A failed job that nobody waits for, and that a dead process was to retry."""
    jobs.submit(job("a"))
    end(jobs, "a")
    assert dies_after(jobs.store, jobs.objects, 1, on_clock(jobs.clock, lambda dying: dying.retry("a")))


def family(jobs: Jobs) -> None:
    """A group with so many children that each verb takes several transactions for them."""
    jobs.open_group(job("group", task=None))
    jobs.submit_many(job(name, parent="group") for name in CHILDREN)
    jobs.submit(job("waits", started(CHILDREN[0]), started(CHILDREN[-1])))


def dead_worker(jobs: Jobs) -> None:
    chain(jobs)
    jobs.submit(job("poison", most_interruptions=0))
    jobs.submit(job("behind", DependsOn("poison")))
    claim(jobs, "a", "poison", instance=INSTANCE)
    jobs.instances.register(INSTANCE)


def records(jobs: Jobs) -> None:
    """A run with checkpoints, an artifact and a long text."""
    jobs.submit(job("a"))
    claim(jobs, "a", instance=INSTANCE)
    keep(jobs)


def ended_records(jobs: Jobs) -> None:
    records(jobs)
    jobs.submit_many([job("b", DependsOn("a")), job("c", DependsOn("b"))])
    jobs.finish(lease_of(jobs, "a", is_recorded=True), FAILED)


# --- verbs --------------------------------------------------------------------------------------------------------


def submit_with_keys(jobs: Jobs) -> None:
    jobs.submit_many(NewJob(name=name, task=NOTHING, key=name, queue="new") for name in CHILDREN)
    jobs.submit_many(
        NewJob(name=f"behind {name}", task=NOTHING, key=f"behind {name}", depends_on=(finished("a"),))
        for name in CHILDREN
    )


def claim_family(jobs: Jobs) -> None:
    jobs.claim("default", limit=100, instance_id="machine", lease_seconds=LEASE_SECONDS, instance=INSTANCE)


def finish_family(jobs: Jobs) -> None:
    jobs.finish_many([(lease_of(jobs, name, is_recorded=True), Outcome.completed()) for name in CHILDREN])


def recover(jobs: Jobs) -> None:
    """What a worker does that has watched for long enough."""
    observer = jobs.observer()
    observer.recover()
    jobs.clock.sleep(LEASE_SECONDS + 1)
    observer.recover()


def work(jobs: Jobs) -> None:
    """A worker's life with one job: registered, run, drained."""
    info = InstanceInfo("test")
    instance = new_instance(jobs.clock, info, queues=["default"], slots=1, lease_seconds=LEASE_SECONDS)
    jobs.instances.register(instance)
    (lease,) = jobs.claim(
        "default", limit=1, instance_id=instance.instance_id, lease_seconds=LEASE_SECONDS, instance=instance
    ) or [lease_of(jobs, "a")]
    jobs.instances.beat(instance)
    jobs.heartbeat(lease)
    jobs.report(lease, progress=50)
    jobs.release(lease, "drained")
    jobs.instances.stop(instance)


def keep(jobs: Jobs) -> None:
    """Everything that a run leaves in object storage."""
    lease = lease_of(jobs, "a")
    for step in range(3):
        best = SavedState(step=step, is_best=step == 0)
        jobs.recording.checkpoints(lease).add(b"state", best, keep_last=1)
    jobs.recording.artifacts(lease).put("model", b"weights")
    with closing(jobs.recording.log_text(lease)) as text:
        text.append(b"x" * (PART_BYTES + 1))
        jobs.clock.sleep(UPLOAD_SECONDS)
        text.upload()
        text.finish()


VERBS = {
    "submit one to a new queue": Verb(lambda jobs: jobs.submit(job("a", queue="new"))),
    "submit many with keys": Verb(submit_with_keys, lambda jobs: jobs.submit(job("a")), in_parts=True),
    "submit children": Verb(
        lambda jobs: jobs.submit_many(job(name, parent="group") for name in CHILDREN),
        lambda jobs: jobs.open_group(job("group", task=None)),
        in_parts=True,
    ),
    "seal a group": Verb(lambda jobs: jobs.seal("group"), lambda jobs: jobs.open_group(job("group", task=None))),
    "submit behind others": Verb(lambda jobs: jobs.submit(job("e", DependsOn("a"), finished("c"))), chain),
    "claim many whose start others wait for": Verb(claim_family, family),
    "complete with dependents": Verb(lambda jobs: jobs.finish(lease_of(jobs, "a"), Outcome.completed()), chain),
    "fail over several levels": Verb(lambda jobs: jobs.finish(lease_of(jobs, "a"), FAILED), chain),
    "fail in groups": Verb(
        lambda jobs: jobs.finish(lease_of(jobs, "a"), FAILED), one_by_one(nested_groups, lambda jobs: claim(jobs, "a"))
    ),
    "try again": Verb(
        lambda jobs: jobs.finish(lease_of(jobs, "a"), FAILED),
        one_by_one(lambda jobs: jobs.submit(job("a", max_attempts=2)), lambda jobs: claim(jobs, "a")),
    ),
    "complete many children": Verb(finish_family, one_by_one(family, claim_family)),
    "retry with dependents": Verb(lambda jobs: jobs.retry("a"), failed_chain),
    "retry one who waited": Verb(lambda jobs: jobs.retry("b"), one_by_one(failed_chain, lambda jobs: jobs.retry("a"))),
    "retry in groups": Verb(lambda jobs: jobs.retry("b"), failed_groups),
    "retry a tree": Verb(lambda jobs: jobs.retry("outer", tree=True), failed_groups, in_parts=True),
    "cancel with dependents": Verb(lambda jobs: jobs.cancel("b"), chain),
    "cancel what runs": Verb(lambda jobs: jobs.cancel("a"), chain),
    "cancel a tree": Verb(lambda jobs: jobs.cancel("outer"), nested_groups, in_parts=True),
    "stop a tree": Verb(
        lambda jobs: jobs.stop("outer"), one_by_one(nested_groups, lambda jobs: claim(jobs, "a")), in_parts=True
    ),
    "prioritise": Verb(lambda jobs: jobs.prioritise("d", 9), chain),
    "add a dependency": Verb(lambda jobs: jobs.add_dependency("d", finished("c")), chain),
    "pause a queue": Verb(lambda jobs: jobs.pause_queue("default"), chain),
    "delete a queue": Verb(lambda jobs: jobs.delete_queue("empty"), lambda jobs: jobs.create_queue("empty")),
    "submit a job anew": Verb(
        lambda jobs: jobs.submit(replace(copy_of(jobs.queries.get_job("a")), name="anew", key="anew")), failed_chain
    ),
    "register, run and drain": Verb(work, lambda jobs: jobs.submit(job("a"))),
    "recover from a dead worker": Verb(recover, dead_worker),
    "keep what a run makes": Verb(keep, records, in_parts=True),
    "delete": Verb(lambda jobs: jobs.delete("a"), ended_records, in_parts=True),
    "delete a tree": Verb(lambda jobs: jobs.delete("outer", tree=True), failed_groups, in_parts=True),
    "delete what nobody was told of": Verb(lambda jobs: jobs.delete("outer", tree=True), untold_groups, in_parts=True),
    "delete what was to be retried": Verb(lambda jobs: jobs.delete("a"), half_retried, in_parts=True),
    "delete a tree of two clocks": Verb(
        lambda jobs: jobs.delete("outer", tree=True), groups_of_two_clocks, in_parts=True
    ),
}


@pytest.mark.parametrize("does_it_again", [False, True], ids=["workers go on", "the same again"])
@pytest.mark.parametrize("name", VERBS)
def test_after_a_death_everything_comes_to_its_end(name: str, does_it_again: bool) -> None:
    check_all_deaths(VERBS[name], does_it_again=does_it_again)


ASKED_FOR_AGAIN = [
    "submit one to a new queue",
    "seal a group",
    "try again",
    "retry with dependents",
    "cancel with dependents",
    "cancel what runs",
    "prioritise",
    "add a dependency",
    "pause a queue",
    "delete a queue",
    "register, run and drain",
    "recover from a dead worker",
    "delete",
]


@pytest.mark.parametrize("name", ASKED_FOR_AGAIN)
def test_a_verb_whose_answer_was_lost_may_be_asked_for_again(name: str) -> None:
    check_all_deaths(VERBS[name], does_it_again=True, happens=loses_an_answer)
