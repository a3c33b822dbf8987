"""Jobs, their records, queues and instances: the backbone of the systems."""

from typing import TYPE_CHECKING

from jobtable.lazy_exports import offer

if TYPE_CHECKING:
    from jobtable.jobs.engine import Jobs
    from jobtable.jobs.lifecycle.leases import Lease, Outcome
    from jobtable.jobs.report.context import JobContext
    from jobtable.jobs.stored.entities import Job
    from jobtable.jobs.stored.field_types import Status
    from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob, ParentWaits, RetryPolicy
    from jobtable.jobs.tasks import FailTask, StopTask, SuspendTask, task
    from jobtable.jobs.worker.worker import Worker

__all__ = [
    "DependsOn",
    "EdgeCondition",
    "FailTask",
    "Job",
    "JobContext",
    "Jobs",
    "Lease",
    "NewJob",
    "Outcome",
    "ParentWaits",
    "RetryPolicy",
    "Status",
    "StopTask",
    "SuspendTask",
    "Worker",
    "task",
]

if not TYPE_CHECKING:  # a module of tasks needs no worker
    __getattr__, __dir__ = offer(
        __name__,
        __all__,
        [
            "tasks",
            "stored.field_types",
            "submit.definition",
            "stored.entities",
            "lifecycle.leases",
            "report.context",
            "engine",
            "worker.worker",
        ],
    )
