"""`jobtable inbox`: what waits for a person, and what the person does with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.cli.completion import completed
from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.options import AsJson, Limit, User, on_services
from jobtable.cli.output import (
    ExitCode,
    exit_code_of,
    first_line,
    first_of,
    line_of,
    print_either,
    print_fields,
    print_json,
    print_list,
    print_part,
    print_table,
    print_text,
    say,
    to_json,
)
from jobtable.errors import ValueRefusedError
from jobtable.inbox.acceptance_rules import conditions_of
from jobtable.inbox.entities import InboxRule, InboxTask, TaskKind, TaskStatus
from jobtable.inbox.inbox import Closed
from jobtable.inbox.schema_checks import check_answer
from jobtable.inbox.waiting_tasks import Waiting, list_waiting
from jobtable.model import Json
from jobtable.settings import Settings

app = new_group()

_NANODOLLARS = 10**9
complete_task = completed(lambda services: (task.task_id for task in services.inbox.list()))
TaskId = Annotated[str, typer.Argument(metavar="ID", help="Id of the task", autocompletion=complete_task)]
TaskIds = Annotated[list[str], typer.Argument(metavar="ID", help="Ids of tasks", autocompletion=complete_task)]
System = Annotated[str | None, typer.Option("--system", metavar="NAME", help="Only what belongs to this system")]


@app.command("list", example="jobtable inbox list --kind proposal --system jobs")
@on_services
def list_tasks(
    services: Services,
    status: Annotated[TaskStatus, typer.Option(help="Only tasks with this status")] = TaskStatus.PENDING,
    kind: Annotated[TaskKind | None, typer.Option(help="Only tasks of this kind")] = None,
    system: System = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the tasks of the inbox, by creation; those of one system by when they are due.

    What systems keep in records of their own is listed with `jobtable inbox waiting`.
    """
    inbox = services.inbox
    found = inbox.list(status, kind=kind) if system is None else inbox.list_of_system(system, status, kind=kind)
    with first_of(found, limit) as tasks:
        if as_json:
            print_json([_shown(task) for task in tasks])
        else:
            print_list(tasks, _row, as_json=False, empty="No tasks match.")


