"""Files that appear when they are whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtable.files import whole_file


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
