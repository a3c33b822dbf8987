"""The questions that the specification asks about sweeps: a sweep is a job, so the verbs of jobs answer them."""

from __future__ import annotations

from jobtable.jobs.read.job_queries import JobQueries
from jobtable.store.patterns import answered_by

answered_by(JobQueries.list_dependents, "Find all jobs in a sweep", __name__, index="GSI2")
answered_by(JobQueries.list_metrics, "Find all metrics for a sweep", __name__)
answered_by(JobQueries.find_best_metric, "Find best-performing configuration", __name__, index="GSI3")
answered_by(JobQueries.list_reports_of_epoch, "Early stopping of poorly performing jobs", __name__)
answered_by(JobQueries.list_unfinished_children, "Resume incomplete sweep", __name__, index="GSI2")
answered_by(JobQueries.list_queued_of_group, "Queue jobs of a sweep", __name__)
