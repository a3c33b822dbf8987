"""Map states: where their items come from, how they are processed, and where the results go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine import Language
from jobtable.workflows.asl.machine_definition.findings import Check, Place
from jobtable.workflows.asl.machine_definition.object_checks import Shape
from jobtable.workflows.asl.machine_definition.task_checks import require_members
from jobtable.workflows.asl.machine_definition.value_checks import (
    array_of,
    choice_of,
    expression_or,
    jsonata,
    named_choice_of,
    payload,
    reference_in_data,
    short_name,
    template,
    text,
    whole,
)

_MOST_ITEMS = 100_000_000
_MOST_BATCH_BYTES = 262_144
_LONGEST_LABEL = 40
_NOT_IN_LABELS = re.compile(r"[\s?*<>{}\[\]:;,\\|^~$#%&`\"\x00-\x1f\x7f-\x9f]")
_READER = re.compile(r"arn:[\w-]+:states:[\w-]*:\d*:s3:(?:getObject|listObjectsV2)")
_OF_CSV = ("CSVHeaderLocation", "CSVHeaders", "CSVDelimiter")
_WRITER = re.compile(r"arn:[\w-]+:states:[\w-]*:\d*:s3:putObject")
_MODES = ("INLINE", "DISTRIBUTED")
_TYPES = tuple(each.value for each in MachineType)

DISTRIBUTED_ONLY = (
    "ItemReader",
    "ItemBatcher",
    "ResultWriter",
    "Label",
    "ToleratedFailureCount",
    "ToleratedFailureCountPath",
    "ToleratedFailurePercentage",
    "ToleratedFailurePercentagePath",
)


def items(value: Any, place: Place) -> None:
    """The items of a JSONata Map: an array, an object, or an expression."""
    if isinstance(value, list | dict | str):
        jsonata(value, place)
    else:
        place.error("Expected value of type [ARRAY]")


def label(value: Any, place: Place) -> None:
    """The name of a distributed Map in the ARNs of its runs."""
    if not isinstance(value, str):
        place.error("Expected value of type [STRING]")
        return
    if short_name(value, "Label", _LONGEST_LABEL, place) and _NOT_IN_LABELS.search(value) is not None:
        message = f"Invalid Label name: '{value}' contains characters that labels cannot have"
        place.error(message, "INVALID_LABEL_NAME")


def number(least: int, most: int | None = None) -> Check:
    """An integer of a Map state, which may be an expression in JSONata."""
    return expression_or(whole(least, most))


def map_state(value: Mapping[str, Any], place: Place) -> None:
    """What the members of a Map state mean for each other."""
    if mode_of(value) == "DISTRIBUTED":
        return
    for name in DISTRIBUTED_ONLY:
        if name in value:
            place.error(f"Field '{name}' is not supported for a Map state in INLINE mode; set Mode to DISTRIBUTED")


def processor_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the ProcessorConfig of a Map state; empty if it has none."""
    processor = value.get("ItemProcessor", value.get("Iterator"))
    config = processor.get("ProcessorConfig") if isinstance(processor, dict) else None
    return config if isinstance(config, dict) else {}


def mode_of(value: Mapping[str, Any]) -> Any:
    """Return the mode of a Map state."""
    return processor_of(value).get("Mode", "INLINE")


# --- the processor, the batches, the reader and the writer ------------------------------------------------------------


def _check_mode(value: Mapping[str, Any], place: Place) -> None:
    if value.get("Mode") == "DISTRIBUTED":
        if "ExecutionType" not in value:
            place.error("These fields are required: [ExecutionType]")
        if place.machine_type is MachineType.EXPRESS:
            message = "The field 'Mode' with value 'DISTRIBUTED' is not supported inside 'EXPRESS' state machines"
            place.member("Mode").error(message)
    elif "ExecutionType" in value:
        place.error("Field 'ExecutionType' is not supported")


def _check_batcher(value: Mapping[str, Any], place: Place) -> None:
    limits = ("MaxItemsPerBatch", "MaxItemsPerBatchPath", "MaxInputBytesPerBatch", "MaxInputBytesPerBatchPath")
    if not any(name in value for name in limits):
        place.error(f"This object should have at least one of the following fields: [{', '.join(limits)}]")


def _reader_resource(value: Any, place: Place) -> None:
    if not isinstance(value, str) or _READER.fullmatch(value) is None:
        place.error(
            "The field 'Resource' does not match any of the allowed values. Examples:"
            " [arn:<partition>:states:::s3:getObject, arn:<partition>:states:::s3:listObjectsV2]"
        )


