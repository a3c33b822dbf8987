"""From a field's annotation to its wire type."""

from __future__ import annotations

import functools
import operator
import types
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, PlainValidator, WrapValidator

from jobtable.errors import DefinitionError
from jobtable.model import wire
from jobtable.model.fields import NULL, PACKED_VECTOR, STORED, TIMESTAMP, VECTOR, Attr, Form, Name, Timestamp

_SCALARS: dict[Any, type[wire.WireType]] = {
    str: wire.Text,
    bool: wire.Bool,
    int: wire.Int,
    float: wire.Float,
    Decimal: wire.DecimalNumber,
    bytes: wire.Binary,
    date: wire.Day,
    Any: wire.Anything,
    object: wire.Anything,
}
_TIMESTAMP_MARKS = get_args(Timestamp)[1:]
_FORMS: dict[Form, type[wire.WireType]] = {
    TIMESTAMP: wire.Instant,
    VECTOR: wire.Numbers,
    PACKED_VECTOR: wire.PackedNumbers,
    Form("uuid"): wire.UuidText,
}


@dataclass(frozen=True)
class Described:
    """What an annotation says of a field."""

    kind: wire.WireType
    optional: bool
    marks: tuple[Any, ...]
    is_any_text: bool = True
    """Whether a text may be any text, and not only one of a Literal."""

    @property
    def is_stored(self) -> bool:
        return STORED in self.marks

    @property
    def is_null_written(self) -> bool:
        return NULL in self.marks

    @property
    def is_constrained(self) -> bool:
        """Whether pydantic has more to look at than the type."""
        if isinstance(self.kind, wire.Text) and not self.is_any_text:
            return True
        return any(not isinstance(mark, Form | Name) and mark not in _TIMESTAMP_MARKS for mark in self.marks)

    @property
    def is_validated(self) -> bool:
        """Whether a function of the declaration makes the values, and not one of a type of this package."""
        if any(isinstance(mark, Form) and mark in _FORMS for mark in self.marks):
            return False
        return any(
            isinstance(mark, BeforeValidator | AfterValidator | WrapValidator | PlainValidator) for mark in self.marks
        )

    @property
    def name(self) -> Name | None:
        return next((mark for mark in self.marks if isinstance(mark, Name)), None)


def describe(annotation: Any, metadata: Sequence[Any], owner: str) -> Described:
    """Read an annotation, or raise a DefinitionError that names the field."""
    inner, marks = _unwrap(annotation)
    marks = (*metadata, *marks)
    optional = False
    if get_origin(inner) in (Union, types.UnionType) and type(None) in get_args(inner):
        optional = True
        rest = tuple(arm for arm in get_args(inner) if arm is not type(None))
        inner, more = _unwrap(rest[0] if len(rest) == 1 else functools.reduce(operator.or_, rest))
        marks = (*marks, *more)
    kind = _kind(inner, marks, owner)
    if optional and kind.empty_is_absent:
        raise DefinitionError(
            f"{owner}: DynamoDB has no empty set, so None would mean the same; declare it without None"
        )
    return Described(kind, optional or isinstance(kind, wire.Anything), marks, get_origin(inner) is not Literal)


def element_of(annotation: Any) -> Any:
    """What a list, a set or a map holds; None for anything else, or where the annotation does not say."""
    inner, _ = _unwrap(annotation)
    if get_origin(inner) in (Union, types.UnionType):
        inner, _ = _unwrap(next(arm for arm in get_args(inner) if arm is not type(None)))
    arguments = get_args(inner)
    is_container = get_origin(inner) in (list, set, frozenset, dict, Mapping)
    return arguments[-1] if is_container and arguments else None


def _unwrap(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Take Attr[...], Annotated[...], NewTypes and type aliases off an annotation, and collect the marks."""
    marks: tuple[Any, ...] = ()
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *more = get_args(annotation)
            marks = (*marks, *more)
        elif origin is Attr:
            (annotation,) = get_args(annotation)
        elif isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":  # there are two, of typing and of typing_extensions
            annotation = annotation.__value__
        else:
            return annotation, marks


def _kind(annotation: Any, marks: tuple[Any, ...], owner: str) -> wire.WireType:
    for mark in marks:
        if isinstance(mark, Form) and mark in _FORMS:
            return _FORMS[mark]()
    if annotation in _SCALARS:
        return _SCALARS[annotation]()
    if annotation is datetime:
        raise DefinitionError(f"{owner}: declare a time as Timestamp, so that it is UTC and sorts")
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return wire.EnumValue(annotation)
    if isinstance(annotation, type) and hasattr(annotation, "__codec__"):
        return wire.Nested(annotation)
    return _compound(annotation, owner)


def _compound(annotation: Any, owner: str) -> wire.WireType:
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Literal and all(isinstance(value, str) for value in arguments):
        return wire.Text()
    if origin is list:
        return wire.Many(_element(arguments[0], owner) if arguments else wire.Anything())
    if origin in (dict, Mapping):
        if arguments and _unwrap(arguments[0])[0] is not str:
            raise DefinitionError(f"{owner}: map keys must be str, not {arguments[0]}")
        return wire.Mapped(_element(arguments[1], owner) if arguments else wire.Anything())
    if origin in (set, frozenset) and arguments:
        inner = _element(arguments[0], owner)
        if isinstance(inner, wire.Scalar) and inner.tag in ("S", "N", "B"):
            return wire.Distinct(inner, frozen=origin is frozenset)
        raise DefinitionError(f"{owner}: a set must contain strings, numbers or binaries")
    raise DefinitionError(f"{owner}: {annotation!r} cannot be stored in DynamoDB; {_advice(annotation, origin, owner)}")


def _advice(annotation: Any, origin: Any, owner: str) -> str:
    if annotation is uuid.UUID:
        return "declare it as Uuid"
    if annotation is timedelta:
        return "declare a duration as a number of seconds"
    if origin in (Union, types.UnionType):
        return "declare one type, optionally with None"
    if origin is Literal:
        return "use only strings in a Literal"
    if origin in (tuple, Sequence, Iterable):
        return "declare it as a list"
    if origin in (set, frozenset):
        return "declare its elements, as in set[str]"
    if isinstance(annotation, type) and (is_dataclass(annotation) or issubclass(annotation, BaseModel)):
        is_inside_itself = owner.startswith(f"{annotation.__name__}.")
        return "declare its recursive part as Json" if is_inside_itself else "derive it from Part"
    return "declare it as a string, a number or a Part"


def _element(annotation: Any, owner: str) -> wire.WireType:
    described = describe(annotation, (), owner)
    kind = replace(described.kind, is_element=True) if isinstance(described.kind, wire.Distinct) else described.kind
    return wire.Nullable(kind) if described.optional else kind
