"""A process that dies, or loses its connection, at any of its writes; and another one that comes in between."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Any, TypeVar

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import BackendUnavailable, JobtableError, ObjectStoreUnavailable
from jobtable.jobs.engine import Jobs
from jobtable.model import Table
from jobtable.objects import ObjectStore
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Backoff, Store
from jobtable.store.backend import Backend, Request, Response
from jobtable.testing import FakeClock

T = TypeVar("T")
_WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
_OBJECT_WRITES = {"put", "delete"}
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z|\d{8}T\d{12}|(?<=\"durationMs\": {\"N\": \")\d+")
_BY_THE_REAL_CLOCK = ({"S": "JOB_LOG"}, {"S": "JOB_LOG_TEXT"}, {"S": "JOB_TIMELINE"})
"""What jobs log is written when a thread comes to it."""
_RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|JOB-[0-9A-F]{16}|[0-9a-f]{64}")


class Interrupted(BaseException):
    """The process died here."""


class Fault(Enum):
    """What happens at a write."""

    DEATH = "the process dies before it"
    LOST_ANSWER = "it takes effect, and its answer is lost"
    SILENCE = "it takes effect, and no answer comes any more"


class _Line:
    """What leads to the store and to the objects, with a fault behind so many writes."""

    def __init__(self, writes: int, fault: Fault) -> None:
        self._writes = writes
        self._fault = fault
        self.has_failed = False

    def pass_on(self, send: Callable[[], T], lost: Exception, *, writes: bool) -> T:
        if self.has_failed and self._fault is not Fault.LOST_ANSWER:
            raise Interrupted if self._fault is Fault.DEATH else lost
        if self.has_failed or not writes:
            return send()
        if self._writes > 0:
            self._writes -= 1
            return send()
        self.has_failed = True
        if self._fault is Fault.DEATH:
            raise Interrupted
        send()
        raise lost


class _FaultyBackend:
    def __init__(self, backend: Backend, line: _Line) -> None:
        self._backend = backend
        self._line = line

    def execute(self, operation: str, request: Request) -> Response:
        lost = BackendUnavailable("no answer came")
        return self._line.pass_on(lambda: self._backend.execute(operation, request), lost, writes=operation in _WRITES)

    def close(self) -> None:
        """It belongs to another store."""


class _FaultyObjects:
    def __init__(self, objects: ObjectStore, line: _Line) -> None:
        self._objects = objects
        self._line = line

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._objects, name)
        if name not in _OBJECT_WRITES:
            return verb
        lost = ObjectStoreUnavailable("no answer came")
        return lambda *given: self._line.pass_on(lambda: verb(*given), lost, writes=True)


def dies_after(store: Store, objects: ObjectStore, writes: int, act: Callable[[Store, Any], object]) -> bool:
    """Do something in a process that dies after so many writes; says whether it died before it was done."""
    line = _Line(writes, Fault.DEATH)
    try:
        act(*_behind(line, store, objects))
    except Interrupted:
        return True
    return False


def loses_an_answer(store: Store, objects: ObjectStore, writes: int, act: Callable[[Store, Any], object]) -> bool:
    """Do something in a process to which the answer is lost behind so many writes; says whether there was one."""
    line = _Line(writes, Fault.LOST_ANSWER)
    with suppress(JobtableError):
        act(*_behind(line, store, objects, Backoff(attempts=1)))
    return line.has_failed


def _behind(line: _Line, store: Store, objects: ObjectStore, backoff: Backoff | None = None) -> tuple[Store, Any]:
    faulty = Store(_FaultyBackend(store.backend, line), clock=store.clock, prefix=store.prefix, backoff=backoff)
    return faulty, _FaultyObjects(objects, line)


# --- verbs that are interrupted, and done again -----------------------------------------------------------------------


@dataclass(frozen=True)
class Verb:
    """What a process does, and what is there when it begins."""

    act: Callable[[Jobs, Any], object]
    before: Callable[[Jobs], Any] = lambda jobs: None
    """Gives what the verb is called with."""
    refused: str | None = None
    """What the same call is told once it was done, or is half done; None if it is content, and does what is left."""


@dataclass(frozen=True)
class Surroundings:
    """Where verbs act, what must hold at any time, and what else happens before all is at rest."""

    tables: tuple[Table, ...]
    check: Callable[[Jobs], object] = lambda jobs: None
    settle: Callable[[Jobs], object] = lambda jobs: None

    @contextmanager
    def world(self) -> Iterator[Jobs]:
        clock = FakeClock()
        with Store(EmbeddedBackend(None, clock=clock), clock=clock) as store:
            store.tables.create(*self.tables)
            yield Jobs(store, MemoryObjectStore(clock), clock=clock)

    def settled(self, jobs: Jobs) -> list[str]:
        """What there is when all is at rest, but for times and what is random."""
        self.settle(jobs)
        self.check(jobs)
        items = (item for table in self.tables for item in _items(jobs.store, table))
        texts = [json.dumps(item, sort_keys=True) for item in items if item.get("TYPE") not in _BY_THE_REAL_CLOCK]
        texts += [found.key for found in jobs.objects.list() if not found.key.startswith("jobs/")]
        return sorted(_RANDOM.sub("ID", _TIMES.sub("TIME", text)) for text in texts)


def _items(store: Store, table: Table) -> Iterator[Any]:
    request: Request = {"TableName": store.table_name(table)}
    while True:
        page = store.backend.execute("Scan", request)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def check_repetition(verb: Verb, surroundings: Surroundings, fault: Fault) -> None:
    """Interrupt a verb at each of its writes, do it again, and find what there is when nothing interrupts it."""
    with surroundings.world() as jobs:
        verb.act(jobs, verb.before(jobs))
        done = surroundings.settled(jobs)
    for writes in count():
        with surroundings.world() as jobs:
            given = verb.before(jobs)
            line = _Line(writes, fault)
            try:
                verb.act(Jobs(*_behind(line, jobs.store, jobs.objects), clock=jobs.clock), given)
            except (Interrupted, BackendUnavailable, ObjectStoreUnavailable):
                surroundings.check(jobs)
                _do_again(verb, jobs, given)
            if not line.has_failed:
                assert writes > 0
                return
            assert surroundings.settled(jobs) == done, f"{fault.name} after {writes} writes"


def _do_again(verb: Verb, jobs: Jobs, given: Any) -> None:
    try:
        verb.act(jobs, given)
    except JobtableError as error:
        if verb.refused is None or not re.search(verb.refused, str(error)):
            raise


# --- two at once ------------------------------------------------------------------------------------------------------


class _Disturbance:
    """Something else that happens before one of the calls to the store and to the objects, be it a read or a write."""

    def __init__(self, calls: int, other: Callable[[], object]) -> None:
        self._calls = calls
        self._other = other

    @property
    def has_happened(self) -> bool:
        return self._calls < 0

    def before_call(self) -> None:
        self._calls -= 1
        if self._calls == -1:
            self._other()


class _DisturbedBackend:
    def __init__(self, backend: Backend, disturbance: _Disturbance) -> None:
        self._backend = backend
        self._disturbance = disturbance

    def execute(self, operation: str, request: Request) -> Response:
        self._disturbance.before_call()
        return self._backend.execute(operation, request)

    def close(self) -> None:
        """It belongs to another store."""


class _DisturbedObjects:
    def __init__(self, objects: ObjectStore, disturbance: _Disturbance) -> None:
        self._objects = objects
        self._disturbance = disturbance

    def __getattr__(self, name: str) -> Any:
        self._disturbance.before_call()
        return getattr(self._objects, name)


def interleaved(
    surroundings: Surroundings,
    before: Callable[[Jobs], Any],
    act: Callable[[Jobs, Any], object],
    other: Callable[[Jobs, Any], object],
) -> Iterator[list[str]]:
    """Let another one act before each call of the first, either of which may be refused; gives what is left."""
    for calls in count():
        with surroundings.world() as jobs:
            given = before(jobs)
            disturbance = _Disturbance(calls, lambda: _try(other, jobs, given))  # noqa: B023 - called in this round
            store = Store(_DisturbedBackend(jobs.store.backend, disturbance), clock=jobs.clock)
            objects: Any = _DisturbedObjects(jobs.objects, disturbance)
            _try(act, Jobs(store, objects, clock=jobs.clock), given)
            if not disturbance.has_happened:
                return
            yield surroundings.settled(jobs)


def _try(act: Callable[[Jobs, Any], object], jobs: Jobs, given: Any) -> None:
    with suppress(JobtableError):
        act(jobs, given)
