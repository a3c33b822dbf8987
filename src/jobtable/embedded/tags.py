"""TagResource, UntagResource, ListTagsOfResource."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from jobtable.embedded.request_checks import check_members
from jobtable.embedded.request_model import REQUESTS, table_of_arn
from jobtable.embedded.storage import Storage, Transaction, View
from jobtable.embedded.storage.table_catalogue import TableRecord
from jobtable.embedded.storage.table_changes import change_table
from jobtable.embedded.table_names import ACCOUNT, is_backup_arn, is_own_arn, is_stream_arn
from jobtable.embedded.wordings import invalid
from jobtable.errors import AccessDenied, RequestRefused, TableNotFound
from jobtable.store.backend import Request, Response

_MOST_TAGS = 50
_MOST_BYTES = 10_240
_LONGEST_KEY, _LONGEST_VALUE = 128, 256
_TEXT = re.compile(r"[\w\s+\-=.:/@]*")  # letters, numbers and white space of any script, and a few signs


def tags_of(request: Request) -> dict[str, str]:
    """Return the tags of a request, or raise RequestRefused."""
    tags: dict[str, str] = {}
    for one in request.get("Tags") or ():
        key, value = _checked_key((one or {}).get("Key")), (one or {}).get("Value")
        if value is None or len(value) > _LONGEST_VALUE or not _TEXT.fullmatch(value):
            raise RequestRefused(f"The Tag Value provided is invalid, Value: {'null' if value is None else value}")
        _refuse_reserved(key)
        if key in tags:
            raise RequestRefused(f"Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}")
        tags[key] = value
    _check_all(tags)
    return tags


def tag(storage: Storage, request: Request) -> Response:
    """TagResource: add tags, or replace the values of existing ones."""
    name = _resource(request)
    check_members(request, REQUESTS["TagResource"])
    tags = tags_of(request)
    if not tags:
        raise RequestRefused("Atleast one Tag needs to be provided as Input.")

    def action(transaction: Transaction) -> Response:
        record = _existing(transaction, name, request, "TagResource")
        merged = record.tags | tags
        _check_all(merged)
        change_table(transaction, record, record.model_copy(update={"tags": merged}))
        return {}

    return storage.write(action)


def untag(storage: Storage, request: Request) -> Response:
    """UntagResource; missing keys are ignored."""
    name = _resource(request)
    check_members(request, REQUESTS["UntagResource"])
    keys = request["TagKeys"]
    if not keys:
        raise RequestRefused("Atleast one Tag Key needs to be provided as Input.")
    for key in keys:
        _refuse_reserved(_checked_key(key))
    _check_number(keys)

    def action(transaction: Transaction) -> Response:
        record = _existing(transaction, name, request, "UntagResource")
        kept = {key: value for key, value in record.tags.items() if key not in keys}
        change_table(transaction, record, record.model_copy(update={"tags": kept}))
        return {}

    return storage.write(action)


def list_tags(storage: Storage, request: Request) -> Response:
    """ListTagsOfResource; all tags are on the first page, and DynamoDB ignores unknown tokens."""
    name = _resource(request)
    with storage.read() as view:
        tags = sorted(_existing(view, name, request, "ListTagsOfResource").tags.items())
    return {"Tags": [{"Key": key, "Value": value} for key, value in tags]}


def _resource(request: Request) -> str:
    arn: str | None = request.get("ResourceArn")
    if arn is None:
        raise RequestRefused("Invalid TableArn")
    if not arn.startswith("arn:"):
        raise invalid(f"ARNs must start with 'arn:': {arn}")
    if is_stream_arn(arn):
        raise _not_found(arn)
    name = table_of_arn(arn)
    if name is None and ":dynamodb:" in arn and not is_backup_arn(arn):
        raise invalid(f"Invalid resource arn provided, only table or stream is accepted. Provided resource arn: {arn}")
    if name is None:
        raise invalid(f"Provided Arn is not a DynamoDB resource arn: {arn}")
    return name


def _existing(view: View, name: str, request: Request, operation: str) -> TableRecord:
    record = view.record(name)
    if record is not None and not record.is_creating:
        return record
    arn = request["ResourceArn"]
    if is_own_arn(arn):
        raise _not_found(arn)
    # DynamoDB does not reveal whether another account has such a table.
    raise AccessDenied(
        f"User: arn:aws:iam::{ACCOUNT}:root is not authorized to perform: dynamodb:{operation} on resource: {arn}"
        f" because no resource-based policy allows the dynamodb:{operation} action"
    )


def _not_found(arn: str) -> TableNotFound:
    return TableNotFound(f"Requested resource not found: ResourceArn: {arn} not found")


def _checked_key(key: str | None) -> str:
    if key is None or not 1 <= len(key) <= _LONGEST_KEY or not _TEXT.fullmatch(key):
        raise RequestRefused(f"The Tag Key provided is invalid, Key: {'null' if key is None else key}")
    return key


def _refuse_reserved(key: str) -> None:
    if key.lower().startswith("aws:"):
        raise RequestRefused(f"Tag Key cannot be prefixed with aws:, Key: {key}")


def _check_all(tags: Mapping[str, str]) -> None:
    _check_number(tags)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in tags.items())
    if size > _MOST_BYTES:
        raise RequestRefused(f"Tag set size {size} bytes is above max size limit of {_MOST_BYTES} bytes")


def _check_number(tags: Collection[str]) -> None:
    if len(tags) > _MOST_TAGS:
        raise RequestRefused("Number of Tags exceed the current limit for the provided ResourceArn")
