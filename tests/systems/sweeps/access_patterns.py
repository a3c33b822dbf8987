"""The questions that sweeps ask of the main table."""

from __future__ import annotations

from tests.access_patterns import Question, World
from tests.access_patterns.jobs import items

from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.stored.entities import main
from jobtable.store import Store


def _best(store: Store) -> list[str | None]:
    best = JobQueries(store).find_best_metric("sweep", "val_loss")
    worst = JobQueries(store).find_best_metric("sweep", "val_loss", highest=True)
    return [best.child_job_id if best else None, worst.child_job_id if worst else None]


WORLD = World(
    name="sweeps",
    tables=(main,),
    items=items,
    questions={
        ("sweeps", "Find all jobs in a sweep"): Question(
            lambda s: [d.job_id for d in JobQueries(s).list_dependents("sweep")], ["job-1", "job-2", "job-3"]
        ),
        ("sweeps", "Find all metrics for a sweep"): Question(
            lambda s: [m.child_job_id for m in JobQueries(s).list_metrics("sweep")],
            ["job-1", "job-1", "job-2", "job-2", "job-3", "job-3"],
        ),
        ("sweeps", "Find best-performing configuration"): Question(_best, ["job-3", "job-1"]),
        ("sweeps", "Early stopping of poorly performing jobs"): Question(
            lambda s: [(m.child_job_id, m.value) for m in JobQueries(s).list_reports_of_epoch("sweep", "val_loss", 2)],
            [("job-1", 0.5), ("job-2", 0.25), ("job-3", 1 / 6)],
        ),
        ("sweeps", "Resume incomplete sweep"): Question(
            lambda s: [j.job_id for j in JobQueries(s).list_unfinished_children("sweep")], ["job-2", "job-3"]
        ),
        ("sweeps", "Queue jobs of a sweep"): Question(
            lambda s: [q.job_id for q in JobQueries(s).list_queued_of_group("gpu", "sweep")],
            ["job-1", "job-2", "job-3"],
        ),
    },
)
