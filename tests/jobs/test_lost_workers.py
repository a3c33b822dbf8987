"""What a worker writes that was taken for dead and wakes up, when its job has gone a long way without it."""

from __future__ import annotations

import pytest
from tests.jobs.engines import LEASE_SECONDS, check_ended
from tests.jobs.runs import Run, claimed, run_in_memory, run_on

from jobtable.errors import LeaseLostError
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.report.log_text import UPLOAD_SECONDS, LogText
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import NewJob
from jobtable.store import Store


def items_of(run: Run) -> list[str]:
    return [type(item).__name__ for item in run.jobs.store.collection(Job.key(job_id=run.job_id))]


def end_and_delete(run: Run) -> None:
    run.jobs.finish(run.lose(), Outcome.completed("by the other worker"))
    run.jobs.delete(run.job_id)


def upload(run: Run, text: LogText) -> None:
    run.clock.advance(UPLOAD_SECONDS)
    text.upload()


@pytest.mark.parametrize("had_told", [True, False], ids=["had told before", "tells for the first time"])
def test_what_is_told_of_a_deleted_job_is_not_stored(each_store: Store, had_told: bool) -> None:
    run = run_on(each_store)
    context = JobContext(run.jobs, run.lease, flush_seconds=3600)
    if had_told:
        context.log("in time")
        context.flush()
    end_and_delete(run)
    context.log("too late")
    context.metric("loss", 1.0)
    context.close()
    assert items_of(run) == []
    check_ended(run.jobs)


def test_the_output_of_a_deleted_job_is_not_kept(each_store: Store) -> None:
    run = run_on(each_store)
    text = run.jobs.recording.log_text(run.lease)
    text.append(b"in time\n")
    upload(run, text)
    end_and_delete(run)
    text.append(b"too late\n")
    with pytest.raises(LeaseLostError):
        upload(run, text)
    with pytest.raises(LeaseLostError):
        text.finish()
    text.close()
    assert items_of(run) == []
    check_ended(run.jobs)


def test_the_output_of_a_job_that_is_deleted_while_it_is_sent_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_in_memory()
    text = run.jobs.recording.log_text(run.lease)
    text.append(b"too late\n")
    put = run.jobs.objects.put

    def put_late(*arguments: object) -> object:
        monkeypatch.undo()
        end_and_delete(run)
        return put(*arguments)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(run.jobs.objects, "put", put_late)
    with pytest.raises(LeaseLostError):
        text.finish()
    text.close()
    assert items_of(run) == []
    check_ended(run.jobs)  # with the sweep of what no record names


def test_parts_that_are_merged_while_their_job_is_deleted_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_in_memory()
    text = run.jobs.recording.log_text(run.lease)
    text.append(b"uploaded\n")
    upload(run, text)
    text.close()
    run.jobs.finish(run.lose(), Outcome.completed())
    put = run.jobs.objects.put

    def put_late(*arguments: object) -> object:
        monkeypatch.undo()
        merged = put(*arguments)  # type: ignore[arg-type]  # as they came
        run.jobs.delete(run.job_id)
        return merged

    monkeypatch.setattr(run.jobs.objects, "put", put_late)
    assert run.logs.finish_text(run.job_id, run.lease.epoch) is None
    assert items_of(run) == []
    check_ended(run.jobs)


def test_a_job_with_the_id_of_a_deleted_one_is_not_its_workers() -> None:
    run = run_in_memory()
    new = NewJob(name="job", task="tests.jobs.sample_tasks:add", job_id="again")
    run.jobs.finish(run.lease, Outcome.completed())
    run.jobs.submit(new)
    stale = claimed(run.jobs)
    text = run.jobs.recording.log_text(stale)
    text.append(b"of the first job")
    end_and_delete(Run(run.jobs, stale, run.clock))
    run.jobs.submit(new)
    held = _claimed_by(run, "worker-2")
    assert (held.job.job_id, held.epoch) == (stale.job.job_id, stale.epoch)
    own = run.jobs.recording.log_text(held)
    own.append(b"of the second job")
    record = own.finish()
    assert record is not None
    for attempt in (
        lambda: run.jobs.heartbeat(stale),
        lambda: run.jobs.report(stale, progress=50),
        lambda: run.jobs.release(stale, "stale"),
        lambda: run.jobs.finish(stale, Outcome.completed("stale")),
        text.finish,
    ):
        with pytest.raises(LeaseLostError):
            attempt()
    assert run.jobs.finish_many([(stale, Outcome.completed("stale"))]) == [stale]
    assert run.jobs.objects.get(record.s3_key) == b"of the second job"
    assert run.jobs.finish(held, Outcome.completed("mine")).result == "mine"
    text.close()
    own.close()
    check_ended(run.jobs)


def _claimed_by(run: Run, instance_id: str) -> Lease:
    (lease,) = run.jobs.claim("default", limit=1, instance_id=instance_id, lease_seconds=LEASE_SECONDS)
    return lease
