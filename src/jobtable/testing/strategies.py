"""Hypothesis strategies for entities, including values that are hard on keys and codecs."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from jobtable.errors import ValueRefusedError
from jobtable.model import Attr, wire
from jobtable.model.annotations import describe
from jobtable.model.entity import Entity, Part, Record
from jobtable.model.schema import FieldSchema

E = TypeVar("E", bound=Record)

_SYNTAX = ["#", "%", "%23", "%25", "##", "a#b", "!", "'; DROP TABLE x; --", "{job_id}", "../..", ":v0", "#n0"]
_UNICODE = ["\x00", "\x00\x01", "é", "e\u0301", "👩‍🚀", "\U0010ffff", "\uffff", "\ud7ff"]
HOSTILE_TEXTS = [*_SYNTAX, *_UNICODE, " ", "x" * 1024]

texts = st.one_of(st.sampled_from(HOSTILE_TEXTS), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
"""Any text, including empty and awkward ones."""

_floats = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e120, max_value=1e120).filter(
    lambda number: number == 0 or abs(number) > 1e-120
)
_small_floats = _floats.filter(lambda number: abs(number) < 1e30)  # larger ones are read back as inexact ints
_decimals = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=10)
_times = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)).map(
    lambda t: t.replace(tzinfo=UTC)
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | _small_floats | texts | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts.filter(bool), inner, max_size=3),
    max_leaves=8,
)

_SCALARS: dict[type[wire.WireType], st.SearchStrategy[Any]] = {
    wire.Text: texts,
    wire.UuidText: st.uuids().map(str),
    wire.Bool: st.booleans(),
    wire.Int: st.integers(-(10**37), 10**37) | st.integers(0, 120),
    wire.Float: _floats | st.floats(0, 1).filter(lambda n: n == 0 or n > 1e-120),
    wire.DecimalNumber: _decimals,
    wire.Binary: st.binary(max_size=50),
    wire.Instant: _times,
    wire.Day: st.dates(min_value=date(1, 1, 1)),
    wire.Numbers: st.lists(_floats, max_size=5),
    wire.PackedNumbers: st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=5),
    wire.Anything: _json,
}


def entities(cls: type[E]) -> st.SearchStrategy[E]:
    """Return a strategy for valid instances of an entity or a part whose keys DynamoDB accepts."""
    return _storable_instances(cls)


@lru_cache(maxsize=128)  # checking a new strategy takes Hypothesis longer than drawing from it
def _storable_instances(cls: type[Record]) -> st.SearchStrategy[Any]:
    return _instances(cls).filter(_can_be_stored)


def _instances(cls: type[Record]) -> st.SearchStrategy[Any]:
    fields = cls.__schema__.fields if issubclass(cls, Entity) else cls.__codec__.fields if issubclass(cls, Part) else {}

    def make(values: dict[str, Any]) -> Record | None:
        try:
            return cls(**values)
        except ValidationError:
            return None  # the entity rejects these values

    values = {name: _values(field) for name, field in fields.items()}
    return st.fixed_dictionaries(values).map(make).filter(lambda made: made is not None)


def _can_be_stored(instance: Any) -> bool:
    if not isinstance(instance, Entity):
        return True
    try:
        type(instance).__schema__.codec.encode(instance)
    except ValueRefusedError:
        return False
    return True


def _values(field: FieldSchema) -> st.SearchStrategy[Any]:
    literals = _literals(field.info.annotation)
    values = st.sampled_from(literals) if literals else kind_values(field.kind)
    bounded = _bounded(field, values)
    return st.none() | bounded if field.optional else bounded


def _literals(annotation: Any) -> list[str]:
    """Return the texts that an annotation names, also inside Attr[...] and beside None."""
    if get_origin(annotation) is Literal:
        return [each for each in get_args(annotation) if isinstance(each, str)]
    is_around = get_origin(annotation) in (Attr, Annotated, Union, UnionType)
    return [each for inner in get_args(annotation) for each in _literals(inner)] if is_around else []


def _bounded(field: FieldSchema, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return values within the limits of a field, so that few are rejected."""
    limits = _limits(field)
    if not limits:
        return values
    low, high = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
    if isinstance(field.kind, wire.Int):
        return st.integers(low if low is not None else -(10**9), high if high is not None else 10**9)
    if isinstance(field.kind, wire.Float):
        numbers = st.floats(low, high, allow_nan=False, allow_infinity=False)
        return numbers.filter(lambda n: n == 0 or 1e-120 < abs(n) < 1e120)
    if isinstance(field.kind, wire.Text) and "pattern" in limits:
        return st.from_regex(limits["pattern"], fullmatch=True)
    if isinstance(field.kind, wire.Text):
        return texts.filter(lambda text: limits.get("min_length", 0) <= len(text) <= limits.get("max_length", 2048))
    return values


def _limits(field: FieldSchema) -> dict[str, Any]:
    """Return the limits of a field by pydantic's names, wherever its annotation declares them."""
    marks: list[Any] = []
    for mark in describe(field.info.annotation, field.info.metadata, field.owner).marks:
        marks += mark.metadata if isinstance(mark, FieldInfo) else [mark]
    names = ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern")
    found = {name: getattr(mark, name, None) for mark in marks for name in names if hasattr(mark, name)}
    return {name: limit for name, limit in found.items() if limit is not None}


def kind_values(kind: wire.WireType) -> st.SearchStrategy[Any]:
    """Return a strategy for values of one wire type."""
    if type(kind) in _SCALARS:
        return _SCALARS[type(kind)]
    match kind:
        case wire.EnumValue():
            return st.sampled_from(list(kind.enum))
        case wire.Many():
            return st.lists(kind_values(kind.inner), max_size=3)
        case wire.Mapped():
            return st.dictionaries(texts.filter(bool), kind_values(kind.inner), max_size=3)
        case wire.Distinct():
            return st.frozensets(kind_values(kind.inner).filter(_may_be_in_set), max_size=3)
        case wire.Nullable():
            return st.none() | kind_values(kind.inner)
        case wire.Nested():
            return _instances(kind.part)
        case _:
            raise TypeError(f"no strategy for {kind}")


def _may_be_in_set(value: Any) -> bool:
    return not (isinstance(value, float) and math.copysign(1, value) < 0 and value == 0) and value != Decimal("-0")
