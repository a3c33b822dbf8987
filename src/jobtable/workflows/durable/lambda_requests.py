"""The members of every request to Lambda."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobtable.errors import OperationRefused
from jobtable.workflows.asl.aws_api.member_rules import Flag, Many, Members, Number, Rule, Text

_STATUSES = ("RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "STOPPED")
_ARN = Text(
    1,
    1024,
    pattern=r"arn:([a-zA-Z0-9-]+):lambda:([a-zA-Z0-9-]+):(\d{12}):function:([a-zA-Z0-9_-]+)"
    r":(\$LATEST(?:\.PUBLISHED)?|[0-9]+)/durable-execution/([a-zA-Z0-9_-]+)/([a-zA-Z0-9_-]+)",
)
_FUNCTION = Text(
    1,
    256,
    pattern=r"(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?"
    r"(function:)?([a-zA-Z0-9-_\.]+)(:(\$LATEST(\.PUBLISHED)?|[a-zA-Z0-9-_]+))?",
)
_OLDER_FUNCTION = Text(
    1,
    140,
    pattern=r"(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?"
    r"(function:)?([a-zA-Z0-9-_]+)(:(\$LATEST|[a-zA-Z0-9-_]+))?",
)
_ALIAS = {"FunctionName": _OLDER_FUNCTION, "Name": Text(1, 128, pattern="(?!^[0-9]+$)([a-zA-Z0-9-_]+)")}
_VERSION = Text(1, 1024, pattern=r"(\$LATEST(\.PUBLISHED)?|[0-9]+)")
_DESCRIPTION = Text(0, 256)
_ROUTES = Members({}, {"AdditionalVersionWeights": Members({}, {})})
"""The versions and their weights are judged by `function_versions`."""
_LONG_PAGE: dict[str, Rule] = {"Marker": Text(), "MaxItems": Number(1, 10_000)}
_NAME = Text(1, 64, pattern="[a-zA-Z0-9-_]+")
_QUALIFIER = Text(1, 128, pattern=r"\$(LATEST(\.PUBLISHED)?)|[a-zA-Z0-9-_$]+")
_TOKEN = Text(1, 2048, pattern="[A-Za-z0-9+/]+={0,2}")
_CALLBACK_ID = Text(1, 1024, pattern="[A-Za-z0-9+/]+={0,2}")
_FLAG = Flag()
_INSTANT = Number(is_fraction=True)
"""Seconds since 1970."""
_PAGE: dict[str, Rule] = {"Marker": Text(), "MaxItems": Number(0, 1000)}
_SECRET = Text(is_sensitive=True)
_ERROR = Members(
    {},
    {"ErrorMessage": _SECRET, "ErrorType": _SECRET, "ErrorData": _SECRET, "StackTrace": Many(_SECRET)},
)
_UPDATES = Many(Members({}, {}))
"""Each is read, and its faults are reported, by `operation_updates`."""


class Bytes(Rule):
    """The body of a request: bytes, or text that is sent in UTF-8."""

    def __init__(self, longest: int | None = None) -> None:
        self.longest = longest

    def check_type(self, value: Any) -> None:
        if not isinstance(value, bytes | str):
            raise OperationRefused("A blob must be bytes or text", code="SerializationException")

    def faults(self, value: Any, path: str) -> Iterator[str]:
        size = len(value.encode() if isinstance(value, str) else value)
        if self.longest is not None and size > self.longest:
            rule = f"Member must have length less than or equal to {self.longest}"
            yield f"Value at '{path}' failed to satisfy constraint: {rule}"


REQUESTS: dict[str, Members] = {
    "CheckpointDurableExecution": Members(
        {"DurableExecutionArn": _ARN, "CheckpointToken": _TOKEN},
        {"Updates": _UPDATES, "ClientToken": Text(1, 64, pattern=r"[\x21-\x7E]+")},
    ),
    "GetDurableExecutionState": Members({"DurableExecutionArn": _ARN, "CheckpointToken": _TOKEN}, _PAGE),
    "GetDurableExecution": Members({"DurableExecutionArn": _ARN}, {"IncludeExecutionData": _FLAG}),
    "GetDurableExecutionHistory": Members(
        {"DurableExecutionArn": _ARN}, {"IncludeExecutionData": _FLAG, "ReverseOrder": _FLAG, **_PAGE}
    ),
    "ListDurableExecutionsByFunction": Members(
        {"FunctionName": _FUNCTION},
        {
            "Qualifier": _QUALIFIER,
            "DurableExecutionName": _NAME,
            "Statuses": Many(Text(choices=_STATUSES), 1, 10),
            "StartedAfter": _INSTANT,
            "StartedBefore": _INSTANT,
            "ReverseOrder": _FLAG,
            **_PAGE,
        },
    ),
    "StopDurableExecution": Members({"DurableExecutionArn": _ARN}, {"Error": _ERROR}),
    "SendDurableExecutionCallbackSuccess": Members({"CallbackId": _CALLBACK_ID}, {"Result": Bytes(1_048_576)}),
    "SendDurableExecutionCallbackFailure": Members({"CallbackId": _CALLBACK_ID}, {"Error": _ERROR}),
    "SendDurableExecutionCallbackHeartbeat": Members({"CallbackId": _CALLBACK_ID}, {}),
    "Invoke": Members(
        {"FunctionName": _FUNCTION},
        {
            "InvocationType": Text(choices=("Event", "RequestResponse", "DryRun")),
            "LogType": Text(choices=("None", "Tail")),
            "ClientContext": Text(),
            "DurableExecutionName": _NAME,
            "Payload": Bytes(),
            "Qualifier": _QUALIFIER,
            "TenantId": Text(1, 256, pattern=r"[a-zA-Z0-9\._:\/=+\-@ ]+"),
        },
    ),
    "GetFunction": Members({"FunctionName": _FUNCTION}, {"Qualifier": _QUALIFIER}),
    "GetFunctionConfiguration": Members({"FunctionName": _FUNCTION}, {"Qualifier": _QUALIFIER}),
    "ListFunctions": Members(
        {},
        {
            "MasterRegion": Text(1, 50, pattern="ALL|(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1}"),
            "FunctionVersion": Text(choices=("ALL",)),
            **_LONG_PAGE,
        },
    ),
    "PublishVersion": Members(
        {"FunctionName": _OLDER_FUNCTION},
        {
            "CodeSha256": Text(),
            "Description": _DESCRIPTION,
            "RevisionId": Text(),
            "PublishTo": Text(choices=("LATEST_PUBLISHED",)),
        },
    ),
    "ListVersionsByFunction": Members({"FunctionName": _FUNCTION}, _LONG_PAGE),
    "CreateAlias": Members(
        {**_ALIAS, "FunctionVersion": _VERSION},
        {"Description": _DESCRIPTION, "RoutingConfig": _ROUTES},
    ),
    "UpdateAlias": Members(
        _ALIAS,
        {"FunctionVersion": _VERSION, "Description": _DESCRIPTION, "RoutingConfig": _ROUTES, "RevisionId": Text()},
    ),
    "GetAlias": Members(_ALIAS, {}),
    "ListAliases": Members({"FunctionName": _OLDER_FUNCTION}, {"FunctionVersion": _VERSION, **_LONG_PAGE}),
    "DeleteAlias": Members(_ALIAS, {}),
}
"""The request of every operation. A test compares them with the description of the service that boto3 has."""
