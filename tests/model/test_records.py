"""Items are read without msgspec, too."""

from __future__ import annotations

import pytest
from pydantic_core import to_json

from jobtable.model import Entity, Key, Table, codec


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
