"""The questions that sweeps ask of the main table, as the specification names them."""

from __future__ import annotations

from collections.abc import Iterator

from jobtable.jobs.read.queries import JobQueries
from jobtable.jobs.stored.entities import Job, JobDependency, JobMetric, QueueJob
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern


class SweepQueries:
    """The jobs and metrics of sweeps, in one store."""

    def __init__(self, store: Store) -> None:
        self._queries = JobQueries(store)

    @access_pattern("Find all jobs in a sweep", index="GSI2")
    def list_trials(self, sweep_id: str) -> Query[JobDependency]:
        """Yield the dependencies of the trials on their sweep."""
        return self._queries.list_dependents(sweep_id)

    @access_pattern("Find all metrics for a sweep")
    def list_metrics(self, sweep_id: str) -> Query[JobMetric]:
        """Yield what the trials have recorded, by name and then by time."""
        return self._queries.list_metrics(sweep_id)

    @access_pattern("Find best-performing configuration", index="GSI3")
    def find_best_metric(self, sweep_id: str, metric_name: str, *, highest: bool = False) -> JobMetric | None:
        """Return the lowest (or highest) value of a metric, with the id of its trial, or None."""
        return self._queries.find_best_metric(sweep_id, metric_name, highest=highest)

    @access_pattern("Early stopping of poorly performing jobs")
    def list_reports_of_epoch(self, sweep_id: str, metric_name: str, epoch: int) -> Query[JobMetric]:
        """Yield what the trials reported after an epoch, oldest first, to compare them."""
        return self._queries.list_reports_of_epoch(sweep_id, metric_name, epoch)

    @access_pattern("Resume incomplete sweep", index="GSI2")
    def list_unfinished_trials(self, sweep_id: str) -> Iterator[Job]:
        """Yield the trials that are not COMPLETED."""
        return self._queries.list_unfinished_children(sweep_id)

    @access_pattern("Queue jobs of a sweep")
    def list_queued(self, queue_name: str, sweep_id: str) -> Query[QueueJob]:
        """Yield the entries of a sweep's jobs in a queue."""
        return self._queries.list_queued_of_group(queue_name, sweep_id)
