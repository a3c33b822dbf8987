"""The run of a distributed Map: where its items come from, how they are batched, and where the results go."""

from __future__ import annotations

from uuid import UUID

from jobtable.workflows.asl.arns import Arns, find_states_arn
from jobtable.workflows.asl.interpreter.dataflow import evaluate, is_jsonata, read_member
from jobtable.workflows.asl.interpreter.fanout import add_child
from jobtable.workflows.asl.interpreter.strand import Phase, Strand, dump
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.run import Json, MapRun, StartExecution

STATE_DATA = "STATE_DATA"
"""Where items come from that no ItemReader reads."""
ITEM_READER_FAILED = "States.ItemReaderFailed"
RESULT_WRITER_FAILED = "States.ResultWriterFailed"


def is_distributed(strand: Strand) -> bool:
    """Return whether the items of a Map state are processed in executions of their own."""
    return strand.state.branches[0].processor_config.get("Mode") == "DISTRIBUTED"


def label_of(strand: Strand) -> str:
    """Return the name of a Map state in the ARNs of its runs."""
    label: str = strand.fields.get("Label", strand.memory["state"])
    return label


def new_map_run(strand: Strand) -> str:
    """Return the ARN of a new run of a Map state."""
    machine = strand.run.context.get("StateMachine", {})
    arn = find_states_arn(machine.get("Id", ""))
    name = machine.get("Name", "machine") if arn is None else arn.name
    run_id = UUID(int=strand.run.random.getrandbits(128), version=4)
    return (Arns() if arn is None else arn.arns).map_run(name, label_of(strand), str(run_id))


def read_source(strand: Strand, value: Json) -> tuple[Json, str]:
    """Return the items that an ItemReader reads, and where they come from."""
    reader = strand.fields["ItemReader"]
    wanted = _request(strand, "ItemReader", value)
    config = dict(reader.get("ReaderConfig", {}))
    most = read_member(strand, "ItemReader/ReaderConfig", config, "MaxItems", value)
    config.pop("MaxItemsPath", None)
    if most is not None:
        config["MaxItems"] = most
    if strand.run.read_items is None:
        raise StateFault(ITEM_READER_FAILED, f"Nothing reads items from '{reader['Resource']}' here")
    items: Json = strand.run.read_items({**wanted, "ReaderConfig": config})
    if not isinstance(items, list | dict):
        raise StateFault(ITEM_READER_FAILED, "Attempting to map over non-iterable node.")
    where = wanted["Parameters"]
    parts = [where.get("Bucket", ""), *([where["Key"]] if "Key" in where else [])]
    kept = items if most is None or isinstance(items, dict) else items[: int(most)]
    return kept, "S3://" + "/".join(map(str, parts))


def batch_items(strand: Strand, items: list[Json], value: Json) -> list[tuple[Json, int]]:
    """Return the inputs of the child executions, each with the number of its items."""
    batcher = strand.fields.get("ItemBatcher")
    if batcher is None:
        return [(item, 1) for item in items]
    most = read_member(strand, "ItemBatcher", batcher, "MaxItemsPerBatch", value)
    most_bytes = read_member(strand, "ItemBatcher", batcher, "MaxInputBytesPerBatch", value)
    frame: dict[str, Json] = {}
    if "BatchInput" in batcher:
        frame["BatchInput"] = evaluate(strand, "ItemBatcher/BatchInput", batcher["BatchInput"], value)
    # One less than it is: each item brings a comma, and the last one has none.
    empty = len(dump({**frame, "Items": []}).encode(errors="surrogatepass")) - 1
    batches: list[list[Json]] = []
    size = 0
    for item in items:
        added = len(dump(item).encode(errors="surrogatepass")) + 1
        is_full = not batches or (most and len(batches[-1]) >= most) or (most_bytes and size + added > most_bytes)
        if is_full:
            batches.append([])
            size = empty
        batches[-1].append(item)
        size += added
    return [({**frame, "Items": batch}, len(batch)) for batch in batches]


def start_batch(strand: Strand, index: int, map_run: str) -> None:
    """Start the execution of the batch with an index."""
    kept = strand.items[index]
    child = add_child(strand, index, 0, kept["Value"], strand.memory["last"])
    child.memory["weight"] = kept["Weight"]
    submit_batch(strand, child, map_run)


def submit_batch(strand: Strand, child: Strand, map_run: str) -> None:
    """Have a batch's execution started, for the first time or again."""
    child.frame.visit += 1
    child.suspend(Phase.CHILD)
    config = strand.state.branches[0].processor_config
    strand.run.commands.append(
        StartExecution(
            child.frame.frame_id,
            child.frame.visit,
            None,
            child.memory["input"],
            "end",
            map_run=MapRun(
                arn=map_run,
                path=strand.state.path,
                label=label_of(strand),
                express=config.get("ExecutionType") == "EXPRESS",
                items=child.memory.get("weight", 1),
            ),
        )
    )


def write_results(strand: Strand, outputs: list[Json]) -> Json:
    """Return the result of a distributed Map: the outputs, or where its ResultWriter put them."""
    if "ResultWriter" not in strand.fields:
        return outputs
    writer = strand.fields["ResultWriter"]
    map_run = strand.fan.get("map_run", "")
    if strand.run.write_results is None:
        raise StateFault(RESULT_WRITER_FAILED, f"Nothing writes results to '{writer.get('Resource')}' here")
    wanted = {
        **_request(strand, "ResultWriter", strand.memory["input"]),
        "WriterConfig": writer.get("WriterConfig", {}),
        "MapRunArn": map_run,
    }
    written = strand.run.write_results(wanted, outputs)
    if "Resource" not in writer:
        return written
    return {"MapRunArn": map_run, "ResultWriterDetails": written}


def _request(strand: Strand, name: str, value: Json) -> dict[str, Json]:
    definition = strand.fields[name]
    member = "Arguments" if is_jsonata(strand) else "Parameters"
    request: dict[str, Json] = {"Resource": definition.get("Resource")}
    request["Parameters"] = (
        evaluate(strand, f"{name}/{member}", definition[member], value) if member in definition else {}
    )
    return request
