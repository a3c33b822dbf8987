"""What the type checkers must reject: one fault on each line that says so."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.samples import Job, JobMetric, Status

from jobtable.store import Store

NOW = datetime(2025, 1, 1, tzinfo=UTC)


def misuse(store: Store, job: Job) -> None:
    Job(job_id=1, created_at=NOW, created_by="ann")  # REJECTED
    Job(job_id="1", created_at=NOW)  # REJECTED
    Job(job_id="1", created_at=NOW, created_by="ann", color="red")  # REJECTED
    Job(job_id="1", created_at=NOW, created_by="ann", status="RUNNING")  # REJECTED
    Job("1", NOW, "ann")  # REJECTED
    job.status = Status.RUNNING  # REJECTED
    _ = Job.priority > "x"  # REJECTED
    _ = JobMetric.value > "x"  # REJECTED
    Job.status.set(3)  # REJECTED
    Job.nothing  # REJECTED
    store.get(Job)  # REJECTED
    store.add(Job)  # REJECTED
    store.update(Job.key(job_id="1"), Job.status == Status.RUNNING)  # REJECTED
    store.query(Job.key(job_id="1"), where=3)  # REJECTED
    wrong: JobMetric = store.get(Job.key(job_id="1"))  # REJECTED
    print(wrong)
