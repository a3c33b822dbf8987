"""DescribeMapRun, ListMapRuns, UpdateMapRun."""

from __future__ import annotations

from jobtable.errors import ConflictError, NotFoundError
from jobtable.workflows.asl.aws_api.aws_calls import Call, Response, seconds, without_none
from jobtable.workflows.asl.aws_api.executions_found import find_execution, record_arns
from jobtable.workflows.asl.aws_api.named_resources import read_map_run_arn
from jobtable.workflows.asl.aws_api.page_tokens import page_of
from jobtable.workflows.asl.aws_api.refusals import invalid, resource_missing
from jobtable.workflows.asl.entities import Execution, MapRun


def describe(call: Call) -> Response:
    """DescribeMapRun."""
    run = _find(call)
    execution = call.executions.get(run.machine, run.name)
    return without_none(
        mapRunArn=_arn_of(execution, run),
        executionArn=record_arns(execution).execution(run.machine, run.name),
        status=run.status.value,
        startDate=seconds(run.started_at),
        stopDate=None if run.stopped_at is None else seconds(run.stopped_at),
        maxConcurrency=run.max_concurrency,
        toleratedFailurePercentage=run.tolerated_failure_percentage,
        toleratedFailureCount=run.tolerated_failure_count,
        itemCounts=_item_counts(run),
        executionCounts=_execution_counts(run),
        redriveCount=run.redrive_count,
        redriveDate=None if run.redriven_at is None else seconds(run.redriven_at),
    )


def list_all(call: Call) -> Response:
    """ListMapRuns of an execution."""
    execution = find_execution(call, call.request["executionArn"])
    query = call.executions.list_map_runs(execution.machine, execution.name)
    found, token = page_of(query, call.request, call.now)
    arns = record_arns(execution)
    runs = [
        without_none(
            executionArn=arns.execution(execution.machine, execution.name),
            mapRunArn=_arn_of(execution, run),
            stateMachineArn=arns.machine(f"{run.machine}/{run.label}"),
            startDate=seconds(run.started_at),
            stopDate=None if run.stopped_at is None else seconds(run.stopped_at),
        )
        for run in found
    ]
    return without_none(mapRuns=runs, nextToken=token)


def update(call: Call) -> Response:
    """UpdateMapRun: change the limits of a running one."""
    run = _find(call)
    try:
        call.executions.change_map_run(
            run.map_run_id,
            max_concurrency=call.request.get("maxConcurrency"),
            tolerated_failure_count=call.request.get("toleratedFailureCount"),
            tolerated_failure_percentage=call.request.get("toleratedFailurePercentage"),
        )
    except ConflictError as error:
        raise invalid("The map run has completed and cannot be updated", "CANNOT_UPDATE_COMPLETED_MAP_RUN") from error
    return {}


def _find(call: Call) -> MapRun:
    arn = read_map_run_arn(call.request["mapRunArn"])
    try:
        found = call.executions.get_map_run(arn.run_id)
    except NotFoundError as error:
        raise resource_missing(arn.text) from error
    if f"{found.machine}/{found.label}" != arn.machine:
        raise resource_missing(arn.text)
    return found


def _arn_of(execution: Execution, run: MapRun) -> str:
    return record_arns(execution).map_run(run.machine, run.label, run.map_run_id)


def _execution_counts(run: MapRun) -> Response:
    ended = run.succeeded_count + run.failed_count + run.timed_out_count + run.aborted_count
    return {
        "pending": max(run.execution_count - run.running_count - ended, 0),
        "running": run.running_count,
        "succeeded": run.succeeded_count,
        "failed": run.failed_count,
        "timedOut": run.timed_out_count,
        "aborted": run.aborted_count,
        "total": run.execution_count,
        "resultsWritten": run.results_written_count,
        "failuresNotRedrivable": 0,
        "pendingRedrive": 0,
    }


def _item_counts(run: MapRun) -> Response:
    """Return the counts of items: each child has as many as the others, the last one what is left."""
    batch = -(-run.item_count // run.execution_count) if run.execution_count else 0
    counts = _execution_counts(run)
    left = run.item_count
    for name in ("succeeded", "failed", "timedOut", "aborted", "running", "pending"):
        counts[name] = min(counts[name] * batch, left)
        left -= counts[name]
    return {**counts, "total": run.item_count, "resultsWritten": min(counts["resultsWritten"] * batch, run.item_count)}
