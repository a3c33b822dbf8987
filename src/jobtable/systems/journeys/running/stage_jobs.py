"""The jobs that run a journey: found by its executions, cancelled, listed as stored items, and deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from jobtable.errors import JobStateError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import InstanceJob, Job, JobChild, JobDependency, main
from jobtable.jobs.stored.locations import job_prefix
from jobtable.model import Entity
from jobtable.store import Store
from jobtable.store.backend import Item
from jobtable.store.collections import entity_of
from jobtable.systems.journeys.entities import JobExecution
from jobtable.systems.journeys.raw_items import list_partition, position

STAGE_JOB = "journey_stage"
END_JOB = "journey_end"
RUN_STAGE = "jobtable.systems.journeys.runner:run_stage"
CONCLUDE_STAGE = "jobtable.systems.journeys.runner:conclude_stage"


def end_job_id(job_id: str, number: int) -> str:
    """Return the id of the end job of a stage's job; the stage's job gets a new one with each restart."""
    return f"{job_id}-end-{number}"


def list_end_jobs(store: Store, job_id: str) -> list[Job]:
    """Return the end jobs of a stage's job, oldest first."""
    found: list[Job] = []
    while (end := store.find(Job.key(job_id=end_job_id(job_id, len(found))))) is not None:
        found.append(end)
    return found


def is_job_of(job: Job, journey_id: str) -> bool:
    """Return whether a job was made to run a journey; the record of an execution may name any job."""
    definition = job.definition
    return definition.task in (RUN_STAGE, CONCLUDE_STAGE) and definition.params.get("journey_id") == journey_id


def other_job_of(item: Entity) -> str | None:
    """Return the other job that an item of a job names: its dependency or its child."""
    match item:
        case JobDependency():
            return item.dependency_job_id
        case JobChild():
            return item.child_job_id
        case _:
            return None


class JourneyJobs:
    """The jobs of journeys on one job engine."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._store = jobs.store

    def list_jobs(self, journey_id: str) -> Iterator[Job]:
        """Yield the jobs of a journey in the order in which they can be deleted."""
        for execution in self._store.query(JobExecution.key(journey_id=journey_id), newest_first=True):
            yield from self.list_jobs_of(execution)

    def list_jobs_of(self, execution: JobExecution) -> list[Job]:
        """Return the jobs of an execution: its end jobs, newest first, and then its stage's job."""
        job = self._store.find(Job.key(job_id=execution.job_id))
        # If they are deleted in this order, the remaining ones can still be found.
        ends = reversed(list_end_jobs(self._store, execution.job_id))
        return [each for each in (*ends, job) if each is not None and is_job_of(each, execution.journey_id)]

    def list_ended(self, journey_id: str) -> Iterator[Job]:
        """Yield the ended jobs of the executions whose stage's job has ended."""
        for execution in self._store.query(JobExecution.key(journey_id=journey_id)):
            found = self.list_jobs_of(execution)
            if found and found[-1].job_id == execution.job_id and found[-1].is_final:
                yield from (job for job in found if job.is_final)

    def list_items(self, job_ids: Iterable[str]) -> Iterator[Item]:
        """Yield every item of jobs as it is stored, in key order, except those that name jobs of others."""
        ids = dict.fromkeys(sorted(job_ids, key=_partition_of))
        encode = InstanceJob.__schema__.codec.encode
        runs = (run for job_id in ids for run in self._jobs.queries.find_instances_of_job(job_id))
        # Sorted before they are encoded: all of them are in memory here, and items are much larger.
        yield from map(encode, sorted(runs, key=lambda run: position(encode(run))))
        for job_id in ids:
            for item in list_partition(self._store, main, Job.key(job_id=job_id)):
                entity = entity_of(main, item)
                if other_job_of(entity) is None or other_job_of(entity) in ids:
                    yield item

    def list_objects(self, job_ids: Iterable[str]) -> Iterator[str]:
        """Yield the keys of the objects of jobs."""
        for job_id in job_ids:
            yield from (found.key for found in self._jobs.objects.list(job_prefix(job_id)))

    def cancel_all(self, journey_id: str, by: str) -> None:
        """Cancel every unfinished job: at once if it waits, through its worker if it runs."""
        for job in self.list_jobs(journey_id):
            self.cancel(job, by)

    def cancel(self, job: Job, by: str) -> None:
        """Cancel a job if it has not ended."""
        if not job.is_final:
            with contextlib.suppress(JobStateError):  # it has just ended
                self._jobs.cancel(job.job_id, by=by, tree=False)

    def delete(self, jobs: Iterable[Job]) -> int:
        """Delete jobs that no worker holds, with all their items and objects; return the number of items."""
        removed = 0
        for job in jobs:
            self.cancel(job, "the deletion of its journey")
            removed += self._jobs.delete_for_system(job.job_id)
        return removed


def _partition_of(job_id: str) -> bytes:
    text: str = Job.key(job_id=job_id).equal["PK"]["S"]
    return text.encode("utf-8", "surrogatepass")
