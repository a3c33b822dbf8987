"""Folders that processes leave behind in the folder that all users share."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jobtable.embedded.storage import database_files
from jobtable.embedded.storage.database_files import TemporaryFolder

_MAKE_ONE = "from jobtable.embedded.storage.database_files import TemporaryFolder; TemporaryFolder().close()"


@pytest.fixture
def abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a process that was killed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / "jobtable-memory-abandoned"
    folder.mkdir()
    (folder / "owner").touch()
    return folder


def test_the_folder_of_a_killed_process_is_removed(abandoned: Path) -> None:
    TemporaryFolder().close()
    assert not abandoned.exists()


def test_a_process_looks_for_them_once(abandoned: Path) -> None:
    TemporaryFolder().close()
    abandoned.mkdir()
    (abandoned / "owner").touch()
    TemporaryFolder().close()
    assert abandoned.exists()
    subprocess.run([sys.executable, "-c", _MAKE_ONE], env={**os.environ, "TMPDIR": str(abandoned.parent)}, check=True)
    assert not abandoned.exists()


def test_folders_of_other_users_are_not_touched(abandoned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: abandoned.stat().st_uid + 1)
    TemporaryFolder().close()
    assert (abandoned / "owner").exists()


def test_a_folder_that_is_being_made_is_not_taken_for_an_abandoned_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lock = fcntl.flock

    def lock_late(file: int, how: int) -> None:
        if how == fcntl.LOCK_EX:
            database_files._remove_abandoned(str(tmp_path))
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    folder = TemporaryFolder()
    assert os.listdir(folder.path) == ["owner"]
    folder.close()
