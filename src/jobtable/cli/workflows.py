"""`jobtable workflows`: executions of state machines."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Annotated

import typer

from jobtable.app import Services
from jobtable.cli import workflow_deployment
from jobtable.cli.completion import completed
from jobtable.cli.execution_output import (
    execution_row,
    id_of,
    is_over,
    map_run_row,
    print_end,
    print_event,
)
from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.job_waiting import Timeout
from jobtable.cli.json_options import json_text
from jobtable.cli.machines import complete_machine
from jobtable.cli.options import AsJson, Limit, User, on_services, resolved
from jobtable.cli.output import (
    print_either,
    print_fields,
    print_json,
    print_list,
    print_table,
    print_text,
    say,
)
from jobtable.cli.workflow_waiting import wait_for_end
from jobtable.errors import ValueRefusedError
from jobtable.workflows.asl.arns import Arns, check_states_name
from jobtable.workflows.asl.entities import Execution, ExecutionStatus
from jobtable.workflows.asl.execution.execution_reads import read_input, read_output
from jobtable.workflows.asl.verbs import refuse_standard
from jobtable.workflows.table_and_queues import EXECUTIONS_QUEUE

app = new_group()
app.take_over(workflow_deployment.app)


def _newest(services: Services, machine: str | None, status: ExecutionStatus | None = None) -> Iterator[Execution]:
    """Yield executions of a machine or of all, newest first."""
    names = [each.name for each in services.machines.list()] if machine is None else [machine]
    lists: list[Iterable[Execution]] = [services.executions.list(name, status=status) for name in names]
    return heapq.merge(*lists, key=attrgetter("started_at"), reverse=True)


Machine = Annotated[
    str,
    typer.Argument(
        metavar="MACHINE",
        help="Name of the state machine, or NAME:VERSION or NAME:ALIAS",
        autocompletion=complete_machine,
    ),
]
ExecutionId = Annotated[
    str,
    typer.Argument(
        metavar="EXECUTION",
        help="Execution, as MACHINE/NAME",
        autocompletion=completed(lambda services: map(id_of, _newest(services, None))),
    ),
]
Input = Annotated[str, typer.Option("--input", metavar="JSON", help="Input: JSON, or @FILE with JSON")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it ends; exit with 5 unless it SUCCEEDED")]
ErrorName = Annotated[str | None, typer.Option("--error", metavar="NAME", help="Name of the error")]
Cause = Annotated[str | None, typer.Option("--cause", metavar="TEXT", help="Cause of the error, for people")]


@app.command(
    example=(
        "jobtable workflows start orders --input '{\"order\": 7}' --name order-7\n"
        "jobtable workflows start orders:live --input @order.json --wait"
    )
)
@on_services
def start(
    services: Services,
    machine: Machine,
    payload: Input = "{}",
    name: Annotated[
        str | None, typer.Option(help="Name of the execution, unique in the machine (default: a new id)")
    ] = None,
    wait: Wait = False,
    timeout: Timeout = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Start an execution and print its id.

    Starting a running one again with the same name and input starts nothing; exit with 4 if the name is taken.
    """
    machine_name, _, qualifier = machine.partition(":")
    runnable = services.machines.runnable(machine_name, qualifier or None)
    if name is not None:
        check_states_name("execution", name)
    by = resolved(user=user).settings.user
    started = services.executions.start(runnable, json_text(payload, "--input"), name, arns=Arns(), user=by)
    if wait:
        _wait(services, started, timeout, as_json=as_json)
    else:
        print_either(started, lambda: print_text(id_of(started)), as_json=as_json)


@app.command(example="jobtable workflows run prices --input @item.json")
@on_services
def run(services: Services, machine: Machine, payload: Input = "{}", as_json: AsJson = False) -> None:
    """Run an express machine here and print its output; exit with 5 unless it SUCCEEDED.

    Through a server, it runs there.
    """
    machine_name, _, qualifier = machine.partition(":")
    runnable = services.machines.runnable(machine_name, qualifier or None)
    refuse_standard(runnable)
    result = services.executions.run_express(runnable, json_text(payload, "--input"), arns=Arns())
    print_end(services, result.execution, as_json=as_json)