def _writer_resource(value: Any, place: Place) -> None:
    if not isinstance(value, str) or _WRITER.fullmatch(value) is None:
        place.error(
            "The field 'Resource' does not match any of the allowed values. Examples:"
            " [arn:<partition>:states:::s3:putObject]"
        )


def _check_reader(value: Mapping[str, Any], place: Place) -> None:
    resource, config = value.get("Resource"), value.get("ReaderConfig", {})
    is_list = isinstance(resource, str) and resource.endswith(":listObjectsV2")
    _require_arguments(value, ("Bucket",) if is_list else ("Bucket", "Key"), place)
    if not isinstance(config, dict):
        return
    reads = not is_list or config.get("Transformation") == "LOAD_AND_FLATTEN"
    if reads and "InputType" not in config and config.get("ManifestType") != "S3_INVENTORY":
        place.member("ReaderConfig").error("The field 'InputType' is required but was missing")


def _check_reader_config(value: Mapping[str, Any], place: Place) -> None:
    if value.get("InputType") == "CSV":
        if "CSVHeaderLocation" not in value:
            place.error("The field 'CSVHeaderLocation' is required but was missing")
    elif value.get("InputType") in ("JSON", "JSONL", "PARQUET"):
        for name in _OF_CSV:
            if name in value:
                place.error(f"Field '{name}' is not supported")
    if value.get("CSVHeaderLocation") == "GIVEN" and "CSVHeaders" not in value:
        place.error("These fields are required: [CSVHeaders]")


def _check_writer(value: Mapping[str, Any], place: Place) -> None:
    if "Resource" in value:
        _require_arguments(value, ("Bucket",), place)


def _require_arguments(value: Mapping[str, Any], names: tuple[str, ...], place: Place) -> None:
    name = "Arguments" if place.language is Language.JSONATA else "Parameters"
    if name in value:
        require_members(value[name], names, place.member(name))
    else:
        place.error(f"These fields are required: [{name}]")


PROCESSOR_CONFIG = Shape(
    members={"Mode": choice_of(*_MODES), "ExecutionType": choice_of(*_TYPES)},
    also=(_check_mode,),
)
ITEM_BATCHER = Shape(
    members={
        "MaxItemsPerBatch": number(0),
        "MaxInputBytesPerBatch": number(0, _MOST_BATCH_BYTES),
        "BatchInput": template,
    },
    jsonpath={"MaxItemsPerBatchPath": reference_in_data, "MaxInputBytesPerBatchPath": reference_in_data},
    at_most_one_of=(
        ("MaxItemsPerBatch", "MaxItemsPerBatchPath"),
        ("MaxInputBytesPerBatch", "MaxInputBytesPerBatchPath"),
    ),
    also=(_check_batcher,),
)
_READER_CONFIG = Shape(
    members={
        "InputType": named_choice_of("MANIFEST", "JSON", "CSV", "JSONL", "PARQUET"),
        "Transformation": choice_of("NONE", "LOAD_AND_FLATTEN"),
        "ManifestType": choice_of("ATHENA_DATA", "S3_INVENTORY"),
        "ItemsPointer": text,
        "CSVDelimiter": choice_of("COMMA", "PIPE", "SEMICOLON", "SPACE", "TAB"),
        "CSVHeaderLocation": choice_of("FIRST_ROW", "GIVEN"),
        "CSVHeaders": array_of(text, least=1),
        "MaxItems": number(0, _MOST_ITEMS),
    },
    jsonpath={"MaxItemsPath": reference_in_data},
    at_most_one_of=(("MaxItems", "MaxItemsPath"),),
    also=(_check_reader_config,),
)
ITEM_READER = Shape(
    members={"Resource": _reader_resource, "ReaderConfig": _READER_CONFIG},
    jsonpath={"Parameters": payload},
    jsonata={"Arguments": jsonata},
    required=("Resource",),
    also=(_check_reader,),
)
RESULT_WRITER = Shape(
    members={
        "Resource": _writer_resource,
        "WriterConfig": Shape(
            members={
                "OutputType": choice_of("JSON", "JSONL"),
                "Transformation": choice_of("NONE", "COMPACT", "FLATTEN"),
            }
        ),
    },
    jsonpath={"Parameters": payload},
    jsonata={"Arguments": jsonata},
    also=(_check_writer,),
)
