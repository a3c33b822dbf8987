"""A sweep removes what no record names, and nothing else."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from jobtable.errors import ValueRefusedError
from jobtable.objects import sweep
from jobtable.objects.filesystem import FilesystemObjectStore

HOUR = timedelta(hours=1)


@pytest.fixture
def objects(tmp_path: Path) -> FilesystemObjectStore:
    """Two old objects under `a`, a young one there, and an old one elsewhere."""
    objects = FilesystemObjectStore(tmp_path)
    for key in ("a/named", "a/orphan", "a/young", "b/orphan"):
        objects.put(key, key.encode())
    long_ago = time.time() - 7200
    for path in ("a/named", "a/orphan", "b/orphan"):
        os.utime(tmp_path / path, (long_ago, long_ago))
    return objects


def keys(objects: FilesystemObjectStore) -> list[str]:
    return sorted(found.key for found in objects.list())


def test_only_old_objects_without_a_record_go(objects: FilesystemObjectStore) -> None:
    report = sweep(objects, {"a/named"}.__contains__, prefix="a", grace=HOUR)
    assert keys(objects) == ["a/named", "a/young", "b/orphan"]
    assert (report.objects, report.orphans, report.orphan_bytes) == (3, 1, len("a/orphan"))


def test_a_dry_run_counts_and_removes_nothing(objects: FilesystemObjectStore) -> None:
    report = sweep(objects, {"a/named"}.__contains__, grace=HOUR, dry_run=True)
    assert report.is_dry_run
    assert (report.objects, report.orphans) == (4, 2)
    assert len(keys(objects)) == 4


def test_a_second_sweep_finds_nothing(objects: FilesystemObjectStore) -> None:
    sweep(objects, lambda _: False, grace=HOUR)
    assert sweep(objects, lambda _: False, grace=HOUR).orphans == 0


def test_unfinished_puts_are_removed_after_the_grace_time(objects: FilesystemObjectStore, tmp_path: Path) -> None:
    for name, age in (("dead", 7200), ("alive", 0)):
        (tmp_path / ".incoming" / name).write_bytes(b"half")
        modified = time.time() - age
        os.utime(tmp_path / ".incoming" / name, (modified, modified))
    assert sweep(objects, lambda _: True, grace=HOUR).unfinished == 1
    assert [path.name for path in (tmp_path / ".incoming").iterdir()] == ["alive"]


def test_only_old_objects_are_asked_for(objects: FilesystemObjectStore) -> None:
    asked = []

    def is_referenced(key: str) -> bool:
        asked.append(key)
        return True

    sweep(objects, is_referenced, grace=HOUR)
    assert sorted(asked) == ["a/named", "a/orphan", "b/orphan"]


def test_what_is_stored_again_meanwhile_stays(objects: FilesystemObjectStore) -> None:
    """Its record may be written after the look for one."""

    def is_referenced(key: str) -> bool:
        if key == "a/named":
            objects.put(key, b"again")
        if key == "a/orphan":
            objects.delete(key)
        return False

    assert sweep(objects, is_referenced, prefix="a", grace=HOUR).orphans == 0
    assert keys(objects) == ["a/named", "a/young", "b/orphan"]


def test_a_negative_grace_time_is_refused(objects: FilesystemObjectStore) -> None:
    with pytest.raises(ValueRefusedError):
        sweep(objects, lambda _: True, grace=-HOUR)