@app.command(example="jobtable inbox waiting")
@on_services
def waiting(services: Services, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List everything that waits for a person, the oldest first, also what systems keep in records of their own."""
    found = list_waiting(services.jobs, limit + 1)
    print_list(found, _waiting_row, as_json=as_json, empty="Nothing waits for a person.", limit=limit)


def _waiting_row(each: Waiting) -> dict[str, Any]:
    return {
        "title": first_line(each.title),
        "system": each.system,
        "since": each.since,
        "due": each.due,
        "page": each.path,
    }


@app.command(example="jobtable inbox show 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def show(services: Services, task_id: TaskId, as_json: AsJson = False) -> None:
    """Show a task: what it asks or changes, the reason, the cost, and what became of it."""
    task = services.inbox.get(task_id)
    if as_json:
        print_json(_shown(task))
        return
    hidden = {"changes", "cost_nanodollars", "subject", "token_sha256", "workflow", "due_at"}
    fields = {name: value for name, value in to_json(task).items() if name not in hidden and value != []}
    print_fields({**fields, "subject": task.subject, "cost": _dollars(task.cost_nanodollars)})
    changes = [each.model_dump() for each in task.changes]
    print_part("Changes", [{name: _compact(value) for name, value in each.items()} for each in changes])


@app.command(example="jobtable inbox accept 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services(user=User)
def accept(services: Services, settings: Settings, ids: TaskIds, as_json: AsJson = False) -> None:
    """Accept proposals, each of which is applied at once; exit with 4 if one is stale or closed."""
    _print_closed(services.inbox.accept_many(ids, by=settings.user), as_json)


@app.command(example='jobtable inbox reject 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --remark "the old name is clearer"')
@on_services(user=User)
def reject(
    services: Services,
    settings: Settings,
    ids: TaskIds,
    remark: Annotated[str | None, typer.Option(metavar="TEXT", help="Why, kept in the task")] = None,
    as_json: AsJson = False,
) -> None:
    """Reject proposals, or refuse to answer questions, whose workflows then get an error."""
    _print_closed(services.inbox.reject_many(ids, by=settings.user, remark=remark), as_json)


@app.command(
    example="jobtable inbox answer 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 yes\n"
    "jobtable inbox answer 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --file address.json"
)
@on_services(user=User)
def answer(
    services: Services,
    settings: Settings,
    task_id: TaskId,
    text: Annotated[
        str | None, typer.Argument(metavar="[ANSWER]", help="The answer: a text, or JSON if the question asks for it")
    ] = None,
    file: Annotated[Path | None, typer.Option(metavar="FILE", help="The answer as JSON; - reads it from stdin")] = None,
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", envvar="JOBTABLE_TASK_TOKEN", help="Token of the question")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question; the workflow that waits for it goes on."""
    if (text is None) == (file is None):
        raise typer.BadParameter("give either ANSWER or --file FILE")
    task = services.inbox.get(task_id)
    given = _read(file) if file is not None else _as_asked(str(text), task)
    answered = services.inbox.answer(task_id, given, by=settings.user, token=token)
    print_either(_shown(answered), lambda: print_text(f"{task_id} answered"), as_json=as_json)


def _as_asked(text: str, task: InboxTask) -> Json:
    """Return an answer as it was typed if the question takes a text, otherwise as JSON."""
    try:
        check_answer(text, task.answer_schema, task.task_id)
    except ValueRefusedError:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text  # the refusal says what is asked
    return text


def _read(file: Path) -> Json:
    try:
        return json.loads(sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{file} is not JSON: {error}") from error


@app.command(example="jobtable inbox withdraw 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --yes")
@on_services(user=User)
def withdraw(
    services: Services, settings: Settings, task_id: TaskId, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Withdraw a task that nobody needs any more; exit with 4 if a workflow waits for it."""
    confirm(f"Withdraw task {task_id}?", yes=yes)
    task = services.inbox.withdraw(task_id, by=settings.user)
    print_either(_shown(task), lambda: print_text(f"{task_id} withdrawn"), as_json=as_json)


@app.command("token", example="jobtable inbox token 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def renew_token(services: Services, task_id: TaskId, as_json: AsJson = False) -> None:
    """Create a new token for a question and print it, this once; the previous one becomes invalid."""
    made = services.inbox.renew_token(task_id)
    print_either({"task_id": task_id, "token": made}, lambda: typer.echo(made), as_json=as_json)


# --- rules ------------------------------------------------------------------------------------------------------------


def _dollar_amount(text: str | Decimal) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation as error:
        raise typer.BadParameter(f"{text!r} is not an amount in dollars, as in 0.01") from error
    if not amount.is_finite() or amount < 0:
        raise typer.BadParameter(f"{text!r} is not an amount in dollars, as in 0.01")
    return amount


@app.command("rules", example="jobtable inbox rules")
@on_services
def list_rules(services: Services, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List the rules that accept proposals."""
    empty = "There are no rules: every proposal waits for a person."
    print_list(services.inbox.list_rules(), _rule_row, as_json=as_json, empty=empty, limit=limit)


@app.command("add-rule", example="jobtable inbox add-rule --subject 'topic name' --confidence 0.9 --cost 0.01")
@on_services(user=User)
def add_rule(
    services: Services,
    settings: Settings,
    system: System = None,
    subject: Annotated[str | None, typer.Option(metavar="TEXT", help="Only proposals about this, as in: label")] = None,
    field: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="The only field that may change; repeat it for several")
    ] = None,
    cost: Annotated[
        Decimal | None,
        typer.Option(parser=_dollar_amount, metavar="DOLLARS", help="Only proposals that cost at most this"),
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="Only proposals with at least this confidence, from 0 to 1")
    ] = None,
    predicate: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Only proposals for which this @accepts function is true"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add a rule: what is proposed from now on and meets all its conditions is accepted without a person."""
    rule = services.inbox.add_rule(
        by=settings.user,
        system=system,
        subject=subject,
        fields=field or [],
        most_cost_nanodollars=None if cost is None else int(cost * _NANODOLLARS),
        least_confidence=confidence,
        predicate=predicate,
    )
    print_either(rule, lambda: print_table([_rule_row(rule)]), as_json=as_json)


@app.command("remove-rule", example="jobtable inbox remove-rule 3f6c1a2b4d5e --yes")
@on_services
def remove_rule(
    services: Services,
    rule_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the rule, as `inbox rules` shows it")],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove a rule; what it has accepted stays accepted."""
    confirm(f"Remove rule {rule_id}?", yes=yes)
    services.inbox.remove_rule(rule_id)
    print_either({"rule_id": rule_id}, lambda: print_text(f"{rule_id} removed"), as_json=as_json)


def _rule_row(rule: InboxRule) -> dict[str, Any]:
    return {
        "rule": rule.rule_id,
        "accepts": conditions_of(rule),
        "added": rule.created_at,
        "by": rule.created_by,
    }


# --- output -----------------------------------------------------------------------------------------------------------


def _print_closed(closed: Iterable[Closed], as_json: bool) -> None:
    """Print what became of each task, say why one was refused, and exit with the code of the first refusal."""
    done, code = [], ExitCode.OK
    for each in closed:
        if each.error is None and each.task is not None:
            done.append(each.task)
        elif each.error is not None:
            say(line_of(each.error))
            code = code or exit_code_of(each.error)
    if as_json:
        print_json([_shown(task) for task in done])
    elif done:
        print_table([_row(task) for task in done])
    if code:
        raise typer.Exit(code)


def _row(task: InboxTask) -> dict[str, Any]:
    return {
        "task": task.task_id,
        "status": task.status,
        "kind": task.kind,
        "title": first_line(task.title),
        "system": task.system,
        "due": task.expires_at if task.status is TaskStatus.PENDING else None,
        "by": task.closed_by,
    }


def _shown(task: InboxTask) -> dict[str, Any]:
    """Return a task without the digest of its token."""
    values: dict[str, Any] = to_json(task)
    return {name: value for name, value in values.items() if name not in ("token_sha256", "workflow", "due_at")}


def _dollars(nanodollars: int) -> str | None:
    return f"${Decimal(nanodollars) / _NANODOLLARS:f}" if nanodollars else None


def _compact(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
