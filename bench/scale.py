"""Whether a table of a million items answers as fast as one of a thousand."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from bench.measure import Contender, compare
from jobtable.embedded import EmbeddedBackend
from jobtable.model import Entity, Key, Table
from jobtable.store.store import Store
from jobtable.testing.servers import cache_folder

FEW, MANY = 1_000, 1_000_000
STEPS_A_RUN = 100
BATCH_SIZE = 25  # the most that BatchWriteItem takes

readings = Table("readings", pk="PK", sk="SK", type_attribute="TYPE")


class Reading(Entity, table=readings, type="READING"):
    """One value of a metric."""

    key = Key("RUN#{run:07d}", "STEP#{step:05d}")

    run: int
    step: int
    name: str
    value: float


def run() -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder()) as folder:
        few, many = (_loaded(Path(folder, f"{size}.db"), size) for size in (FEW, MANY))
        peer = f"{FEW:,} items"
        for bench, operation in (("get", _get), (f"query of {STEPS_A_RUN} items", _query)):
            compare(
                f"{bench}, typed, in a table of {MANY:,} items",
                Contender("jobtable", operation(many, MANY)),
                Contender(peer, operation(few, FEW)),
                targets={peer: 0.5},
            )
        few.close()
        many.close()


def _loaded(path: Path, size: int) -> Store:
    # What is measured are reads; the load need not survive a power cut.
    store = Store(EmbeddedBackend(path, durability="normal"))
    store.tables.create(readings)
    encode = Reading.__schema__.codec.encode
    items = (
        encode(Reading(run=number // STEPS_A_RUN, step=number % STEPS_A_RUN, name="loss", value=0.5))
        for number in range(size)
    )
    while batch := [{"PutRequest": {"Item": item}} for item in itertools.islice(items, BATCH_SIZE)]:
        store.backend.execute("BatchWriteItem", {"RequestItems": {readings.name: batch}})
    return store


def _get(store: Store, size: int) -> Callable[[], object]:
    random = Random(1)
    runs = size // STEPS_A_RUN
    return lambda: store.get(Reading.key(run=random.randrange(runs), step=random.randrange(STEPS_A_RUN)))


def _query(store: Store, size: int) -> Callable[[], object]:
    random = Random(1)
    return lambda: list(store.query(Reading.key(run=random.randrange(size // STEPS_A_RUN))))
