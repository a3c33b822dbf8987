"""TagResource, UntagResource, ListTagsOfResource."""

from __future__ import annotations

import re

from jobtable.embedded.key_schemas import maps, text
from jobtable.embedded.requests import expect_type, table_of_arn
from jobtable.embedded.storage import Storage, Transaction, View
from jobtable.embedded.storage.catalogue import TableRecord
from jobtable.embedded.storage.definitions import change_table
from jobtable.errors import RequestRefused, TableNotFound
from jobtable.store.backend import Request, Response

_MOST_TAGS = 50
_TEXT = re.compile(r"[\w\s+\-=.:/]*")
"""Letters, numbers and white space of any script, and a few signs."""


def tags_of(request: Request, member: str) -> dict[str, str]:
    """The tags that a request carries, or RequestRefused."""
    tags: dict[str, str] = {}
    for number, one in enumerate(maps(request, member), start=1):
        key, value = text(one, "Key"), text(one, "Value")
        for name, content, longest in (("key", key, 128), ("value", value, 256)):
            _check(content, f"{member[:1].lower()}{member[1:]}.{number}.member.{name}", longest)
        if key is None or value is None:
            continue
        if not (_TEXT.fullmatch(key) and _TEXT.fullmatch(value)):
            raise RequestRefused(
                "One or more parameter values were invalid: Tag keys and values can only contain letters, white space,"
                " numbers, and the characters + - = . _ : /"
            )
        if key.lower().startswith("aws:"):
            raise RequestRefused("One or more parameter values were invalid: Tag keys must not start with 'aws:'")
        if key in tags:
            raise RequestRefused(f"One or more parameter values were invalid: Duplicate tag key found: {key}")
        tags[key] = value
    if len(tags) > _MOST_TAGS:
        raise _too_many()
    return tags


def tag(storage: Storage, request: Request) -> Response:
    """TagResource: add tags, or replace the values of those that are there."""
    name = _resource(request)
    tags = tags_of(request, "Tags")
    if not tags:
        raise RequestRefused("Atleast one Tag needs to be provided as Input.")

    def action(transaction: Transaction) -> Response:
        record = _existing(transaction, name, request)
        merged = record.tags | tags
        if len(merged) > _MOST_TAGS:
            raise _too_many()
        change_table(transaction, record, record.model_copy(update={"tags": merged}))
        return {}

    return storage.write(action)


def untag(storage: Storage, request: Request) -> Response:
    """UntagResource; keys that are not there are ignored."""
    name = _resource(request)
    keys = request.get("TagKeys")
    if not keys:
        raise RequestRefused("Atleast one Tag Key needs to be provided as Input.")
    expect_type(keys, list)
    for key in keys:
        expect_type(key, str)

    def action(transaction: Transaction) -> Response:
        record = _existing(transaction, name, request)
        kept = {key: value for key, value in record.tags.items() if key not in keys}
        change_table(transaction, record, record.model_copy(update={"tags": kept}))
        return {}

    return storage.write(action)


def list_tags(storage: Storage, request: Request) -> Response:
    """ListTagsOfResource; there are never so many that they would need a second page."""
    name = _resource(request)
    with storage.read() as view:
        tags = sorted(_existing(view, name, request).tags.items())
    return {"Tags": [{"Key": key, "Value": value} for key, value in tags]}


def _resource(request: Request) -> str:
    arn = text(request, "ResourceArn")
    if arn is None:
        raise RequestRefused(
            "1 validation error detected: Value null at 'resourceArn' failed to satisfy constraint: Member must not be"
            " null"
        )
    if not arn.startswith("arn:"):
        raise RequestRefused(f"Invalid TableArn: ARNs must start with 'arn:': {arn}")
    name = table_of_arn(arn)
    if name is None:
        raise RequestRefused(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
    return name


def _existing(view: View, name: str, request: Request) -> TableRecord:
    record = view.record(name)
    if record is None:
        raise TableNotFound(f"Requested resource not found: ResourcArn: {request['ResourceArn']} not found")
    return record


def _check(content: str | None, path: str, longest: int) -> None:
    rule = None
    if content is None:
        rule = "Member must not be null"
    elif len(content) > longest:
        rule = f"Member must have length less than or equal to {longest}"
    elif not content and path.endswith("key"):
        rule = "Member must have length greater than or equal to 1"
    if rule is not None:
        shown = "null" if content is None else f"'{content}'"
        raise RequestRefused(
            f"1 validation error detected: Value {shown} at '{path}' failed to satisfy constraint: {rule}"
        )


def _too_many() -> RequestRefused:
    return RequestRefused(f"One or more parameter values were invalid: Too many tags: a table has at most {_MOST_TAGS}")
