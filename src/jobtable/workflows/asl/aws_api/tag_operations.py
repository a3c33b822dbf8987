"""TagResource, UntagResource, ListTagsForResource: the tags of state machines and activities."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jobtable.errors import NotFoundError, OperationRefused
from jobtable.workflows.asl.arns import StatesArn, find_states_arn
from jobtable.workflows.asl.aws_api.aws_calls import Call, Response
from jobtable.workflows.asl.aws_api.refusals import invalid, invalid_arn, resource_missing

_MOST_TAGS = 50
_TEXT = re.compile(r"[\w\s.:/=+\-@]*")  # letters, digits and white space of any script, and a few signs


def tag(call: Call) -> Response:
    """TagResource: add tags, or replace the values of existing ones."""
    arn = call.request["resourceArn"]
    resource = _resource(arn)
    added = tags_of(arn, call.request["tags"])
    tags_of(arn, [{"key": key, "value": value} for key, value in {**_tags(call, arn, resource), **added}.items()])
    _change(call, arn, resource, added, frozenset())
    return {}


def untag(call: Call) -> Response:
    """UntagResource; missing keys are ignored."""
    arn = call.request["resourceArn"]
    resource = _resource(arn)
    _change(call, arn, resource, {}, frozenset(call.request["tagKeys"]))
    return {}


def list_all(call: Call) -> Response:
    """ListTagsForResource."""
    arn = call.request["resourceArn"]
    tags = _tags(call, arn, _resource(arn))
    return {"tags": [{"key": key, "value": value} for key, value in tags.items()]}


def tags_of(arn: str, tags: list[dict[str, Any]] | None) -> dict[str, str]:
    """Return the tags of a request, or raise OperationRefused."""
    found: dict[str, str] = {}
    for each in tags or ():
        key, value = each.get("key"), each.get("value") or ""
        if key is None or not _TEXT.fullmatch(key) or not _TEXT.fullmatch(value):
            raise invalid(
                "Tags may only contain Unicode letters, digits, white space, or these symbols: _ . : / = + - @"
            )
        found[key] = value
    if len(found) > _MOST_TAGS:
        raise OperationRefused(
            f"A resource has at most {_MOST_TAGS} tags", code="TooManyTags", details={"resourceName": arn}
        )
    return found


def _resource(arn: str) -> StatesArn:
    if not arn.startswith("arn:"):
        raise invalid_arn(f"Invalid ARN prefix: {arn}")
    found = find_states_arn(arn)
    if found is None:
        raise invalid_arn(arn)
    if found.kind not in {"stateMachine", "activity"} or len(found.parts) > 1:
        raise resource_missing(arn)
    return found


def _tags(call: Call, arn: str, resource: StatesArn) -> Mapping[str, str]:
    verbs = call.activities if resource.kind == "activity" else call.machines
    try:
        return verbs.get(resource.name).tags
    except NotFoundError as error:
        raise resource_missing(arn) from error


def _change(call: Call, arn: str, resource: StatesArn, add: Mapping[str, str], remove: frozenset[str]) -> None:
    verbs = call.activities if resource.kind == "activity" else call.machines
    try:
        verbs.tag(resource.name, add, remove)
    except NotFoundError as error:
        raise resource_missing(arn) from error
