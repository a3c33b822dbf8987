"""The access patterns of jobs in the legacy table."""

from __future__ import annotations

from datetime import datetime

from jobtable.model import Entity
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern
from jobtable.systems.receipts.legacy.entities import (
    Instance,
    InstanceJob,
    Job,
    JobCheckpoint,
    JobDependency,
    JobLog,
    JobMetric,
    JobResource,
    JobStatus,
    Queue,
    QueueJob,
)


class LegacyJobQueries:
    """Reads the jobs of the legacy table; new jobs belong in the main table."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @access_pattern("Get all information about a job")
    def list_under_job(self, job_id: str) -> Query[Entity]:
        """List a job with its statuses, resources, metrics, checkpoints, logs and dependencies, with one query."""
        return self._store.collection(Job.key(job_id=job_id))

    @access_pattern("List jobs by status", index="GSI1")
    def list_jobs_by_status(self, status: str) -> Query[Job]:
        """List the jobs in a status, oldest first."""
        return self._store.query(Job.by_status(status=status))

    @access_pattern("List jobs by user", index="GSI2")
    def list_jobs_by_user(self, user: str) -> Query[Job]:
        """List the jobs of a user, oldest first."""
        return self._store.query(Job.by_user(created_by=user))

    @access_pattern("List the status history of a job")
    def list_statuses(self, job_id: str) -> Query[JobStatus]:
        """List the status changes of a job, oldest first."""
        return self._store.query(JobStatus.key(job_id=job_id))

    @access_pattern("Get the most recent status update of a job")
    def find_latest_status(self, job_id: str) -> JobStatus | None:
        """Return the latest status change of a job, or None."""
        return self._store.query(JobStatus.key(job_id=job_id), newest_first=True, limit=1).first()

    @access_pattern("List the metrics of a job since a time")
    def list_metrics_since(self, job_id: str, metric_name: str, since: datetime) -> Query[JobMetric]:
        """List the values of a job's metric after a time, oldest first."""
        return self._store.query(JobMetric.key(job_id=job_id, metric_name=metric_name), after=since)

    @access_pattern("List the values of a metric of all jobs", index="GSI1")
    def list_metric(self, metric_name: str) -> Query[JobMetric]:
        """List the values of a metric of all jobs."""
        return self._store.query(JobMetric.by_name(metric_name=metric_name))

    @access_pattern("List the resources of a job")
    def list_resources(self, job_id: str) -> Query[JobResource]:
        """List the resources that a job held."""
        return self._store.query(JobResource.key(job_id=job_id))

    @access_pattern("List the jobs of a resource", index="GSI1")
    def list_uses_of_resource(self, resource_id: str) -> Query[JobResource]:
        """List the uses of a resource by jobs."""
        return self._store.query(JobResource.by_resource(resource_id=resource_id))

    @access_pattern("List the checkpoints of a job", index="GSI1")
    def list_checkpoints(self, job_id: str) -> Query[JobCheckpoint]:
        """List the checkpoints of a job, oldest first."""
        return self._store.query(JobCheckpoint.by_job(job_id=job_id))

    @access_pattern("List the logs of a job", index="GSI1")
    def list_logs(self, job_id: str) -> Query[JobLog]:
        """List the log lines of a job, oldest first."""
        return self._store.query(JobLog.by_job(job_id=job_id))

    @access_pattern("List the dependencies of a job", index="GSI1")
    def list_dependencies(self, job_id: str) -> Query[JobDependency]:
        """List the jobs that a job depends on."""
        return self._store.query(JobDependency.by_dependent(job_id=job_id))

    @access_pattern("List the dependents of a job", index="GSI2")
    def list_dependents(self, job_id: str) -> Query[JobDependency]:
        """List the jobs that depend on a job."""
        return self._store.query(JobDependency.by_dependency(dependency_job_id=job_id))

    @access_pattern("List instances by status", index="GSI1")
    def list_instances_by_status(self, status: str) -> Query[Instance]:
        """List the instances in a status."""
        return self._store.query(Instance.by_status(status=status))

    @access_pattern("List the jobs of an instance")
    def list_jobs_of_instance(self, instance_id: str) -> Query[InstanceJob]:
        """List the jobs that an instance runs or ran."""
        return self._store.query(InstanceJob.key(instance_id=instance_id))

    @access_pattern("List the instances of a job", index="GSI1")
    def list_instances_of_job(self, job_id: str) -> Query[InstanceJob]:
        """List the instances that run or ran a job."""
        return self._store.query(InstanceJob.by_job(job_id=job_id))

    @access_pattern("List the jobs of a queue")
    def list_jobs_of_queue(self, queue_name: str) -> Query[QueueJob]:
        """List the jobs in a queue."""
        return self._store.query(QueueJob.key(queue_name=queue_name))

    @access_pattern("List the queues of a job", index="GSI1")
    def list_queues_of_job(self, job_id: str) -> Query[QueueJob]:
        """List the queues that hold a job."""
        return self._store.query(QueueJob.by_job(job_id=job_id))

    @access_pattern("List all queues", index="GSI1")
    def list_queues(self) -> Query[Queue]:
        """List all queues by name."""
        return self._store.query(Queue.by_name())
