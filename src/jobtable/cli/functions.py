"""`jobtable functions`: functions, and executions of those that are durable."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.cli.completion import completed
from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.job_waiting import Timeout
from jobtable.cli.json_options import json_text
from jobtable.cli.options import AsJson, Limit, User, on_services, resolved
from jobtable.cli.output import (
    first_of,
    print_either,
    print_fields,
    print_json,
    print_json_line,
    print_lines,
    print_list,
    print_part,
    print_table,
    print_text,
    say,
)
from jobtable.cli.user_modules import import_module_of_user
from jobtable.cli.workflow_waiting import exit_unless, wait_for_end
from jobtable.errors import ValueRefusedError
from jobtable.workflows.durable.entities import DurableExecution, DurableOperation, DurableStatus
from jobtable.workflows.durable.verbs import Called
from jobtable.workflows.function_records import FunctionRecord
from jobtable.workflows.table_and_queues import FUNCTIONS_QUEUE

app = new_group()

Name = Annotated[
    str,
    typer.Argument(
        metavar="FUNCTION",
        help="Name of the function",
        autocompletion=completed(lambda services: (each.name for each in services.functions.query())),
    ),
]
ExecutionId = Annotated[str, typer.Argument(metavar="EXECUTION", help="Durable execution, as FUNCTION/NAME")]
Payload = Annotated[str, typer.Option("--payload", metavar="JSON", help="Payload: JSON, or @FILE with JSON")]


@app.command("list", example="jobtable functions list")
@on_services
def list_functions(services: Services, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List published functions by name."""
    empty = "There are no functions yet; publish those of a module with `jobtable functions publish MODULE`."
    print_list(services.functions.query(), _function_row, as_json=as_json, empty=empty, limit=limit)


@app.command(example="jobtable functions publish shop.payments")
@on_services(creates=True)
def publish(
    services: Services,
    modules: Annotated[list[str], typer.Argument(metavar="MODULE", help="Modules with functions marked @function")],
    as_json: AsJson = False,
) -> None:
    """Import modules and record their functions, so that workers, the server and state machines find them."""
    for module in modules:
        import_module_of_user(module)
    names = {each.name for each in services.functions.publish()}
    published = [record for record in services.functions.query() if record.name in names]
    print_list(published, _function_row, as_json=as_json, empty="These modules have no functions; mark them @function.")


