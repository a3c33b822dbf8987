"""A job and its records: `jobtable jobs show`, `metrics`, `checkpoints`, `artifacts`, `tree`, `dependencies`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text
from rich.tree import Tree

from jobtable.app import Services
from jobtable.cli.completion import complete_job
from jobtable.cli.framework import new_group
from jobtable.cli.options import AsJson, Limit, Since, on_services
from jobtable.cli.output import (
    colour_of,
    columns,
    first_line,
    print_fields,
    print_json,
    print_list,
    print_part,
    print_renderable,
    print_table,
    print_text,
    visible,
)
from jobtable.errors import ValueRefusedError
from jobtable.jobs.read.progress import GroupProgress, Timing, find_group_progress, percent_of, read_group_progress
from jobtable.jobs.read.waiting import Waiting
from jobtable.jobs.stored.entities import (
    Job,
    JobArtifact,
    JobCheckpoint,
    JobDependency,
    JobMetric,
    JobResource,
    JobStatus,
)
from jobtable.jobs.verbs import JobVerbs

app = new_group()
_artifact_row = columns(JobArtifact, "artifact=name bytes=size_bytes type=content_type time=created_at object=s3_key")
_checkpoint_row = columns(
    JobCheckpoint, "time=timestamp step epoch best=is_best bytes=size_bytes metrics object=s3_key"
)
_metric_row = columns(JobMetric, "metric=metric_name value unit step epoch time=timestamp child=child_job_id")
_resource_row = columns(
    JobResource,
    "resource=resource_id type=resource_type instance=instance_id GPUs=gpu_count"
    " since=allocated_at until=released_at status",
)
JobId = Annotated[str, typer.Argument(metavar="ID", help="Id of the job", autocompletion=complete_job)]

_SHOWN_STATUSES = 20
_SHOWN_EDGES = 20
_DEEPEST_JSON = 100
"""Each level of jobs is two of JSON, and many readers of JSON accept at most some hundred."""


@app.command(example="jobtable jobs show 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def show(services: Services, job_id: JobId, as_json: AsJson = False) -> None:
    """Show a job: its definition, progress, history, dependencies, resources and artifacts."""
    jobs = services.jobs
    job = jobs.queries.get_job(job_id)
    statuses = jobs.queries.list_statuses(job_id, newest_first=True).page(size=_SHOWN_STATUSES).items[::-1]
    edges = jobs.queries.list_dependencies(job_id)
    dependencies = list(edges if as_json else edges.take(_SHOWN_EDGES + 1))
    resources = list(jobs.queries.list_resources(job_id))
    artifacts = list(jobs.queries.list_artifacts(job_id))
    waiting = jobs.why_waiting(job)
    group = find_group_progress(jobs.store, job)
    timing = jobs.timing_of(job, percent=None if group is None else group.percent)
    if as_json:
        parts = {"dependencies": dependencies, "resources": resources, "artifacts": artifacts}
        print_json({"job": job, "waiting": waiting, "timing": timing, "statuses": statuses, **parts})
        return
    print_fields(_fields(job, waiting, timing, group))
    print_part("History", [_status_row(status) for status in statuses])
    print_part("Dependencies", [_awaited_row(each, waiting) for each in dependencies[:_SHOWN_EDGES]])
    if len(dependencies) > _SHOWN_EDGES:
        print_text(f"`jobtable jobs dependencies {job_id}` lists all of them")
    print_part("Resources", [_resource_row(each) for each in resources])
    print_part("Artifacts", [_artifact_row(each) for each in artifacts])


def _fields(job: Job, waiting: Waiting | None, timing: Timing | None, group: GroupProgress | None) -> dict[str, Any]:
    definition = job.definition
    reasons = () if waiting is None else waiting.reasons
    return {
        "job": job.job_id,
        "name": job.name,
        "description": job.description,
        "status": job.status,
        "requested": job.requested,
        "waits": "\n".join(reason.text for reason in reasons),
        "progress": f"{percent_of(job, group):g} %",
        "children": None if group is None else _counted(group),
        "message": job.message,
        "task": definition.task,
        "params": definition.params or None,
        "result": job.result,
        "queue": job.queue_name,
        "priority": job.priority,
        "user": job.created_by,
        "tags": job.tags or None,
        "parent": job.parent_job_id,
        "attempts": f"{job.attempts} of {job.max_attempts}",
        "instance": job.instance_id,
        "created": job.created_at,
        "started": job.started_at,
        "ended": job.ended_at,
        "seconds": job.duration_seconds,
        "seconds so far": None if timing is None else round(timing.elapsed_seconds, 1),
        "estimated end": None if timing is None else timing.ends_at,
    }


def _counted(group: GroupProgress) -> str:
    failed = f", {group.failed:,} FAILED" if group.failed else ""
    return f"{group.ended:,} of {group.total:,} ended{failed}"


def _status_row(status: JobStatus) -> dict[str, Any]:
    return {
        "time": status.updated_at,
        "status": status.status,
        "%": None if status.progress is None else round(status.progress),
        "by": status.updated_by or status.instance_id,
        "message": first_line(status.message),
    }


@app.command(example="jobtable jobs metrics 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --name val_loss --since 1h")
@on_services
def metrics(
    services: Services,
    job_id: JobId,
    name: Annotated[str | None, typer.Option(help="Only this metric")] = None,
    since: Since = None,
    limit: Limit = 1000,
    as_json: AsJson = False,
) -> None:
    """List the metrics of a job by name and time, including those that its children roll up."""
    queries = services.jobs.queries
    queries.get_job(job_id)
    if name is None:
        found = queries.list_metrics(job_id, since=since)
    else:
        found = queries.list_metric(job_id, name, since=since)
    print_list(found, _metric_row, as_json=as_json, empty="The job has no such metrics.", limit=limit)


@app.command(example="jobtable jobs checkpoints 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def checkpoints(services: Services, job_id: JobId, limit: Limit = 100, as_json: AsJson = False) -> None:
    """List the checkpoints of a job, newest first."""
    queries = services.jobs.queries
    queries.get_job(job_id)
    found = queries.list_checkpoints(job_id, newest_first=True)
    print_list(found, _checkpoint_row, as_json=as_json, empty="The job has no checkpoints.", limit=limit)


@app.command(example="jobtable jobs artifacts 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def artifacts(services: Services, job_id: JobId, limit: Limit = 100, as_json: AsJson = False) -> None:
    """List the artifacts of a job."""
    services.jobs.queries.get_job(job_id)
    found = services.jobs.queries.list_artifacts(job_id)
    print_list(found, _artifact_row, as_json=as_json, empty="The job has no artifacts.", limit=limit)


@app.command(example="jobtable jobs tree 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def tree(services: Services, job_id: JobId, as_json: AsJson = False) -> None:
    """Show a job and its descendants."""
    job = services.jobs.queries.get_job(job_id)
    if as_json:
        print_json(_with_children(services.jobs, job))
    else:
        drawing = Tree(_label(job, find_group_progress(services.store, job)))
        _draw(services.jobs, job, drawing)
        print_renderable(drawing)


def _with_children(jobs: JobVerbs, root: Job) -> dict[str, Any]:
    tree = _childless(root)
    waiting = [(root, tree, 1)]
    while waiting:
        job, entry, level = waiting.pop()
        for child in jobs.queries.list_children(job):
            if level == _DEEPEST_JSON:
                raise ValueRefusedError(
                    f"the tree of job {root.job_id} has more than {level} levels, too many for readers of JSON",
                    hint=f"print it without --json, or the tree of a descendant such as {job.job_id}",
                )
            entry["children"].append(_childless(child))
            waiting.append((child, entry["children"][-1], level + 1))
    return tree


def _childless(job: Job) -> dict[str, Any]:
    return {**job.model_dump(mode="json"), "children": []}


def _draw(jobs: JobVerbs, root: Job, drawing: Tree) -> None:
    waiting = [(root, drawing)]
    while waiting:
        job, branch = waiting.pop()
        children = list(jobs.queries.list_children(job))
        groups = read_group_progress(jobs.store, children)
        waiting += [(child, branch.add(_label(child, groups.get(child.job_id)))) for child in children]


def _label(job: Job, group: GroupProgress | None) -> Text:
    stage = f" ({job.job_stage})" if job.job_stage else ""
    return Text.assemble(
        visible(f"{job.job_id}  {first_line(job.name)}{stage}  "),
        (job.status, colour_of(job.status) or ""),
        f"  {percent_of(job, group):g} %",
    )


@app.command(example="jobtable jobs dependencies 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def dependencies(services: Services, job_id: JobId, as_json: AsJson = False) -> None:
    """Show the dependencies and the dependents of a job."""
    queries = services.jobs.queries
    queries.get_job(job_id)
    waits_for = list(queries.list_dependencies(job_id))
    waited_for_by = list(queries.list_dependents(job_id))
    if as_json:
        print_json({"waits_for": waits_for, "waited_for_by": waited_for_by})
        return
    for title, edges, other in (
        ("Dependencies", waits_for, "dependency_job_id"),
        ("Dependents", waited_for_by, "job_id"),
    ):
        print_text(title, "bold")
        if edges:
            print_table([_dependency_row(edge, other) for edge in edges])
        else:
            print_text("none")


def _dependency_row(edge: JobDependency, other: str = "dependency_job_id") -> dict[str, Any]:
    return {
        "job": getattr(edge, other),
        "type": edge.type,
        "gate": edge.gate,
        "condition": edge.condition,
        "became": edge.outcome,
    }


def _awaited_row(edge: JobDependency, waiting: Waiting | None) -> dict[str, Any]:
    """Add the current status of a dependency that the job still waits for."""
    known = {} if waiting is None else {each.job_id: each.status for each in waiting.dependencies}
    return {**_dependency_row(edge), "now": known.get(edge.dependency_job_id)}
