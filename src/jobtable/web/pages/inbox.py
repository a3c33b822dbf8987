"""The inbox: what waits for a person, one task with its diff or its form, and the rules. All of it without scripts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from jobtable.app import Services
from jobtable.clock import wall_time
from jobtable.errors import JobtableError, ValueRefusedError
from jobtable.inbox.acceptance_rules import conditions_of
from jobtable.inbox.entities import InboxTask, TaskKind, TaskStatus
from jobtable.inbox.inbox import Closed, Inbox
from jobtable.inbox.waiting_tasks import Waiting, list_waiting, waiting_task
from jobtable.jobs.stored.entities import Job
from jobtable.system import declared
from jobtable.web.api.inbox import TaskId
from jobtable.web.form_fields import Form, field_of, read_form, value_in
from jobtable.web.guard import READ, WRITE, PageRoute, allow
from jobtable.web.injection import AllServices, CallerName, TheInbox
from jobtable.web.pages.frame import render
from jobtable.web.problems import Refusal, status_of
from jobtable.web.value_diffs import diff_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_PAGE = 50
_MOST_ELSEWHERE = 200
_MOST_FORM_BYTES = 1_000_000


@router.get("/inbox")
@allow(READ)
def show_inbox(
    request: Request,
    services: AllServices,
    status: TaskStatus = TaskStatus.PENDING,
    system: Annotated[str, Query(max_length=200)] = "",
    kind: TaskKind | None = None,
    cursor: str = "",
) -> Response:
    """Show the tasks with a status, and on the first page what systems keep themselves."""
    return _inbox_page(request, services, status, system, kind, cursor)


def _inbox_page(
    request: Request,
    services: Services,
    status: TaskStatus = TaskStatus.PENDING,
    system: str = "",
    kind: TaskKind | None = None,
    cursor: str = "",
    outcomes: list[tuple[str, str | None]] | None = None,
) -> Response:
    inbox = services.inbox
    found = (
        inbox.list_of_system(system, status, kind=kind)
        if system
        else inbox.list(status, kind=kind, newest_first=status is not TaskStatus.PENDING)
    )
    page = found.page(cursor or None, size=_PAGE)
    is_first = status is TaskStatus.PENDING and not cursor and kind is not TaskKind.PROPOSAL
    elsewhere = _of_systems(services, system) if is_first else []
    rows = [*((waiting_task(task), task) for task in page.items), *((each, None) for each in elsewhere)]
    if status is TaskStatus.PENDING and not system:
        rows.sort(key=lambda row: row[0].since)
    filters = {"status": "" if status is TaskStatus.PENDING else status.value, "system": system, "kind": kind or ""}
    return render(
        request,
        "inbox.html",
        title="Inbox",
        rows=rows,
        chosen=status,
        statuses=list(TaskStatus),
        kinds=list(TaskKind),
        systems=_systems(rows, system),
        filters=filters,
        is_filtered=bool(filters["status"] or system or kind),
        cursor=page.cursor,
        is_first=not cursor,
        outcomes=outcomes,
        topics=_topics(),
        rules=[(rule, conditions_of(rule)) for rule in inbox.list_rules().page(size=_PAGE).items],
    )


def _of_systems(services: Services, system: str) -> list[Waiting]:
    found = (each for each in list_waiting(services.jobs, _MOST_ELSEWHERE) if each.task_id is None)
    return [each for each in found if system in ("", each.system)]


def _systems(rows: Iterable[tuple[Waiting, Any]], chosen: str) -> list[str]:
    """Return the systems that can be chosen: those with an inbox of their own, and those that are shown."""
    shown = {row.system for row, _ in rows} | {system.name for system, _ in declared("inbox")}
    return sorted({*shown, "workflows", "jobs", chosen} - {""})


def _topics() -> list[str]:
    """Return the live topics of everything that the page lists."""
    of_systems = [system for system, _ in declared("inbox") if system.live is not None]
    return ["inbox", *(name for system in of_systems for name in system.load(str(system.live)).names)]


@router.post("/inbox")
@allow(WRITE)
async def act_on_many(request: Request, services: AllServices, caller: CallerName) -> Response:
    """Accept or reject the tasks that were ticked, each by itself, and show what became of them."""
    form = await read_form(request, _MOST_FORM_BYTES)
    return await run_in_threadpool(_act_on_many, request, services, form, caller)


def _act_on_many(request: Request, services: Services, form: Form, caller: str) -> Response:
    inbox, ids = services.inbox, form.get("task", [])
    verbs = {"accept": inbox.accept_many, "reject": inbox.reject_many}
    verb = verbs.get(form.get("verb", [""])[0])
    if verb is None:
        raise Refusal(422, "the form names no verb; choose Accept or Reject")
    outcomes = [
        (_title_of(inbox, each), None if each.error is None else str(each.error)) for each in verb(ids, by=caller)
    ]
    return _inbox_page(request, services, outcomes=outcomes)


def _title_of(inbox: Inbox, closed: Closed) -> str:
    if closed.task is not None:
        return closed.task.title
    try:
        return inbox.get(closed.task_id).title
    except JobtableError:
        return closed.task_id


@router.get("/inbox/{task_id}")
@allow(READ)
def show_task(request: Request, task_id: TaskId, services: AllServices) -> Response:
    """Show one task: the diff of a proposal or the form of a question, with its reason, its cost and its job."""
    return _task_page(request, services, services.inbox.get(task_id))


def _task_page(
    request: Request,
    services: Services,
    task: InboxTask,
    problem: str | None = None,
    form: Form | None = None,
    status: int = 200,
) -> Response:
    job = None if task.job_id is None else services.store.find(Job.key(job_id=task.job_id))
    return render(
        request,
        "inbox_task.html",
        status=status,
        title=task.title,
        task=task,
        diffs=[diff_of(each.field, each.before, each.after) for each in task.changes],
        asked=field_of(task.answer_schema) if task.kind is TaskKind.QUESTION else None,
        given=form or {},
        problem=problem or (task.problem if task.status is TaskStatus.PENDING else None),
        job=job,
        is_late=task.status is TaskStatus.PENDING and task.expires_at <= wall_time(services.store.clock),
    )


@router.post("/inbox/{task_id}")
@allow(WRITE)
async def act_on_task(
    request: Request, task_id: TaskId, services: AllServices, inbox: TheInbox, caller: CallerName
) -> Response:
    """Accept, reject or answer a task by its form; a refusal shows the page again, with what was typed."""
    form = await read_form(request, _MOST_FORM_BYTES)
    return await run_in_threadpool(_act, request, services, inbox.get(task_id), form, caller)


def _act(request: Request, services: Services, task: InboxTask, form: Form, caller: str) -> Response:
    inbox = services.inbox
    try:
        match form.get("verb", [""])[0]:
            case "accept":
                inbox.accept(task.task_id, by=caller)
            case "reject":
                inbox.reject(task.task_id, by=caller, remark=form.get("remark", [""])[0].strip() or None)
            case "answer":
                inbox.answer(task.task_id, value_in(field_of(task.answer_schema), form), by=caller)
            case _:
                raise Refusal(422, "the form names no verb; choose one of its buttons")
    except ValueRefusedError as error:
        return _task_page(request, services, inbox.get(task.task_id), str(error), form, 400)
    except JobtableError as error:
        return _task_page(request, services, inbox.get(task.task_id), str(error), form, status_of(error))
    return Response(status_code=303, headers={"Location": f"/inbox/{quote(task.task_id, safe='')}"})
