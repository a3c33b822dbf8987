"""What is read again is not decoded again; what is kept has a limit."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_core import from_json

from jobtable.errors import ItemShapeError
from jobtable.model import kept_entities
from jobtable.model.kept_entities import Memory


class Reader:
    """Counts what is decoded and what is copied."""

    def __init__(self) -> None:
        self.decoded = 0
        self.copied = 0
        self.memory = Memory(self.decode, self.copy)

    def decode(self, bodies: list[bytes]) -> list[dict[str, Any]]:
        self.decoded += len(bodies)
        if any(b"wrong" in body for body in bodies):
            raise ItemShapeError("wrong")
        return [from_json(body) for body in bodies]

    def copy(self, entity: dict[str, Any]) -> dict[str, Any]:
        self.copied += 1
        return dict(entity)

    def read(self, body: bytes) -> Any:
        return self.memory.entity(bytes(bytearray(body)))  # other bytes with the same content, as a file gives them


def test_what_comes_for_the_third_time_is_copied() -> None:
    reader = Reader()
    found = [reader.read(b'{"a": {"S": "1"}}') for _ in range(5)]
    assert found == [{"a": {"S": "1"}}] * 5
    assert len({id(each) for each in found}) == 5
    assert reader.decoded == 2
    reader.read(b'{"a": {"S": "2"}}')
    assert reader.decoded == 3


def test_several_are_read_as_one_by_one() -> None:
    reader = Reader()
    bodies = [b'{"n": {"N": "%d"}}' % number for number in range(6)]
    for body in bodies[::2] * 2:
        reader.read(body)
    reader.decoded = reader.copied = 0
    assert reader.memory.entities(bodies) == [{"n": {"N": str(number)}} for number in range(6)]
    assert (reader.decoded, reader.copied) == (3, 3)
    assert reader.memory.entities([]) == []


def test_what_was_read_together_is_kept_when_it_comes_again_together() -> None:
    reader = Reader()
    bodies = [b'{"n": {"N": "%d"}}' % number for number in range(6)]
    for _ in range(4):
        assert reader.memory.entities(list(bodies)) == [{"n": {"N": str(number)}} for number in range(6)]
    assert reader.decoded == 12


def test_what_is_large_is_decoded_each_time() -> None:
    reader = Reader()
    body = b'{"a": {"S": "%s"}}' % (b"x" * kept_entities._LARGEST_KEPT)
    for _ in range(4):
        reader.read(body)
    assert (reader.decoded, reader.copied) == (4, 0)


def test_an_item_of_another_shape_is_an_error_each_time() -> None:
    reader = Reader()
    for _ in range(4):
        with pytest.raises(ItemShapeError):
            reader.read(b'{"wrong": {"S": "1"}}')


def test_what_is_kept_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_entities, "_MOST_KEPT", 10)
    monkeypatch.setattr(kept_entities, "_MOST_SEEN", 40)
    reader = Reader()
    for turn in range(3):
        for number in range(200):
            assert reader.read(b'{"n": {"N": "%d"}}' % number) == {"n": {"N": str(number)}}, turn
            reader.read(b'{"n": {"N": "%d"}}' % number)
            assert len(reader.memory._kept) <= 10
            assert len(reader.memory._seen) <= 40
    many = [b'{"n": {"N": "%d"}}' % number for number in range(100)]
    for turn in range(3):
        assert reader.memory.entities(many) == [{"n": {"N": str(number)}} for number in range(100)], turn
        assert len(reader.memory._kept) <= 10
