"""What commands print of executions of state machines."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import typer

from jobtable.app import Services
from jobtable.cli.output import first_line, print_json, print_json_line, print_lines, say
from jobtable.cli.workflow_waiting import exit_unless
from jobtable.workflows.asl.entities import Execution, ExecutionEvent, ExecutionStatus, MapRun
from jobtable.workflows.asl.execution.execution_reads import read_output

_ENDED = frozenset(ExecutionStatus) - {ExecutionStatus.RUNNING, ExecutionStatus.PENDING_REDRIVE}


def id_of(execution: Execution) -> str:
    """Return the id of an execution, as commands take it."""
    return f"{execution.machine}/{execution.name}"


def is_over(execution: Execution) -> bool:
    """Return whether an execution has ended."""
    return execution.status in _ENDED


def execution_row(execution: Execution) -> dict[str, Any]:
    """Return what lists show of an execution."""
    seconds = None if execution.stopped_at is None else (execution.stopped_at - execution.started_at).total_seconds()
    return {
        "execution": id_of(execution),
        "status": execution.status,
        "started": execution.started_at,
        "seconds": None if seconds is None else round(seconds, 2),
        "events": execution.last_event_id,
        "error": first_line(execution.error),
    }


def map_run_row(run: MapRun) -> dict[str, Any]:
    """Return what lists show of a run of a distributed Map."""
    return {
        "map run": run.map_run_id,
        "state": run.label,
        "status": run.status,
        "items": run.item_count,
        "executions": run.execution_count,
        "running": run.running_count,
        "succeeded": run.succeeded_count,
        "failed": run.failed_count + run.timed_out_count + run.aborted_count,
    }


def print_end(services: Services, execution: Execution, *, as_json: bool) -> None:
    """Print the output of an execution, or what went wrong; exit with 5 unless it SUCCEEDED."""
    output = read_output(execution, services.objects)
    if as_json:
        print_json({"execution": execution, "output": output})
    elif output is not None:
        typer.echo(output)
    elif is_over(execution):
        why = ": ".join(filter(None, (execution.error, execution.cause)))
        say(f"{id_of(execution)} is {execution.status}" + (f": {why}" if why else ""))
    exit_unless(execution.status is ExecutionStatus.SUCCEEDED)


def print_event(event: ExecutionEvent, as_json: bool) -> None:
    """Print an event on one line, or as one JSON object."""
    if as_json:
        print_json_line(event)
        return
    details: Any = next(iter((event.details or {}).values()), {})
    shown = {member: value for member, value in details.items() if value is not None}
    text = json.dumps(shown, ensure_ascii=False) if shown else ""
    line = f"{event.event_id:>5}  {_time(event.at)}  {event.type:<28} {text}"
    print_lines([(line.rstrip(), _colour_of(event.type))])


def _time(at: datetime) -> str:
    return at.strftime("%H:%M:%S.%f")[:-3]


def _colour_of(event_type: str) -> str | None:
    if event_type.endswith(("Failed", "TimedOut", "Aborted")):
        return "red"
    return "green" if event_type == "ExecutionSucceeded" else None
