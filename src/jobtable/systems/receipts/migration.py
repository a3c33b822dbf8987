"""From the legacy table to the main one: streamed, resumable, safe to run again, with a report."""

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
from jobtable.systems.receipts.legacy.entities import ReceiptWord, ReceiptWordTag, legacy
from jobtable.systems.receipts.legacy.queued import QueuedJobs
from jobtable.systems.receipts.legacy.successors import WITHOUT_SUCCESSOR, kind_of, successor

ITEMS_A_STEP = 200
_NAME = "receipts-001-to-000"
_WRITERS = 16
_MOST_EXAMPLES = 10
"""How many keys the report names for each reason."""

migrations = Table("jobtable-migrations", pk="name")
"""Where migrations keep how far they are."""


class Tally(Part):
    """What became of the items of one kind."""

    read: int = 0
    migrated: int = 0
    """They stand in the main table as the legacy table has them."""
    kept: int = 0
    """The main table had something else under their key, and that stays."""
    unmapped: int = 0


class Problem(Part):
    """Why some items were not migrated."""

    reason: str
    count: int
    examples: list[str]
    """The keys of the first ones."""


class Checkpoint(Entity, table=migrations):
    """How far a migration is, and what it has done until there."""

    name: str
    started_at: Timestamp
    updated_at: Attr[Timestamp]
    finished: Attr[bool] = default(False)
    position: Attr[Json] = default(None)
    """The key of the last item that was dealt with."""
    kinds: Attr[dict[str, Tally]] = default({})
    problems: Attr[list[Problem]] = default([])


@dataclass(frozen=True)
class Outcome:
    """What became of one legacy item."""

    kind: str
    became: Literal["migrated", "kept", "unmapped"]
    key: str
    reason: str | None = None


@dataclass
class Report:
    """What a migration did, over all its runs since it was started."""

    finished: bool = False
    kinds: dict[str, Tally] = field(default_factory=dict)
    """By the legacy items' type."""
    problems: dict[str, Problem] = field(default_factory=dict)
    """By reason."""

    def take(self, outcome: Outcome) -> None:
        """Add what became of one item."""
        kind, became = outcome.kind or "UNKNOWN", outcome.became
        tally = self.kinds.get(kind, Tally())
        self.kinds[kind] = tally.replace(read=tally.read + 1, **{became: getattr(tally, became) + 1})
        if outcome.reason is not None:
            known = self.problems.get(outcome.reason, Problem(reason=outcome.reason, count=0, examples=[]))
            examples = [*known.examples, outcome.key][:_MOST_EXAMPLES]
            self.problems[outcome.reason] = known.replace(count=known.count + 1, examples=examples)

    @property
    def read(self) -> int:
        """How many legacy items were looked at."""
        return sum(tally.read for tally in self.kinds.values())


class Migration:
    """Copies the legacy table of one store into the main table of the same store or of another one.

    What stands in the main table is never overwritten, and nothing is taken out of the legacy table: it can be run
    again at any time, also while both tables are in use.
    """

    def __init__(self, source: Store, target: Store, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._source = source
        self._target = target
        self._clock = clock
        self._queued = QueuedJobs(source, target)

    def run(self, progress: Callable[[Report], None] | None = None, *, dry_run: bool = False) -> Report:
        """Migrate everything, from where an interrupted run stopped; gives what was done since the first start.

        A finished migration starts anew. A dry run reads everything from the start and writes nothing.
        """
        checkpoint = Checkpoint(name=_NAME, started_at=self._clock.now(), updated_at=self._clock.now())
        if not dry_run:
            self._target.tables.create(migrations)
            found = self._target.find(Checkpoint.key(name=_NAME))
            if found is not None and not found.finished:
                checkpoint = found
        report = Report(kinds=dict(checkpoint.kinds), problems={p.reason: p for p in checkpoint.problems})
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
        """The items of the legacy table in pages, each with the position behind it; None behind the last."""
        request: dict[str, Any] = {"TableName": self._source.table_name(legacy), "Limit": ITEMS_A_STEP}
        request |= {"ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"}
        while True:
            if start is not None:
                request["ExclusiveStartKey"] = start
            response = self._source.ask("Scan", request, "migration.scan")
            start = response.get("LastEvaluatedKey")
            yield response["Items"], start
            if start is None:
                return

    def _save(self, checkpoint: Checkpoint, report: Report, position: Item | None) -> Checkpoint:
        saved = checkpoint.replace(
            updated_at=self._clock.now(),
            finished=report.finished,
            position=position,
            kinds=report.kinds,
            problems=list(report.problems.values()),
        )
        self._target.put(saved)
        return saved

    def _migrate(self, item: Item, *, dry_run: bool) -> Outcome:
        kind, key = kind_of(item), f"{item['PK']['S']} {item['SK']['S']}"
        if kind not in legacy.entities:
            return Outcome(kind, "unmapped", key, "its kind is unknown")
        try:
            entity = legacy.entities[kind].codec.decode(item)
            mapped = successor(entity)
            if mapped is None:
                return Outcome(kind, "unmapped", key, WITHOUT_SUCCESSOR[kind])
            mapped, problem = self._queued.complete(mapped)
            if mapped is None:
                return Outcome(kind, "unmapped", key, problem)
            is_written = self._is_written(mapped, dry_run=dry_run)
        except ItemShapeError:
            return Outcome(kind, "unmapped", key, "it does not have the shape of its kind")
        except (ValidationError, ValueRefusedError):
            return Outcome(kind, "unmapped", key, "the main table refuses one of its values")
        if not is_written:
            return Outcome(kind, "kept", key, "the main table has something else under its key, which stays")
        return Outcome(kind, "migrated", key, problem or self._what_is_lost(entity))

    def _what_is_lost(self, entity: Entity) -> str | None:
        """Labels come of tag items; a tag that stands only in its word's list is lost, and the report says so."""
        if not isinstance(entity, ReceiptWord) or not entity.tags:
            return None
        ids = {name: getattr(entity, name) for name in ReceiptWord.__schema__.primary.inputs}
        items = {tag.tag_name for tag in self._source.query(ReceiptWordTag.key(**ids))}
        lost = set(entity.tags) - items
        return "a tag of its list has no item of its own, so no label comes of it" if lost else None

    def _is_written(self, entity: Entity, *, dry_run: bool) -> bool:
        """Whether the main table has this entity now; in a dry run, whether it would."""
        if dry_run:
            type(entity).__schema__.codec.encode(entity)  # refuses what could not be stored
        else:
            try:
                self._add(entity)
            except AlreadyExistsError:
                pass  # by an earlier run, or by somebody else: the look at it tells
            else:
                return True
        values = {name: getattr(entity, name) for name in type(entity).__schema__.primary.inputs}
        try:
            found = self._target.find(type(entity).key(**values))
        except ItemShapeError:
            return False
        if isinstance(found, Queue):
            found = found.replace(job_count=0)  # as the entity, which does not count what has come into it since
        return found == entity or (found is None and dry_run)

    def _add(self, entity: Entity) -> None:
        if isinstance(entity, QueueJob):
            self._queued.add(entity)
        else:
            self._target.add(entity)
