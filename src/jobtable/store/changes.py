"""The feed of changes: what was added, changed and removed in a table, read from its stream.

A stream consists of shards. A shard ends after some hours, or when its table grows, and is continued by other shards
that name it as their parent. So the feed tracks its position in each shard, reads a shard to its end before its
children, and lists the shards now and then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from jobtable.errors import RequestRefused, StreamExpired, TableNotFound
from jobtable.model.entity import Entity
from jobtable.model.table import Table
from jobtable.store.backend import Item, Request, Response
from jobtable.store.collections import entity_of
from jobtable.store.cursors import made_up, read_cursor, write_cursor

if TYPE_CHECKING:
    from jobtable.store.store import Store

_VIEW = "NEW_AND_OLD_IMAGES"
_ITERATOR_EXPIRED = "ExpiredIteratorException"
_LIST_SHARDS_EVERY_SECONDS = 60.0
_KINDS: dict[str, Literal["added", "changed", "removed"]] = {
    "INSERT": "added",
    "MODIFY": "changed",
    "REMOVE": "removed",
}


@dataclass(frozen=True)
class Change:
    """One change of one item. `before` and `after` are decoded on first use."""

    table: Table
    kind: Literal["added", "changed", "removed"]
    at: datetime
    """When it happened, to the second."""
    old_item: Item | None
    new_item: Item | None
    is_expiry: bool
    """Whether the item's time to live had passed: nobody else removed it."""

    @cached_property
    def before(self) -> Entity | None:
        """The entity before the change; None if it was added."""
        return None if self.old_item is None else entity_of(self.table, self.old_item)

    @cached_property
    def after(self) -> Entity | None:
        """The entity after the change; None if it was removed."""
        return None if self.new_item is None else entity_of(self.table, self.new_item)

    def is_of(self, *entities: type[Entity]) -> bool:
        """Return whether the item is of one of these kinds, without decoding it."""
        attribute = self.table.type_attribute
        schemas = [entity.__schema__ for entity in entities if entity.__schema__.table is self.table]
        if attribute is None:
            return bool(schemas)
        stored = (self.new_item or self.old_item or {}).get(attribute, {}).get("S")
        return any(schema.type_name == stored for schema in schemas)


@dataclass(frozen=True)
class _Shard:
    """How far one shard is read: behind a change, at an iterator, or, with neither, nowhere yet."""

    after: str | None = None
    iterator: str | None = None
    is_ended: bool = False

    def saved(self) -> dict[str, Any]:
        """As a cursor keeps it. An iterator lasts 15 minutes and a change's number a day, so the number is kept."""
        if self.is_ended:
            return {"ended": True}
        if self.after is not None:
            return {"after": self.after}
        return {} if self.iterator is None else {"iterator": self.iterator}

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> _Shard:
        return cls(saved.get("after"), saved.get("iterator"), saved.get("ended", False))


