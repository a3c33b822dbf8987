"""Files that appear when they are whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtable.files import sync_folder, sync_folders_above, whole_file


def test_a_file_appears_when_it_is_whole_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "made.txt"
    path.write_bytes(b"before")
    with whole_file(path) as first, whole_file(path) as second:
        first.write(b"first")
        second.write(b"second")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"first"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_was_not_finished_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "made.txt"
    path.write_bytes(b"before")

    def half() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), whole_file(path) as file:
        file.writelines(half())
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_there_after_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "made.txt"
    synced: list[tuple[int, bool]] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append((os.fstat(file).st_ino, path.exists())))
    with whole_file(path) as file:
        file.write(b"whole")
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_the_names_of_all_folders_above_are_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some" / "folder" / "file"
    path.parent.mkdir(parents=True)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    sync_folders_above(path)
    device = tmp_path.stat().st_dev
    assert synced == [folder.stat().st_ino for folder in path.parents if folder.stat().st_dev == device]


@pytest.mark.parametrize(("number", "is_told"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_only_a_file_system_that_does_not_sync_folders_may_refuse_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_told: bool
) -> None:
    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    if is_told:
        with pytest.raises(OSError, match="Input/output error"):
            sync_folder(tmp_path)
    else:
        sync_folder(tmp_path)
