"""Lambda's operations on functions: those that are registered, and the versions that were published of them."""

from __future__ import annotations

import base64
import platform
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from jobtable.errors import OperationRefused
from jobtable.store.queries import Query
from jobtable.workflows.asl.aws_api.page_tokens import page_of
from jobtable.workflows.durable.lambda_calls import LambdaCall, invalid_marker
from jobtable.workflows.function_records import FunctionRecord
from jobtable.workflows.function_versions import FunctionVersion
from jobtable.workflows.functions import LATEST

T = TypeVar("T")
_MOST_LISTED = 50


def describe_function(call: LambdaCall) -> dict[str, Any]:
    """Return a function. Its code is a module on this machine, which has no address to download it from."""
    return {"Configuration": function_configuration(call), "Code": {}}


def function_configuration(call: LambdaCall) -> dict[str, Any]:
    """Return the settings of a function, or of the version that a qualifier names."""
    target = call.target()
    found = call.service.core.versions.find(target.name, call.version(target))
    return latest_of(call, target.name) if found is None else version_configuration(call, found)


def list_functions(call: LambdaCall) -> dict[str, Any]:
    """Return a page of the functions, by name, each followed by its versions if they are wanted."""
    page, marker = page_of_functions(call, call.service.core.functions.query())
    functions = []
    for record in page:
        functions.append(_configuration(call, record, LATEST))
        if call.request.get("FunctionVersion") == "ALL":
            versions = call.service.core.versions.list(record.name)
            functions += [version_configuration(call, each) for each in versions]
    return {"Functions": functions} if marker is None else {"Functions": functions, "NextMarker": marker}


def latest_of(call: LambdaCall, name: str) -> dict[str, Any]:
    """Return the settings of a function as it is registered, or raise OperationRefused."""
    record = call.service.core.functions.find_record(name)
    if record is None:
        raise call.no_function(name)
    return _configuration(call, record, LATEST)


def version_configuration(call: LambdaCall, version: FunctionVersion) -> dict[str, Any]:
    """Return the settings of a version."""
    digest = base64.b64encode(bytes.fromhex(version.code_sha256)).decode()
    number = str(version.version)
    return _configuration(call, version, number) | {"CodeSha256": digest, "Description": version.description}


def page_of_functions(
    call: LambdaCall, query: Query[T], keep: Callable[[T], bool] = lambda _: True
) -> tuple[list[T], str | None]:
    """Return the page that a request asks for, and the marker of the next one."""
    request = call.request
    paging = {"maxResults": min(request.get("MaxItems") or _MOST_LISTED, _MOST_LISTED)}
    if request.get("Marker"):
        paging["nextToken"] = request["Marker"]
    try:
        return page_of(query, paging, call.service.core.now(), keep=keep)
    except OperationRefused as error:
        raise invalid_marker() from error


def _configuration(call: LambdaCall, found: FunctionRecord | FunctionVersion, version: str) -> dict[str, Any]:
    name = found.name if isinstance(found, FunctionRecord) else f"{found.function}:{version}"
    configuration: dict[str, Any] = {
        "FunctionName": name.partition(":")[0],
        "FunctionArn": call.arns.function(name),
        "Runtime": "python" + ".".join(platform.python_version_tuple()[:2]),
        "Handler": found.path.replace(":", "."),
        "Timeout": round(found.timeout_seconds),
        "MemorySize": found.memory_mb,
        "Version": version,
        "PackageType": "Zip",
        "State": "Active",
        "LastUpdateStatus": "Successful",
    }
    at: datetime | None = found.published_at
    if at is not None:
        configuration["LastModified"] = at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "+0000"
    if found.durable is not None:
        configuration["DurableConfig"] = {
            "ExecutionTimeout": found.durable["execution_timeout_seconds"],
            "RetentionPeriodInDays": found.durable["retention_days"],
        }
    return configuration
