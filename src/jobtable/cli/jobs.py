"""`jobtable jobs`: submit, list and show jobs, act on them, and wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import Annotated, TypeVar

import typer

from jobtable.cli import job_logs, job_records, job_submission
from jobtable.cli.completion import complete_job
from jobtable.cli.confirmation import Yes, confirm
from jobtable.cli.groups import new_group
from jobtable.cli.job_waiting import Timeout, seconds_of, wait_until_done
from jobtable.cli.options import AsJson, Limit, ObjectsUrl, StoreUrl, User, open_services, resolved
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
from jobtable.jobs.read.group_progress import GroupProgress, percent_of, read_group_progress
from jobtable.jobs.read.listing import JobFilter, in_chunks, newest_first
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.fields import Status
from jobtable.jobs.verbs import ActedOn, JobVerbs

T = TypeVar("T")

app = new_group()
app.command("submit")(job_submission.submit)
for name, command in job_records.COMMANDS.items():
    app.command(name)(command)
app.command("logs")(job_logs.logs)

JobIds = Annotated[list[str], typer.Argument(metavar="ID", help="The ids of jobs.", autocompletion=complete_job)]
Message = Annotated[str | None, typer.Option("--message", help="Why; it stands in the job's history.")]
Alone = Annotated[bool, typer.Option("--alone", help="Leave the jobs under it as they are.")]
_NO_JOBS = "There are no jobs yet; submit one with `jobtable jobs submit --task MODULE:FUNCTION`."


@app.command("list")
def list_jobs(
    status: Annotated[
        Status | None, typer.Option("--status", case_sensitive=False, help="Only in this status.")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Only those of this user.")] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue",
            metavar="NAME",
            help="Only those of this queue; without --status or --user, that wait or run in it.",
        ),
    ] = None,
    parent: Annotated[
        str | None, typer.Option("--parent", metavar="ID", help="Only the children of this job, the oldest first.")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only those with this tag.")] = None,
    task: Annotated[
        str | None, typer.Option("--task", metavar="MODULE:FUNCTION", help="Only those that run this task.")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", help="Only those with this in their name, task or a param, as in rate=0.01."),
    ] = None,
    limit: Limit = 50,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, the newest first.

    \b
    Example:
        jobtable jobs list --status failed --queue gpu
        jobtable jobs list --task training:train --text rate=0.01
    """
    with open_services(store, objects) as services:
        wanted = JobFilter(status=status, user=user, queue=queue, tag=tag, task=task, text=text, parent=parent)
        empty = _NO_JOBS if wanted == JobFilter() else "There are no such jobs."
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
    """The jobs that are wanted, by what narrows them most: children the oldest first, others the newest."""
    queries = jobs.queries
    if wanted.queue is not None:
        queries.get_queue(wanted.queue)
    if wanted.parent is not None:
        return filter(wanted.matches, in_chunks(queries.list_children(wanted.parent), size))
    if wanted.queue is not None and wanted.status is None and wanted.user is None:
        return filter(wanted.matches, _in_queue(jobs, wanted.queue))
    return newest_first(jobs.store, wanted, chunk=size)


def _in_queue(jobs: JobVerbs, queue: str) -> Iterator[Job]:
    """The jobs in a queue, the last that came first; its places are read before, because no index has this order."""
    places = iter(sorted(jobs.queries.list_jobs_of_queue(queue), key=lambda place: place.enqueued_at, reverse=True))
    while some := list(islice(places, 100)):
        found = jobs.store.batch_get(Job.key(job_id=place.job_id) for place in some)
        yield from (job for job in found if job is not None)


