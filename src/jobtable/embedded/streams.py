"""The streams API: what changed in a table during the last day, in order, read from its journal."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pydantic_core import from_json

from jobtable.embedded.descriptions import told_time
from jobtable.embedded.request_checks import check_members
from jobtable.embedded.request_model import REQUESTS, STRUCTURES, table_of_arn
from jobtable.embedded.storage import Storage, Transaction, View, journal
from jobtable.embedded.storage.journal import Change
from jobtable.embedded.storage.table_catalogue import StreamRecord, TableRecord, ViewType
from jobtable.embedded.table_names import REGION, is_stream_arn, stream_arn, stream_of_arn, valid_name
from jobtable.embedded.wordings import constraint, constraints_broken, invalid
from jobtable.errors import RequestRefused, StreamExpired, TableNotFound, request_error
from jobtable.store.backend import Item, Request, Response
from jobtable.store.sizes import item_size

_SERVICE = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
_SHOWS_NEW = ("NEW_IMAGE", "NEW_AND_OLD_IMAGES")
_SHOWS_OLD = ("OLD_IMAGE", "NEW_AND_OLD_IMAGES")


def _record_of(stream: StreamRecord, change: Change, number: str) -> dict[str, Any]:
    """Return the record of a change for GetRecords. It is always the same, including its eventID."""
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


_MOST_STREAMS = 100
_MOST_RECORDS = 1000
_MOST_BYTES = 1024 * 1024
_ITERATOR_SECONDS = 15 * 60
_DIGITS = 21
_LARGEST = 2**62
_TRIMMED = "The operation attempted to read past the oldest stream record in a shard."


class _Place(NamedTuple):
    """A position in a stream: the next change to read, and when the iterator was made."""

    stream: StreamRecord
    sequence: int
    made: float


def enabled(transaction: Transaction, record: TableRecord, view: ViewType, now: float) -> TableRecord:
    """Return the table with a new stream that begins here."""
    moment = datetime.fromtimestamp(now, UTC)
    while journal.find_stream(transaction, record.name, label := _label(moment)) is not None:
        moment += timedelta(milliseconds=1)
    key = [(record.partition, "HASH")] + ([(record.sort, "RANGE")] if record.sort else [])
    stream = StreamRecord(
        label=label,
        view=view,
        created=now,
        after_sequence=journal.last_sequence(transaction, record.id),
        table_name=record.name,
        table_id=record.id,
        key=tuple(key),
    )
    journal.save_stream(transaction, stream)
    return record.model_copy(update={"stream": stream, "latest_stream_label": label})


def disabled(transaction: Transaction, record: TableRecord, now: float) -> TableRecord:
    """Return the table without its stream, which ends here and stays readable for another day."""
    if record.stream is not None:
        end = {"closed": now, "last_sequence": journal.last_sequence(transaction, record.id)}
        journal.save_stream(transaction, record.stream.model_copy(update=end))
    return record.model_copy(update={"stream": None})


def list_streams(storage: Storage, request: Request) -> Response:
    """ListStreams, of one table or of all."""
    limit = _limit(request, _MOST_STREAMS, "Limit cannot be greater than the maximum allowed size: 100")
    name, start = request.get("TableName"), _arn(request, "ExclusiveStartStreamArn")
    if name is not None:
        name = table_of_arn(name) or valid_name(name)
    after = None if start is None else stream_of_arn(start)
    with storage.read() as view:
        found = [] if start is not None and after is None else journal.streams(view, name, after, limit + 1)
    response: Response = {"Streams": [_summary(stream) for stream in found[:limit]]}
    if len(found) > limit:
        response["LastEvaluatedStreamArn"] = response["Streams"][-1]["StreamArn"]
    return response


def describe(storage: Storage, request: Request) -> Response:
    """DescribeStream: the stream and its one shard."""
    arn = _arn(request, "StreamArn")
    if arn is None:
        raise RequestRefused("Invalid StreamArn")
    _limit(request, _MOST_STREAMS, "Limit cannot be greater than the maximum allowed size: 100")
    check_members(request, REQUESTS["DescribeStream"])
    shard_filter = request.get("ShardFilter")
    if shard_filter is not None:
        check_members(shard_filter, STRUCTURES["ShardFilter"], "shardFilter.")
    with storage.read() as view:
        stream = _find(view, arn)
    if stream is None:
        raise TableNotFound(f"Requested resource not found: Stream: {arn} not found")
    numbers = {"StartingSequenceNumber": _number(stream.after_sequence)}
    if stream.last_sequence is not None:
        numbers["EndingSequenceNumber"] = _number(stream.last_sequence)
    shard = {"ShardId": _shard(stream), "SequenceNumberRange": numbers}
    start = request.get("ExclusiveStartShardId") or ""
    description: dict[str, Any] = {
        "StreamArn": arn,
        "StreamLabel": stream.label,
        "StreamStatus": "ENABLED" if stream.closed is None else "DISABLED",
        "StreamViewType": stream.view,
        "CreationRequestDateTime": told_time(stream.created),
        "TableName": stream.table_name,
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in stream.key],
        # A shard is never split, so it has no children, which are all that a filter can ask for.
        "Shards": [shard] if _shard(stream) > start and shard_filter is None else [],
    }
    return {"StreamDescription": description}


def iterator(storage: Storage, request: Request) -> Response:
    """GetShardIterator; it can be used for 15 minutes."""
    shard, arn = request.get("ShardId"), _arn(request, "StreamArn")
    if shard is None:
        raise RequestRefused("No ShardId specified.")
    if arn is None:
        raise invalid("streamArn cannot be empty or null.")
    check_members(request, REQUESTS["GetShardIterator"])
    kind = request["ShardIteratorType"]
    number = _sequence_number(request, kind)
    moment = _timestamp(request, kind, storage.now())
    with storage.read() as view:
        stream = _find(view, arn)
        if stream is None:
            raise TableNotFound("Stream does not exist")
        if shard != _shard(stream):
            raise TableNotFound("Shard does not exist")
        if moment is not None:
            sequence = _oldest(view, stream, storage.now())
            if journal.exists(view, stream.table_id):  # whose records tell their times in whole seconds
                sequence = max(sequence, journal.sequence_after(view, stream.table_id, int(moment) - 1e-6))
        else:
            sequence = _start(view, stream, kind, number, storage.now())
    return {"ShardIterator": _iterator_text(_Place(stream, sequence, storage.now()))}


def records(storage: Storage, request: Request) -> Response:
    """GetRecords: return up to 1000 changes or 1 MB and the next iterator; none at the end of a closed stream."""
    limit = _limit(request, _MOST_RECORDS, "Limit should be less than or equal to 1000")
    now = storage.now()
    with storage.read() as view:
        place = _place_of(view, request.get("ShardIterator"))
        if now - place.made > _ITERATOR_SECONDS:
            raise request_error("ExpiredIteratorException", "The ShardIterator has expired; get a new one")
        stream, sequence = place.stream, place.sequence
        if sequence < _oldest(view, stream, now):
            raise StreamExpired(_TRIMMED)
        found: list[Response] = []
        size = 0
        for change in journal.changes(view, stream.table_id, sequence, stream.last_sequence, limit):
            record = _record_of(stream, change, _number(change.sequence))
            size += record["dynamodb"]["SizeBytes"]
            if found and size > _MOST_BYTES:
                break
            found.append(record)
            sequence = change.sequence + 1
    if stream.last_sequence is not None and sequence > stream.last_sequence:
        return {"Records": found}
    return {"Records": found, "NextShardIterator": _iterator_text(_Place(stream, sequence, now))}


def _label(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}"


def _summary(stream: StreamRecord) -> dict[str, str]:
    arn = stream_arn(stream.table_name, stream.label)
    return {"StreamArn": arn, "TableName": stream.table_name, "StreamLabel": stream.label}


def _limit(request: Request, most: int, message: str) -> int:
    limit: int | None = request.get("Limit")
    if limit is None:
        return most
    if limit < 1:
        rule = "Member must have value greater than or equal to 1"
        raise constraints_broken([constraint("limit", f"'{limit}'", rule)])
    if limit > most:
        raise invalid(f"{message}")
    return limit


def _arn(request: Request, member: str) -> str | None:
    """Return the stream ARN of a request, or None; RequestRefused for another text."""
    arn = request.get(member)
    if arn is not None and not is_stream_arn(arn):
        raise RequestRefused(f"Invalid StreamArn: {arn}")
    return arn


def _find(view: View, arn: str) -> StreamRecord | None:
    table, label = stream_of_arn(arn) or ("", "")
    return journal.find_stream(view, table, label)


def _shard(stream: StreamRecord) -> str:
    mark = hashlib.blake2b(f"{stream.table_id}/{stream.label}".encode(), digest_size=4).hexdigest()
    return f"shardId-{int(stream.created * 1000):020d}-{mark}"


def _number(sequence: int) -> str:
    return f"{sequence:0{_DIGITS}d}"


def _timestamp(request: Request, kind: str, now: float) -> float | None:
    """Return the time from which an iterator reads."""
    moment = request.get("Timestamp")
    if kind != "AT_TIMESTAMP":
        if moment is not None:
            raise invalid("Timestamp should not be passed for this iterator type")
        return None
    if moment is None:
        raise invalid("Timestamp must be passed for this iterator type")
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not math.isfinite(moment):
        raise RequestRefused("Timestamp must be a number of seconds", code="SerializationException")
    if moment > now:
        raise invalid("Timestamp must not be in the future")
    return float(moment)


def _sequence_number(request: Request, kind: str) -> int | None:
    number: str | None = request.get("SequenceNumber")
    if kind in ("TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"):
        if number is not None:
            raise invalid("SequenceNumber should not be passed for this iterator type")
        return None
    if number is not None and len(number) < _DIGITS:
        rule = f"Member must have length greater than or equal to {_DIGITS}"
        raise constraints_broken([constraint("sequenceNumber", f"'{number}'", rule)])
    if number is None or not (number.isascii() and number.isdigit()) or len(number) > 40:
        raise invalid("Invalid SequenceNumber")
    return int(number)


def _start(view: View, stream: StreamRecord, kind: str, number: int | None, now: float) -> int:
    """Return the first change that an iterator reads."""
    oldest = _oldest(view, stream, now)
    end = (journal.last_sequence(view, stream.table_id) if stream.last_sequence is None else stream.last_sequence) + 1
    if number is None:
        return end if kind == "LATEST" else oldest
    if not stream.after_sequence <= number < end:
        raise RequestRefused("Invalid SequenceNumber for the shard")
    # No change of the shard has its starting number.
    start = number + 1 if kind == "AFTER_SEQUENCE_NUMBER" or number == stream.after_sequence else number
    if start < oldest:
        raise StreamExpired(_TRIMMED)
    return start


def _oldest(view: View, stream: StreamRecord, now: float) -> int:
    """Return the first change of the stream that is at most a day old."""
    if not journal.exists(view, stream.table_id):
        return stream.after_sequence + 1
    kept = journal.sequence_after(view, stream.table_id, now - journal.STREAM_SECONDS)
    return max(kept, stream.after_sequence + 1)


def _iterator_text(place: _Place) -> str:
    content = f"{_shard(place.stream)}|{_number(place.sequence)}|{int(place.made * 1000):0{_DIGITS}d}"
    arn = stream_arn(place.stream.table_name, place.stream.label)
    return f"{arn}|1|{base64.b64encode(content.encode()).decode()}"


def _place_of(view: View, given: str | None) -> _Place:
    parts = (given or "").split("|")
    try:
        arn, _, encoded = parts
        shard, sequence, made = base64.b64decode(encoded, validate=True).decode().split("|")
        numbers = int(sequence), int(made)
    except (ValueError, binascii.Error) as error:
        raise RequestRefused("Invalid ShardIterator") from error
    stream = _find(view, arn)
    if stream is None:
        raise TableNotFound(f"Requested resource not found: Stream: {arn} not found")
    if shard != _shard(stream) or not stream.after_sequence < numbers[0] < _LARGEST or numbers[1] > _LARGEST:
        raise RequestRefused("Invalid ShardIterator")
    return _Place(stream, numbers[0], numbers[1] / 1000)
