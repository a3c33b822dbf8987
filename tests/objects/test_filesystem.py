"""What only the filesystem store has to hold: links, permissions, kill -9, one disk."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from jobtable.errors import ObjectNotFoundError, ObjectStoreError, ObjectStoreUnavailable
from jobtable.objects.filesystem import FilesystemObjectStore
from jobtable.objects.keys import object_key


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest.fixture
def objects(root: Path) -> FilesystemObjectStore:
    return FilesystemObjectStore(root)


def test_an_object_is_a_plain_file_at_its_key(objects: FilesystemObjectStore, root: Path) -> None:
    objects.put("jobs/17/log.txt", b"hello")
    assert (root / "jobs" / "17" / "log.txt").read_bytes() == b"hello"


def test_names_do_not_depend_on_case(objects: FilesystemObjectStore, root: Path) -> None:
    objects.put(object_key("A", "ä B"), b"")
    names = [path.name for path in root.rglob("*")]
    assert [name for name in names if name != name.lower()] == []


def test_everything_is_private_to_the_user(objects: FilesystemObjectStore, root: Path) -> None:
    old = os.umask(0)
    try:
        objects.put("a/b/c", b"secret")
    finally:
        os.umask(old)
    modes = {path.relative_to(root).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}
    assert modes == {".incoming": 0o700, "a": 0o700, "a/b": 0o700, "a/b/c": 0o600}
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inodes of what is synced, in order."""
    inodes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: inodes.append(os.fstat(file).st_ino))
    return inodes


def test_the_folders_of_a_new_store_are_synced_once(tmp_path: Path, synced: list[int]) -> None:
    root = tmp_path / "new" / "objects"
    FilesystemObjectStore(root)
    assert {tmp_path.stat().st_ino, root.parent.stat().st_ino} <= set(synced)
    synced.clear()
    FilesystemObjectStore(root)
    assert synced == []


def test_a_put_relies_on_nobody_else_to_sync_a_new_folder(
    objects: FilesystemObjectStore, root: Path, synced: list[int]
) -> None:
    (root / "a").mkdir()  # as another writer does that has not come further
    objects.put("a/b/c", b"")
    file, *folders = synced
    assert file == (root / "a" / "b" / "c").stat().st_ino
    assert folders == [folder.stat().st_ino for folder in (root, root / "a", root / "a" / "b")]
    synced.clear()
    objects.put("a/b/d", b"")
    assert synced == [(root / "a" / "b" / "d").stat().st_ino, (root / "a" / "b").stat().st_ino]


def test_links_are_never_followed(objects: FilesystemObjectStore, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    for key in ("folder/secret", "file"):
        with pytest.raises(ObjectNotFoundError):
            objects.get(key)
    with pytest.raises(ObjectStoreError, match="folder/new"):
        objects.put("folder/new", b"")
    objects.delete("folder/secret")
    assert list(objects.list()) == []
    objects.put("file", b"mine")
    assert objects.get("file") == b"mine"
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"


def test_the_root_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    root.symlink_to(tmp_path / "real")
    FilesystemObjectStore(root).put("a", b"x")
    assert (tmp_path / "real" / "a").read_bytes() == b"x"


def test_what_is_no_file_is_not_there(objects: FilesystemObjectStore, root: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "Upper").write_bytes(b"a name that the store does not give")
    objects.put("folder/x", b"")
    for key in ("fifo", "folder", "folder/x/y"):
        with pytest.raises(ObjectNotFoundError):
            objects.get(key)
    assert [found.key for found in objects.list()] == ["folder/x"]
    objects.delete("folder")
    assert objects.get("folder/x") == b""


def test_a_folder_cannot_be_an_object(objects: FilesystemObjectStore) -> None:
    objects.put("a/b", b"")
    for key in ("a", "a/b/c"):
        with pytest.raises(ObjectStoreError, match=f"cannot put {key} in"):
            objects.put(key, b"")


def test_delete_leaves_no_empty_folders(objects: FilesystemObjectStore, root: Path) -> None:
    objects.put("a/b/c/d", b"")
    objects.put("a/x", b"")
    objects.delete("a/b/c/d")
    assert sorted(path.relative_to(root).as_posix() for path in root.rglob("*")) == [".incoming", "a", "a/x"]


def test_a_root_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ObjectStoreError, match="file"):
        FilesystemObjectStore(tmp_path / "file")


def test_a_root_that_is_gone_is_an_error_and_not_an_empty_store(objects: FilesystemObjectStore, root: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    for use in (lambda: objects.get("a"), lambda: list(objects.list()), lambda: objects.put("a", b"")):
        with pytest.raises(ObjectStoreError):
            use()


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_a_full_disk_is_told_and_may_have_room_later(
    objects: FilesystemObjectStore, root: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    def open_full(descriptor: int, mode: str) -> BinaryIO:
        os.close(descriptor)
        return cast("BinaryIO", open("/dev/full", mode))

    with monkeypatch.context() as full:
        full.setattr(os, "fdopen", open_full)
        with pytest.raises(ObjectStoreUnavailable, match=f"cannot put a in {root}: No space left on device"):
            objects.put("a", bytes(size))
    objects.put("a", bytes(size))
    assert list((root / ".incoming").iterdir()) == []


def test_a_missing_source_file_is_the_caller_s_error(objects: FilesystemObjectStore, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-source"):
        objects.put("a", tmp_path / "no-such-source")
    assert list(objects.list()) == []


class Zeros:
    """A stream of many bytes that takes no memory."""

    def __init__(self, size: int) -> None:
        self._left = size

    def read(self, size: int, /) -> bytes:
        size = min(size, self._left)
        self._left -= size
        return bytes(size)


def test_a_large_stream_takes_little_memory(objects: FilesystemObjectStore) -> None:
    size = 50 << 20
    tracemalloc.start()
    try:
        info = objects.put("large", Zeros(size))
        with objects.open("large") as stream:
            while stream.read(1 << 20):
                pass
        assert objects.head("large") == info
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert info.size == size


PUTTING = """
import sys
from pathlib import Path
from jobtable.objects.filesystem import FilesystemObjectStore

class Told:
    def __init__(self, number):
        self.left, self.byte = 40, bytes([number % 256])
    def read(self, size):
        self.left -= 1
        if self.left == 20:
            print("half", flush=True)
        return self.byte * 4096 if self.left >= 0 else b""

objects = FilesystemObjectStore(Path(sys.argv[1]))
number = 0
while True:
    objects.put("victim", Told(number))
    number += 1
"""


def test_a_killed_put_leaves_the_old_object_or_the_new_one(objects: FilesystemObjectStore, root: Path) -> None:
    whole = {bytes([number]) * (40 * 4096) for number in range(256)}
    for puts in range(1, 11):
        with subprocess.Popen([sys.executable, "-c", PUTTING, str(root)], stdout=subprocess.PIPE) as process:
            for _ in range(puts):
                if process.stdout is not None:
                    process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        found = [listed.key for listed in objects.list()]
        assert found in ([], ["victim"])
        if found:
            assert objects.get("victim") in whole
    left = len(list((root / ".incoming").iterdir()))
    assert left > 0
    assert objects.remove_unfinished(datetime.now(UTC) - timedelta(hours=1)) == 0
    assert objects.remove_unfinished(datetime.now(UTC) + timedelta(hours=1)) == left
    assert list((root / ".incoming").iterdir()) == []
