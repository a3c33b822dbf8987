"""Whole tables as files: every item as stored, and proof that the file is complete.

A file has one JSON document per line. The first names the table, the last has the number of items and the SHA-256 of
all bytes before it, and each line between is an item in DynamoDB's wire form. So no byte can be cut off, altered or
added unnoticed, and any tool that reads lines can read the items.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from pydantic_core import from_json, to_json

from jobtable.errors import ArchiveError, ConflictError, ErrorReason, ValueRefusedError
from jobtable.files import whole_file
from jobtable.model.table import Table
from jobtable.store.backend import Item, Request
from jobtable.store.batches import Batches
from jobtable.store.foreign_items import ItemCheck
from jobtable.store.scans import Scan
from jobtable.store.store import Store

FORMAT = "jobtable table 1"
Mode = Literal["refuse", "merge", "replace"]
"""What an import does where items are there: nothing; puts those of the file over them; deletes them first."""

_LONGEST_LINE = 4 << 20
"""An item has 400 KB at most; as JSON, with everything escaped, it stays under this."""
_LAST = b'{"items": '
"""How the last line begins. Items are written without spaces, so none begins like it."""
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Export:
    """What a file contains."""

    table: str
    items: int
    sha256: str


def export_table(store: Store, table: Table, file: Path, progress: Progress = lambda count: None) -> Export:
    """Write every item of a table to a file, which appears when complete and replaces an existing one.

    Items that change meanwhile are written in their old or new state; each by itself is consistent.
    """
    digest = hashlib.sha256()
    count = 0
    with whole_file(file) as made:
        _append(made, digest, _header_line(table.name))
        for item in _items(store, table):
            _append(made, digest, to_json(item) + b"\n")
            count += 1
            progress(1)
        made.write(_last_line(count, digest.hexdigest()))
    return Export(table.name, count, digest.hexdigest())


def check_export(file: Path, table: Table | None = None) -> Export:
    """Check every byte of a file and return what it contains; ArchiveError if it was altered.

    With the `table` that it is for, also check that the table can hold each item: the file's author may have adapted
    its digest.
    """
    item_check = None if table is None else ItemCheck(table)
    with file.open("rb") as stream:
        named = _table_named_in(stream, file)
        digest = hashlib.sha256(_header_line(named))
        for count, line in enumerate(_lines(stream, file)):
            if line.startswith(_LAST):
                if line != _last_line(count, digest.hexdigest()) or stream.read(1):
                    break
                return Export(named, count, digest.hexdigest())
            if item_check is not None:
                _check_line(line, item_check, f"{file} is altered: line {count + 2} is not an item of table {named}")
            digest.update(line)
    raise ArchiveError(f"{file} is cut off or altered: it does not end with the digest of its content")


def import_table(
    store: Store, table: Table, file: Path, mode: Mode = "refuse", progress: Progress = lambda count: None
) -> Export:
    """Store the items of a file in a table, which is created if it is missing.

    Everything is checked before the first write. To finish an interrupted import, repeat it with mode "merge".
    """
    found = check_export(file, table)
    if found.table != table.name:
        raise ArchiveError(f"{file} holds table {found.table}, not {table.name}")
    store.tables.create(table)
    if mode == "refuse" and next(_items(store, table, Limit=1), None) is not None:
        raise ConflictError(
            f"table {store.table_name(table)} is not empty",
            hint='import with mode "merge" or "replace"',
            reason=ErrorReason.TARGET_NOT_EMPTY,
        )
    batches = Batches(store)
    if mode == "replace":
        names = {f"#{number}": name for number, name in enumerate(table.primary)}
        keys = _items(store, table, ProjectionExpression=", ".join(names), ExpressionAttributeNames=names)
        batches.delete_items(table, keys)
    batches.put_items(table, _read(file, found.items, progress))
    return found


def _items(store: Store, table: Table, **members: Any) -> Iterator[Item]:
    request: Request = {"TableName": store.table_name(table), "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"}
    scan = Scan(lambda operation, asked: store.ask(operation, asked, "export.Scan"), {**request, **members}, 1)
    return iter(scan)


def _check_line(line: bytes, item_check: ItemCheck, fault: str) -> None:
    try:
        item_check.check(from_json(line))
    except (ValueError, ValueRefusedError) as error:
        raise ArchiveError(f"{fault}: {error}") from error


def _read(file: Path, count: int, progress: Progress) -> Iterator[Item]:
    with file.open("rb") as stream:
        stream.readline()
        for _ in range(count):
            yield from_json(stream.readline())
            progress(1)


def _table_named_in(stream: IO[bytes], file: Path) -> str:
    """The table that the first line names, or ArchiveError if that is not the line of an export."""
    line = stream.readline(_LONGEST_LINE)
    try:
        header = from_json(line)
    except ValueError:
        header = None
    if isinstance(header, dict) and isinstance(header.get("table"), str):
        table: str = header["table"]
        if line == _header_line(table):
            return table
    raise ArchiveError(f"{file} is not the export of a table, or its beginning is altered")


def _lines(stream: IO[bytes], file: Path) -> Iterator[bytes]:
    while line := stream.readline(_LONGEST_LINE):
        if not line.endswith(b"\n"):
            raise ArchiveError(f"{file} is cut off or altered: a line is incomplete")
        yield line


def _append(file: IO[bytes], digest: Any, line: bytes) -> None:
    digest.update(line)
    file.write(line)


def _header_line(table: str) -> bytes:
    return to_json({"format": FORMAT, "table": table}) + b"\n"


def _last_line(count: int, sha256: str) -> bytes:
    return _LAST + f'{count}, "sha256": "{sha256}"}}\n'.encode()
