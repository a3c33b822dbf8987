"""connect(): which store a URL names."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

import jobtable
from jobtable.connection import default_objects_url
from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.server import DynamoDbProtocol, Server, SignatureCheck
from jobtable.errors import ConnectionUrlError, StorageError
from jobtable.testing.contract_entities import Task, make_task, table


def test_memory_is_gone_when_it_is_closed() -> None:
    with jobtable.connect("memory:") as store:
        store.tables.create(table)
        store.add(make_task())
    with jobtable.connect("memory:") as store:
        assert store.tables.names() == []


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "file:{}?durability=normal"])
def test_a_file_keeps_what_is_in_it(tmp_path: Path, form: str) -> None:
    path = tmp_path / "some folder" / "store.db"
    path.parent.mkdir()
    for expected in ([], ["1"]):
        with jobtable.connect(form.format(path)) as store:
            store.tables.create(table)
            assert [task.task_id for task in store.query(Task.by_status(status="new"))] == expected
            store.put(make_task())
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_prefix_separates_stores_on_one_backend(dynamodb_local_url: str) -> None:
    host = dynamodb_local_url.removeprefix("http://")
    stores = [jobtable.connect(f"dynamodb+http://a:b@{host}?prefix={name}-") for name in ("one", "two")]
    for store in stores:
        store.tables.create(table)
    stores[0].add(make_task())
    assert stores[1].find(Task.key(task_id="1")) is None
    assert stores[0].tables.names() == ["contract"]
    for store in stores:
        store.tables.delete(table)
        store.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "is not the URL of a store; write memory:"),
        ("nonsense", "is not the URL of a store"),
        ("memory", "is not the URL of a store; write memory:"),
        ("redis://localhost", "is not the URL of a store"),
        ("memory:x", "has no path"),
        ("file:", "does not name a file"),
        ("file:a%00b", "does not name a file"),
        ("file:x.db?durability=none", "durability must be full or normal"),
        ("file:x.db?color=red", "unknown option color"),
        ("file:x.db?color", "name=value"),
        ("dynamodb://", "does not name a region"),
        ("dynamodb://eu-west-1/path", "does not name a region or host"),
        ("dynamodb://eu-west-1:99", "a region has no port"),
        ("dynamodb+http://localhost:99999", "Port out of range"),
        ("dynamodb+http://localhost:8000?x=1", "unknown option x"),
    ],
)
def test_nonsense_is_refused_in_one_line(url: str, message: str) -> None:
    with pytest.raises(ConnectionUrlError) as raised:
        jobtable.connect(url)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("rest", [":99999", ":8000?x=1", ":8000?x", "/path"])
def test_a_refused_url_is_told_without_its_secret(rest: str) -> None:
    with pytest.raises(ConnectionUrlError) as raised:
        jobtable.connect(f"dynamodb+http://me:hidden@localhost{rest}")
    assert "me:***@localhost" in str(raised.value)
    assert "hidden" not in str(raised.value)


def test_a_slash_in_a_key_is_told_without_the_key() -> None:
    with pytest.raises(ConnectionUrlError, match=r"me:\*\*\*@localhost:8000': write / in a key as %2F") as raised:
        jobtable.connect("dynamodb+http://me:hid/den@localhost:8000")
    assert "hid" not in str(raised.value)


def test_the_keys_in_a_url_may_have_any_signs() -> None:
    signatures = SignatureCheck("me@home", "a/b+c:d@e?")
    with closing(EmbeddedBackend(None)) as backend, Server(DynamoDbProtocol(backend, signatures).respond) as server:
        address = server.url.removeprefix("http://")
        with jobtable.connect(f"dynamodb+http://me%40home:a%2Fb+c:d%40e%3F@{address}") as store:
            assert store.tables.names() == []


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StorageError, match=r"file/store\.db"):
        jobtable.connect(f"file:{tmp_path}/file/store.db")
    with pytest.raises(StorageError, match="not a database"):
        jobtable.connect(f"file:{tmp_path}/file")


@pytest.mark.parametrize(
    ("store", "objects"),
    [
        ("memory:", "memory:"),
        ("file:jobs.db", "file:jobs.db.objects"),
        ("file:///data/jobs.db?durability=normal", "file:/data/jobs.db.objects"),
        ("file:my%20jobs.db", "file:my jobs.db.objects"),
    ],
)
def test_objects_are_beside_the_store(store: str, objects: str) -> None:
    assert default_objects_url(store) == objects


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("jobs.db", "'jobs.db' is not the URL of a store; write memory:, file:PATH"),
        ("dynamodb://eu-west-1", "needs a URL for objects"),
    ],
)
def test_a_store_without_a_place_for_objects_is_told_from_none(store: str, message: str) -> None:
    with pytest.raises(ConnectionUrlError, match=message):
        default_objects_url(store)
