"""A transaction of 99 actions, as a job engine makes them, against raw SQLite writing the same rows in one commit.

A third of the actions updates a job of 25 attributes on a condition, a third adds a line of its history, and a third
deletes the line before.
"""

from __future__ import annotations

import itertools
import tempfile
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic_core import to_json

from bench.measure import Contender, compare
from bench.raw_sqlite import RawSqlite
from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.stored.entities import Job, JobStatus, main
from jobtable.jobs.stored.field_types import Status
from jobtable.store.backend import Backend, Request, Response
from jobtable.store.store import Store
from jobtable.store.transactions import Transaction
from jobtable.testing.servers import cache_folder

JOBS = 33
ACTIONS = 3 * JOBS
START = datetime(2025, 11, 1, tzinfo=UTC)
STATES = (Status.PENDING, Status.RUNNING)


def run() -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder()) as folder:
        raw = RawSqlite(Path(folder, "raw.db"))
        with Store(EmbeddedBackend(Path(folder, "ours.db"))) as store:
            store.tables.create(main)
            for number in range(JOBS):
                store.put(_job(number))
            peer = Contender("raw SQLite, the same rows", _raw(raw), ACTIONS)
            turns = itertools.count()
            compare(
                f"transaction of {ACTIONS} actions, typed", Contender("jobtable", _typed(store, turns), ACTIONS), peer
            )
            compare(
                f"transaction of {ACTIONS} actions, engine",
                Contender("jobtable", _engine(store.backend, turns), ACTIONS),
                peer,
            )
        raw.close()


def _job(number: int) -> Job:
    return Job(
        job_id=f"job-{number:06}",
        name="receipt-layout-large",
        description="Fine-tuning on the September receipts, with the new augmentation",
        created_at=START + timedelta(microseconds=number),
        created_by="dana",
        job_config={"optimizer": "adamw", "schedule": "cosine", "learning_rate": 0.0005, "epochs": 20},
        estimated_duration=3600.0,
        tags=frozenset({"nightly", "receipts", "gpu"}),
        job_type="train",
        parent_job_id="job-parent",
        root_job_id="job-root",
        job_stage="training",
        queue_name="gpu",
        max_attempts=3,
        instance_id="i-0123456789",
        started_at=START,
    )


def _history(job_id: str, turn: int) -> JobStatus:
    return JobStatus(job_id=job_id, status=STATES[turn % 2], message="claimed", updated_at=_time(turn), updated_by="w1")


def _time(turn: int) -> datetime:
    return START + timedelta(seconds=turn % 2)


def _act(transaction: Transaction, jobs: list[Job], turn: int) -> None:
    """Take every job from one state to the other."""
    for job in jobs:
        changes = Job.status.set(STATES[turn % 2]), Job.progress.set(50.0), Job.lease_epoch.add(1)
        transaction.update(job, *changes, when=Job.status == STATES[(turn + 1) % 2])
        transaction.add(_history(job.job_id, turn))
        transaction.delete(JobStatus.key(job_id=job.job_id, updated_at=_time(turn + 1)))


def _typed(store: Store, turns: Iterator[int]) -> Callable[[], None]:
    jobs = [_job(number) for number in range(JOBS)]

    def call() -> None:
        with store.transaction() as transaction:
            _act(transaction, jobs, next(turns) + 1)

    return call


def _engine(backend: Backend, turns: Iterator[int]) -> Callable[[], Response]:
    jobs = [_job(number) for number in range(JOBS)]
    requests = []
    for turn in range(2):
        recorder = _Recorder()
        with Store(recorder).transaction() as transaction:
            _act(transaction, jobs, turn)
        requests.append(recorder.request)

    def call() -> Response:
        request = {**requests[(next(turns) + 1) % 2], "ClientRequestToken": str(uuid.uuid4())}
        return backend.execute("TransactWriteItems", request)

    return call


class _Recorder:
    """A backend that only keeps the last request."""

    request: Request

    def execute(self, operation: str, request: Request) -> Response:
        self.request = request
        return {}

    def close(self) -> None:
        pass


def _raw(raw: RawSqlite) -> Callable[[], None]:
    """The row of each item, and those of its indexes where a key changes, with the same bytes."""
    bodies = [to_json(entity.__schema__.codec.encode(entity)) for entity in (_job(1), _history("job-000001", 1))]
    put, delete = "INSERT OR REPLACE INTO item VALUES (?, ?)", "DELETE FROM item WHERE key = ?"
    turns = itertools.count()

    def call() -> None:
        execute, turn = raw.connection.execute, next(turns)
        new, old = turn % 2, (turn + 1) % 2
        execute("BEGIN IMMEDIATE")
        for number in range(JOBS):
            execute(put, (b"job#%06d" % number, bodies[0]))
            execute(delete, (b"by_status#%d#CREATED#%06d" % (old, number),))
            execute(put, (b"by_status#%d#CREATED#%06d" % (new, number), b""))
            for index in (b"", b"by_status#", b"by_type#"):
                execute(put, (b"%shistory#%06d#%d" % (index, number, new), b"" if index else bodies[1]))
                execute(delete, (b"%shistory#%06d#%d" % (index, number, old),))
        execute("COMMIT")

    return call
