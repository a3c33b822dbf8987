"""The jobs that run a journey: found by its executions, stopped, listed as they are stored, and deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from jobtable.errors import JobStateError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import InstanceJob, Job, JobChild, JobDependency, main
from jobtable.jobs.stored.locations import job_prefix
from jobtable.model import Entity, Selection
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
    """The id of a job that looks after the end of a stage's job; each time that one begins anew it gets another one."""
    return f"{job_id}-end-{number}"


def list_end_jobs(store: Store, job_id: str) -> list[Job]:
    """The jobs that looked, or look, after the end of a stage's job, in the order in which they were made."""
    found: list[Job] = []
    while (end := store.find(Job.key(job_id=end_job_id(job_id, len(found))))) is not None:
        found.append(end)
    return found


def is_job_of(job: Job, journey_id: str) -> bool:
    """Whether a job was made to run a journey: an execution may name any job."""
    definition = job.definition
    return definition.task in (RUN_STAGE, CONCLUDE_STAGE) and definition.params.get("journey_id") == journey_id


def other_job_of(item: Entity) -> str | None:
    """The job to which an item of a job ties it, if it is such an item: what it waits for, or a job under it."""
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

    # --- finding ------------------------------------------------------------------------------------------------------

    def list_jobs(self, journey_id: str) -> Iterator[Job]:
        """The jobs of a journey, each behind those that belong to it: in the order in which they can be deleted."""
        for execution in self._store.query(JobExecution.key(journey_id=journey_id), newest_first=True):
            yield from self.list_jobs_of(execution)

    def list_jobs_of(self, execution: JobExecution) -> list[Job]:
        """The jobs of an execution: those that look after its end, the last one first, then the one that runs it."""
        job = self._store.find(Job.key(job_id=execution.job_id))
        # While they are deleted in this order, those that are left are still found.
        ends = reversed(list_end_jobs(self._store, execution.job_id))
        return [each for each in (*ends, job) if each is not None and is_job_of(each, execution.journey_id)]

    def list_ended(self, journey_id: str) -> Iterator[Job]:
        """The jobs of the executions whose own job has ended. What waits or runs is no record yet."""
        for execution in self._store.query(JobExecution.key(journey_id=journey_id)):
            found = self.list_jobs_of(execution)
            if found and found[-1].job_id == execution.job_id and found[-1].is_final:
                yield from (job for job in found if job.is_final)

    def list_items(self, job_ids: Iterable[str]) -> Iterator[Item]:
        """Every item of jobs as it is stored, in key order, but nothing that ties them to jobs of somebody else."""
        ids = dict.fromkeys(sorted(job_ids, key=_partition_of))
        encode = InstanceJob.__schema__.codec.encode
        runs = (run for job_id in ids for run in self._jobs.queries.find_instances_of_job(job_id))
        # Sorted before they are encoded: all of them are in memory here, and items take much more of it.
        yield from map(encode, sorted(runs, key=lambda run: position(encode(run))))
        for job_id in ids:
            for item in list_partition(self._store, main, _key(job_id)):
                entity = entity_of(main, item)
                if other_job_of(entity) is None or other_job_of(entity) in ids:
                    yield item

    def list_objects(self, job_ids: Iterable[str]) -> Iterator[str]:
        """The keys of the objects of jobs."""
        for job_id in job_ids:
            yield from (found.key for found in self._jobs.objects.list(job_prefix(job_id)))

    # --- ending -------------------------------------------------------------------------------------------------------

    def ask_to_stop(self, journey_id: str, by: str) -> None:
        """Cancel every job that has not ended: at once if it waits, by its worker if it runs."""
        for job in self.list_jobs(journey_id):
            self.cancel(job, by)

    def cancel(self, job: Job, by: str) -> None:
        """Cancel a job if it has not ended."""
        if not job.is_final:
            with contextlib.suppress(JobStateError):  # it has just ended
                self._jobs.cancel(job.job_id, by=by, tree=False)

    def delete(self, jobs: Iterable[Job]) -> int:
        """Remove jobs that no worker holds, with every item and object under them; gives the number of items."""
        removed = 0
        for job in jobs:
            self.cancel(job, "the deletion of its journey")
            removed += self._jobs.delete_for_system(job.job_id)
        return removed


def _key(job_id: str) -> Selection[Job]:
    return Job.key(job_id=job_id)


def _partition_of(job_id: str) -> bytes:
    text: str = _key(job_id).equal["PK"]["S"]
    return text.encode("utf-8", "surrogatepass")