@app.command(example="jobtable functions invoke charge --payload '{\"order\": 7}'")
@on_services
def invoke(
    services: Services,
    function: Name,
    payload: Payload = "null",
    name: Annotated[str | None, typer.Option(help="Name of the execution, if the function is durable")] = None,
    timeout: Timeout = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Call a function, durable or not, and print its answer; exit with 5 if it fails or takes too long.

    Workers of the queue `functions` run it.
    """
    called = services.durable.call(
        function, json_text(payload, "--payload"), name=name, user=resolved(user=user).settings.user
    )
    answer = wait_for_end(
        services,
        FUNCTIONS_QUEUE,
        lambda: services.durable.find_answer(function, called.job_id),
        lambda found: found is not None,
        timeout,
    )
    if as_json:
        print_json(answer if answer is not None else called)
    elif answer is None:
        say(f"The call continues as {_what(function, called)}")
    elif answer.is_error:
        say(f"{function} failed: {answer.payload}")
    else:
        typer.echo(answer.payload)
    exit_unless(answer is not None and not answer.is_error)


@app.command(example='jobtable functions start settle --payload \'{"month": "2025-11"}\' --name november')
@on_services
def start(
    services: Services,
    function: Name,
    payload: Payload = "null",
    name: Annotated[
        str | None, typer.Option(help="Name of the execution, unique in the function (default: a new id)")
    ] = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Start an execution of a durable function and print its id.

    Starting one again with the same name and payload starts nothing; exit with 4 if the name is taken.
    """
    by = resolved(user=user).settings.user
    started = services.durable.start(function, json.loads(json_text(payload, "--payload")), name=name, user=by)
    print_either(started, lambda: print_text(_id_of(started)), as_json=as_json)


@app.command(example="jobtable functions executions settle --status running")
@on_services
def executions(
    services: Services,
    function: Name,
    status: Annotated[
        DurableStatus | None, typer.Option(case_sensitive=False, help="Only executions with this status")
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the executions of a durable function, newest first."""
    found = services.durable.list(function, status=status)
    print_list(found, _execution_row, as_json=as_json, empty="No executions match.", limit=limit)


@app.command(example="jobtable functions show settle/november")
@on_services
def show(services: Services, execution: ExecutionId, limit: Limit = 100, as_json: AsJson = False) -> None:
    """Show a durable execution with its input, output and operations, and the ids of callbacks that wait."""
    found = services.durable.get(*_parts_of(execution))
    data = {"input": services.durable.input_of(found), "output": services.durable.output_of(found)}
    with first_of(services.durable.operations(found.function, found.name), limit) as operations:
        if as_json:
            print_json({"execution": found, **data, "operations": operations})
            return
        error = found.error if isinstance(found.error, Mapping) else {}
        print_fields({**_execution_row(found), "error": ": ".join(map(str, error.values())), **data})
        depths = _depths_of(operations)
        print_part("Operations", [_operation_row(services, each, depths) for each in operations])


@app.command(example="jobtable functions wait settle/november --timeout 600")
@on_services
def wait(services: Services, execution: ExecutionId, timeout: Timeout = None, as_json: AsJson = False) -> None:
    """Wait until a durable execution ends and print its output; exit with 5 unless it SUCCEEDED."""
    function, name = _parts_of(execution)
    seen = wait_for_end(services, FUNCTIONS_QUEUE, lambda: services.durable.get(function, name), _is_over, timeout)
    output = services.durable.output_of(seen)
    if as_json:
        print_json({"execution": seen, "output": output})
    elif seen.status is DurableStatus.SUCCEEDED:
        typer.echo(output)
    elif _is_over(seen):
        say(f"{execution} is {seen.status}: {json.dumps(seen.error)}")
    exit_unless(seen.status is DurableStatus.SUCCEEDED)


@app.command(example="jobtable functions history settle/november")
@on_services
def history(services: Services, execution: ExecutionId, as_json: AsJson = False) -> None:
    """Print the events of a durable execution, oldest first. With --json, each event is one JSON object."""
    for event in services.durable.history(*_parts_of(execution)):
        if as_json:
            print_json_line(event)
        else:
            kind = str(event["EventType"])
            at = event["EventTimestamp"].strftime("%H:%M:%S.%f")[:-3]
            line = f"{event['EventId']:>5}  {at}  {kind:<24} {event.get('Name') or ''}"
            print_lines([(line.rstrip(), "red" if kind.endswith(("Failed", "TimedOut", "Stopped")) else None)])


@app.command(example="jobtable functions stop settle/november")
@on_services
def stop(
    services: Services,
    execution: ExecutionId,
    message: Annotated[str | None, typer.Option(metavar="TEXT", help="Reason, kept as its error")] = None,
    as_json: AsJson = False,
) -> None:
    """End a durable execution as STOPPED."""
    error = None if message is None else {"ErrorMessage": message}
    stopped = services.durable.stop(*_parts_of(execution), error=error)
    print_either(stopped, lambda: print_table([_execution_row(stopped)]), as_json=as_json)


@app.command(example="jobtable functions delete settle/november --yes")
@on_services
def delete(services: Services, execution: ExecutionId, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a durable execution that has ended, with its history and data."""
    function, name = _parts_of(execution)
    services.durable.get(function, name)
    confirm(f"Delete the execution {execution} with its history and data?", yes=yes)
    count = services.durable.delete(function, name)
    values = {"execution": execution, "items": count}
    print_either(values, lambda: print_text(f"{execution} deleted ({count} items)"), as_json=as_json)


@app.command(
    example=(
        "jobtable functions answer Q2FsbGJhY2s= --result '{\"paid\": true}'\n"
        'jobtable functions answer Q2FsbGJhY2s= --error "the card was declined"'
    )
)
@on_services
def answer(
    services: Services,
    callback_id: Annotated[str, typer.Argument(metavar="CALLBACK", help="Id of the callback, as `show` prints it")],
    result: Annotated[str | None, typer.Option(metavar="TEXT", help="It succeeded: its result, as a rule JSON")] = None,
    error: Annotated[str | None, typer.Option(metavar="TEXT", help="It failed: the message of its error")] = None,
    beat: Annotated[bool, typer.Option("--beat", help="It is still worked on: renew its heartbeat")] = False,
) -> None:
    """Answer a callback that a durable execution waits for. It is answered once; exit with 4 if it was."""
    if [result is not None, error is not None, beat].count(True) != 1:
        raise typer.BadParameter("use one of --result, --error and --beat")
    if result is not None:
        services.durable.succeed_callback(callback_id, result)
    elif error is not None:
        services.durable.fail_callback(callback_id, {"ErrorMessage": error})
    else:
        services.durable.beat_callback(callback_id)


def _parts_of(execution: str) -> tuple[str, str]:
    function, slash, name = execution.partition("/")
    if not slash or not function or not name:
        raise ValueRefusedError(f"invalid execution {execution!r}; write FUNCTION/NAME")
    return function, name


def _id_of(execution: DurableExecution) -> str:
    return f"{execution.function}/{execution.name}"


def _is_over(execution: DurableExecution) -> bool:
    return execution.status is not DurableStatus.RUNNING


def _what(function: str, called: Called) -> str:
    return f"job {called.job_id}" if called.execution is None else f"execution {_id_of(called.execution)}"


def _function_row(record: FunctionRecord) -> dict[str, Any]:
    return {
        "function": record.name,
        "durable": record.durable is not None,
        "timeout": record.timeout_seconds,
        "memory": record.memory_mb,
        "code": record.path,
    }


def _execution_row(execution: DurableExecution) -> dict[str, Any]:
    ended = execution.ended_at
    return {
        "execution": _id_of(execution),
        "status": execution.status,
        "started": execution.started_at,
        "seconds": None if ended is None else round((ended - execution.started_at).total_seconds(), 2),
    }


def _depths_of(operations: Iterable[DurableOperation]) -> dict[str, int]:
    """Return how deep each operation lies in the tree of its contexts."""
    depths: dict[str, int] = {}
    for each in operations:
        depths[each.operation_id] = depths.get(each.parent_id or "", -1) + 1
    return depths


def _operation_row(services: Services, operation: DurableOperation, depths: Mapping[str, int]) -> dict[str, Any]:
    waits = operation.type == "CALLBACK" and operation.status == "STARTED"
    return {
        "operation": "  " * depths[operation.operation_id] + (operation.name or operation.sub_type or operation.type),
        "type": operation.type,
        "status": operation.status,
        "attempts": operation.attempt or None,
        "callback": services.durable.callback_id(operation) if waits else None,
    }
