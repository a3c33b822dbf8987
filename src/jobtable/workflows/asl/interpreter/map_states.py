"""Map: one child for each item, in this execution or, if it is distributed, in executions of their own."""

from __future__ import annotations

from dataclasses import replace

from jobtable.workflows.asl.interpreter.dataflow import (
    QUERY_EVALUATION,
    RUNTIME,
    Leaving,
    effective_input,
    evaluate,
    is_jsonata,
    leave_with_result,
    read_number,
    wrong_type,
)
from jobtable.workflows.asl.interpreter.fanout import add_child, gather, open_fan, size_fan, tally_of
from jobtable.workflows.asl.interpreter.filling import fill
from jobtable.workflows.asl.interpreter.history import append, follow, record, record_aside
from jobtable.workflows.asl.interpreter.map_runs import (
    STATE_DATA,
    batch_items,
    is_distributed,
    new_map_run,
    read_source,
    start_batch,
    write_results,
)
from jobtable.workflows.asl.interpreter.strand import Phase, Strand, dump
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.query_languages import read_path
from jobtable.workflows.asl.run import Json

MOST_INLINE = 40
MOST_DISTRIBUTED = 10_000
STARTED_TOGETHER = 40
"""How many children one transition starts."""


def start_map(strand: Strand) -> None:
    """Start the first children of a Map state."""
    value = effective_input(strand)
    has_reader = "ItemReader" in strand.fields
    items: Json = [] if has_reader else _items(strand, value)
    concurrency = int(read_number(strand, "MaxConcurrency", value) or 0)
    count = read_number(strand, "ToleratedFailureCount", value) or 0
    percentage = read_number(strand, "ToleratedFailurePercentage", value, whole=False) or 0
    record(strand, "MapStateStarted", {"length": len(items)})
    if is_distributed(strand):
        fan = open_fan(strand, concurrency or MOST_DISTRIBUTED)
        fan["map_run"] = new_map_run(strand)
        record(strand, "MapRunStarted", {"mapRunArn": fan["map_run"]})
        read, origin = read_source(strand, value) if has_reader else (items, STATE_DATA)
        source = [{**each, "Source": origin} for each in keyed_items(read)]
        batches = batch_items(strand, [select_item(strand, item, value) for item in source], value)
        strand.memory["items"] = [{"Value": batch, "Weight": weight} for batch, weight in batches]
    else:
        fan = open_fan(strand, min(concurrency or MOST_INLINE, MOST_INLINE))
        source = keyed_items(items)
        strand.memory["items"] = source
    fan["tolerated_count"] = count
    fan["tolerated_percentage"] = percentage
    size_fan(strand, len(strand.items), len(source))
    top_up(strand, strand.memory["last"])


def top_up(strand: Strand, previous: int) -> None:
    """Start more children of a Parallel or Map state after an event, or let it be left if all have ended."""
    tally = tally_of(strand)
    fan = strand.fan
    if tally.is_settled(fan):
        strand.make_ready(Phase.ANSWERED)
        return
    for _ in range(STARTED_TOGETHER):
        if not tally.may_start(fan):
            return
        if "map_run" in fan:
            start_batch(strand, tally.started, fan["map_run"])
        else:
            _start_iteration(strand, tally.started, previous)
    if tally.may_start(fan):
        strand.make_ready(Phase.FORKED)


def leave_map(strand: Strand) -> Leaving:
    """Leave a Map state whose items have all been processed."""
    outputs: Json = gather(strand)
    if "map_run" in strand.fan:
        outputs = write_results(strand, outputs)
        record_aside(strand, "MapRunSucceeded")
    record_aside(strand, "MapStateSucceeded")
    return leave_with_result(strand, outputs)


def _start_iteration(strand: Strand, index: int, previous: int) -> None:
    item = strand.items[index]
    value = select_item(strand, item, effective_input(strand))
    details = {"name": strand.memory["state"], "index": index}
    started = append(strand.run, previous, "MapIterationStarted", details)
    add_child(strand, index, 0, value, started).memory["item"] = item


def _items(strand: Strand, value: Json) -> Json:
    fields = strand.fields
    if not is_jsonata(strand):
        path = fields.get("ItemsPath", "$")
        items = read_path(path, strand.scope(value), field="ItemsPath")
        fault = StateFault(RUNTIME, f'Reference path "{path}" must point to array.')
    elif "Items" in fields:
        items = evaluate(strand, "Items", fields["Items"], value)
        fault = wrong_type("Items", fields["Items"], "array", items)
    else:
        items = value
        fault = StateFault(QUERY_EVALUATION, f"Map state input must be an array but was: {dump(value)}")
    if isinstance(items, list) or (isinstance(items, dict) and is_distributed(strand)):
        return items
    if is_jsonata(strand):
        # Here Step Functions has EvaluationFailed follow what happened before the state was entered.
        follow(strand, strand.memory["arrived"])
    raise fault


def keyed_items(source: Json) -> list[dict[str, Json]]:
    """Return items with what `Map.Item` says about them."""
    if isinstance(source, dict):
        pairs = ({"Key": key, "Value": value} for key, value in source.items())
        return [{"Index": index, "Key": pair["Key"], "Value": pair} for index, pair in enumerate(pairs)]
    return [{"Index": index, "Value": value} for index, value in enumerate(source)]


def select_item(strand: Strand, item: dict[str, Json], value: Json) -> Json:
    fields = strand.fields
    name = "ItemSelector" if "ItemSelector" in fields else "Parameters"
    if name not in fields:
        return item["Value"]
    scope = strand.scope(value)
    scope = replace(scope, context={**scope.context, "Map": {"Item": item}})
    return fill(fields[name], scope, strand.state.language, name)
