"""One table and its items, for the tests of the storage."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from jobtable.embedded.dispatch import handler_of
from jobtable.embedded.storage import Sized, Storage, Transaction, View
from jobtable.embedded.table_schema import TableSchema
from jobtable.store.backend import Item
from jobtable.store.sizes import item_size


def create_table(storage: Storage, name: str = "tab", **options: Any) -> None:
    request: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": one, "AttributeType": "S"} for one in "psgr"],
        "KeySchema": key_schema("p", "s"),
        "GlobalSecondaryIndexes": [
            {"IndexName": "by_group", "KeySchema": key_schema("g", "r"), "Projection": {"ProjectionType": "ALL"}},
            {"IndexName": "by_rank", "KeySchema": key_schema("r"), "Projection": {"ProjectionType": "KEYS_ONLY"}},
        ],
    }
    handler_of("CreateTable")(storage, request | options)


def key_schema(partition: str, sort: str | None = None) -> list[dict[str, str]]:
    hash_ = [{"AttributeName": partition, "KeyType": "HASH"}]
    return hash_ if sort is None else [*hash_, {"AttributeName": sort, "KeyType": "RANGE"}]


def item(p: str, s: str, **others: str) -> Item:
    return {name: {"S": value} for name, value in {"p": p, "s": s, **others}.items()}


def table_of(view: View | Storage, name: str = "tab") -> TableSchema:
    table = view.table(name)
    assert table is not None
    return table


def put(storage: Storage, new: Item, name: str = "tab") -> None:
    storage.write(partial(put_action, new, name=name))


def put_action(new: Item, transaction: Transaction, name: str = "tab") -> None:
    table = table_of(transaction, name)
    position = table.position(new)
    transaction.put(table, position, Sized(new, item_size(new)), transaction.read(table, position))


def delete(storage: Storage, key: Item, name: str = "tab") -> None:
    def action(transaction: Transaction) -> None:
        table = table_of(transaction, name)
        position = table.position(key)
        old = transaction.read(table, position)
        if old.item is not None:
            transaction.delete(table, position, old)

    storage.write(action)


def get(storage: Storage, key: Item, name: str = "tab") -> Item | None:
    table = table_of(storage, name)
    stored = storage.sized(table, table.position(key))
    return None if stored is None else from_json(stored[0])


def everything(storage: Storage, index: str | None = None, name: str = "tab") -> list[Item]:
    with storage.read() as view:
        table = table_of(view, name)
        chosen = None if index is None else table.indexes[index]
        return [from_json(stored) for _, stored in view.range(table, chosen, b"", None)]


def open_files(folder: Path) -> list[str]:
    """The files of a folder that this process has open; what other tests have left open is none of them."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # it was closed meanwhile
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return [name for name in found if name.startswith(f"{folder}/")]


def make_first_format(path: Path) -> None:
    """Turn a database that nobody has open into what the first version would have made of it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for table in ("tokens", "fillings", "restores", "backups"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE meta SET value = 1 WHERE name = 'format'")
