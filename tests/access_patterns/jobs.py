"""A sweep with three children, its queue and its instance."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.stored.entities import (
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
    main,
)
from jobtable.jobs.stored.field_types import InstanceStatus, Status, rank_of
from jobtable.model import Entity
from jobtable.store import Store
from tests.access_patterns import Question, World

START = datetime(2025, 11, 1, 20, 30, tzinfo=UTC)
CHILDREN = {"job-1": Status.COMPLETED, "job-2": Status.RUNNING, "job-3": Status.RUNNING}


def at(second: int) -> datetime:
    """A second after the start."""
    return START + timedelta(seconds=second)


def children() -> Iterator[Entity]:
    """The children of the sweep: the later, the more urgent, and the lower its loss."""
    for number, (job_id, status) in enumerate(CHILDREN.items(), start=1):
        yield Job(
            job_id=job_id,
            name=job_id,
            created_at=at(number),
            created_by="ada",
            status=status,
            job_type="training",
            parent_job_id="sweep",
            root_job_id="sweep",
        )
        yield JobDependency(job_id=job_id, dependency_job_id="sweep", type="parent_sweep", created_at=at(0))
        yield JobStatus(job_id=job_id, status=Status.PENDING, updated_at=at(number))
        yield JobStatus(job_id=job_id, status=status, updated_at=at(number + 10))
        rank = None if status is Status.COMPLETED else rank_of(500)
        yield QueueJob(queue_name="gpu", job_id=job_id, enqueued_at=at(-number), rank=rank, group_id="sweep")
        for step in (1, 2):
            loss = 1 / number / step
            for holder, child in ((job_id, None), ("sweep", job_id)):
                yield JobMetric(
                    job_id=holder,
                    metric_name="val_loss",
                    timestamp=at(100 * number + step),
                    value=loss,
                    step=step,
                    epoch=step,
                    child_job_id=child,
                )


def items() -> Iterator[Entity]:
    """The world."""
    yield Job(job_id="sweep", name="sweep", created_at=at(0), created_by="ada", status=Status.RUNNING, job_type="sweep")
    yield Job(job_id="other", name="other", created_at=at(9), created_by="bob", status=Status.RUNNING)
    yield from children()
    yield JobDependency(job_id="sweep", dependency_job_id="job-1", type="child_training", created_at=at(0))
    yield JobMetric(job_id="job-1", metric_name="accuracy", timestamp=at(5), value=0.5)
    for second in (1, 2):
        yield JobCheckpoint(
            job_id="job-1", timestamp=at(second), s3_bucket="b", s3_key="k", size_bytes=1, step=second, epoch=0
        )
        yield JobLog(job_id="job-1", timestamp=at(second), message=f"line {second}")
    yield JobLog(job_id="job-2", timestamp=at(0), message="line 0")
    yield JobResource(
        job_id="job-2",
        resource_id="gpu-0",
        resource_type="GPU",
        instance_id="i-1",
        instance_type="p3",
        allocated_at=at(0),
        status="held",
    )
    yield Instance(instance_id="i-1", instance_type="p3", status=InstanceStatus.RUNNING, launched_at=at(0))
    yield Instance(instance_id="i-2", instance_type="p3", status=InstanceStatus.STOPPED, launched_at=at(0))
    yield InstanceJob(instance_id="i-1", job_id="job-2", assigned_at=at(1), status=Status.RUNNING)
    yield Queue(queue_name="gpu", created_at=at(0))
    yield Queue(queue_name="cpu", created_at=at(0))
    yield QueueJob(queue_name="gpu", job_id="other", enqueued_at=at(9), rank=rank_of(899))


def _everything(store: Store) -> list[str]:
    return [type(item).__name__ for item in JobQueries(store).list_everything("job-1")]


def _best(store: Store) -> list[str | None]:
    best = JobQueries(store).find_best_metric("sweep", "val_loss")
    worst = JobQueries(store).find_best_metric("sweep", "val_loss", highest=True)
    return [best.child_job_id if best else None, worst.child_job_id if worst else None]


def _latest(store: Store) -> list[Status]:
    found = JobQueries(store).find_latest_status("job-1")
    return [found.status] if found else []


_SWEEP = Job(job_id="sweep", name="sweep", created_at=START, created_by="ada")

WORLD = World(
    name="jobs",
    tables=(main,),
    items=items,
    questions={
        ("jobs", "Get a job"): Question(lambda s: [JobQueries(s).get_job("job-1").name], ["job-1"]),
        ("jobs", "All information about a specific job"): Question(
            _everything,
            [
                "JobCheckpoint",
                "JobCheckpoint",
                "JobDependency",
                "Job",
                "JobLog",
                "JobLog",
                "JobMetric",
                "JobMetric",
                "JobMetric",
                "JobStatus",
                "JobStatus",
            ],
        ),
        ("jobs", "Query jobs by status"): Question(
            lambda s: [j.job_id for j in JobQueries(s).list_jobs_by_status(Status.RUNNING)],
            ["sweep", "job-2", "job-3", "other"],
        ),
        ("jobs", "Query jobs by user"): Question(
            lambda s: [j.job_id for j in JobQueries(s).list_jobs_by_user("ada", newest_first=True)],
            ["job-3", "job-2", "job-1", "sweep"],
        ),
        ("jobs", "List all jobs"): Question(
            lambda s: sorted(j.job_id for j in JobQueries(s).list_jobs()),
            ["job-1", "job-2", "job-3", "other", "sweep"],
        ),
        ("jobs", "Job tree: the children of a job"): Question(
            lambda s: [j.job_id for j in JobQueries(s).list_children(_SWEEP)], ["job-1", "job-2", "job-3"]
        ),
        ("jobs", "Job tree: all jobs under a root"): Question(
            lambda s: [j.job_id for j in JobQueries(s).list_descendants("sweep")], ["job-1", "job-2", "job-3"]
        ),
        ("jobs", "Complete status history of a job"): Question(
            lambda s: [each.status for each in JobQueries(s).list_statuses("job-2")], [Status.PENDING, Status.RUNNING]
        ),
        ("jobs", "Get the most recent status update"): Question(_latest, [Status.COMPLETED]),
        ("jobs", "Status changes of all jobs by status"): Question(
            lambda s: [each.job_id for each in JobQueries(s).list_statuses_by_status(Status.RUNNING)],
            ["job-2", "job-3"],
        ),
        ("jobs", "All metrics of a job"): Question(
            lambda s: [(m.metric_name, m.value) for m in JobQueries(s).list_metrics("job-1")],
            [("accuracy", 0.5), ("val_loss", 1), ("val_loss", 0.5)],
        ),
        ("jobs", "Get all metrics from the last hour"): Question(
            lambda s: [(m.metric_name, m.value) for m in JobQueries(s).list_metrics("job-1", since=at(4))],
            [("accuracy", 0.5), ("val_loss", 1), ("val_loss", 0.5)],
        ),
        ("jobs", "Get the values of a metric from the last hour"): Question(
            lambda s: [m.value for m in JobQueries(s).list_metric("job-1", "val_loss", since=at(101))], [0.5]
        ),
        ("jobs", "A metric over all jobs by time"): Question(
            lambda s: [m.value for m in JobQueries(s).list_metric_of_all_jobs("val_loss", since=at(300))],
            [1 / 3, 1 / 3, 1 / 6, 1 / 6],
        ),
        ("jobs", "A metric over all jobs by job"): Question(
            lambda s: [m.value for m in JobQueries(s).list_metric_by_job("val_loss", "job-2")], [0.5, 0.25]
        ),
        ("jobs", "Checkpoints of a job"): Question(
            lambda s: [c.step for c in JobQueries(s).list_checkpoints("job-1", newest_first=True)], [2, 1]
        ),
        ("jobs", "Checkpoints of all jobs"): Question(
            lambda s: [c.step for c in JobQueries(s).list_checkpoints_of_all_jobs()], [1, 2]
        ),
        ("jobs", "Logs of a job"): Question(
            lambda s: [line.message for line in JobQueries(s).list_logs("job-1", newest_first=True, limit=1)],
            ["line 2"],
        ),
        ("jobs", "Logs of all jobs"): Question(
            lambda s: [line.message for line in JobQueries(s).list_logs_of_all_jobs()], ["line 1", "line 2", "line 0"]
        ),
        ("jobs", "Resources of a job"): Question(
            lambda s: [r.resource_id for r in JobQueries(s).list_resources("job-2")], ["gpu-0"]
        ),
        ("jobs", "Jobs of a resource"): Question(
            lambda s: [r.job_id for r in JobQueries(s).list_uses_of_resource("gpu-0")], ["job-2"]
        ),
        ("jobs", "All resources"): Question(
            lambda s: [(r.resource_id, r.job_id) for r in JobQueries(s).list_uses_of_resources()], [("gpu-0", "job-2")]
        ),
        ("jobs", "What jobs does job X depend on?"): Question(
            lambda s: [d.dependency_job_id for d in JobQueries(s).list_dependencies("sweep")], ["job-1"]
        ),
        ("jobs", "What jobs depend on job X?"): Question(
            lambda s: [d.job_id for d in JobQueries(s).list_dependents("job-1")], ["sweep"]
        ),
        ("jobs", "Best value of a rolled-up metric"): Question(_best, ["job-3", "job-1"]),
        ("jobs", "Values of a metric after an epoch"): Question(
            lambda s: [(m.child_job_id, m.value) for m in JobQueries(s).list_reports_of_epoch("sweep", "val_loss", 2)],
            [("job-1", 0.5), ("job-2", 0.25), ("job-3", 1 / 6)],
        ),
        ("jobs", "Children that are not complete"): Question(
            lambda s: [j.job_id for j in JobQueries(s).list_unfinished_children("sweep")], ["job-2", "job-3"]
        ),
        ("jobs", "Jobs of a group in a queue"): Question(
            lambda s: [q.job_id for q in JobQueries(s).list_queued_of_group("gpu", "sweep")],
            ["job-1", "job-2", "job-3"],
        ),
        ("jobs", "Get an instance"): Question(lambda s: [JobQueries(s).get_instance("i-2").status], ["STOPPED"]),
        ("jobs", "Instances by status"): Question(
            lambda s: [i.instance_id for i in JobQueries(s).list_instances_by_status(InstanceStatus.RUNNING)], ["i-1"]
        ),
        ("jobs", "Which jobs does an instance run"): Question(
            lambda s: [j.job_id for j in JobQueries(s).list_jobs_of_instance("i-1")], ["job-2"]
        ),
        ("jobs", "Which instances run a job"): Question(
            lambda s: [j.instance_id for j in JobQueries(s).list_instances_of_job("job-2")], ["i-1"]
        ),
        ("jobs", "All queues"): Question(lambda s: [q.queue_name for q in JobQueries(s).list_queues()], ["cpu", "gpu"]),
        ("jobs", "Get a queue"): Question(lambda s: [JobQueries(s).get_queue("gpu").queue_name], ["gpu"]),
        ("jobs", "Jobs of a queue"): Question(
            lambda s: [q.job_id for q in JobQueries(s).list_jobs_of_queue("gpu")],
            ["job-1", "job-2", "job-3", "other"],
        ),
        ("jobs", "Queues of a job"): Question(
            lambda s: [q.queue_name for q in JobQueries(s).list_queues_of_job("job-1")], ["gpu"]
        ),
        ("jobs", "The next jobs of a queue"): Question(
            lambda s: [q.job_id for q in JobQueries(s).list_ready("gpu")], ["other", "job-3", "job-2"]
        ),
    },
)
