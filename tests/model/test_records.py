"""Items are read without msgspec, too."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic_core import to_json

from jobtable.model import Entity, Key, Name, Part, Table, codec


def declare() -> type[Entity]:
    class Thing(Entity, table=Table("things", pk="PK", type_attribute="TYPE"), type="THING"):
        key = Key("THING#{name}")
        name: str
        size: int | None = None

    return Thing


@pytest.mark.parametrize("is_installed", [False, True])
def test_items_are_read_with_and_without_it(is_installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_installed:
        monkeypatch.setattr(codec, "find_spec", lambda name: None)
    cls = declare()
    things = [cls.model_validate({"name": "one", "size": 1}), cls.model_validate({"name": "two"})]
    bodies = [to_json(cls.__schema__.codec.encode(thing)) for thing in things]
    assert cls.__schema__.codec.decode_all_json(bodies) == things
    assert (cls.__schema__.codec._read_records is not None) == is_installed


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
