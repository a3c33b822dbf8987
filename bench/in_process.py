"""The embedded engine and the typed store on it against raw SQLite (WAL, synchronous=FULL) on the same disk."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pydantic_core import to_json

from bench.measure import Contender, compare
from bench.raw_sqlite import RawSqlite
from bench.sample import Sample, sample, samples
from jobtable.embedded import EmbeddedBackend
from jobtable.store.store import Store
from jobtable.testing.servers import cache_folder

WRITERS = 16
PUTS_A_TURN = 20
QUERIED = 100
PARTITIONS = 50
"""So many hold more items than the store remembers: reading them in turns is reading each for the first time."""


def run() -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder()) as folder:
        raw = RawSqlite(Path(folder, "raw.db"))
        with Store(EmbeddedBackend(Path(folder, "ours.db"))) as store:
            store.tables.create(samples)
            _writes(store, raw)
            _reads(store, raw)
        raw.close()


def _writes(store: Store, raw: RawSqlite) -> None:
    numbers = itertools.count()
    encode = Sample.__schema__.codec.encode
    value = to_json(encode(sample("r", 1)))
    entity = sample("written", 1)

    def typed_put() -> None:
        store.put(entity.model_copy(update={"step": next(numbers)}))

    def engine_put() -> None:
        item = encode(entity) | {"SK": {"S": f"STEP#{next(numbers):09}"}}
        store.backend.execute("PutItem", {"TableName": samples.name, "Item": item})

    def raw_put() -> None:
        raw.put(b"written#%09d" % next(numbers), value)

    with ThreadPoolExecutor(WRITERS) as pool:
        compare(
            "durable put, typed, one writer",
            Contender("jobtable", typed_put),
            Contender("raw SQLite, one writer", raw_put),
            targets={"raw SQLite, one writer": 0.6},
        )
        compare(
            "durable put, engine, one writer",
            Contender("jobtable", engine_put),
            Contender("raw SQLite, one writer", raw_put),
        )
        compare(
            f"durable put, typed, {WRITERS} writers in one process",
            _in_threads(pool, "jobtable", typed_put),
            Contender("jobtable, one writer", typed_put),
            _in_threads(pool, f"raw SQLite, {WRITERS} writers", raw_put),
            targets={"jobtable, one writer": 2},
        )


def _in_threads(pool: ThreadPoolExecutor, name: str, put: Callable[[], None]) -> Contender:
    def turn(_: int) -> None:
        for _ in range(PUTS_A_TURN):
            put()

    return Contender(name, lambda: list(pool.map(turn, range(WRITERS))), WRITERS * PUTS_A_TURN)


def _reads(store: Store, raw: RawSqlite) -> None:
    for step in range(QUERIED):
        store.put(sample("read", step))
        raw.put(b"read#%09d" % step, to_json(Sample.__schema__.codec.encode(sample("read", step))))
    key = {"PK": {"S": "RUN#read"}, "SK": {"S": "STEP#000000050"}}
    get = {"TableName": samples.name, "Key": key, "ConsistentRead": True}
    query = {
        "TableName": samples.name,
        "KeyConditionExpression": "PK = :run",
        "ExpressionAttributeValues": {":run": {"S": "RUN#read"}},
    }
    if len(list(store.query(Sample.key(run_id="read")))) != QUERIED:
        raise SystemExit("the query does not give what was stored")
    raw_get = Contender("raw SQLite", lambda: raw.get(b"read#000000050"))
    raw_query = Contender("raw SQLite", lambda: raw.range(b"read#", b"read$"))
    execute = store.backend.execute
    compare(
        "get, typed",
        Contender("jobtable", lambda: store.get(Sample.key(run_id="read", step=50))),
        raw_get,
        targets={"raw SQLite": 0.3},
    )
    compare("get, engine", Contender("jobtable", lambda: execute("GetItem", get)), raw_get)
    compare(
        f"query of {QUERIED} items, typed",
        Contender("jobtable", lambda: list(store.query(Sample.key(run_id="read")))),
        raw_query,
    )
    compare(f"query of {QUERIED} items, engine", Contender("jobtable", lambda: execute("Query", query)), raw_query)
    _first_reads(store, raw_get, raw_query)


def _first_reads(store: Store, raw_get: Contender, raw_query: Contender) -> None:
    runs = [f"run-{number}" for number in range(PARTITIONS)]
    store.batch_put(sample(run, step) for run in runs for step in range(QUERIED))
    keys = itertools.cycle([(run, step) for step in range(QUERIED) for run in runs])
    partitions = itertools.cycle(runs)

    def get() -> Sample:
        run, step = next(keys)
        return store.get(Sample.key(run_id=run, step=step))

    compare("get, typed, another item each time", Contender("jobtable", get), raw_get)
    compare(
        f"query of {QUERIED} items, typed, other items each time",
        Contender("jobtable", lambda: list(store.query(Sample.key(run_id=next(partitions))))),
        raw_query,
    )
