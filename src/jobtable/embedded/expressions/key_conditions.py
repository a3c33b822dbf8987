"""KeyConditionExpression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jobtable.embedded.expressions.placeholders import Placeholders
from jobtable.embedded.schema import KeyAttribute
from jobtable.store.backend import AttributeValue


@dataclass(frozen=True, slots=True)
class SortRange:
    """A condition on one sort attribute other than equality; BETWEEN has two operands, the others have one."""

    operator: Literal["<", "<=", ">", ">=", "BETWEEN", "begins_with"]
    operands: tuple[AttributeValue, ...]


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """Which part of a table or index a query reads. Values are valid, canonical, and of the key's types."""

    partition_values: tuple[AttributeValue, ...]
    """One value per partition attribute, in the order of the schema."""
    sort_equal: tuple[AttributeValue, ...]
    """Values of the first sort attributes, from left to right; may be fewer than the schema has."""
    sort_range: SortRange | None
    """The condition on the sort attribute after those of `sort_equal`."""


def compile_key_condition(
    text: str, placeholders: Placeholders, partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...]
) -> KeyCondition:
    """The key condition against a key schema, or RequestRefused."""
    raise NotImplementedError