@app.command()
def wait(
    ids: JobIds,
    timeout: Timeout = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Wait until jobs have ended. The exit code is 5 unless all are COMPLETED.

    \b
    Example:
        jobtable jobs wait 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --timeout 600
    """
    with open_services(store, objects) as services:
        wait_until_done(services.jobs, ids, timeout, as_json=as_json)


@app.command()
def cancel(
    ids: JobIds,
    user: User = None,
    message: Message = None,
    alone: Alone = False,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Cancel jobs whose results nobody wants, and those under them.

    One that waits is CANCELLED at once. One that runs is ended by its worker.

    \b
    Example:
        jobtable jobs cancel 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11
    """
    by = resolved(user=user).settings.user
    _change_all(store, objects, lambda jobs: jobs.many.cancel(ids, by=by, message=message, tree=not alone), as_json)


@app.command()
def stop(
    ids: JobIds,
    user: User = None,
    message: Message = None,
    alone: Alone = False,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Let jobs end early, but in order: one that runs is asked to end by itself, and keeps what it has.

    \b
    Example:
        jobtable jobs stop 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --message "good enough"
    """
    by = resolved(user=user).settings.user
    _change_all(store, objects, lambda jobs: jobs.many.stop(ids, by=by, message=message, tree=not alone), as_json)


@app.command()
def retry(
    ids: JobIds,
    user: User = None,
    tree: Annotated[bool, typer.Option("--tree", help="Everything under it that is not COMPLETED, too.")] = False,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Let jobs that FAILED, or were cancelled or stopped, begin anew with all their attempts.

    \b
    Example:
        jobtable jobs retry 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11
    """
    by = resolved(user=user).settings.user
    _change_all(store, objects, lambda jobs: jobs.many.retry(ids, by=by, tree=tree), as_json)


@app.command()
def prioritise(
    ids: JobIds,
    priority: Annotated[int, typer.Option("--priority", min=0, max=999, help="Higher starts first.")],
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Change the priority of jobs, and with it their places in the queue.

    \b
    Example:
        jobtable jobs prioritise 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --priority 900
    """
    _change_all(
        store, objects, lambda jobs: act_on_each(ids, lambda job_id: jobs.prioritise(job_id, priority)), as_json
    )


@app.command()
def delete(
    ids: JobIds,
    tree: Annotated[bool, typer.Option("--tree", help="The jobs under it, too.")] = False,
    yes: Yes = False,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Delete jobs that have ended, with everything that is stored under them.

    \b
    Example:
        jobtable jobs delete 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --yes
    """
    confirm(f"Delete {len(ids)} job(s) with logs, metrics, checkpoints and files?", yes=yes)
    with open_services(store, objects) as services:
        done, code = _told(services.jobs.many.delete(ids, tree=tree))
    deleted = [{"job": each.job_id, "items": each.given} for each in done]
    if as_json:
        print_json(deleted)
    else:
        for each in deleted:
            print_text(f"{each['job']} deleted, items: {each['items']}")
    raise typer.Exit(code)


def _change_all(
    store: str | None, objects: str | None, change: Callable[[JobVerbs], Iterable[ActedOn[Job]]], as_json: bool
) -> None:
    """Change jobs, and print how they are then."""
    with open_services(store, objects) as services:
        done, code = _told(change(services.jobs))
    changed = [each.given for each in done if each.given is not None]
    if as_json:
        print_json(changed)
    elif changed:
        print_table([_changed_row(job) for job in changed])
    raise typer.Exit(code)


def _changed_row(job: Job) -> dict[str, object]:
    asked = f"{job.requested} is asked for" if job.requested and not job.is_final else None
    return {
        "job": job.job_id,
        "status": job.status,
        "priority": job.priority,
        "message": asked or first_line(job.message),
    }


def _told(acted: Iterable[ActedOn[T]]) -> tuple[list[ActedOn[T]], ExitCode]:
    """Those jobs with which it was done, and the code of the first error; each error is told once, as it comes."""
    done, code = list[ActedOn[T]](), ExitCode.OK
    for line, group in groupby(acted, key=lambda each: each.error and line_of(each.error)):
        alike = list(group)
        error = alike[0].error
        if error is None or line is None:
            done += alike
        else:
            say(f"{line} (the same holds for {len(alike) - 1} more)" if len(alike) > 1 else line)
            code = code or exit_code_of(error)
    return done, code
