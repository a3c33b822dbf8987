"""What the experiments write: puts, updates that move items between index entries, and deletes, each acknowledged.

`python -m faults.workload PATH` writes until it is killed, and prints a line for every write that has returned.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from jobtable.embedded.dispatch import handler_of
from jobtable.embedded.storage import Sized, Storage, Transaction
from jobtable.store.backend import Item
from jobtable.store.sizes import item_size

TABLE = "work"
_KEYS_OF_A_WRITER = 40
_WRITERS = 4


def create_table(storage: Storage, **options: Any) -> None:
    """A table with two indexes."""
    names = ("writer", "key", "status", "rank")
    request = {
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
        "KeySchema": _key("writer", "key"),
        "GlobalSecondaryIndexes": [
            {"IndexName": "by_status", "KeySchema": _key("status", "rank"), "Projection": {"ProjectionType": "ALL"}},
            {"IndexName": "by_rank", "KeySchema": _key("rank"), "Projection": {"ProjectionType": "KEYS_ONLY"}},
        ],
    }
    handler_of("CreateTable")(storage, request | options)


def _key(partition: str, sort: str | None = None) -> list[dict[str, str]]:
    hash_ = [{"AttributeName": partition, "KeyType": "HASH"}]
    return hash_ if sort is None else [*hash_, {"AttributeName": sort, "KeyType": "RANGE"}]


def put(transaction: Transaction, item: Item, table_name: str = TABLE) -> None:
    """Store an item, whatever is there."""
    table = transaction.table(table_name)
    if table is None:
        raise LookupError(table_name)
    position = table.position(item)
    transaction.put(table, position, Sized(item, item_size(item)), transaction.read(table, position))


def delete(transaction: Transaction, key: Item) -> None:
    """Remove an item if it is there."""
    table = transaction.table(TABLE)
    if table is None:
        raise LookupError(TABLE)
    position = table.position(key)
    old = transaction.read(table, position)
    if old.item is not None:
        transaction.delete(table, position, old)


def key_of(number: int) -> str:
    """The key of a writer's number-th item; it comes again and again."""
    return f"key-{number % _KEYS_OF_A_WRITER}"


def item_of(writer: int, number: int, chance: random.Random) -> Item:
    """The number-th item of a writer."""
    item = {
        "writer": {"S": f"writer-{writer}"},
        "key": {"S": key_of(number)},
        "version": {"N": str(number)},
        "status": {"S": chance.choice(["PENDING", "RUNNING", "DONE"])},
        "text": {"S": "x" * chance.randrange(2000)},
    }
    if chance.random() < 0.7:
        item["rank"] = {"S": str(chance.randrange(100))}
    return item


def _write_for_ever(storage: Storage, writer: int) -> None:
    chance = random.Random(writer)
    number = 0
    while True:
        number += 1
        item = item_of(writer, number, chance)
        is_delete = chance.random() < 0.1
        storage.write(partial(_write, delete if is_delete else put, item))
        line = f"{item['writer']['S']} {item['key']['S']} {number} {'delete' if is_delete else 'put'}\n"
        os.write(1, line.encode())


def _write(verb: Callable[[Transaction, Item], None], item: Item, transaction: Transaction) -> None:
    verb(transaction, item)


def main(path: Path) -> None:
    """Write until killed."""
    storage = Storage(path)
    for writer in range(_WRITERS):
        threading.Thread(target=_write_for_ever, args=(storage, writer)).start()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
