"""Entity classes as strangers might declare them: fields of any type, keys and indexes of any kind."""

from __future__ import annotations

import types
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal

from hypothesis import strategies as st
from pydantic import Field

from jobtable.model import (
    Entity,
    Index,
    Json,
    Key,
    Name,
    OrNull,
    PackedVector,
    Part,
    Stored,
    Table,
    Timestamp,
    Uuid,
    Vector,
    camel_case,
)


class Tone(StrEnum):
    HIGH = "high"
    LOW = "low"


class Rank(Enum):
    FIRST = 1
    SECOND = 2


_SMALL = Annotated[int, Field(ge=0, le=999)]
_IN_KEYS: dict[Any, str] = {
    str: "",
    _SMALL: ":05d",
    float: ":ordered",
    Timestamp: "",
    date: "",
    Uuid: "",
    Tone: "",
    Rank: "",
}
"""What stands in templates, and in which form."""
_NATURAL: list[Any] = [str, int, float, Decimal, bytes, Timestamp, date, Uuid, Tone, Rank]
_SCALARS: list[Any] = [*_IN_KEYS, int, Decimal, bool, bytes, Literal["on", "off"]]
_SPECIAL: list[Any] = [Vector, PackedVector, Json]
_SETS: list[Any] = [set[str], frozenset[str], set[int], set[Decimal], frozenset[bytes], set[Tone], set[date]]


_STORED: Any = Stored
_OR_NULL: Any = OrNull
"""As values, because a checker knows types that are made from types only where they stand for one."""


def _wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return inner.flatmap(lambda kind: st.sampled_from([list[kind], dict[str, kind], list[kind | None]]))  # type: ignore[valid-type]


@st.composite
def _parts(draw: st.DrawFn) -> Any:
    """A part with a few fields."""
    fields = draw(st.lists(st.sampled_from([*_SCALARS, *_SETS, str | None, list[float]]), min_size=1, max_size=3))
    annotations = {f"inner_{number}": kind for number, kind in enumerate(fields)}
    alias = draw(st.sampled_from([None, camel_case]))
    return types.new_class("Piece", (Part,), {"alias": alias}, _body(annotations, {}))


_types = st.recursive(st.sampled_from(_SCALARS) | _parts(), _wrapped, max_leaves=3) | st.sampled_from(_SPECIAL + _SETS)


def _body(annotations: dict[str, Any], members: dict[str, Any]) -> Any:
    def fill(namespace: dict[str, Any]) -> None:
        namespace.update({"__annotations__": annotations, "__module__": __name__, **members})

    return fill


@st.composite
def _optional(draw: st.DrawFn) -> Any:
    """The type of a field that need not be there, or does."""
    kind = draw(_types)
    if kind is Json or kind in _SETS:
        return kind
    return draw(st.sampled_from([kind, kind | None, _OR_NULL[kind], Annotated[kind, Name("another name")]]))


@dataclass
class _Keys:
    """The fields and keys of an entity in the making."""

    fields: dict[str, Any]
    keys: dict[str, Key]


@st.composite
def _templates(draw: st.DrawFn, name: str, fields: dict[str, Any], *, optional: bool) -> str:
    """A template of one to three fields, which are added to the others."""
    pieces = [name]
    for kind in draw(st.lists(st.sampled_from(list(_IN_KEYS)), min_size=1, max_size=3)):
        field = f"{name}_{len(pieces)}"
        forms = [kind, kind | None] if optional else [kind, _STORED[kind]]
        fields[field] = draw(st.sampled_from(forms))
        pieces.append(f"{{{field}{_IN_KEYS[kind]}}}")
    return "#".join(pieces)


@st.composite
def _single_table(draw: st.DrawFn) -> _Keys:
    fields: dict[str, Any] = {}
    primary = Key(draw(_templates("pk", fields, optional=False)), draw(_templates("sk", fields, optional=False)))
    keys = {"key": primary}
    if draw(st.booleans()):
        index = Key(
            draw(_templates("ipk", fields, optional=True)),
            draw(_templates("isk", fields, optional=True)),
            index="First",
        )
        keys["by_first"] = index
    return _Keys(fields, keys)


@st.composite
def _natural_keys(draw: st.DrawFn) -> _Keys:
    fields = {name: draw(st.sampled_from(_NATURAL)) for name in ("PK", "SK")}
    keys: dict[str, Key] = {}
    if draw(st.booleans()):
        kinds = {name: draw(st.sampled_from(_NATURAL)) for name in ("GPK", "GSK")}
        fields |= {name: draw(st.sampled_from([kind, kind | None])) for name, kind in kinds.items()}
        keys["by_first"] = Key(index="First")
    return _Keys(fields, keys)


@st.composite
def entity_classes(draw: st.DrawFn) -> type[Entity]:
    """An entity with a table of its own."""
    made = draw(_single_table() | _natural_keys())
    table = Table(
        "declared",
        pk="PK",
        sk="SK",
        type_attribute=draw(st.sampled_from([None, "TYPE"])),
        indexes=[Index("First", "GPK", "GSK")] if "by_first" in made.keys else [],
    )
    others = draw(st.lists(_optional(), max_size=5))
    fields = {**made.fields, **{f"field_{number}": kind for number, kind in enumerate(others)}}
    fields = _one_of_each_name(fields)
    line: dict[str, Any] = {"table": table, "type": "DECLARED"}
    if "key" in made.keys:
        line |= {"envelope": draw(st.sampled_from([None, "Data"])), "alias": draw(st.sampled_from([None, camel_case]))}
    return types.new_class("Declared", (Entity,), line, _body(fields, dict(made.keys)))


def _one_of_each_name(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, of which only the first keeps a name that it shares with others."""
    named = [name for name, kind in fields.items() if Name("another name") in getattr(kind, "__metadata__", ())]
    return {name: _without_name(kind) if name in named[1:] else kind for name, kind in fields.items()}


def _without_name(kind: Any) -> Any:
    marks = [mark for mark in kind.__metadata__ if mark != Name("another name")]
    return Annotated[kind.__origin__, *marks] if marks else kind.__origin__
