"""What is asked of the jobs in the legacy table."""

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
    """Reads the jobs of the legacy table; new ones belong into the main table."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @access_pattern("All information about a job")
    def list_under_job(self, job_id: str) -> Query[Entity]:
        """A job with its statuses, resources, metrics, checkpoints, logs and dependencies, by one query."""
        return self._store.collection(Job.key(job_id=job_id))

    @access_pattern("Jobs by status", index="GSI1")
    def list_jobs_by_status(self, status: str) -> Query[Job]:
        """The jobs in a status, the oldest first."""
        return self._store.query(Job.by_status(status=status))

    @access_pattern("Jobs by user", index="GSI2")
    def list_jobs_by_user(self, user: str) -> Query[Job]:
        """The jobs of a user, the oldest first."""
        return self._store.query(Job.by_user(created_by=user))

    @access_pattern("The status history of a job")
    def list_statuses(self, job_id: str) -> Query[JobStatus]:
        """Every status change of a job, the oldest first."""
        return self._store.query(JobStatus.key(job_id=job_id))

    @access_pattern("The most recent status update of a job")
    def find_latest_status(self, job_id: str) -> JobStatus | None:
        """The last status change of a job, or None."""
        return self._store.query(JobStatus.key(job_id=job_id), newest_first=True, limit=1).first()

    @access_pattern("The metrics of a job since a time")
    def list_metrics_since(self, job_id: str, metric_name: str, since: datetime) -> Query[JobMetric]:
        """The values of a job's metric after a time, in order of time."""
        return self._store.query(JobMetric.key(job_id=job_id, metric_name=metric_name), after=since)

    @access_pattern("The values of a metric over all jobs", index="GSI1")
    def list_metric(self, metric_name: str) -> Query[JobMetric]:
        """The values of a metric, of all jobs."""
        return self._store.query(JobMetric.by_name(metric_name=metric_name))

    @access_pattern("The resources of a job")
    def list_resources(self, job_id: str) -> Query[JobResource]:
        """The resources that a job held."""
        return self._store.query(JobResource.key(job_id=job_id))

    @access_pattern("The jobs of a resource", index="GSI1")
    def list_uses_of_resource(self, resource_id: str) -> Query[JobResource]:
        """Every use of a resource by a job."""
        return self._store.query(JobResource.by_resource(resource_id=resource_id))

    @access_pattern("The checkpoints of a job", index="GSI1")
    def list_checkpoints(self, job_id: str) -> Query[JobCheckpoint]:
        """The checkpoints of a job, the oldest first."""
        return self._store.query(JobCheckpoint.by_job(job_id=job_id))

    @access_pattern("The logs of a job", index="GSI1")
    def list_logs(self, job_id: str) -> Query[JobLog]:
        """The log lines of a job, the oldest first."""
        return self._store.query(JobLog.by_job(job_id=job_id))

    @access_pattern("What a job depends on", index="GSI1")
    def list_dependencies(self, job_id: str) -> Query[JobDependency]:
        """The jobs that a job waits for."""
        return self._store.query(JobDependency.by_dependent(job_id=job_id))

    @access_pattern("What depends on a job", index="GSI2")
    def list_dependents(self, job_id: str) -> Query[JobDependency]:
        """The jobs that wait for a job."""
        return self._store.query(JobDependency.by_dependency(dependency_job_id=job_id))

    @access_pattern("Instances by status", index="GSI1")
    def list_instances_by_status(self, status: str) -> Query[Instance]:
        """The instances in a status."""
        return self._store.query(Instance.by_status(status=status))

    @access_pattern("Jobs of an instance")
    def list_jobs_of_instance(self, instance_id: str) -> Query[InstanceJob]:
        """The jobs that an instance runs or ran."""
        return self._store.query(InstanceJob.key(instance_id=instance_id))

    @access_pattern("Instances of a job", index="GSI1")
    def list_instances_of_job(self, job_id: str) -> Query[InstanceJob]:
        """The instances that run or ran a job."""
        return self._store.query(InstanceJob.by_job(job_id=job_id))

    @access_pattern("Jobs of a queue")
    def list_jobs_of_queue(self, queue_name: str) -> Query[QueueJob]:
        """The jobs in a queue."""
        return self._store.query(QueueJob.key(queue_name=queue_name))

    @access_pattern("Queues of a job", index="GSI1")
    def list_queues_of_job(self, job_id: str) -> Query[QueueJob]:
        """The queues that a job is in."""
        return self._store.query(QueueJob.by_job(job_id=job_id))

    @access_pattern("All queues", index="GSI1")
    def list_queues(self) -> Query[Queue]:
        """All queues, by name."""
        return self._store.query(Queue.by_name())
