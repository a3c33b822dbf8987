"""Items are read without msgspec, too, and with one that is too old."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import pytest
from pydantic_core import to_json

from jobtable.model import Entity, Key, Name, Part, Table


def declare() -> type[Entity]:
    class Thing(Entity, table=Table("things", pk="PK", type_attribute="TYPE"), type="THING"):
        key = Key("THING#{name}")
        name: str
        size: int | None = None

    return Thing


def without_msgspec(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(sys.modules, "msgspec", None)


def with_old_msgspec(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("msgspec.DecodeError", type("DecodeError", (Exception,), {}))


@pytest.mark.parametrize(
    ("prepare", "has_records"), [(without_msgspec, False), (with_old_msgspec, False), (lambda patch: None, True)]
)
def test_items_are_read_with_and_without_it(
    prepare: Callable[[pytest.MonkeyPatch], None], has_records: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "jobtable.model.msgspec_records", raising=False)
    prepare(monkeypatch)
    cls = declare()
    things = [cls.model_validate({"name": "one", "size": 1}), cls.model_validate({"name": "two"})]
    bodies = [to_json(cls.__schema__.codec.encode(thing)) for thing in things]
    assert cls.__schema__.codec.decode_all_json(bodies) == things
    assert (cls.__schema__.codec._read_records is not None) == has_records


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a b", "class", "S"])
def test_items_are_read_whatever_the_names_of_their_attributes(name: str) -> None:
    class Inside(Part):
        size: Annotated[int, Name(name)]

    class Outside(Entity, table=Table("things", pk="PK", type_attribute="TYPE"), type="THING"):
        key = Key("THING#{thing_id}")
        thing_id: str
        size: Annotated[int, Name(name)]

    class Around(Entity, table=Table("things", pk="PK", type_attribute="TYPE"), type="THING"):
        key = Key("THING#{thing_id}")
        thing_id: str
        parts: list[Inside]

    for thing in (Outside(thing_id="one", size=1), Around(thing_id="one", parts=[Inside(size=1)])):
        codec = type(thing).__schema__.codec
        assert codec.decode_json(to_json(codec.encode(thing))) == thing
