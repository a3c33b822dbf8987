"""Reads of the job items in the main table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from jobtable.jobs.stored.entities import (
    Instance,
    InstanceJob,
    Job,
    JobArtifact,
    JobCheckpoint,
    JobChild,
    JobDependency,
    JobLog,
    JobLogText,
    JobMetric,
    JobResource,
    JobStatus,
    Queue,
    QueueJob,
)
from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.model import Entity, Selection
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern

_READ_TOGETHER = 100


def children_of(job: Job) -> Selection[Job]:
    """Select the children of a job, oldest first."""
    return Job.in_tree(root_job_id=job.root_job_id or job.job_id, parent_job_id=job.job_id)


class JobQueries:
    """Reads of jobs and their records in one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- jobs -------------------------------------------------------------------------------------------------------

    @access_pattern("Get a job")
    def get_job(self, job_id: str) -> Job:
        """Return the job, or raise NotFoundError."""
        return self._store.get(Job.key(job_id=job_id))

    def read_jobs(self, job_ids: Iterable[str]) -> Iterator[Job | None]:
        """Yield the current jobs with these ids, in this order; None for a missing one."""
        left = iter(job_ids)
        while some := list(islice(left, _READ_TOGETHER)):
            yield from self._store.batch_get(Job.key(job_id=each) for each in some)

    @access_pattern("All information about a specific job")
    def list_everything(self, job_id: str) -> Query[Entity]:
        """List the job and every item under it, each as its own entity, in one query."""
        return self._store.collection(Job.key(job_id=job_id))

    @access_pattern("Query jobs by status", index="GSI1")
    def list_jobs_by_status(self, status: Status, *, newest_first: bool = False) -> Query[Job]:
        """List the jobs with a status, oldest first."""
        return self._store.query(Job.by_status(status=status), newest_first=newest_first)

    @access_pattern("Query jobs by user", index="GSI2")
    def list_jobs_by_user(self, user: str, *, newest_first: bool = False) -> Query[Job]:
        """List the jobs that a user created, oldest first."""
        return self._store.query(Job.by_user(created_by=user), newest_first=newest_first)

    @access_pattern("List all jobs", index="GSITYPE")
    def list_jobs(self) -> Query[Job]:
        """List all jobs, in no particular order."""
        return self._store.query(Job.by_type())

    @access_pattern("Job tree: the children of a job", index="GSI3")
    def list_children(self, job: Job | str) -> Query[Job]:
        """List the children of a job, oldest first. Given an id, reads the job first."""
        job = self.get_job(job) if isinstance(job, str) else job
        return self._store.query(children_of(job))

    def list_unawaited_children(self, job: Job) -> Query[JobChild]:
        """List the children of a job for which it does not wait, read consistently."""
        return self._store.query(JobChild.key(job_id=job.job_id))

    @access_pattern("Job tree: all jobs under a root", index="GSI3")
    def list_descendants(self, root_job_id: str) -> Query[Job]:
        """List all jobs of a tree except its root, by parent, then by creation."""
        return self._store.query(Job.in_tree(root_job_id=root_job_id))

    # --- the records of a job -------------------------------------------------------------------------------------

    @access_pattern("Complete status history of a job")
    def list_statuses(self, job_id: str, *, newest_first: bool = False) -> Query[JobStatus]:
        """List the status history of a job, oldest first."""
        return self._store.query(JobStatus.key(job_id=job_id), newest_first=newest_first)

    @access_pattern("Get the most recent status update")
    def find_latest_status(self, job_id: str) -> JobStatus | None:
        """Return the latest status change of a job, or None."""
        return self.list_statuses(job_id, newest_first=True).first()

    @access_pattern("Status changes of all jobs by status", index="GSI1")
    def list_statuses_by_status(self, status: Status) -> Query[JobStatus]:
        """List every change to a status, of all jobs, oldest first."""
        return self._store.query(JobStatus.by_status(status=status))

    @access_pattern("All metrics of a job")
    @access_pattern("Get all metrics from the last hour")
    def list_metrics(self, job_id: str, *, since: datetime | None = None) -> Query[JobMetric]:
        """List the metrics of a job, its own and those of its children, by name and then by time.

        `since` filters, but all are read.
        """
        where = None if since is None else JobMetric.timestamp > since
        return self._store.query(JobMetric.key(job_id=job_id), where=where)

    @access_pattern("Get the values of a metric from the last hour")
    def list_metric(self, job_id: str, metric_name: str, *, since: datetime | None = None) -> Query[JobMetric]:
        """List the values of one metric of a job, oldest first; with `since`, only later ones."""
        return self._store.query(JobMetric.key(job_id=job_id, metric_name=metric_name), after=since)

    @access_pattern("A metric over all jobs by time", index="GSI1")
    def list_metric_of_all_jobs(self, metric_name: str, *, since: datetime | None = None) -> Query[JobMetric]:
        """List the values of a metric of all jobs, oldest first; with `since`, only later ones."""
        return self._store.query(JobMetric.by_name(metric_name=metric_name), after=since)

    @access_pattern("A metric over all jobs by job", index="GSI2")
    def list_metric_by_job(self, metric_name: str, job_id: str | None = None) -> Query[JobMetric]:
        """List the values of a metric, job by job; with a job id, only of that job."""
        if job_id is None:
            return self._store.query(JobMetric.by_name_and_job(metric_name=metric_name))
        return self._store.query(JobMetric.by_name_and_job(metric_name=metric_name, job_id=job_id))

    @access_pattern("Checkpoints of a job")
    def list_checkpoints(self, job_id: str, *, newest_first: bool = False) -> Query[JobCheckpoint]:
        """List the checkpoints of a job, oldest first."""
        return self._store.query(JobCheckpoint.key(job_id=job_id), newest_first=newest_first)

    @access_pattern("Checkpoints of all jobs", index="GSI1")
    def list_checkpoints_of_all_jobs(self) -> Query[JobCheckpoint]:
        """List every checkpoint, by job and then by time."""
        return self._store.query(JobCheckpoint.by_job())

    @access_pattern("Logs of a job")
    def list_logs(self, job_id: str, *, newest_first: bool = False, limit: int | None = None) -> Query[JobLog]:
        """List the log lines of a job, oldest first."""
        return self._store.query(JobLog.key(job_id=job_id), newest_first=newest_first, limit=limit)

    @access_pattern("Logs of all jobs", index="GSI1")
    def list_logs_of_all_jobs(self) -> Query[JobLog]:
        """List every log line, by job and then by time."""
        return self._store.query(JobLog.by_job())

    def list_log_texts(self, job_id: str) -> Query[JobLogText]:
        """List where the full output of each run is stored; read it with GET /objects."""
        return self._store.query(JobLogText.key(job_id=job_id))

    def list_artifacts(self, job_id: str) -> Query[JobArtifact]:
        """List the artifacts of a job, by name; read them with GET /objects."""
        return self._store.query(JobArtifact.key(job_id=job_id))

    @access_pattern("Resources of a job")
    def list_resources(self, job_id: str) -> Query[JobResource]:
        """List the resources that a job holds or held."""
        return self._store.query(JobResource.key(job_id=job_id))

    @access_pattern("Jobs of a resource", index="GSI1")
    def list_uses_of_resource(self, resource_id: str) -> Query[JobResource]:
        """List the jobs that used a resource."""
        return self._store.query(JobResource.by_resource(resource_id=resource_id))

    @access_pattern("All resources", index="GSI1")
    def list_uses_of_resources(self) -> Query[JobResource]:
        """List every use of a resource by any job, by resource."""
        return self._store.query(JobResource.by_resource())

    # --- dependencies and groups ------------------------------------------------------------------------------------

    @access_pattern("What jobs does job X depend on?", index="GSI1")
    def list_dependencies(self, job_id: str) -> Query[JobDependency]:
        """List the dependencies of a job."""
        return self._store.query(JobDependency.by_dependent(job_id=job_id))

    @access_pattern("What jobs depend on job X?", index="GSI2")
    def list_dependents(self, job_id: str) -> Query[JobDependency]:
        """List the dependents of a job; for a group, also its children."""
        return self._store.query(JobDependency.by_dependency(dependency_job_id=job_id))

    @access_pattern("Best value of a rolled-up metric", index="GSI3")
    def find_best_metric(self, job_id: str, metric_name: str, *, highest: bool = False) -> JobMetric | None:
        """Return the lowest (or highest) value of a metric rolled up under a job, with its child id, or None."""
        values = JobMetric.by_value(job_id=job_id, metric_name=metric_name)
        return next(iter(self._store.query(values, newest_first=highest, limit=1)), None)

    @access_pattern("Values of a metric after an epoch")
    def list_reports_of_epoch(self, job_id: str, metric_name: str, epoch: int) -> Query[JobMetric]:
        """List the values of a metric that children reported under a job after an epoch, oldest first."""
        reports = JobMetric.key(job_id=job_id, metric_name=metric_name)
        return self._store.query(reports, where=JobMetric.epoch == epoch)

    @access_pattern("Children that are not complete", index="GSI2")
    def list_unfinished_children(self, job_id: str) -> Iterator[Job]:
        """Yield the dependents of a job that are not COMPLETED; reads lazily."""
        return self.find_unfinished(self.list_dependents(job_id))

    def find_unfinished(self, edges: Iterable[JobDependency]) -> Iterator[Job]:
        """Yield the jobs of these edges that are not COMPLETED."""
        jobs = self.read_jobs(edge.job_id for edge in edges)
        return (job for job in jobs if job is not None and job.status is not Status.COMPLETED)

    @access_pattern("Jobs of a group in a queue")
    def list_queued_of_group(self, queue_name: str, group_id: str) -> Query[QueueJob]:
        """List the queue entries of a group's jobs."""
        return self._store.query(QueueJob.key(queue_name=queue_name), where=QueueJob.group_id == group_id)

    # --- instances and queues ---------------------------------------------------------------------------------------

    @access_pattern("Get an instance")
    def get_instance(self, instance_id: str) -> Instance:
        """Return the instance, or raise NotFoundError."""
        return self._store.get(Instance.key(instance_id=instance_id))

    @access_pattern("Instances by status", index="GSI1")
    def list_instances_by_status(self, status: InstanceStatus) -> Query[Instance]:
        """List the instances with a status."""
        return self._store.query(Instance.by_status(status=status))

    @access_pattern("Which jobs does an instance run")
    def list_jobs_of_instance(self, instance_id: str) -> Query[InstanceJob]:
        """List the jobs that an instance runs or ran."""
        return self._store.query(InstanceJob.key(instance_id=instance_id))

    @access_pattern("Which instances run a job", index="GSI1")
    def list_instances_of_job(self, job_id: str) -> Query[InstanceJob]:
        """List the instances that run or ran a job."""
        return self._store.query(InstanceJob.by_job(job_id=job_id))

    def find_instances_of_job(self, job_id: str) -> list[InstanceJob]:
        """Return all instances that run or ran a job, including those that the index does not show yet."""
        named = [InstanceJob.key(instance_id=use.instance_id, job_id=job_id) for use in self.list_resources(job_id)]
        found = (*self.list_instances_of_job(job_id), *self._store.batch_get(named))
        return list({run.instance_id: run for run in found if run is not None}.values())

    @access_pattern("All queues", index="GSI1")
    def list_queues(self) -> Query[Queue]:
        """List all queues, by name."""
        return self._store.query(Queue.by_name())

    @access_pattern("Get a queue")
    def get_queue(self, queue_name: str) -> Queue:
        """Return the queue, or raise NotFoundError."""
        return self._store.get(Queue.key(queue_name=queue_name))

    @access_pattern("Jobs of a queue")
    def list_jobs_of_queue(self, queue_name: str) -> Query[QueueJob]:
        """List the jobs in a queue, in no particular order."""
        return self._store.query(QueueJob.key(queue_name=queue_name))

    def find_entry(self, job: Job) -> QueueJob | None:
        """Return the queue entry of a job, or None; an ended job has one until its dependents are notified."""
        if job.queue_name is None:
            return None
        return self._store.find(QueueJob.key(queue_name=job.queue_name, job_id=job.job_id))

    @access_pattern("Queues of a job", index="GSI1")
    def list_queues_of_job(self, job_id: str) -> Query[QueueJob]:
        """List the queue entries of a job."""
        return self._store.query(QueueJob.by_job(job_id=job_id))

    @access_pattern("The next jobs of a queue", index="GSI3")
    def list_ready(self, queue_name: str, *, limit: int | None = None) -> Query[QueueJob]:
        """List the jobs of a queue that are ready to run, by priority and then oldest first."""
        return self._store.query(QueueJob.ready(queue_name=queue_name), limit=limit)
