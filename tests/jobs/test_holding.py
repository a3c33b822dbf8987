"""The jobs that a worker holds: their leases, and how their ends are written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.jobs.engines import engine

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import BackendUnavailable, RequestRefused, Throttled
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.instances import InstanceInfo, new_instance
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.stored.entities import Instance, main
from jobtable.jobs.stored.field_types import Health, InstanceStatus, Status
from jobtable.jobs.submit.definition import DependsOn, NewJob
from jobtable.jobs.worker.holding import MOST_AT_ONCE, Conclusions, Heartbeats, Wish, WorkerReport
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Backoff, Request, Response, Store
from jobtable.testing import FakeClock

LEASE_SECONDS = 30.0


class Switch:
    """A backend that can be switched off."""

    def __init__(self) -> None:
        self._backend = EmbeddedBackend(None)
        self.is_off = False
        self.on_failure: Callable[[], None] = lambda: None
        self.on_update: Callable[[], object] = lambda: None

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "UpdateItem":
            self.on_update()
        if self.is_off:
            self.on_failure()
            raise BackendUnavailable("switched off")
        return self._backend.execute(operation, request)

    def close(self) -> None:
        self._backend.close()


@pytest.fixture
def backend() -> Switch:
    return Switch()


@pytest.fixture
def jobs(clock: FakeClock, backend: Switch) -> Iterator[Jobs]:
    with Store(backend, clock=clock) as store:
        store.tables.create(main)
        yield Jobs(store, MemoryObjectStore(clock), clock=clock)


@pytest.fixture
def heartbeats(jobs: Jobs) -> Heartbeats:
    def fail(error: BaseException) -> None:
        raise error

    return Heartbeats(jobs, LEASE_SECONDS, beat_instance=lambda: None, on_failure=fail)


def claimed(jobs: Jobs) -> Lease:
    jobs.submit(NewJob(name="some", task="some:task"))
    [lease] = jobs.claim("default", limit=1, instance_id="i", lease_seconds=LEASE_SECONDS)
    return lease


def test_a_lease_that_is_renewed_is_held(jobs: Jobs, heartbeats: Heartbeats, clock: FakeClock) -> None:
    held = heartbeats.hold(claimed(jobs), clock.monotonic())
    for _ in range(5):
        clock.advance(20)
        heartbeats.beat()
        assert heartbeats.is_held(held)
    assert held.lease.job.heartbeat == 5


def test_a_lease_that_was_taken_just_now_is_not_renewed(jobs: Jobs, heartbeats: Heartbeats, clock: FakeClock) -> None:
    held = heartbeats.hold(claimed(jobs), clock.monotonic())
    clock.advance(4)
    heartbeats.beat()
    assert held.lease.job.heartbeat == 0


def test_a_lease_that_cannot_be_renewed_is_given_up_after_its_time(
    jobs: Jobs, heartbeats: Heartbeats, clock: FakeClock, backend: Switch
) -> None:
    held = heartbeats.hold(claimed(jobs), clock.monotonic())
    backend.is_off = True
    clock.advance(29)
    with pytest.raises(BackendUnavailable):
        heartbeats.beat()
    assert heartbeats.is_held(held)
    clock.advance(1)
    assert not heartbeats.is_held(held)


def test_a_lease_that_could_not_be_renewed_is_renewed_soon(
    jobs: Jobs, clock: FakeClock, backend: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    heartbeats = Heartbeats(jobs, 0.6, beat_instance=lambda: None, on_failure=lambda error: None)
    held = heartbeats.hold(claimed(jobs), clock.monotonic())
    has_begun, has_failed = threading.Event(), threading.Event()
    backend.on_failure = has_failed.set
    backend.is_off = True
    monotonic = clock.monotonic

    def noted() -> float:
        now = monotonic()
        if threading.current_thread().name == "heartbeats":
            has_begun.set()
        return now

    monkeypatch.setattr(clock, "monotonic", noted)
    heartbeats.start()
    has_begun.wait()
    clock.advance(0.3)  # the time of the first beat, and not yet the end of the lease
    has_failed.wait()
    backend.is_off = False
    until = time.monotonic() + 120
    while held.lease.job.heartbeat == 0 and time.monotonic() < until:
        time.sleep(0.01)  # the clock stands still: the time of the next beat does not come
    heartbeats.close()
    assert held.lease.job.heartbeat > 0


def test_a_store_that_stays_away_is_told_once_a_minute(
    jobs: Jobs, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    numbers, has_failed_often = count(), threading.Event()

    def fail() -> None:
        number = next(numbers)
        if number in (10, 20):
            clock.advance(60)
        if number == 30:
            has_failed_often.set()
        raise BackendUnavailable("switched off")

    heartbeats = Heartbeats(jobs, 0, beat_instance=fail, on_failure=lambda error: None)
    heartbeats.start()
    assert has_failed_often.wait(60)
    heartbeats.close()
    told = "could not renew the leases of this worker; will retry: InternalServerError: switched off"
    assert [record.getMessage() for record in caplog.records] == [told] * 3


def test_a_lease_that_someone_else_has_is_lost(jobs: Jobs, heartbeats: Heartbeats, clock: FakeClock) -> None:
    first, second = claimed(jobs), claimed(jobs)
    held = [heartbeats.hold(lease, clock.monotonic()) for lease in (first, second)]
    jobs.release(first, "taken away")
    clock.advance(20)
    heartbeats.beat()
    assert [heartbeats.is_held(each) for each in held] == [False, True]


def test_many_leases_are_renewed_at_once(jobs: Jobs, heartbeats: Heartbeats, clock: FakeClock, backend: Switch) -> None:
    """One after the other, those of a worker with many jobs would take longer than a lease lasts."""
    held = [heartbeats.hold(claimed(jobs), clock.monotonic()) for _ in range(2 * MOST_AT_ONCE)]
    lost = held[3]
    jobs.release(lost.lease, "taken away")
    clock.advance(20)
    backend.on_update = threading.Barrier(MOST_AT_ONCE, timeout=60).wait  # which only so many at once get through
    heartbeats.beat()
    assert [each for each in held if not heartbeats.is_held(each)] == [lost]
    assert [each.lease.job.heartbeat for each in held if each is not lost] == [1] * (2 * MOST_AT_ONCE - 1)


def test_of_many_leases_those_that_can_be_renewed_are(
    jobs: Jobs, heartbeats: Heartbeats, clock: FakeClock, backend: Switch
) -> None:
    held = [heartbeats.hold(claimed(jobs), clock.monotonic()) for _ in range(20)]
    requests = count()

    def fail_sometimes() -> None:
        if next(requests) % 4 == 1:
            raise RequestRefused("not this one", code="Refused")

    backend.on_update = fail_sometimes
    clock.advance(20)
    with pytest.raises(RequestRefused):
        heartbeats.beat()
    assert sum(each.lease.job.heartbeat for each in held) == 15


@pytest.mark.parametrize("wish", ["cancel", "stop"])
@pytest.mark.parametrize("how", ["beat", "look"])
def test_what_is_asked_is_told_once(wish: Wish, how: str, jobs: Jobs, heartbeats: Heartbeats, clock: FakeClock) -> None:
    told: list[Wish] = []
    lease = claimed(jobs)
    heartbeats.hold(lease, clock.monotonic(), told.append)
    heartbeats.look()
    assert told == []
    jobs.cancel(lease.job.job_id) if wish == "cancel" else jobs.stop(lease.job.job_id)
    for _ in range(2):
        clock.advance(20)
        heartbeats.beat() if how == "beat" else heartbeats.look()
    assert told == [wish]


def test_an_instance_lives_from_its_registration_to_its_end(jobs: Jobs) -> None:
    info = InstanceInfo("p4d.24xlarge", gpu_count=8, availability_zone="eu-central-1a", is_spot=True)
    instance = new_instance(jobs.clock, info, queues=["a", "b"], slots=4, lease_seconds=30)
    key = Instance.key(instance_id=instance.instance_id)
    jobs.instances.register(instance)
    jobs.instances.beat(instance)
    there = jobs.store.get(key)
    assert (there.status, there.health_status, there.heartbeat) == (InstanceStatus.RUNNING, Health.HEALTHY, 1)
    assert (there.instance_type, there.gpu_count, there.is_spot, there.queues) == ("p4d.24xlarge", 8, True, ["a", "b"])
    jobs.store.delete(key)
    jobs.instances.beat(instance)
    assert jobs.store.get(key).status is InstanceStatus.RUNNING
    jobs.instances.stop(instance)
    assert jobs.store.get(key).status is InstanceStatus.STOPPED


def test_an_instance_that_has_ended_can_be_seen_for_90_days(jobs: Jobs, clock: FakeClock) -> None:
    info = InstanceInfo("m5.large")
    stopped, dead, back = [new_instance(jobs.clock, info, queues=["a"], slots=1, lease_seconds=30) for _ in range(3)]
    for instance in (stopped, dead, back):
        jobs.instances.register(instance)
        jobs.instances.beat(instance)
    jobs.instances.stop(stopped)
    observer = jobs.observer()
    observer.recover()
    clock.advance(31)
    observer.recover()

    def seen(instance: Instance) -> tuple[InstanceStatus, int | None]:
        there = jobs.store.get(Instance.key(instance_id=instance.instance_id))
        return there.status, None if there.time_to_live is None else there.time_to_live - int(clock.seconds())

    day = 24 * 3600
    assert seen(stopped) == (InstanceStatus.STOPPED, 90 * day - 31)
    assert seen(dead) == seen(back) == (InstanceStatus.TERMINATED, 90 * day)
    jobs.instances.beat(back)
    assert seen(back) == (InstanceStatus.RUNNING, None)


def test_a_machine_describes_itself() -> None:
    info = InstanceInfo.of_this_machine()
    assert info.instance_type.endswith("cpu")
    assert info.gpu_count >= 0


class Deaf:
    """A backend that can lose the answer to the next transaction, and then fail to read so many times."""

    def __init__(self) -> None:
        self._backend = EmbeddedBackend(None, durability="normal")
        self.loses_answer = False
        self.failing_reads = 0

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "BatchGetItem" and self.failing_reads:
            self.failing_reads -= 1
            raise Throttled("too many requests")
        response = self._backend.execute(operation, request)
        if operation == "TransactWriteItems" and self.loses_answer:
            self.loses_answer = False
            raise BackendUnavailable("the answer was lost")
        return response

    def close(self) -> None:
        self._backend.close()


class Working:
    """A worker that holds a job."""

    def __init__(self, new: NewJob) -> None:
        clock = FakeClock()
        self.backend = Deaf()
        self.jobs = engine(Store(self.backend, clock=clock, backoff=Backoff(attempts=1, clock=clock)), clock)
        self.jobs.submit(new)
        heartbeats = Heartbeats(self.jobs, LEASE_SECONDS, beat_instance=lambda: None, on_failure=lambda error: None)
        self.conclusions = Conclusions(self.jobs, heartbeats)
        (lease,) = self.jobs.claim("default", limit=1, instance_id="i", lease_seconds=LEASE_SECONDS)
        self.held = heartbeats.hold(lease, clock.monotonic())

    @property
    def status(self) -> Status:
        return self.jobs.queries.get_job(self.held.lease.job.job_id).status


def test_an_end_whose_answer_was_lost_is_counted_as_one() -> None:
    working = Working(NewJob(name="job", task="x:y"))
    working.backend.loses_answer = True
    working.conclusions.finish(working.held, Outcome.completed())
    assert working.status is Status.COMPLETED
    assert working.conclusions.report() == WorkerReport(completed=1)


def test_a_run_that_cannot_be_looked_at_is_given_up() -> None:
    working = Working(NewJob(name="job", task="x:y"))
    working.backend.loses_answer = True
    working.backend.failing_reads = 1
    working.conclusions.finish(working.held, Outcome.completed())
    assert working.status is Status.COMPLETED
    assert working.conclusions.report() == WorkerReport(lost=1)


def test_a_run_has_ended_whose_job_waits_for_its_children() -> None:
    working = Working(NewJob(name="parent", task="x:y"))
    parent, child = working.held.lease.job, working.jobs.submit(NewJob(name="child", task="x:y"))
    working.jobs.add_dependency(parent.job_id, DependsOn(child.job_id, gate="completion"))
    working.backend.loses_answer = True
    working.conclusions.finish(working.held, Outcome.completed())
    assert working.jobs.queries.get_job(parent.job_id).is_awaiting
    assert working.conclusions.report() == WorkerReport(completed=1)
