"""Object stores by URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobtable.errors import ConnectionUrlError
from jobtable.objects import open_objects
from jobtable.objects.filesystem import FilesystemObjectStore
from jobtable.objects.memory import MemoryObjectStore
from jobtable.objects.s3 import S3ObjectStore


def test_every_form_opens_its_store(tmp_path: Path) -> None:
    assert isinstance(open_objects("memory:"), MemoryObjectStore)
    for url in (f"file:{tmp_path}/a", f"file://{tmp_path}/b"):
        store = open_objects(url)
        assert isinstance(store, FilesystemObjectStore)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    store = open_objects("s3://a-bucket/some/prefix?region=eu-central-1&endpoint=http://127.0.0.1:1")
    assert isinstance(store, S3ObjectStore)
    store.close()


def test_a_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_objects("file:some/where").put("a", b"x")
    monkeypatch.chdir("/")
    assert (tmp_path / "some" / "where" / "a").read_bytes() == b"x"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "memory",
        "memory:x",
        "file:",
        "file://host/path",
        "file:a\0b",
        "ftp://x/y",
        "s3:bucket",
        "s3://",
        "s3://UPPER",
        "s3://b",
        "s3://user:secret@bucket",
        "s3://bucket/a//b",
        "s3://bucket/../x",
        "s3://bucket/a b",
        "s3://bucket?region",
        "s3://bucket?region=",
        "s3://bucket?color=red",
        "s3://bucket?endpoint=somewhere",
        "s3://bucket?endpoint=ftp://host",
        "s3://bucket?region=not a region",
        "s3://bucket#fragment",
        "s3://[bucket",
    ],
)
def test_nonsense_is_refused(url: str) -> None:
    with pytest.raises(ConnectionUrlError):
        open_objects(url)
