"""How long jobs run and when they may end, by what they report."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from tests.jobs.runs import claimed

from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.read.progress import Timing
from jobtable.jobs.submit.definition import NewJob
from jobtable.testing import FakeClock


def started(jobs: Jobs, **more: object) -> Lease:
    jobs.submit(NewJob(name="one", task="m:f", **more))  # type: ignore[arg-type]  # checked by NewJob
    return claimed(jobs)


def timing(jobs: Jobs, lease: Lease) -> Timing:
    told = jobs.timing_of(jobs.queries.get_job(lease.job.job_id))
    assert told is not None
    return told


def is_near(moment: datetime | None, expected: datetime) -> bool:
    """The clock moves by microseconds whenever it is asked."""
    return moment is not None and abs(moment - expected) < timedelta(seconds=0.1)


def test_only_what_runs_has_a_timing(jobs: Jobs) -> None:
    job = jobs.submit(NewJob(name="one", task="m:f"))
    assert jobs.timing_of(job) is None
    lease = claimed(jobs)
    assert timing(jobs, lease).elapsed_seconds == pytest.approx(0, abs=0.1)
    assert jobs.timing_of(jobs.finish(lease, Outcome.completed())) is None


def test_the_end_is_told_by_the_progress_and_put_off_when_it_does_not_come(jobs: Jobs, clock: FakeClock) -> None:
    lease = started(jobs)
    begin = clock.now()
    assert timing(jobs, lease).ends_at is None
    clock.advance(60)
    jobs.report(lease, progress=25)
    clock.advance(20)
    jobs.report(lease, message="a word in between")
    told = timing(jobs, lease)
    assert told.elapsed_seconds == pytest.approx(80, abs=0.1)
    assert is_near(told.ends_at, begin + timedelta(seconds=240))
    clock.advance(220)
    assert is_near(timing(jobs, lease).ends_at, begin + timedelta(seconds=300 + 900))
    jobs.report(lease, progress=100)
    assert timing(jobs, lease).ends_at is None


def test_a_clock_that_was_ahead_for_a_while_makes_no_run_longer(jobs: Jobs, clock: FakeClock) -> None:
    lease = started(jobs)
    right = clock.now()
    clock.set(right + timedelta(days=1))
    clock.now()
    clock.set(right)
    clock.advance(60)
    assert timing(jobs, lease).elapsed_seconds == pytest.approx(60, abs=0.1)


def test_a_later_run_is_measured_by_its_own_reports(jobs: Jobs, clock: FakeClock) -> None:
    lease = started(jobs)
    clock.advance(1000)
    jobs.report(lease, progress=50)
    jobs.release(lease, "drained")
    clock.advance(1000)
    again = claimed(jobs)
    clock.advance(10)
    assert timing(jobs, again).ends_at is None
    jobs.report(again, progress=60)
    assert timing(jobs, again).ends_at is None, "it may have gone on from anywhere"
    clock.advance(10)
    jobs.report(again, progress=80)
    told = timing(jobs, again)
    assert told.elapsed_seconds == pytest.approx(20, abs=0.1)
    assert is_near(told.ends_at, clock.now() + timedelta(seconds=10))


def test_without_progress_what_was_expected_is_told_while_it_can_be_true(jobs: Jobs, clock: FakeClock) -> None:
    lease = started(jobs, estimated_duration=90.0)
    begin = clock.now()
    assert is_near(timing(jobs, lease).ends_at, begin + timedelta(seconds=90))
    clock.advance(91)
    assert timing(jobs, lease).ends_at is None


def test_the_end_of_a_group_is_told_by_the_share_that_has_ended(jobs: Jobs, clock: FakeClock) -> None:
    group = jobs.open_group(NewJob(name="group"))
    clock.advance(30)
    told = jobs.timing_of(group, percent=75)
    assert told is not None
    assert is_near(told.ends_at, clock.now() + timedelta(seconds=10))


def test_what_is_beyond_the_calendar_is_no_estimate(jobs: Jobs, clock: FakeClock) -> None:
    lease = started(jobs, estimated_duration=1e100)
    assert timing(jobs, lease).ends_at is None
    clock.advance(10**6)
    jobs.report(lease, progress=1e-9)
    assert timing(jobs, lease).ends_at is None
