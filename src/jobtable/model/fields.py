"""The types that a field of an entity may have, beyond Python's own."""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar, cast, get_args, overload

from pydantic import (
    AfterValidator,
    BeforeValidator,
    GetCoreSchemaHandler,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import CoreSchema

if TYPE_CHECKING:
    from jobtable.model.expressions import Attribute

T = TypeVar("T")


class Attr(Generic[T]):
    """Marks a field that conditions and updates name: the type checker then knows `Job.status.set(...)`.

    At run time `Job.status` is an Attribute for every field. Without the mark a field keeps its own type for the type
    checker, which is enough for comparisons (`Job.priority > 3`).
    """

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type[Any]) -> Attribute[T]: ...
        @overload
        def __get__(self, instance: object, owner: type[Any]) -> T: ...
        def __get__(self, instance: object | None, owner: type[Any]) -> Any: ...
        def __set__(self, instance: object, value: T) -> None: ...

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (inner,) = get_args(source)
        return handler(inner)


def default(value: T) -> Attr[T]:
    """Return the default of a field that is marked with Attr, typed so that the type checker accepts it."""
    return cast("Attr[T]", value)


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a field in an item, if its Python type does not determine it."""

    name: str


TIMESTAMP = Form("timestamp")
VECTOR = Form("vector")
PACKED_VECTOR = Form("packed vector")
STORED = Form("stored")
NULL = Form("null")


@dataclass(frozen=True, slots=True)
class Name:
    """The attribute's name in the item, if it differs from the field's: Annotated[str, Name("taskToken")]."""

    name: str
    beside_envelope: bool = False


def Beside(name: str) -> Name:  # noqa: N802 - reads as a mark, like Name
    """Stores a field next to an envelope, not in it: Annotated[Timestamp, Beside("CreatedAt")]."""
    return Name(name, beside_envelope=True)


def _to_utc(value: datetime) -> datetime:
    """Times without a zone are UTC, as everywhere in the tables."""
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a time must lie between the years 1 and 9999, in UTC") from error


def format_timestamp(value: datetime) -> str:
    """Return the one form of a time in items and keys, always 27 characters: 2025-11-01T20:30:00.000000Z."""
    return utc_text(_to_utc(value))


def utc_text(value: datetime) -> str:
    """Return the same form for a time that is already in UTC."""
    if value.tzinfo is not UTC:  # it came in by model_copy or model_construct, which do not look at what they take
        value = _to_utc(value)
    # From ready pieces, because isoformat takes more than twice the time.
    micros = value.microsecond
    return (
        f"{value.year:04}-{_TWO_DIGITS[value.month]}-{_TWO_DIGITS[value.day]}"
        f"T{_TWO_DIGITS[value.hour]}:{_TWO_DIGITS[value.minute]}:{_TWO_DIGITS[value.second]}"
        f".{_THREE_DIGITS[micros // 1000]}{_THREE_DIGITS[micros % 1000]}Z"
    )


_TWO_DIGITS = [f"{number:02}" for number in range(60)]
_THREE_DIGITS = [f"{number:03}" for number in range(1000)]


def _only_text_or_time(value: Any) -> Any:
    if isinstance(value, datetime | str):
        return value
    raise ValueError("a time must be an ISO 8601 string or a datetime")


Timestamp: TypeAlias = Annotated[
    datetime,
    BeforeValidator(_only_text_or_time),
    AfterValidator(_to_utc),
    PlainSerializer(format_timestamp, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
    TIMESTAMP,
]
"""An instant: accepts any ISO 8601 text; stored as UTC to the microsecond, in a fixed-width form that sorts by time."""


def _canonical_uuid(value: Any) -> str:
    return str(value if isinstance(value, uuid.UUID) else uuid.UUID(str(value)))


Uuid: TypeAlias = Annotated[str, BeforeValidator(_canonical_uuid), Form("uuid")]
"""A UUID as text, always in lower case with hyphens."""


def _finite_floats(value: Any) -> list[float]:
    elements = value.tolist() if hasattr(value, "tolist") else value
    try:
        numbers = list(map(float, [elements] if isinstance(elements, str | bytes) else elements))
    except (TypeError, OverflowError) as error:
        raise ValueError(f"a vector must be a list of numbers: {error}") from error
    if not all(map(math.isfinite, numbers)):
        raise ValueError("a vector must contain only finite numbers")
    return numbers


class PackedFloats(list[float]):
    """A vector that a Vector field stores packed, as PackedVector does; reading a packed vector returns one."""


def _in_its_form(value: Any, validate: ValidatorFunctionWrapHandler) -> list[float]:
    numbers: list[float] = validate(_finite_floats(value))
    return PackedFloats(numbers) if isinstance(value, PackedFloats) else numbers


Vector: TypeAlias = Annotated[list[float], WrapValidator(_in_its_form), VECTOR]
"""A vector of floats, stored as a list of numbers, or packed if it is PackedFloats. Accepts numpy arrays."""

PackedVector: TypeAlias = Annotated[list[float], BeforeValidator(_finite_floats), PACKED_VECTOR]
"""A vector stored as packed little-endian float32: a quarter of the space, seven digits. Also reads lists."""

Stored = Annotated[T, STORED]
"""A field of the primary key that is also stored as an attribute of its own."""

OrNull = Annotated[T | None, NULL]
"""An optional field whose None is stored as NULL; for other fields None omits the attribute."""

Json: TypeAlias = Any
"""Any value that DynamoDB can hold: text, numbers, booleans, None, bytes, and lists and maps of these."""
