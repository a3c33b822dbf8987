"""The migration from the legacy table to the main one: streamed, resumable, repeatable, with a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from pydantic import ValidationError

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import AlreadyExistsError, ItemShapeError, ValueRefusedError
from jobtable.jobs.stored.entities import Queue, QueueJob
from jobtable.model import Attr, Entity, Json, Part, Table, Timestamp, default
from jobtable.store import Item, Store
from jobtable.store.scans import pages
from jobtable.systems.receipts.entities.record_bases import key_of
from jobtable.systems.receipts.legacy.entities import ReceiptWord, ReceiptWordTag, legacy
from jobtable.systems.receipts.legacy.queued import QueuedJobs
from jobtable.systems.receipts.legacy.successors import WITHOUT_SUCCESSOR, kind_of, successor

ITEMS_A_STEP = 200
_NAME = "receipts-001-to-000"
_WRITERS = 16
_MOST_EXAMPLES = 10
"""The number of keys that the report names for each reason."""

migrations = Table("jobtable-migrations", pk="name")
"""The table in which migrations keep their progress."""


class Tally(Part):
    """The results for the items of one kind."""

    read: int = 0
    migrated: int = 0
    """Items that the main table now has."""
    kept: int = 0
    """Items whose key holds something else in the main table, which stays."""
    unmapped: int = 0


class MigrationProblem(Part):
    """A reason why some items were not migrated completely."""

    reason: str
    count: int
    examples: list[str]
    """The keys of the first ones."""


class MigrationCheckpoint(Entity, table=migrations):
    """The progress of a migration and its results so far."""

    name: str
    started_at: Timestamp
    updated_at: Attr[Timestamp]
    finished: Attr[bool] = default(False)
    position: Attr[Json] = default(None)
    """The key of the last item that was processed."""
    kinds: Attr[dict[str, Tally]] = default({})
    problems: Attr[list[MigrationProblem]] = default([])


@dataclass(frozen=True)
class ItemOutcome:
    """The result for one legacy item."""

    kind: str
    became: Literal["migrated", "kept", "unmapped"]
    key: str
    reason: str | None = None


@dataclass
class MigrationReport:
    """The results of a migration over all its runs since the start."""

    finished: bool = False
    kinds: dict[str, Tally] = field(default_factory=dict)
    """By the type of the legacy items."""
    problems: dict[str, MigrationProblem] = field(default_factory=dict)
    """By reason."""

    def take(self, outcome: ItemOutcome) -> None:
        """Add the result for one item."""
        kind, became = outcome.kind or "UNKNOWN", outcome.became
        tally = self.kinds.get(kind, Tally())
        self.kinds[kind] = tally.replace(read=tally.read + 1, **{became: getattr(tally, became) + 1})
        if outcome.reason is not None:
            known = self.problems.get(outcome.reason, MigrationProblem(reason=outcome.reason, count=0, examples=[]))
            examples = [*known.examples, outcome.key][:_MOST_EXAMPLES]
            self.problems[outcome.reason] = known.replace(count=known.count + 1, examples=examples)

    @property
    def read(self) -> int:
        """The number of legacy items that were read."""
        return sum(tally.read for tally in self.kinds.values())


class Migration:
    """Copies the legacy table of a store into the main table of the same store or another one.

    Never overwrites items of the main table or deletes from the legacy table, so it can run at any time, even while
    both tables are in use.
    """

    def __init__(self, source: Store, target: Store, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._source = source
        self._target = target
        self._clock = clock
        self._queued = QueuedJobs(source, target)

    def run(
        self, progress: Callable[[MigrationReport], None] | None = None, *, dry_run: bool = False
    ) -> MigrationReport:
        """Migrate everything and return the results since the first start. An interrupted run is resumed.

        A finished migration starts over. A dry run reads everything from the start and writes nothing.
        """
        checkpoint = MigrationCheckpoint(name=_NAME, started_at=self._clock.now(), updated_at=self._clock.now())
        if not dry_run:
            self._target.tables.create(migrations)
            found = self._target.find(MigrationCheckpoint.key(name=_NAME))
            if found is not None and not found.finished:
                checkpoint = found
        report = MigrationReport(kinds=dict(checkpoint.kinds), problems={p.reason: p for p in checkpoint.problems})
        with ThreadPoolExecutor(_WRITERS) as writers:
            for items, position in self._pages(checkpoint.position):
                for outcome in writers.map(partial(self._migrate, dry_run=dry_run), items):
                    report.take(outcome)
                report.finished = position is None
                if not dry_run:
                    checkpoint = self._save(checkpoint, report, position)
                if progress:
                    progress(report)
        return report

    def _pages(self, start: Item | None) -> Iterator[tuple[list[Item], Item | None]]:
        """Yield the items of the legacy table in pages, each with the position of the next; None after the last."""
        request: dict[str, Any] = {"TableName": self._source.table_name(legacy), "Limit": ITEMS_A_STEP}
        request |= {"ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"}
        request |= {} if start is None else {"ExclusiveStartKey": start}
        for page in pages(partial(self._source.ask, pattern="migration.scan"), "Scan", request):
            yield page["Items"], page.get("LastEvaluatedKey")

    def _save(
        self, checkpoint: MigrationCheckpoint, report: MigrationReport, position: Item | None
    ) -> MigrationCheckpoint:
        saved = checkpoint.replace(
            updated_at=self._clock.now(),
            finished=report.finished,
            position=position,
            kinds=report.kinds,
            problems=list(report.problems.values()),
        )
        self._target.put(saved)
        return saved

    def _migrate(self, item: Item, *, dry_run: bool) -> ItemOutcome:
        kind, key = kind_of(item), f"{item['PK']['S']} {item['SK']['S']}"
        if kind not in legacy.entities:
            return ItemOutcome(kind, "unmapped", key, "the kind of the item is unknown")
        try:
            entity = legacy.entities[kind].codec.decode(item)
            mapped = successor(entity)
            if mapped is None:
                return ItemOutcome(kind, "unmapped", key, WITHOUT_SUCCESSOR[kind])
            mapped, problem = self._queued.complete(mapped)
            if mapped is None:
                return ItemOutcome(kind, "unmapped", key, problem)
            is_written = self._is_written(mapped, dry_run=dry_run)
        except ItemShapeError:
            return ItemOutcome(kind, "unmapped", key, "the item does not have the shape of its kind")
        except (ValidationError, ValueRefusedError):
            return ItemOutcome(kind, "unmapped", key, "the main table rejects one of its values")
        if not is_written:
            return ItemOutcome(kind, "kept", key, "the main table has another item with this key, which stays")
        return ItemOutcome(kind, "migrated", key, problem or self._what_is_lost(entity))

    def _what_is_lost(self, entity: Entity) -> str | None:
        """Report a tag that is only in its word's list: labels are made from tag items, so it is lost."""
        if not isinstance(entity, ReceiptWord) or not entity.tags:
            return None
        items = {tag.tag_name for tag in self._source.query(ReceiptWordTag.key(**key_of(entity).values))}
        lost = set(entity.tags) - items
        return "a tag in its list has no tag item, so it gets no label" if lost else None

    def _is_written(self, entity: Entity, *, dry_run: bool) -> bool:
        """Return whether the main table has this entity now or, in a dry run, would have it."""
        if dry_run:
            type(entity).__schema__.codec.encode(entity)  # raises if it could not be stored
        else:
            try:
                self._add(entity)
            except AlreadyExistsError:
                pass  # by an earlier run or another program; compared below
            else:
                return True
        try:
            found = self._target.find(key_of(entity))
        except ItemShapeError:
            return False
        if isinstance(found, Queue):
            found = found.replace(job_count=0)  # the count of jobs that came later does not matter
        return found == entity or (found is None and dry_run)

    def _add(self, entity: Entity) -> None:
        if isinstance(entity, QueueJob):
            self._queued.add(entity)
        else:
            self._target.add(entity)
