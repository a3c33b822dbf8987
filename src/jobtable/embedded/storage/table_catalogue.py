"""The stored description of each table, and the copy of it that each process keeps in memory."""

from __future__ import annotations

import sqlite3
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from jobtable.embedded.table_schema import IndexSchema, KeyAttribute, KeyType, ProjectionType, TableSchema
from jobtable.errors import StorageError

READ_VERSION = "PRAGMA user_version"
"""Returns the number of the catalogue's last change, as a transaction sees it."""

ViewType = Literal["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"]
_DAY_SECONDS = 86_400


class CatalogueRecord(BaseModel):
    """A record that the catalogue stores as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def from_stored(cls, stored: bytes) -> Self:
        """Return the stored record; StorageError if it has fields that this version does not know and would lose."""
        try:
            return cls.model_validate_json(stored)
        except ValidationError as error:
            unknown = ", ".join(".".join(map(str, problem["loc"])) for problem in error.errors())
            raise StorageError(
                f"the file describes a table with fields unknown to this version of Jobtable ({unknown}); "
                "upgrade Jobtable"
            ) from error


class Throughput(CatalogueRecord):
    """Provisioned capacity units; both are 0 on demand."""

    read: int = 0
    write: int = 0
    increased: float | None = None
    decreased: float | None = None
    decreases: int = 0  # number of decreases on the day (of UTC) of the last one

    def decreases_on_day_of(self, now: float) -> int:
        """Return the number of decreases on the day of an instant that is not before the last one."""
        is_same_day = self.decreased is not None and int(self.decreased // _DAY_SECONDS) == int(now // _DAY_SECONDS)
        return self.decreases if is_same_day else 0


class OnDemandLimit(CatalogueRecord):
    """The most request units a second on demand; None: no limit."""

    read: int | None = None
    write: int | None = None


class WarmThroughput(CatalogueRecord):
    """The units a second that a table or index is ready for; None: not specified. The engine always is."""

    read: int | None = None
    write: int | None = None


class IndexRecord(CatalogueRecord):
    """A secondary index as it was declared."""

    id: int
    name: str
    is_local: bool
    partition: tuple[str, ...]
    sort: tuple[str, ...]
    projection: ProjectionType
    included: tuple[str, ...] = ()
    throughput: Throughput = Throughput()
    on_demand: OnDemandLimit | None = None
    warm: WarmThroughput | None = None
    is_filling: bool = False
    """Whether it still lacks older items (table_changes.py)."""


class StreamRecord(CatalogueRecord):
    """One life of a table's stream, from when it was enabled until it was disabled."""

    label: str
    view: ViewType
    created: float
    after_sequence: int  # the last change before the stream was enabled
    closed: float | None = None
    last_sequence: int | None = None  # the last change before the stream was disabled
    table_name: str
    table_id: int
    key: tuple[tuple[str, str], ...]  # the table's key schema: attribute names with HASH or RANGE


class RecoveryRecord(CatalogueRecord):
    """Point-in-time recovery: its start, and how many days are kept."""

    enabled: float
    days: int = 35


class TableRecord(CatalogueRecord):
    """Everything about a table that is not an item."""

    id: int
    uuid: str
    name: str
    created: float
    is_creating: bool = False
    """Whether it is being restored: until then it can only be described (restoring.py)."""
    attributes: dict[str, KeyType]
    partition: str
    sort: str | None
    indexes: tuple[IndexRecord, ...] = ()
    is_on_demand: bool
    on_demand_since: float | None = None
    throughput: Throughput = Throughput()
    on_demand: OnDemandLimit | None = None
    warm: WarmThroughput | None = None
    table_class: str | None = None
    table_class_changed: float | None = None
    is_protected: bool = False
    encryption: dict[str, str] | None = None
    stream: StreamRecord | None = None
    latest_stream_label: str | None = None
    ttl_attribute: str | None = None
    is_filling_expiry: bool = False
    """Whether the list of expiry times still lacks older items (table_changes.py)."""
    recovery: RecoveryRecord | None = None
    is_backed_up: bool = False
    """Whether a backup of it is being made, which needs a journal (restoring.py)."""
    restored_from: dict[str, str | float] | None = None
    tags: dict[str, str] = {}

    def table_schema(self) -> TableSchema:
        """Return the part that item operations need."""
        return TableSchema(
            id=self.id,
            name=self.name,
            partition=self._key(self.partition),
            sort=self._key(self.sort) if self.sort else None,
            indexes={index.name: self._index(index) for index in self.indexes},
            ttl_attribute=self.ttl_attribute,
            is_filling_expiry=self.is_filling_expiry,
            is_journaled=self.is_journaled,
        )

    @property
    def is_journaled(self) -> bool:
        """Whether something needs the changes of this table."""
        return self.stream is not None or self.recovery is not None or self.is_backed_up

    def index(self, name: str) -> IndexRecord | None:
        return next((index for index in self.indexes if index.name == name), None)

    def _key(self, name: str) -> KeyAttribute:
        return KeyAttribute(name, self.attributes[name])

    def _index(self, index: IndexRecord) -> IndexSchema:
        return IndexSchema(
            id=index.id,
            name=index.name,
            is_local=index.is_local,
            partition=tuple(self._key(name) for name in index.partition),
            sort=tuple(self._key(name) for name in index.sort),
            projection=index.projection,
            included=frozenset(index.included),
            is_filling=index.is_filling,
        )


class Cache:
    """Table schemas as of one version of the catalogue, or newer. Replaced as a whole, never emptied."""

    __slots__ = ("tables", "version")

    def __init__(self, version: bytes) -> None:
        self.version = version
        self.tables: dict[str, TableSchema] = {}

    def table(self, name: str, connection: sqlite3.Connection) -> TableSchema | None:
        """Return the schema of a usable table, read from the file once, or None."""
        try:
            return self.tables[name]
        except KeyError:
            record = read_record(connection, name)
            if record is None or record.is_creating:
                return None  # not cached: requests may have any number of names
            schema = self.tables[name] = record.table_schema()
            return schema


def read_record(connection: sqlite3.Connection, name: str) -> TableRecord | None:
    row = connection.execute("SELECT record FROM tables WHERE name = ?", (name,)).fetchone()
    return None if row is None else TableRecord.from_stored(row[0])


def read_record_of_id(connection: sqlite3.Connection, id_: int) -> TableRecord | None:
    """Return the record of the table that has an id; None if it is deleted."""
    row = connection.execute("SELECT record FROM tables WHERE id = ?", (id_,)).fetchone()
    return None if row is None else TableRecord.from_stored(row[0])


def replace_record(connection: sqlite3.Connection, record: TableRecord) -> None:
    """Store the new record of an existing table."""
    row = (record.model_dump_json().encode(), record.id)
    connection.execute("UPDATE tables SET record = ? WHERE id = ?", row)


def catalogue_version(connection: sqlite3.Connection) -> int:
    """Return the number of the catalogue's last change, as this transaction sees it."""
    (version,) = connection.execute(READ_VERSION).fetchone()
    return int(version)
