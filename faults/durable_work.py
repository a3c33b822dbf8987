"""What is written while the disk is recorded: items, tables, objects and files, with a note of all that has returned.

`python -m faults.durable_work FOLDER NUMBER DURABILITY` is one of several processes that do it in one folder. Every
write of items has a number, and stores a line of history with it: so the file tells what it must hold.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal

from faults import workload

from jobtable.embedded.dispatch import handler_of
from jobtable.embedded.storage import Storage, Transaction, database_files
from jobtable.embedded.storage.writer import WalBound
from jobtable.errors import TableInUse
from jobtable.files import whole_file
from jobtable.objects.filesystem import FilesystemObjectStore
from jobtable.objects.keys import object_key
from jobtable.store.backend import Item
from jobtable.testing.clock import FakeClock

ITEMS, HISTORY = "items", "history"
_LIVES = 3
_WRITES = 12
_KEYS = 20
# So small that a short run has many checkpoints, and begins its log anew.
_CHECKPOINT_PAGES = 40
_LONG_WAL = 100_000
_DAYS = 2 * 86_400
_LAST: Item = {"writer": {"S": "last"}, "key": {"S": "number"}}

Durability = Literal["full", "normal"]

Note = Callable[[str, str | None, bool], None]
"""Notes a name, the value that it is to have, and whether it has it by now."""


def database(folder: Path) -> Path:
    """The database in the folder of an experiment."""
    return folder / "made" / "here" / "work.db"


def objects_folder(folder: Path) -> Path:
    """The object store in the folder of an experiment."""
    return folder / "put" / "here"


def files_folder(folder: Path) -> Path:
    """The files in the folder of an experiment, which makes this one before."""
    return folder / "files"


def change(changes: dict[str, Item | None], transaction: Transaction) -> int:
    """Put items under their keys, or delete them (None), with the next number; gives the number."""
    table = transaction.table(workload.TABLE)
    if table is None:
        raise LookupError(workload.TABLE)
    last = transaction.read(table, table.position(_LAST)).item
    number = 1 + (0 if last is None else int(last["version"]["N"]))
    version = {"version": {"N": str(number)}}
    for key, item in changes.items():
        place: Item = {"writer": {"S": ITEMS}, "key": {"S": key}}
        if item is None:
            workload.delete(transaction, place)
        else:
            workload.put(transaction, item | place | version)
    kept = json.dumps({key: item is not None for key, item in changes.items()})
    workload.put(transaction, {"writer": {"S": HISTORY}, "key": {"S": f"{number:08d}"}, "changes": {"S": kept}})
    workload.put(transaction, _LAST | version)
    return number


def main(folder: Path, number: int, durability: Durability) -> None:
    """Open the database several times, and write to it with several threads."""
    database_files._CHECKPOINT_PAGES = _CHECKPOINT_PAGES
    for life in range(_LIVES):
        _live(folder, durability, 10 * life + number, _noting(ctypes.CDLL(None).disk_note))


def _live(folder: Path, durability: Durability, seed: int, note: Note) -> None:
    clock = FakeClock()
    storage = Storage(database(folder), durability=durability, clock=clock)
    storage._writer._wal = WalBound(storage.path, _LONG_WAL, _LONG_WAL, look_seconds=0)
    with contextlib.suppress(TableInUse):
        workload.create_table(storage)
    note(f"table {workload.TABLE}", "", True)
    objects = FilesystemObjectStore(objects_folder(folder))
    tasks: list[Callable[[], None]] = [
        partial(_write_items, storage, random.Random(seed), note),
        partial(_write_items, storage, random.Random(seed + 1000), note),
        partial(_write_objects, storage, objects, random.Random(seed), note),
        partial(_write_files, files_folder(folder) / str(seed % 10), random.Random(seed), note),
        partial(_change_tables, storage, clock, f"table-{seed}", note),
    ]
    with ThreadPoolExecutor(len(tasks)) as pool:
        for future in [pool.submit(task) for task in tasks]:
            future.result()
    storage.close()


def _noting(disk_note: Callable[[bytes], None]) -> Note:
    def note(name: str, value: str | None, is_done: bool) -> None:
        disk_note(json.dumps([name, value, is_done]).encode())

    return note


def _write_items(storage: Storage, chance: random.Random, note: Note) -> None:
    for number in range(_WRITES):
        keys = [f"key-{chance.randrange(_KEYS)}" for _ in range(chance.randint(1, 3))]
        items = {key: None if chance.random() < 0.2 else workload.item_of(0, number, chance) for key in keys}
        note("change", str(storage.write(partial(change, items))), True)


def _write_objects(storage: Storage, objects: FilesystemObjectStore, chance: random.Random, note: Note) -> None:
    """Objects with records that name them: the object is there before its record, and goes after it."""
    for number in range(_WRITES):
        name = object_key("runs", str(chance.randrange(3)), f"{chance.randbytes(4).hex()}-{number}")
        data = chance.randbytes(chance.randrange(30_000))
        sha256 = hashlib.sha256(data).hexdigest()
        note(f"object {name}", sha256, False)
        objects.put(name, data)
        note(f"object {name}", sha256, True)
        record: Item = {"sha256": {"S": sha256}}
        note("change", str(storage.write(partial(change, {f"object {name}": record}))), True)
        if chance.random() < 0.4:
            note("change", str(storage.write(partial(change, {f"object {name}": None}))), True)
            note(f"object {name}", None, False)
            objects.delete(name)
            note(f"object {name}", None, True)


def _write_files(path: Path, chance: random.Random, note: Note) -> None:
    for _ in range(_WRITES):
        data = chance.randbytes(chance.randrange(20_000))
        sha256 = hashlib.sha256(data).hexdigest()
        note(f"file {path.name}", sha256, False)
        with whole_file(path) as file:
            file.write(data)
        note(f"file {path.name}", sha256, True)


def _change_tables(storage: Storage, clock: FakeClock, name: str, note: Note) -> None:
    """A table with everything that a table can have: an index that is filled later, expiry, a journal, a copy."""
    _create_table(storage, name)
    note(f"table {name}", "", True)
    for number in range(_WRITES):
        item: Item = {"id": {"S": str(number)}, "rank": {"S": "x" * 500}, "end": {"N": str(int(clock.seconds()) + 9)}}
        storage.write(partial(workload.put, item=item, table_name=name))
    _add_index(storage, name)
    note(f"index {name}", "", True)
    names = {"SourceTableName": name, "TargetTableName": f"copy-of-{name}"}
    handler_of("RestoreTableToPointInTime")(storage, {**names, "UseLatestRestorableTime": True})
    note(f"table copy-of-{name}", "", True)
    clock.advance(_DAYS)
    storage.keep_up()
    note(f"expired {name}", "", True)


def _create_table(storage: Storage, name: str) -> None:
    request = {
        "TableName": name,
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    }
    handler_of("CreateTable")(storage, request)
    expiry = {"Enabled": True, "AttributeName": "end"}
    handler_of("UpdateTimeToLive")(storage, {"TableName": name, "TimeToLiveSpecification": expiry})
    recovery = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 1}
    handler_of("UpdateContinuousBackups")(storage, {"TableName": name, "PointInTimeRecoverySpecification": recovery})


def _add_index(storage: Storage, name: str) -> None:
    index = {
        "IndexName": "by_rank",
        "KeySchema": [{"AttributeName": "rank", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    request = {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": "rank", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }
    handler_of("UpdateTable")(storage, request)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), "normal" if sys.argv[3] == "normal" else "full")
