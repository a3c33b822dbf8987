"""The resources that a Task state may name: the one list of what is supported."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class ResourceKind(StrEnum):
    """What a Task state's resource is."""

    FUNCTION = "function"
    """A function by its own ARN."""
    ACTIVITY = "activity"
    SERVICE = "service"
    """An optimized integration, as in `arn:aws:states:::dynamodb:putItem`."""
    SDK = "sdk"
    """An AWS SDK integration, as in `arn:aws:states:::aws-sdk:dynamodb:putItem`."""


class Pattern(StrEnum):
    """When a service's task ends. The value is the suffix of the resource."""

    RESPONSE = ""
    SYNC = ".sync"
    SYNC_JSON = ".sync:2"
    TOKEN = ".waitForTaskToken"  # noqa: S105 - a suffix, no password


@dataclass(frozen=True)
class Resource:
    """A taken-apart resource of a Task state."""

    kind: ResourceKind
    service: str
    """`lambda`, `dynamodb`, `s3`, `sqs`, `sns` or `states`; an activity's is `states`."""
    action: str
    """In camel case, as in `putItem`; a function's is its name without version or alias, an activity's is its name."""
    pattern: Pattern
    arn: str
    """The resource as it was written."""
    qualifier: str | None = None
    """The version or alias of a function."""

    @property
    def history_type(self) -> str:
        """The `resourceType` in the history, as in `dynamodb` or `aws-sdk:dynamodb`."""
        return f"aws-sdk:{self.service}" if self.kind is ResourceKind.SDK else self.service

    @property
    def history_name(self) -> str:
        """The `resource` in the history, as in `startExecution.sync:2`."""
        return f"{self.action}{self.pattern}"


_RESPONSE = frozenset({Pattern.RESPONSE})
_ANSWERED = frozenset({Pattern.RESPONSE, Pattern.TOKEN})
_SERVICES: dict[str, dict[str, frozenset[Pattern]]] = {
    "lambda": {"invoke": _ANSWERED},
    "dynamodb": dict.fromkeys(("getItem", "putItem", "updateItem", "deleteItem"), _RESPONSE),
    "sqs": {"sendMessage": _ANSWERED},
    "sns": {"publish": _ANSWERED},
    "states": {"startExecution": frozenset(Pattern)},
}
_SDK_ACTIONS = {
    "dynamodb": frozenset(
        {
            "batchExecuteStatement",
            "batchGetItem",
            "batchWriteItem",
            "createTable",
            "deleteItem",
            "deleteTable",
            "describeTable",
            "describeTimeToLive",
            "executeStatement",
            "executeTransaction",
            "getItem",
            "listTables",
            "putItem",
            "query",
            "scan",
            "transactGetItems",
            "transactWriteItems",
            "updateItem",
            "updateTable",
            "updateTimeToLive",
        }
    ),
    "s3": frozenset({"getObject", "putObject"}),
}
_FUNCTION = re.compile(r"arn:aws[\w-]*:lambda:[\w-]*:\d*:function:(?P<name>[\w-]{1,140})(?::(?P<qualifier>[\w$-]+))?")
_ACTIVITY = re.compile(r"arn:aws[\w-]*:states:[\w-]*:\d*:activity:(?P<name>[^\s:]{1,80})")
_SERVICE = re.compile(
    r"arn:aws[\w-]*:states:[\w-]*:\d*:(?P<sdk>aws-sdk:)?(?P<service>[\w-]+):(?P<action>\w+)"
    r"(?P<pattern>\.sync:2|\.sync|\.waitForTaskToken)?"
)

SUPPORTED = (
    "Lambda functions, activities, lambda:invoke, dynamodb:getItem, putItem, updateItem and deleteItem,"
    " sqs:sendMessage, sns:publish, states:startExecution, aws-sdk:dynamodb:* and aws-sdk:s3:getObject and putObject"
)
"""What a Task state may name, for messages."""


def parse_resource(text: str) -> Resource | None:
    """Return the parts of a supported resource, or None if it is malformed or of another service."""
    if found := _FUNCTION.fullmatch(text):
        return Resource(ResourceKind.FUNCTION, "lambda", found["name"], Pattern.RESPONSE, text, found["qualifier"])
    if found := _ACTIVITY.fullmatch(text):
        return Resource(ResourceKind.ACTIVITY, "states", found["name"], Pattern.RESPONSE, text)
    if found := _SERVICE.fullmatch(text):
        kind = ResourceKind.SDK if found["sdk"] else ResourceKind.SERVICE
        resource = Resource(kind, found["service"], found["action"], Pattern(found["pattern"] or ""), text)
        return resource if _is_supported(resource) else None
    return None


def _is_supported(resource: Resource) -> bool:
    if resource.kind is ResourceKind.SDK:
        return resource.pattern is Pattern.RESPONSE and resource.action in _SDK_ACTIONS.get(resource.service, ())
    return resource.pattern in _SERVICES.get(resource.service, {}).get(resource.action, ())