class Feed:
    """The changes of one table, from now on or after a cursor. One thread at a time may use a feed.

    - Some `read` returns each change that is acknowledged after the feed was created, exactly once. A `read` that
      raises returns nothing, and the next one starts at the same position.
    - The changes of one item come in order; on the embedded engine, so do those of all items.
    - A stream keeps changes for a day. A feed or cursor that falls further behind raises StreamExpired: create a new
      feed first, then read again what is shown, so that no change is missed.
    """

    def __init__(self, store: Store, table: Table, after: str | None = None) -> None:
        self._store = store
        self._table = table
        self._name = store.table_name(table)
        self._bound_to = f"changes of {self._name}".encode()
        self._arn = self._stream_arn()
        self._listed_at = store.clock.monotonic()
        self._shards = self._begin() if after is None else self._restore(after)
        self._childless = {shard_id for shard_id, shard in self._shards.items() if shard.is_ended}

    @property
    def cursor(self) -> str:
        """The position after everything that was read, as opaque URL-safe text.

        It is valid for 15 minutes, and for a day if something was read from every shard.
        """
        shards = {shard_id: shard.saved() for shard_id, shard in self._shards.items()}
        return write_cursor({"stream": self._arn, "shards": shards}, self._bound_to)

    def read(self) -> list[Change]:
        """Return what has changed since the last read, up to 1 MB of each shard; empty if nothing has.

        Read again at once after changes, otherwise after a pause: DynamoDB answers five reads a second.
        """
        self._add_children()
        moved: dict[str, _Shard] = {}
        changes: list[Change] = []
        for shard_id, shard in self._shards.items():
            if not shard.is_ended:
                moved[shard_id], records = self._read_shard(shard_id, shard)
                changes += [self._change(record) for record in records]
        self._shards.update(moved)
        self._childless |= {shard_id for shard_id, shard in moved.items() if shard.is_ended}
        return changes

    # --- shards -----------------------------------------------------------------------------------------------------

    def _begin(self) -> dict[str, _Shard]:
        """The end of every open shard. One that has ended and whose children are not listed yet goes on with them."""
        listed = list(self._list_shards())
        parents = {shard.get("ParentShardId") for shard in listed}
        latest = {"ShardIteratorType": "LATEST"}
        begun: dict[str, _Shard] = {}
        for shard in listed:
            shard_id = shard["ShardId"]
            if "EndingSequenceNumber" not in shard["SequenceNumberRange"]:
                begun[shard_id] = _Shard(iterator=self._iterator(shard_id, latest))
            elif shard_id not in parents:
                begun[shard_id] = _Shard(is_ended=True)
        return begun

    def _read_shard(self, shard_id: str, shard: _Shard) -> tuple[_Shard, list[dict[str, Any]]]:
        iterator = shard.iterator or self._iterator(shard_id, _start_of(shard))
        try:
            response = self._ask("GetRecords", {"ShardIterator": iterator})
        except StreamExpired as error:
            if error.code != _ITERATOR_EXPIRED:
                raise
            if shard.after is None:
                raise _expired(self._name) from error
            response = self._ask("GetRecords", {"ShardIterator": self._iterator(shard_id, _start_of(shard))})
        records = response["Records"]
        after = records[-1]["dynamodb"]["SequenceNumber"] if records else shard.after
        following = response.get("NextShardIterator")
        return _Shard(after, following, is_ended=following is None), records

    def _add_children(self) -> None:
        """Go on with the children of shards that have ended, as soon as the stream lists them."""
        now = self._store.clock.monotonic()
        if self._shards and not self._childless and now - self._listed_at < _LIST_SHARDS_EVERY_SECONDS:
            return
        self._listed_at = now
        listed = {shard["ShardId"]: shard for shard in self._list_shards()}
        ended = {shard_id for shard_id, shard in self._shards.items() if shard.is_ended}
        was_new = not self._shards  # the stream had no shards yet
        for shard_id, shard in listed.items():
            parent = shard.get("ParentShardId")
            if parent in ended or (was_new and parent not in listed):
                self._shards.setdefault(shard_id, _Shard())
                self._childless.discard(parent)
        for shard_id in ended - listed.keys():
            del self._shards[shard_id]
            self._childless.discard(shard_id)

    def _list_shards(self) -> Iterator[dict[str, Any]]:
        request: Request = {"StreamArn": self._arn}
        while True:
            description = self._ask("DescribeStream", request)["StreamDescription"]
            if description["StreamStatus"] == "DISABLED":
                raise _expired(self._name)
            yield from description["Shards"]
            if "LastEvaluatedShardId" not in description:
                return
            request["ExclusiveStartShardId"] = description["LastEvaluatedShardId"]

    def _stream_arn(self) -> str:
        described = self._store.tables.describe(self._table)
        stream = described.get("StreamSpecification", {})
        if not stream.get("StreamEnabled"):
            raise TableNotFound(f"table {self._name} has no stream: it was created without `stream=True`")
        if stream["StreamViewType"] != _VIEW:
            raise RequestRefused(f"the stream of table {self._name} shows {stream['StreamViewType']}, not {_VIEW}")
        arn: str = described["LatestStreamArn"]
        return arn

    def _restore(self, cursor: str) -> dict[str, _Shard]:
        place = read_cursor(cursor, self._bound_to)
        try:
            stream, shards = place["stream"], {key: _Shard.restored(saved) for key, saved in place["shards"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise made_up() from error
        if stream != self._arn:
            raise _expired(self._name)
        return shards

    def _iterator(self, shard_id: str, start: Request) -> str:
        request = {"StreamArn": self._arn, "ShardId": shard_id, **start}
        try:
            iterator: str = self._ask("GetShardIterator", request)["ShardIterator"]
        except RequestRefused as error:
            # The stream has no such change: the table was put back to an earlier state.
            raise _expired(self._name) from error
        return iterator

    def _ask(self, operation: str, request: Request) -> Response:
        try:
            return self._store.ask(operation, request, f"changes.{operation}")
        except TableNotFound as error:
            raise _expired(self._name) from error
        except StreamExpired as error:
            if error.code == _ITERATOR_EXPIRED:
                raise
            raise _expired(self._name) from error

    def _change(self, record: dict[str, Any]) -> Change:
        data = record["dynamodb"]
        return Change(
            self._table,
            _KINDS[record["eventName"]],
            datetime.fromtimestamp(data["ApproximateCreationDateTime"], UTC),
            data.get("OldImage"),
            data.get("NewImage"),
            is_expiry="dynamodb.amazonaws.com" in record.get("userIdentity", {}).values(),
        )


def _start_of(shard: _Shard) -> Request:
    if shard.after is None:
        return {"ShardIteratorType": "TRIM_HORIZON"}
    return {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": shard.after}


def _expired(name: str) -> StreamExpired:
    return StreamExpired(f"the cursor in the stream of table {name} expired; create a new feed and read again")
