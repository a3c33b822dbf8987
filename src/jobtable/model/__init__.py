"""What a table, a key and an entity are. Pure: no I/O."""

from jobtable.model.conditions import Condition
from jobtable.model.entity import Entity, Part, camel_case
from jobtable.model.expressions import Attribute, Update, unchanged
from jobtable.model.fields import (
    Attr,
    Beside,
    Json,
    Name,
    OrNull,
    PackedFloats,
    PackedVector,
    Stored,
    Timestamp,
    Uuid,
    Vector,
    default,
)
from jobtable.model.selection import Key, Selection
from jobtable.model.table import Index, Table

__all__ = [
    "Attr",
    "Attribute",
    "Beside",
    "Condition",
    "Entity",
    "Index",
    "Json",
    "Key",
    "Name",
    "OrNull",
    "PackedFloats",
    "PackedVector",
    "Part",
    "Selection",
    "Stored",
    "Table",
    "Timestamp",
    "Update",
    "Uuid",
    "Vector",
    "camel_case",
    "default",
    "unchanged",
]
