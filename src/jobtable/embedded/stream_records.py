"""One change of a journal as a record of a stream."""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic_core import from_json

from jobtable.embedded.names import REGION, stream_arn
from jobtable.embedded.storage.catalogue import StreamRecord
from jobtable.embedded.storage.journal import Change
from jobtable.store.backend import Item
from jobtable.store.sizes import item_size

_SERVICE = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
_SHOWS_NEW = ("NEW_IMAGE", "NEW_AND_OLD_IMAGES")
_SHOWS_OLD = ("OLD_IMAGE", "NEW_AND_OLD_IMAGES")


def record_of(stream: StreamRecord, change: Change, number: str) -> dict[str, Any]:
    """The record that GetRecords gives for a change. Asked for again, it is the same, its eventID included."""
    old: Item | None = None if change.old is None else from_json(change.old)
    new: Item | None = None if change.new is None else from_json(change.new)
    item = old if new is None else new
    keys = {name: value for name, value in (item or {}).items() if name in dict(stream.key)}
    images: dict[str, Item] = {}
    if new is not None and stream.view in _SHOWS_NEW:
        images["NewImage"] = new
    if old is not None and stream.view in _SHOWS_OLD:
        images["OldImage"] = old
    event = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
    identity = f"{stream_arn(stream.table_name, stream.label)}/{number}".encode()
    record: dict[str, Any] = {
        "eventID": hashlib.blake2b(identity, digest_size=16).hexdigest(),
        "eventName": event,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": REGION,
        "dynamodb": {
            "ApproximateCreationDateTime": float(change.microseconds // 1_000_000),
            "Keys": keys,
            **images,
            "SequenceNumber": number,
            "SizeBytes": item_size(keys) + sum(item_size(image) for image in images.values()),
            "StreamViewType": stream.view,
        },
    }
    if change.by_service:
        record["userIdentity"] = dict(_SERVICE)
    return record
