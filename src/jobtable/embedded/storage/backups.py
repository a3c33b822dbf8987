"""The backups that the catalogue knows: each has a table as it was, and its items under an id of its own.

How they get their items, and how tables get them back, is in restoring.py.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from jobtable.embedded.storage.catalogue import Record, TableRecord
from jobtable.embedded.storage.definitions import drop_items
from jobtable.embedded.storage.transactions import Transaction, View

_DIGITS = 14
_END_OF_LABELS = 10 ** (_DIGITS - 3)  # seconds
AFTER_ALL_LABELS = "~"


class BackupRecord(Record):
    """One backup, and everything about its table that is not an item."""

    id: int
    """Under which its items are stored: an id of its own, or that of a table which was deleted and left them."""
    label: str
    """The milliseconds of its creation, and eight digits more. With the name of the table it names the backup."""
    name: str
    created: float
    expires: float | None = None
    """When it is removed by itself, if it is one that DeleteTable has left (SYSTEM)."""
    is_creating: bool = False
    """Whether it lacks items of its table: it cannot be used until it is whole (restoring.py)."""
    table: TableRecord
    items: int
    size: int

    def is_expired(self, now: float) -> bool:
        """Whether it counts as removed, though it may be still there."""
        return self.expires is not None and self.expires <= now


def label_at(moment: float) -> str:
    """What the labels of a millisecond begin with; they sort as the milliseconds do."""
    if moment >= _END_OF_LABELS:
        return AFTER_ALL_LABELS
    return f"{round(moment * 1000):0{_DIGITS}d}" if moment >= 0 else ""


def is_taken(view: View, table_name: str, milliseconds: int) -> bool:
    """Whether a backup of a table of that name was made in that millisecond."""
    sql = "SELECT 1 FROM backups WHERE label >= ? AND label < ? AND table_name = ?"
    bounds = label_at(milliseconds / 1000), label_at((milliseconds + 1) / 1000)
    return view.connection.execute(sql, (*bounds, table_name)).fetchone() is not None


def find(view: View, table_name: str, label: str) -> BackupRecord | None:
    """The backup of that label of a table, or None."""
    sql = "SELECT record FROM backups WHERE label = ? AND table_name = ?"
    row = view.connection.execute(sql, (label, table_name)).fetchone()
    return None if row is None else BackupRecord.from_stored(row[0])


def find_id(view: View, id_: int) -> BackupRecord | None:
    """The backup whose items are stored under an id, or None."""
    row = view.connection.execute("SELECT record FROM backups WHERE id = ?", (id_,)).fetchone()
    return None if row is None else BackupRecord.from_stored(row[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Some of the backups; without parameters all of them."""

    table_name: str | None = None
    after_label: str = ""
    after_table: str = ""
    """Only those behind this label, and of that label behind this table."""
    before_label: str = AFTER_ALL_LABELS
    is_expiring: bool | None = None
    """Only those that expire, or only those that do not."""
    now: float = 0
    """Only those that have not expired then."""
    most: int = -1


ALL = Selection()


def in_order(view: View, selection: Selection = ALL) -> list[BackupRecord]:
    """Backups in the order of their labels, and so of their creation."""
    sql = (
        "SELECT record FROM backups WHERE (label, table_name) > (:after_label, :after_table) AND label < :before_label"
        " AND (:table_name IS NULL OR table_name = :table_name) AND (expires IS NULL OR expires > :now)"
        " AND (:is_expiring IS NULL OR (expires IS NOT NULL) = :is_expiring)"
        " ORDER BY label, table_name LIMIT :most"
    )
    return [BackupRecord.from_stored(record) for (record,) in view.connection.execute(sql, asdict(selection))]


def save(transaction: Transaction, backup: BackupRecord) -> None:
    """Store a backup, or what is new about one."""
    transaction.has_written = transaction.catalogue_changed = True
    row = (backup.id, backup.label, backup.table.name, backup.expires, backup.model_dump_json().encode())
    transaction.connection.execute("INSERT OR REPLACE INTO backups VALUES (?, ?, ?, ?, ?)", row)


def remove(transaction: Transaction, backup: BackupRecord) -> None:
    """Remove a backup from which no table is being restored; the items of a large one are removed later."""
    transaction.has_written = transaction.catalogue_changed = True
    transaction.connection.execute("DELETE FROM backups WHERE id = ?", (backup.id,))
    drop_items(transaction, backup.id)
