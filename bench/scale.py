"""Whether a table of a million items, and a queue of a hundred thousand jobs, answer as fast as those of a thousand."""

from __future__ import annotations

import itertools
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from bench.measure import Contender, compare
from jobtable.app import open_jobs
from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Queue, QueueJob
from jobtable.jobs.submit.definition import NewJob
from jobtable.model import Entity, Key, Table
from jobtable.store.store import Store
from jobtable.testing.servers import cache_folder

FEW, MANY = 1_000, 1_000_000
MANY_QUEUED = 100_000  # a million take ten minutes to load, and a claim takes no longer among them
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
        _items(Path(folder))
        _queued_jobs(Path(folder))


# --- items ----------------------------------------------------------------------------------------------------------


def _items(folder: Path) -> None:
    few, many = (_loaded(folder / f"{size}.db", size) for size in (FEW, MANY))
    peer = f"{FEW:,} items"
    query = f"query of {STEPS_A_RUN} items"
    # The engine's lines show what the size costs. The typed ones show also what a program saves whose items all stay in
    # memory as entities, as those of the small table do.
    for bench, operation in (
        ("get, engine", _engine_get),
        (f"{query}, engine", _engine_query),
        ("get, typed", _get),
        (f"{query}, typed", _query),
    ):
        compare(
            f"{bench}, in a table of {MANY:,} items",
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
    random, runs = Random(1), size // STEPS_A_RUN
    return lambda: store.get(Reading.key(run=random.randrange(runs), step=random.randrange(STEPS_A_RUN)))


def _query(store: Store, size: int) -> Callable[[], object]:
    random, runs = Random(1), size // STEPS_A_RUN
    return lambda: list(store.query(Reading.key(run=random.randrange(runs))))


def _engine_get(store: Store, size: int) -> Callable[[], object]:
    random, runs = Random(1), size // STEPS_A_RUN

    def get() -> object:
        key = {"PK": _run(random.randrange(runs)), "SK": {"S": f"STEP#{random.randrange(STEPS_A_RUN):05}"}}
        return store.backend.execute("GetItem", {"TableName": readings.name, "Key": key})["Item"]

    return get


def _engine_query(store: Store, size: int) -> Callable[[], object]:
    random, runs = Random(1), size // STEPS_A_RUN

    def query() -> object:
        request = {
            "TableName": readings.name,
            "KeyConditionExpression": "PK = :run",
            "ExpressionAttributeValues": {":run": _run(random.randrange(runs))},
        }
        return store.backend.execute("Query", request)["Items"]

    return query


def _run(number: int) -> dict[str, str]:
    return {"S": f"RUN#{number:07}"}


# --- queued jobs ----------------------------------------------------------------------------------------------------


def _queued_jobs(folder: Path) -> None:
    few, many = (_queued(f"file:{folder / f'queue-{size}.db'}", size) for size in (FEW, MANY_QUEUED))
    peer = f"{FEW:,} queued"
    for bench, operation in (("claim and release of a job", _claim), ("the next 25 jobs", _look)):
        compare(
            f"{bench}, {MANY_QUEUED:,} queued",
            Contender("jobtable", operation(many)),
            Contender(peer, operation(few)),
            targets={peer: 0.5},
        )
    few.store.close()
    many.store.close()


def _queued(url: str, size: int) -> Jobs:
    """So many jobs in one queue: copies of one that was submitted, without their histories."""
    jobs = open_jobs(f"{url}?durability=normal")
    first = jobs.submit(NewJob(name="add", task="bench.job_tasks:add", params={"a": 1, "b": 1}))
    place = jobs.store.get(QueueJob.key(queue_name="default", job_id=first.job_id))

    def copies() -> Iterator[Entity]:
        for _ in range(size - 1):
            new = {"job_id": str(uuid.uuid4())}
            yield first.model_copy(update=new)
            yield place.model_copy(update={**new, "enqueued_at": jobs.clock.now()})

    jobs.store.batch_put(copies())
    jobs.store.update(Queue.key(queue_name="default"), Queue.job_count.set(size))
    return jobs


def _claim(jobs: Jobs) -> Callable[[], object]:
    def claim_and_release() -> None:
        (lease,) = jobs.claim("default", limit=1, instance_id="bench", lease_seconds=600)
        jobs.release(lease, "measured")

    return claim_and_release


def _look(jobs: Jobs) -> Callable[[], object]:
    return lambda: list(jobs.queries.list_ready("default", limit=25))
