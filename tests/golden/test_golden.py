"""Items as the specification shows them, written down by hand: each is read, written back, and built from values.

A file is <system>/<Entity>.json, or <system>/<Entity>.<variant>.json for a second item of the entity, here for the core
and in tests/systems/*/golden for the systems:
{"item": the item in wire form, "values": the arguments that construct the entity}.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobtable.model import Entity
from tests.golden import CLASSES, FILES

every_file = pytest.mark.parametrize("path", FILES.values(), ids=lambda path: f"{path.parent.name}-{path.stem}")


def _entity_of(path: Path) -> tuple[str, str]:
    return path.parent.name, path.stem.partition(".")[0]


def _read(path: Path) -> tuple[type[Entity], dict[str, Any], dict[str, Any]]:
    golden = json.loads(path.read_text())
    return CLASSES[_entity_of(path)], golden["item"], golden["values"]


@every_file
def test_an_item_is_read_and_written_back_as_it_is(path: Path) -> None:
    cls, item, _ = _read(path)
    codec = cls.__schema__.codec
    entity = codec.decode(item)
    assert codec.encode(entity) == item
    assert entity._undeclared is None, "the entity does not declare every attribute of the item"


@every_file
def test_plain_values_give_the_item(path: Path) -> None:
    cls, item, values = _read(path)
    codec = cls.__schema__.codec
    built = cls(**values)
    primary = {name: item[name] for name in cls.__schema__.table.primary}
    assert codec.key_of(built) == primary
    assert codec.encode(built) == item
    assert built == codec.decode(item)


def test_every_entity_has_a_golden_item() -> None:
    there = {_entity_of(path) for path in FILES.values()}
    assert sorted(set(CLASSES) - there) == []
    assert sorted(there - set(CLASSES)) == []
