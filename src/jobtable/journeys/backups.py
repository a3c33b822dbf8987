"""Journeys as files: export with every item and object, import that is told what to do with what is there, removal."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from jobtable.errors import (
    AlreadyExistsError,
    ArchiveError,
    ConditionFailedError,
    ConflictError,
    IncompleteBatchError,
    RequestError,
)
from jobtable.journeys import aggregates
from jobtable.journeys.archive import MOST_BYTES, Archive, Manifest, checked_archive, write_archive
from jobtable.journeys.entities import JobExecution, Journey, SecondBrainRule, journeys
from jobtable.journeys.locations import journey_prefix
from jobtable.journeys.parts import Creation, JourneyStatus
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.store.backend import Item

_BATCH = 25
_METADATA = {"S": "METADATA"}


class Existing(StrEnum):
    """What an import does where the journey is there already."""

    REFUSE = "refuse"
    """Change nothing."""
    MERGE = "merge"
    """Add what is missing; what is there stays as it is, and the sums are counted anew."""
    REPLACE = "replace"
    """Make the journey what the file says: what the file does not have is removed."""


@dataclass(frozen=True)
class Imported:
    """What an import has brought in."""

    journey_id: str
    items: int
    objects: int
    removed_items: int
    removed_objects: int


class JourneyBackups:
    """Exports and imports journeys of one store and its object store."""

    def __init__(self, store: Store, objects: ObjectStore) -> None:
        self._store = store
        self._objects = objects

    def get_journey_complete(self, journey_id: str, path: Path) -> Manifest:
        """Write a journey with every item and every object to one file, which is there whole or not at all.

        ConflictError if the journey changes meanwhile: pause a journey that runs.
        """
        before = self._store.get(Journey.key(journey_id=journey_id))
        if before.creation is not None:
            raise ConflictError(f"journey {journey_id} is not there completely: finish its creation or import first")
        keys = (found.key for found in self._objects.list(journey_prefix(journey_id)))
        manifest = write_archive(path, journey_id, self.list_items(journey_id), keys, self._objects)
        after = self._store.find(Journey.key(journey_id=journey_id))
        if after is None or after.updated_at != before.updated_at:
            path.unlink()
            raise ConflictError(f"journey {journey_id} was changed while it was exported: pause it, then try again")
        return manifest

    def import_journey_complete(
        self, path: Path, existing: Existing = Existing.REFUSE, *, most_bytes: int = MOST_BYTES
    ) -> Imported:
        """Store what a file holds, after all of it was checked; an interrupted import goes on when it is called again.

        Until it is finished the journey says so (`creation`), and cannot be run.
        """
        with checked_archive(path, most_bytes=most_bytes) as archive:
            return _Import(self._store, self._objects, archive, existing, self.list_items).run()

    def delete_journey(self, journey_id: str) -> int:
        """Remove a journey with every item and object; gives the number of items. Refused while it runs."""
        journey = self._store.get(Journey.key(journey_id=journey_id))
        _refuse_running(journey, "delete")
        # The journey itself goes last: as long as something is left, the removal can be called again.
        keys = [_key(item) for item in self.list_items(journey_id) if item["SK"] != _METADATA]
        _delete_items(self._store, keys)
        for found in list(self._objects.list(journey_prefix(journey_id))):
            self._objects.delete(found.key)
        self._store.delete(Journey.key(journey_id=journey_id))
        return len(keys) + 1

    def list_items(self, journey_id: str) -> Iterator[Item]:
        """Every item of a journey as it is stored, in key order."""
        request: dict[str, Any] = {
            "TableName": self._store.table_name(journeys),
            "KeyConditionExpression": "PK = :pk",
            "ExpressionAttributeValues": {":pk": Journey.key(journey_id=journey_id).equal["PK"]},
            "ConsistentRead": True,
            "ReturnConsumedCapacity": "TOTAL",
        }
        while True:
            page = self._store.ask("Query", request, "Journey.export")
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


class _Import:
    """One import of one file that was checked."""

    def __init__(self, store: Store, objects: ObjectStore, archive: Archive, existing: Existing, items: Any) -> None:
        self._store = store
        self._objects = objects
        self._archive = archive
        self._existing = existing
        self._items_of = items
        self._journey_id = archive.manifest.journey_id
        self._selection = Journey.key(journey_id=self._journey_id)
        self._prefix = journey_prefix(self._journey_id)

    def run(self) -> Imported:
        is_merged = self._mark()
        objects = self._put_objects(is_merged)
        items = self._put_items(is_merged)
        removed_items = removed_objects = 0
        if self._existing is Existing.REPLACE:
            removed_items, removed_objects = self._remove_others()
        if is_merged:
            self._recount()
        else:
            self._put_raw([item for item in self._archive.items() if item["SK"] == _METADATA])
        return Imported(self._journey_id, items, objects, removed_items, removed_objects)

    def _mark(self) -> bool:
        """Mark the journey as being imported; gives whether it was there before and is merged into."""
        there = self._store.find(self._selection)
        begun = there.creation.fingerprint if there is not None and there.creation is not None else None
        if begun in (self._mark_text(is_merged=False), self._mark_text(is_merged=True)):
            return begun == self._mark_text(is_merged=True)
        if there is not None:
            _refuse_running(there, "import over")
        if self._existing is Existing.REFUSE and (there is not None or self._has_anything()):
            raise AlreadyExistsError(f"journey {self._journey_id} is there already: choose to merge or to replace it")
        if self._existing is Existing.MERGE and there is not None:
            self._mark_merged(there)
            return True
        marker = self._marker(is_merged=False)
        item = next(item for item in self._archive.items() if item["SK"] == _METADATA)
        coming: Journey = Journey.__schema__.codec.decode(item)
        coming = coming.replace(creation=marker, status=JourneyStatus.PENDING)
        if there is None:
            self._store.add(coming)
        else:
            self._conditionally(lambda: self._store.put(coming, when=Journey.status != JourneyStatus.RUNNING))
        return False

    def _mark_merged(self, there: Journey) -> None:
        if there.creation is not None:
            raise ConflictError(f"another import of journey {self._journey_id} is not finished: finish it first")
        can_begin = (Journey.status != JourneyStatus.RUNNING) & Journey.creation.missing()
        marker = Journey.creation.set(self._marker(is_merged=True))
        self._conditionally(lambda: self._store.update(self._selection, marker, when=can_begin))

    def _conditionally(self, write: Any) -> None:
        try:
            write()
        except ConditionFailedError as error:
            raise ConflictError(f"journey {self._journey_id} began to run meanwhile: pause or cancel it") from error

    def _marker(self, *, is_merged: bool) -> Creation:
        total = self._archive.manifest.items.count
        return Creation(done=0, total=total, fingerprint=self._mark_text(is_merged=is_merged))

    def _mark_text(self, *, is_merged: bool) -> str:
        how = "into" if is_merged else "anew"
        return f"import {self._existing.value} {how} {self._archive.digest}"

    def _has_anything(self) -> bool:
        has_item = next(self._items_of(self._journey_id), None) is not None
        return has_item or next(self._objects.list(self._prefix), None) is not None

    def _put_objects(self, is_merged: bool) -> int:
        there = {found.key for found in self._objects.list(self._prefix)} if is_merged else set()
        put = 0
        for entry in self._archive.manifest.objects:
            if entry.key in there:
                continue
            with self._archive.open_object(entry) as source:
                info = self._objects.put(entry.key, source)
            if info.sha256 != entry.sha256:
                raise ArchiveError(f"the file changed while it was imported: {entry.key} is not what it was")
            put += 1
        return put

    def _put_items(self, is_merged: bool) -> int:
        items = (item for item in self._archive.items() if item["SK"] != _METADATA)
        if is_merged:
            return sum(self._add_raw(item) for item in items)
        return self._put_raw(items) + 1

    def _put_raw(self, items: Iterable[Item]) -> int:
        return _write_batches(self._store, ({"PutRequest": {"Item": item}} for item in items))

    def _add_raw(self, item: Item) -> bool:
        """Store an item where none is; says whether it was stored."""
        request = {
            "TableName": self._store.table_name(journeys),
            "Item": item,
            "ConditionExpression": "attribute_not_exists(PK)",
            "ReturnConsumedCapacity": "TOTAL",
        }
        try:
            self._store.ask("PutItem", request, "Journey.import", writes=True)
        except RequestError as error:
            if error.code != "ConditionalCheckFailedException":
                raise
            return False
        return True

    def _remove_others(self) -> tuple[int, int]:
        """Remove what the file does not have: the records first, then the objects."""
        here = ((_sort_key(item), 0, _key(item)) for item in self._items_of(self._journey_id))
        coming = ((_sort_key(item), 1, _key(item)) for item in self._archive.items())
        # Both are in key order: where a key comes only from here, the file does not have it.
        only_here: list[Item] = []
        last: tuple[bytes, Item] | None = None
        for sort, origin, key in heapq.merge(here, coming, key=lambda entry: entry[:2]):
            if last is not None and last[0] != sort:
                only_here.append(last[1])
            last = (sort, key) if origin == 0 else None
        if last is not None:
            only_here.append(last[1])
        _delete_items(self._store, only_here)
        wanted = {entry.key for entry in self._archive.manifest.objects}
        others = [found.key for found in self._objects.list(self._prefix) if found.key not in wanted]
        for other in others:
            self._objects.delete(other)
        return len(only_here), len(others)

    def _recount(self) -> None:
        """Count the merged journey anew, and take the mark away."""
        executions = list(self._store.query(JobExecution.key(journey_id=self._journey_id)))
        rules = self._store.query(SecondBrainRule.key(journey_id=self._journey_id))
        counts: dict[str, int] = {}
        for execution in executions:
            counts[execution.stage_id] = max(execution.execution_number, counts.get(execution.stage_id, 0))
        journey = self._store.get(self._selection)
        for stage_id, count in (journey.execution_counts or {}).items():
            counts[stage_id] = max(count, counts.get(stage_id, 0))
        self._store.update(
            self._selection,
            Journey.aggregates.set(aggregates.recount(executions, rules)),
            Journey.execution_counts.set(counts),
            Journey.creation.remove(),
        )


def _refuse_running(journey: Journey, verb: str) -> None:
    if journey.status is JourneyStatus.RUNNING:
        raise ConflictError(f"cannot {verb} journey {journey.journey_id} while it runs: pause or cancel it first")


def _key(item: Item) -> Item:
    return {"PK": item["PK"], "SK": item["SK"]}


def _sort_key(item: Item) -> bytes:
    text: str = item["SK"]["S"]
    return text.encode("utf-8", "surrogatepass")


def _delete_items(store: Store, keys: Iterable[Item]) -> int:
    return _write_batches(store, ({"DeleteRequest": {"Key": key}} for key in keys))


def _write_batches(store: Store, writes: Iterable[Item]) -> int:
    """Send writes in requests of 25, and again what the backend leaves unprocessed; gives their number."""
    iterator, count = iter(writes), 0
    while batch := list(islice(iterator, _BATCH)):
        left: dict[str, Any] = {store.table_name(journeys): batch}
        pauses = store.backoff.pauses()
        while left:
            request = {"RequestItems": left, "ReturnConsumedCapacity": "TOTAL"}
            left = store.ask("BatchWriteItem", request, "Journey.import", writes=True).get("UnprocessedItems") or {}
            if left and next(pauses, left) is left:
                raise IncompleteBatchError("the backend left items of a journey unprocessed", tuple(left.items()))
        count += len(batch)
    return count
