"""The properties of the model, over every registered entity and hostile values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_core import from_json, to_json
from tests.samples import ENTITIES

from jobtable.errors import ItemShapeError
from jobtable.model import Entity, wire
from jobtable.model.codec import EntityCodec
from jobtable.model.key_templates import Template
from jobtable.testing.strategies import entities

every_entity = pytest.mark.parametrize("cls", ENTITIES, ids=lambda cls: cls.__name__)
relaxed = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


OTHER_FORMS: list[dict[str, Any] | None] = [None, {"NULL": True}, {"S": "text"}, {"N": "1"}, {"L": []}, {"M": {}}]
"""What an item of another program may have for an attribute; None: it does not have it."""


def templates(cls: type[Entity]) -> list[Template]:
    return [part.template for key in cls.__schema__.keys for part in key.parts if part.template]


def holds_anything(kind: wire.WireType) -> bool:
    """Whether a field has room for values, such as bytes, that JSON has no form for."""
    if isinstance(kind, wire.Nested):
        return any(holds_anything(field.kind) for field in kind.part.__codec__.fields.values())
    inner = getattr(kind, "inner", None)
    return isinstance(kind, wire.Anything) or (inner is not None and holds_anything(inner))


@every_entity
@relaxed
@given(data=st.data())
def test_an_item_gives_its_entity_back(cls: type[Entity], data: st.DataObject) -> None:
    entity = data.draw(entities(cls))
    codec = cls.__schema__.codec
    assert codec.decode(codec.encode(entity)) == entity


@every_entity
@relaxed
@given(data=st.data())
def test_an_item_that_is_read_again_gives_an_entity_of_its_own(cls: type[Entity], data: st.DataObject) -> None:
    entity = data.draw(entities(cls))
    codec = cls.__schema__.codec
    body = to_json(codec.encode(entity) | {"undeclared": {"S": "kept"}})
    for _ in range(5):
        found, other = codec.decode_json(body), codec.decode_all_json([body])[0]
        assert found == other
        assert found == entity.with_undeclared({"undeclared": {"S": "kept"}})
        assert to_json(codec.encode(found)) == to_json(codec.encode(codec.decode(from_json(body))))
        empty(vars(found))


@every_entity
@relaxed
@given(data=st.data())
def test_a_record_gives_the_entity_of_its_item(cls: type[Entity], data: st.DataObject) -> None:
    entity = data.draw(entities(cls))
    codec = cls.__schema__.codec
    assert codec._read_records is not None
    (found,) = codec._read_records(b"[" + to_json(codec.encode(entity)) + b"]")
    assert found == entity
    assert to_json(codec.encode(found)) == to_json(codec.encode(entity))


@every_entity
@relaxed
@given(data=st.data())
def test_items_of_any_shape_mean_the_same_as_records_and_as_dicts(cls: type[Entity], data: st.DataObject) -> None:
    codec, schema = cls.__schema__.codec, cls.__schema__
    items = [codec.encode(data.draw(entities(cls))) for _ in range(2)]
    holder: dict[str, Any] = items[1]
    if schema.envelope in holder and data.draw(st.booleans()):
        holder = holder[schema.envelope]["M"]
    for name in data.draw(st.lists(st.sampled_from(sorted([*holder, "undeclared"])), min_size=1, max_size=2)):
        change = data.draw(st.sampled_from(OTHER_FORMS))
        if change is None:
            holder.pop(name, None)
        else:
            holder[name] = change
    bodies = [to_json(item) for item in items]
    as_records = outcome(codec, lambda: codec._decode_bodies(bodies))
    assert as_records == outcome(codec, lambda: codec.decode_all([from_json(body) for body in bodies]))


def outcome(codec: EntityCodec, read: Callable[[], list[Any]]) -> Any:
    """What is read, with what would be written for it; or the error."""
    try:
        return [(entity, to_json(codec.encode(entity))) for entity in read()]
    except ItemShapeError as error:
        return str(error)


def empty(value: Any) -> None:
    """Take everything out of a value that can be taken out."""
    if isinstance(value, BaseModel):
        value = vars(value)
    if isinstance(value, dict | list | set):
        for inner in value.values() if isinstance(value, dict) else value:
            empty(inner)
        value.clear()


@every_entity
@relaxed
@given(data=st.data())
def test_the_slow_way_reads_the_same_as_the_fast_one(cls: type[Entity], data: st.DataObject) -> None:
    entity = data.draw(entities(cls))
    codec = cls.__schema__.codec
    assert codec.decode_loosely(codec.encode(entity)) == entity


@every_entity
@relaxed
@given(data=st.data())
def test_keys_are_invertible(cls: type[Entity], data: st.DataObject) -> None:
    values = vars(data.draw(entities(cls)))
    for template in templates(cls):
        # An item that a None keeps out of an index may have an empty text beside it, which no key could hold.
        if all(values[name] not in (None, "") for name in template.fields):
            assert template.parse(template.render(values)) == {name: values[name] for name in template.fields}


@every_entity
@relaxed
@given(data=st.data())
def test_a_prefix_never_selects_another_tuple(cls: type[Entity], data: st.DataObject) -> None:
    one, other = (vars(data.draw(entities(cls))) for _ in range(2))
    for template in templates(cls):
        if any(values[name] in (None, "") for values in (one, other) for name in template.fields):
            continue
        for count in range(len(template.fields) + 1):
            known = template.fields[:count]
            prefix = template.prefix_of({name: one[name] for name in known})
            same = all(one[name] == other[name] for name in known)
            rendered = template.render(other)
            selected = rendered == prefix if count == len(template.fields) else rendered.startswith(prefix)
            assert selected == same


@every_entity
@relaxed
@given(data=st.data())
def test_keys_sort_as_their_values_do(cls: type[Entity], data: st.DataObject) -> None:
    one, other = (vars(data.draw(entities(cls))) for _ in range(2))
    fields = cls.__schema__.fields
    for template in templates(cls):
        for part in template.parts:
            kind = fields[part.field].kind if part.form else None
            sorts = isinstance(kind, wire.Instant | wire.Day | wire.Float | wire.Int | wire.DecimalNumber)
            if part.form is None or not sorts or ":d}" in template.text:
                continue
            a, b = one[part.field], other[part.field]
            if a is not None and b is not None:
                assert (a < b) == (part.form.render(a).encode() < part.form.render(b).encode())


@every_entity
@relaxed
@given(data=st.data())
def test_undeclared_attributes_survive(cls: type[Entity], data: st.DataObject) -> None:
    codec = cls.__schema__.codec
    item = codec.encode(data.draw(entities(cls)))
    foreign: dict[str, Any] = {"another programs attribute": {"S": "kept"}, "n": {"M": {"x": {"N": "1"}}}}
    inside = next((field.envelope for field in cls.__schema__.fields.values() if field.envelope), None)
    stored = {**item, **foreign}
    if inside:
        own = item.get(inside, {"M": {}})["M"]  # none where all fields stand in the key
        stored[inside] = {"M": {**own, "alsoHere": {"BOOL": True}}}
    read = codec.decode(stored)
    assert codec.encode(read) == stored
    assert codec.encode(read.replace()) == stored


@every_entity
@relaxed
@given(data=st.data())
def test_index_keys_are_derived_and_sparse(cls: type[Entity], data: st.DataObject) -> None:
    entity = data.draw(entities(cls))
    schema = cls.__schema__
    item = schema.codec.encode(entity)
    for key in schema.indexes.values():
        present = all(getattr(entity, name) is not None for name in key.inputs)
        for part in key.parts:
            if part.template is not None:
                assert (part.attribute in item) == present
                if present:
                    assert item[part.attribute] == {"S": part.template.render(vars(entity))}


@every_entity
@relaxed
@given(data=st.data())
def test_json_gives_the_entity_back(cls: type[Entity], data: st.DataObject) -> None:
    entity = data.draw(entities(cls))
    if not any(holds_anything(field.kind) for field in cls.__schema__.fields.values()):
        assert cls.model_validate_json(entity.model_dump_json()) == entity
    assert cls.model_json_schema()["title"] == cls.__name__
