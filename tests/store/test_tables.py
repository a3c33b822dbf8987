"""Tables: what is declared is what is deployed, also after a creation that was cut off."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.storage import table_changes
from jobtable.embedded.storage.upkeep import Upkeep, fill_up
from jobtable.errors import RequestError, RequestRefused, TableNotFound, request_error
from jobtable.model import Entity, Index, Key, Table
from jobtable.store import Backend, Request, Response, Store
from jobtable.store.tables import index_request
from jobtable.testing import FakeClock

table = Table("kept", pk="PK", ttl="expires", recovery=True, stream=True)


class CutOff:
    """A backend whose process is killed before the first request of a kind."""

    def __init__(self, backend: Backend, before: str) -> None:
        self._backend = backend
        self._before = before

    def execute(self, operation: str, request: Request) -> Response:
        if operation == self._before:
            raise RuntimeError("killed")
        return self._backend.execute(operation, request)

    def close(self) -> None:
        self._backend.close()


def recovery_of(store: Store) -> str | None:
    """Whether the table can be had as it was; None where the backend has no backups."""
    try:
        described = store.backend.execute("DescribeContinuousBackups", {"TableName": store.table_name(table)})
    except RequestRefused:
        return None
    status: str = described["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"][
        "PointInTimeRecoveryStatus"
    ]
    return status


class Kept(Entity, table=table):
    """What is kept."""

    key = Key("KEPT#{name}")

    name: str


def write_in_transaction(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.put(Kept(name="a"))


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.find(Kept.key(name="a")),
        lambda store: store.query(Kept.key(name="a")).first(),
        lambda store: store.batch_get([Kept.key(name="a")]),
        write_in_transaction,
    ],
    ids=["find", "query", "batch", "transaction"],
)
def test_a_table_that_is_missing_is_named(each_store: Store, use: Callable[[Store], object]) -> None:
    with pytest.raises(TableNotFound, match=rf"{each_store.prefix}kept; create it with store\.tables\.create"):
        use(each_store)


class Hesitant:
    """A backend that answers requests about a new table as DynamoDB may for a while."""

    def __init__(self, backend: Backend, answers: dict[str, RequestError]) -> None:
        self._backend = backend
        self._answers = answers
        self._is_created = False
        self.refused: list[str] = []

    def execute(self, operation: str, request: Request) -> Response:
        if self._is_created and operation in self._answers and self.refused.count(operation) < 3:
            self.refused.append(operation)
            raise self._answers[operation]
        self._is_created = self._is_created or operation == "CreateTable"
        return self._backend.execute(operation, request)

    def close(self) -> None:
        self._backend.close()


def test_a_new_table_may_need_a_while_to_be_shown_and_to_take_its_settings() -> None:
    unavailable = request_error("ContinuousBackupsUnavailableException", "Backups are being enabled for the table")
    answers = {"DescribeTable": TableNotFound("Requested resource not found"), "UpdateContinuousBackups": unavailable}
    backend = Hesitant(EmbeddedBackend(None), answers)
    with Store(backend, clock=FakeClock()) as store:
        store.tables.create(table)
        assert backend.refused == ["DescribeTable"] * 3 + ["UpdateContinuousBackups"] * 3
        assert store.tables.differences(table) == []


def test_a_table_that_is_not_there_is_not_waited_for(each_store: Store) -> None:
    with pytest.raises(TableNotFound):
        each_store.tables.update(table)


@pytest.mark.parametrize("before", ["DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive"])
def test_a_creation_that_was_cut_off_is_completed_by_the_next(each_store: Store, before: str) -> None:
    with pytest.raises(RuntimeError, match="killed"):
        Store(CutOff(each_store.backend, before), prefix=each_store.prefix).tables.create(table)
    assert each_store.tables.differences(table) != []
    for _ in range(2):
        each_store.tables.create(table)
        assert each_store.tables.differences(table) == []


def test_recovery_that_was_not_reached_is_completed_by_the_next(each_store: Store) -> None:
    each_store.tables.create(Table("kept", pk="PK", ttl="expires", stream=True))
    told = ["point-in-time recovery is declared, but not deployed"]
    assert each_store.tables.differences(table) == ([] if recovery_of(each_store) is None else told)
    each_store.tables.create(table)
    assert recovery_of(each_store) in ("ENABLED", None)
    assert each_store.tables.differences(table) == []
    without = Table("kept", pk="PK", ttl="expires", stream=True)
    assert each_store.tables.differences(without) == [], "more safety than is declared is no difference"


def test_settings_of_other_programs_stay(each_store: Store) -> None:
    each_store.tables.create(Table("kept", pk="PK", ttl="until", stream=True, recovery=True))
    each_store.tables.create(table)
    assert each_store.tables.differences(table) == ["time to live is declared on expires, but deployed on until"]


def test_many_may_create_a_table_at_once(each_store: Store) -> None:
    barrier, errors = Barrier(4), list[Exception]()

    def create() -> None:
        barrier.wait()
        try:
            each_store.tables.create(table)
        except Exception as error:
            errors.append(error)

    threads = [Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert each_store.tables.differences(table) == []


def test_a_stream_on_one_side_only_is_told(each_store: Store) -> None:
    streaming, silent = Table("kept", pk="PK", stream=True), Table("kept", pk="PK")
    each_store.tables.create(silent)
    assert each_store.tables.differences(streaming) == ["a stream is declared, but not deployed"]
    each_store.tables.delete(silent)
    each_store.tables.create(streaming)
    assert each_store.tables.differences(silent) == ["a stream is deployed, but not declared"]


def test_an_index_that_is_still_being_filled_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_changes, "FILLED_AT_ONCE", 0)
    monkeypatch.setattr(Upkeep, "start_if_needed", lambda *_, **__: None)
    plain, indexed = Table("kept", pk="PK"), Table("kept", pk="PK", indexes=[Index("GSI1", "GSI1PK")])
    request = {
        "TableName": "kept",
        "AttributeDefinitions": [{"AttributeName": "GSI1PK", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": index_request(indexed.indexes["GSI1"])}],
    }
    backend = EmbeddedBackend(None)
    with Store(backend) as store:
        store.tables.create(plain)
        backend.execute("PutItem", {"TableName": "kept", "Item": {"PK": {"S": "a"}}})
        backend.execute("UpdateTable", request)
        assert store.tables.differences(indexed) == ["index GSI1 cannot be read: it is CREATING"]
        fill_up(backend._storage)
        assert store.tables.differences(indexed) == []


def test_a_table_that_is_still_being_restored_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_changes, "FILLED_AT_ONCE", 0)
    monkeypatch.setattr(Upkeep, "start_if_needed", lambda *_, **__: None)
    index = Index("GSI1", "GSI1PK")
    source, copy = Table("kept", pk="PK", recovery=True, indexes=[index]), Table("copy", pk="PK", indexes=[index])
    backend = EmbeddedBackend(None)
    with Store(backend) as store:
        store.tables.create(source)
        backend.execute("PutItem", {"TableName": "kept", "Item": {"PK": {"S": "a"}}})
        request = {"SourceTableName": "kept", "TargetTableName": "copy", "UseLatestRestorableTime": True}
        backend.execute("RestoreTableToPointInTime", request)
        assert store.tables.differences(copy) == ["table copy cannot be used: it is CREATING"]
        fill_up(backend._storage)
        assert store.tables.differences(copy) == []