@app.command("list", example="jobtable workflows list orders --status failed")
@on_services
def list_executions(
    services: Services,
    machine: Annotated[
        str | None,
        typer.Argument(metavar="MACHINE", help="Only of this state machine", autocompletion=complete_machine),
    ] = None,
    status: Annotated[
        ExecutionStatus | None, typer.Option(case_sensitive=False, help="Only executions with this status")
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List executions, newest first."""
    if machine is not None:
        services.machines.get(machine.partition("/")[0])
    empty = "No executions match." if machine or status else "There are no executions yet."
    print_list(_newest(services, machine, status), execution_row, as_json=as_json, empty=empty, limit=limit)


@app.command(example="jobtable workflows show orders/order-7")
@on_services
def show(services: Services, execution: ExecutionId, as_json: AsJson = False) -> None:
    """Show an execution with its input and output."""
    found = services.executions.get(*_parts_of(execution))
    data = {"input": read_input(found, services.objects), "output": read_output(found, services.objects)}
    if as_json:
        print_json({"execution": found, **data})
        return
    print_fields(
        {
            **execution_row(found),
            "version": found.version,
            "error": found.error,
            "cause": found.cause,
            "redrives": found.redrive_count or None,
            "job": found.job_id,
            "user": found.created_by,
            **data,
        }
    )


@app.command(example="jobtable workflows wait orders/order-7 --timeout 600")
@on_services
def wait(services: Services, execution: ExecutionId, timeout: Timeout = None, as_json: AsJson = False) -> None:
    """Wait until an execution ends and print its output; exit with 5 unless it SUCCEEDED."""
    _wait(services, services.executions.get(*_parts_of(execution)), timeout, as_json=as_json)


@app.command(example="jobtable workflows history orders/order-7 --follow")
@on_services
def history(
    services: Services,
    execution: ExecutionId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new events until it ends")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the events of an execution, oldest first. With --json, each event is one JSON object."""
    machine, name = _parts_of(execution)
    shown = 0

    def print_new() -> Execution:
        nonlocal shown
        found = services.executions.get(machine, name)
        for event in services.executions.history(machine, name):
            if event.event_id > shown:
                shown = event.event_id
                print_event(event, as_json)
        return found

    if follow:
        wait_for_end(services, EXECUTIONS_QUEUE, print_new, is_over, None)
    else:
        print_new()


@app.command(example='jobtable workflows stop orders/order-7 --cause "the customer cancelled"')
@on_services
def stop(
    services: Services,
    execution: ExecutionId,
    error: ErrorName = None,
    cause: Cause = None,
    as_json: AsJson = False,
) -> None:
    """Abort an execution; its tasks are cancelled."""
    _print_changed(services.executions.stop(*_parts_of(execution), error=error, cause=cause), as_json)


@app.command(example="jobtable workflows redrive orders/order-7 --wait")
@on_services
def redrive(
    services: Services, execution: ExecutionId, wait: Wait = False, timeout: Timeout = None, as_json: AsJson = False
) -> None:
    """Continue an execution that failed, timed out or was aborted, from the states that failed."""
    redriven = services.executions.redrive(*_parts_of(execution))
    if wait:
        _wait(services, redriven, timeout, as_json=as_json)
    else:
        _print_changed(redriven, as_json)


@app.command(example="jobtable workflows delete orders/order-7 --yes")
@on_services
def delete(services: Services, execution: ExecutionId, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete an execution that has ended, with its history, data and jobs."""
    machine, name = _parts_of(execution)
    services.executions.get(machine, name)
    confirm(f"Delete the execution {execution} with its history and data?", yes=yes)
    count = services.executions.delete(machine, name)
    values = {"execution": execution, "items": count}
    print_either(values, lambda: print_text(f"{execution} deleted ({count} items)"), as_json=as_json)


@app.command(
    example=(
        "jobtable workflows answer AQCEAAAAKgAAAAMAAAAA --output '{\"approved\": true}'\n"
        'jobtable workflows answer AQCEAAAAKgAAAAMAAAAA --error Rejected --cause "too expensive"'
    )
)
@on_services
def answer(
    services: Services,
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="Task token, as the task received it")],
    output: Annotated[
        str | None, typer.Option(metavar="JSON", help="The task succeeded: its output, JSON or @FILE with JSON")
    ] = None,
    error: Annotated[str | None, typer.Option(metavar="NAME", help="The task failed: the name of its error")] = None,
    cause: Annotated[str | None, typer.Option(metavar="TEXT", help="With --error: the cause, for people")] = None,
    beat: Annotated[bool, typer.Option("--beat", help="The task still runs: renew its heartbeat")] = False,
) -> None:
    """Answer a task that waits for its token. A token is answered once; exit with 4 if it was."""
    if [output is not None, error is not None, beat].count(True) != 1:
        raise typer.BadParameter("use one of --output, --error and --beat")
    if output is not None:
        services.executions.succeed(token, json_text(output, "--output"))
    elif error is not None:
        services.executions.fail(token, error, cause)
    else:
        services.executions.beat(token)


@app.command("map-runs", example="jobtable workflows map-runs orders/order-7")
@on_services
def map_runs(services: Services, execution: ExecutionId, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List the runs of distributed Maps of an execution, with the counts of their items."""
    machine, name = _parts_of(execution)
    services.executions.get(machine, name)
    found = services.executions.list_map_runs(machine, name)
    print_list(found, map_run_row, as_json=as_json, empty="It has no distributed Maps.", limit=limit)


def _parts_of(execution: str) -> tuple[str, str]:
    """Return the machine and the name of an execution; the machine of a Map's child has a slash of its own."""
    machine, slash, name = execution.rpartition("/")
    if not slash or not machine or not name:
        raise ValueRefusedError(f"invalid execution {execution!r}; write MACHINE/NAME")
    return machine, name


def _wait(services: Services, execution: Execution, timeout: float | None, *, as_json: bool) -> None:
    def look() -> Execution:
        return services.executions.get(execution.machine, execution.name)

    try:
        seen = wait_for_end(services, EXECUTIONS_QUEUE, look, is_over, timeout)
    except KeyboardInterrupt:
        say(f"The execution continues; wait for it with `jobtable workflows wait {id_of(execution)}`")
        raise
    print_end(services, seen, as_json=as_json)


def _print_changed(execution: Execution, as_json: bool) -> None:
    print_either(execution, lambda: print_table([execution_row(execution)]), as_json=as_json)
