"""Jobs of tests: an engine on any store, and a loop that runs its jobs in this process, as a worker would."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import boto3

from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.tasks import FailTask, SuspendTask, resolve
from jobtable.model import Json
from jobtable.objects.memory import MemoryObjectStore
from jobtable.objects.s3 import S3ObjectStore
from jobtable.store import Store

NEVER = 3600.0
"""A flush time for tests: what a thread writes when a second is over is written at another place each time."""

_BUCKETS: dict[str, str] = {}
"""One bucket on each server: each takes much of its space."""


@contextmanager
def jobs_with_s3(store: Store, s3_url: str) -> Iterator[Jobs]:
    """An engine whose objects are on the S3 server, under a prefix of their own."""
    if s3_url not in _BUCKETS:
        _BUCKETS[s3_url] = f"jobs-{uuid.uuid4()}"
        client = boto3.client(
            "s3", endpoint_url=s3_url, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        client.create_bucket(Bucket=_BUCKETS[s3_url])
        client.close()
    objects = S3ObjectStore(
        _BUCKETS[s3_url], f"p-{uuid.uuid4()}", region="us-east-1", endpoint_url=s3_url, credentials=("test", "test")
    )
    yield Jobs(store, objects)
    objects.close()


def jobs_in_memory(store: Store) -> Jobs:
    """An engine whose objects are in memory."""
    return Jobs(store, MemoryObjectStore(store.clock))


def run_jobs(jobs: Jobs, queue: str, *, most: int | None = None, retryable: bool = False) -> int:
    """Run jobs of a queue one after the other until none is ready, or `most` of them; gives their number.

    A job that fails is not tried again unless `retryable`.
    """
    ran = 0
    while ran != most and (leases := jobs.claim(queue, limit=1, instance_id="test", lease_seconds=60)):
        jobs.finish(leases[0], _outcome(jobs, leases[0], retryable))
        ran += 1
    return ran


def run_again(jobs: Jobs, ended: Iterable[Job]) -> None:
    """Run the tasks of jobs that have ended once more, as a worker does that does not know it yet."""
    for job in ended:
        run_task(jobs, Lease(job, "zombie"))


def run_task(jobs: Jobs, lease: Lease) -> Json:
    """Run the task of a job that was claimed, without a word of its end; gives what it returned."""
    definition = lease.job.definition
    with JobContext(jobs, lease, flush_seconds=NEVER) as context:
        returned: Json = resolve(str(definition.task)).call(context, definition.params)
    return returned


def _outcome(jobs: Jobs, lease: Lease, retryable: bool) -> Outcome:
    try:
        return Outcome.completed(run_task(jobs, lease))
    except SuspendTask as suspended:
        return Outcome.suspended(suspended.until, suspended.message)
    except FailTask as failed:
        return Outcome.failed(failed.message, retryable=False, result=failed.result)
    except Exception as error:
        return Outcome.failed(f"{type(error).__name__}: {error}", retryable=retryable)
