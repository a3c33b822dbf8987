"""Lambda's operations on functions: those that are registered, which every version and alias names."""

from __future__ import annotations

import platform
from typing import Any

from jobtable.errors import OperationRefused
from jobtable.workflows.asl.aws_api.page_tokens import page_of
from jobtable.workflows.durable.lambda_calls import LambdaCall, invalid_marker
from jobtable.workflows.function_records import FunctionRecord

_MOST_LISTED = 50
_VERSION = "$LATEST"


def describe_function(call: LambdaCall) -> dict[str, Any]:
    """Return a function. Its code is a module on this machine, which has no address to download it from."""
    return {"Configuration": function_configuration(call), "Code": {}}


def function_configuration(call: LambdaCall) -> dict[str, Any]:
    """Return the settings of a function."""
    name = call.target().name
    record = call.service.core.functions.find_record(name)
    if record is None:
        raise call.no_function(name)
    return _configuration(call, record)


def list_functions(call: LambdaCall) -> dict[str, Any]:
    """Return a page of the functions, by name."""
    request = call.request
    paging = {"maxResults": min(request.get("MaxItems") or _MOST_LISTED, _MOST_LISTED)}
    if request.get("Marker"):
        paging["nextToken"] = request["Marker"]
    try:
        page, marker = page_of(call.service.core.functions.query(), paging, call.service.core.now())
    except OperationRefused as error:
        raise invalid_marker() from error
    answer: dict[str, Any] = {"Functions": [_configuration(call, record) for record in page]}
    return answer if marker is None else {**answer, "NextMarker": marker}


def _configuration(call: LambdaCall, record: FunctionRecord) -> dict[str, Any]:
    configuration: dict[str, Any] = {
        "FunctionName": record.name,
        "FunctionArn": call.arns.function(record.name),
        "Runtime": "python" + ".".join(platform.python_version_tuple()[:2]),
        "Handler": record.path.replace(":", "."),
        "Timeout": round(record.timeout_seconds),
        "MemorySize": record.memory_mb,
        "Version": _VERSION,
        "PackageType": "Zip",
        "State": "Active",
        "LastUpdateStatus": "Successful",
    }
    if record.published_at is not None:
        configuration["LastModified"] = record.published_at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "+0000"
    if record.durable is not None:
        configuration["DurableConfig"] = {
            "ExecutionTimeout": record.durable["execution_timeout_seconds"],
            "RetentionPeriodInDays": record.durable["retention_days"],
        }
    return configuration
