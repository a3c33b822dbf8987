"""`jobtable jobs`: submit, list and show jobs, act on them, and wait for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Annotated, TypeVar

import typer

from jobtable.app import Services
from jobtable.cli import job_logs, job_records, job_submission
from jobtable.cli.completion import complete_job
from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.job_waiting import Timeout, seconds_of, wait_until_done
from jobtable.cli.options import AsJson, Limit, User, on_services
from jobtable.cli.output import (
    ExitCode,
    exit_code_of,
    first_line,
    first_of,
    line_of,
    print_json,
    print_list,
    print_table,
    print_text,
    say,
)
from jobtable.jobs.lifecycle.many import act_on_each
from jobtable.jobs.read.listing import JobFilter, in_chunks, newest_first
from jobtable.jobs.read.progress import GroupProgress, percent_of, read_group_progress
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.verbs import ActedOn, JobVerbs
from jobtable.settings import Settings

T = TypeVar("T")

app = new_group()
for part in (job_submission, job_records, job_logs):
    app.take_over(part.app)

JobIds = Annotated[list[str], typer.Argument(metavar="ID", help="Ids of jobs", autocompletion=complete_job)]
Message = Annotated[str | None, typer.Option("--message", metavar="TEXT", help="Reason, kept in the job's history")]
Alone = Annotated[bool, typer.Option("--alone", help="Leave the descendants of the jobs as they are")]
_NO_JOBS = "There are no jobs yet; submit one with `jobtable jobs submit --task MODULE:FUNCTION`."


@app.command(
    "list",
    example=(
        "jobtable jobs list --status failed --queue gpu\njobtable jobs list --task training:train --text rate=0.01"
    ),
)
@on_services
def list_jobs(
    services: Services,
    status: Annotated[Status | None, typer.Option(case_sensitive=False, help="Only jobs with this status")] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Only jobs of this owner")] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only jobs of this queue; without --status and --user, only those waiting or running in it",
        ),
    ] = None,
    parent: Annotated[
        str | None, typer.Option(metavar="ID", help="Only the children of this job, oldest first")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag")] = None,
    task: Annotated[str | None, typer.Option(metavar="MODULE:FUNCTION", help="Only jobs that run this task")] = None,
    text: Annotated[
        str | None, typer.Option(help="Only jobs with this text in their name, task or a parameter, as in rate=0.01")
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    wanted = JobFilter(status=status, user=user, queue=queue, tag=tag, task=task, text=text, parent=parent)
    empty = _NO_JOBS if wanted == JobFilter() else "No jobs match."
    with first_of(_selected(services.jobs, wanted, limit + 1), limit) as found:
        groups = {} if as_json else read_group_progress(services.store, found)
        print_list(found, lambda job: _row(job, groups.get(job.job_id)), as_json=as_json, empty=empty)


def _row(job: Job, group: GroupProgress | None) -> dict[str, object]:
    return {
        "job": job.job_id,
        "status": job.status,
        "%": round(percent_of(job, group)),
        "name": job.name,
        "queue": job.queue_name,
        "created": job.created_at,
        "seconds": seconds_of(job),
        "user": job.created_by,
        "priority": job.priority,
        "message": first_line(job.message),
    }


def _selected(jobs: JobVerbs, wanted: JobFilter, size: int) -> Iterator[Job]:
    """Select by what narrows the most: children oldest first, others newest first."""
    queries = jobs.queries
    if wanted.queue is not None:
        queries.get_queue(wanted.queue)
    if wanted.parent is not None:
        return filter(wanted.matches, in_chunks(queries.list_children(wanted.parent), size))
    if wanted.queue is not None and wanted.status is None and wanted.user is None:
        return filter(wanted.matches, _in_queue(jobs, wanted.queue))
    return newest_first(jobs.store, wanted, chunk=size)


def _in_queue(jobs: JobVerbs, queue: str) -> Iterator[Job]:
    """Yield the jobs of a queue, newest first; no index has this order, so all queue entries are read before."""
    entries = iter(sorted(jobs.queries.list_jobs_of_queue(queue), key=lambda entry: entry.enqueued_at, reverse=True))
    while some := list(islice(entries, 100)):
        found = jobs.store.batch_get(Job.key(job_id=entry.job_id) for entry in some)
        yield from (job for job in found if job is not None)


@app.command(example="jobtable jobs wait 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --timeout 600")
@on_services
def wait(services: Services, ids: JobIds, timeout: Timeout = None, as_json: AsJson = False) -> None:
    """Wait until jobs end; exit with 5 unless all are COMPLETED."""
    wait_until_done(services.jobs, ids, timeout, as_json=as_json)


@app.command(example="jobtable jobs cancel 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services(user=User)
def cancel(
    services: Services,
    settings: Settings,
    ids: JobIds,
    message: Message = None,
    alone: Alone = False,
    as_json: AsJson = False,
) -> None:
    """Cancel jobs and their descendants.

    A job that waits is CANCELLED at once; the worker of a running job ends it.
    """
    _print_changed(services.jobs.many.cancel(ids, by=settings.user, message=message, tree=not alone), as_json)


@app.command(example='jobtable jobs stop 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --message "good enough"')
@on_services(user=User)
def stop(
    services: Services,
    settings: Settings,
    ids: JobIds,
    message: Message = None,
    alone: Alone = False,
    as_json: AsJson = False,
) -> None:
    """Stop jobs and their descendants early: a running task is asked to end, and its results are kept."""
    _print_changed(services.jobs.many.stop(ids, by=settings.user, message=message, tree=not alone), as_json)


@app.command(example="jobtable jobs retry 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services(user=User)
def retry(
    services: Services,
    settings: Settings,
    ids: JobIds,
    tree: Annotated[
        bool, typer.Option("--tree", help="Also restart every descendant that ended without being COMPLETED")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Restart jobs that failed or were cancelled or stopped, with all their attempts."""
    _print_changed(services.jobs.many.retry(ids, by=settings.user, tree=tree), as_json)


@app.command(example="jobtable jobs prioritise 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --priority 900")
@on_services
def prioritise(
    services: Services,
    ids: JobIds,
    priority: Annotated[int, typer.Option(min=0, max=999, help="New priority; higher starts first")],
    as_json: AsJson = False,
) -> None:
    """Change the priority of jobs, and so their position in the queue."""
    _print_changed(act_on_each(ids, lambda job_id: services.jobs.prioritise(job_id, priority)), as_json)


@app.command(example="jobtable jobs delete 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --yes")
@on_services
def delete(
    services: Services,
    ids: JobIds,
    tree: Annotated[bool, typer.Option("--tree", help="Also delete their descendants")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete jobs that have ended, with everything stored for them."""
    jobs = "1 job" if len(ids) == 1 else f"{len(ids)} jobs"
    confirm(f"Delete {jobs} with all logs, metrics, checkpoints and artifacts?", yes=yes)
    done, code = _reported(services.jobs.many.delete(ids, tree=tree))
    deleted = [{"job": each.job_id, "items": each.given} for each in done]
    if as_json:
        print_json(deleted)
    else:
        for each in deleted:
            print_text(f"{each['job']} deleted ({each['items']} items)")
    raise typer.Exit(code)


def _print_changed(acted: Iterable[ActedOn[Job]], as_json: bool) -> None:
    """Change jobs, and print their new state."""
    done, code = _reported(acted)
    changed = [each.given for each in done if each.given is not None]
    if as_json:
        print_json(changed)
    elif changed:
        print_table([_changed_row(job) for job in changed])
    raise typer.Exit(code)


def _changed_row(job: Job) -> dict[str, object]:
    requested = f"{job.requested} requested" if job.requested and not job.is_final else None
    return {
        "job": job.job_id,
        "status": job.status,
        "priority": job.priority,
        "message": requested or first_line(job.message),
    }


def _reported(acted: Iterable[ActedOn[T]]) -> tuple[list[ActedOn[T]], ExitCode]:
    """Return the jobs that succeeded and the exit code of the first error; print each error once, as it comes."""
    done, code = list[ActedOn[T]](), ExitCode.OK
    for line, group in groupby(acted, key=lambda each: each.error and line_of(each.error)):
        alike = list(group)
        error = alike[0].error
        if error is None or line is None:
            done += alike
        else:
            say(f"{line} (and {len(alike) - 1} more)" if len(alike) > 1 else line)
            code = code or exit_code_of(error)
    return done, code
