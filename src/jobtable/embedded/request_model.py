"""The request of every operation: its members, their JSON types, and the constraints on their values.

Parameters that the engine refuses or ignores are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jobtable.embedded.shapes import NO_LIMITS, Binary, Collection, Limits, Scalar, Shape, Structure, WrittenFlag
from jobtable.embedded.wordings import AT_LEAST_ONE
from jobtable.errors import RequestRefused
from jobtable.store.backend import Request

_NAME = re.compile(r"[a-zA-Z0-9_.-]+", re.ASCII)
_ARN = re.compile(r"arn:[^:]*:dynamodb:[^:]*:[^:]*:table/([a-zA-Z0-9_.-]{3,255})", re.ASCII)
_PATTERN_RULE = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"


def table_of_arn(arn: str) -> str | None:
    """Return the table that an ARN names, in any region and account; None for another text."""
    match = _ARN.fullmatch(arn)
    return match and match[1]


def name_faults(name: str) -> list[str]:
    """Return the constraints that a name of a table breaks, or of an index in an operation on tables."""
    if _NAME.fullmatch(name) and 3 <= len(name) <= 255:
        return []
    faults = Limits(least=3, most=255).broken(name)
    return faults if _NAME.fullmatch(name) else [*faults, _PATTERN_RULE]


def name_or_arn_faults(name: str) -> list[str]:
    """Return the constraints that a table's name breaks; an ARN may name it too."""
    return [] if name.startswith("arn:") and table_of_arn(name) else name_faults(name)


def map_of_tables_faults(requests: Mapping[str, Any]) -> list[str]:
    """Return the constraint that the keys of a map of tables break: DynamoDB reports it once for all keys."""
    if not any(map(_item_table_faults, requests)):
        return []
    return [
        "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length"
        f" greater than or equal to 3, {_PATTERN_RULE}]"
    ]


def _item_table_faults(name: str) -> list[str]:
    """Check a table's name or ARN in an operation on items."""
    return name_or_arn_faults(name) if name else [AT_LEAST_ONE]


def _index_name_faults(name: str) -> list[str]:
    """Check the characters first, as for an index to read, a backup, or the start of a list."""
    return sorted(name_faults(name), key=lambda fault: fault != _PATTERN_RULE)


_MODEL = Path(__file__).with_suffix(".txt")
"""The structures, with members in the order in which DynamoDB reports their faults: `Name:Type(constraint)`.

A type is Text if it is missing; `[T]` is a list, `{T}` a map from texts. A constraint is a range of the number or the
length, a choice of texts, or one of _RULES. `Name!` is required, and `Name!!` looked for before all other checks.
`+Group` stands for the members of that group.
"""

_COMPARISONS = "IN NULL BETWEEN LT NOT_CONTAINS EQ GT NOT_NULL NE LE BEGINS_WITH GE CONTAINS"
_RULES = {
    "capacity": Limits(enum=("INDEXES", "TOTAL", "NONE")),
    "comparison": Limits(enum=tuple(_COMPARISONS.split())),
    "metrics": Limits(enum=("SIZE", "NONE")),
    "on_failure": Limits(enum=("ALL_OLD", "NONE")),
    "returned": Limits(
        enum=("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"),
        newer_message="Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD,"
        " ALL_NEW, UPDATE_NEW, NONE]",  # DynamoDB's spelling
    ),
    "segment": Limits(least=0, most=999999, is_shown=False),
    "unshown_limit": Limits(least=1, is_shown=False),
    "index": Limits(check=_index_name_faults),
    "item_table": Limits(check=_item_table_faults),
    "name": Limits(check=name_faults),
    "table": Limits(check=name_or_arn_faults),
    "tables": Limits(check=map_of_tables_faults),
}
OLDER_PARAMETERS = frozenset(
    {
        *("AttributesToGet", "AttributeUpdates", "ConditionalOperator", "Expected"),
        *("KeyConditions", "QueryFilter", "ScanFilter"),
    }
)
"""The parameters from before expressions, which are checked by themselves (older.py)."""

_ENTRY = re.compile(r"^(\+?\w+): (.*(?:\n  .*)*)", re.MULTILINE)
_MEMBER = re.compile(r"(\+?\w+)(!{0,2})(?::([^\s(]+))?(?:\((.+?)\))?")
_SCALARS = {"Text": "String", "Flag": "Boolean", "Integer": "Integer", "Long": "Long"}


class _Reader:
    """Makes the structures of a model, which may contain one another."""

    def __init__(self, model: str) -> None:
        self._entries = {name: _MEMBER.findall(members) for name, members in _ENTRY.findall(model)}
        self.structures = {name: Structure(name) for name in self._entries if not name.startswith("+")}
        for name, structure in self.structures.items():
            for member, marks, type_, rule in self._members(name):
                shape = self._shape(type_ or "Text", _limits(rule))
                structure.add(member, shape, marks, is_older=member in OLDER_PARAMETERS)

    def _members(self, name: str) -> Iterator[tuple[str, str, str, str]]:
        for entry in self._entries[name]:
            if entry[0].startswith("+"):
                yield from self._members(entry[0])
            else:
                yield entry

    def _shape(self, type_: str, limits: Limits = NO_LIMITS) -> Shape:
        match type_[0], type_:
            case "[", _:
                return Collection(list, self._shape(type_[1:-1]), limits)
            case "{", _:
                return Collection(dict, self._shape(type_[1:-1]), limits)
            case _, "Item":
                return Collection(dict, self.structures["AttributeValue"], limits)
            case _, "Binary":
                return Binary("java.nio.ByteBuffer", str)
            case _, "WrittenFlag":
                return WrittenFlag("java.lang.Boolean")
            case _:
                java = _SCALARS.get(type_)
                return Scalar(f"java.lang.{java}", limits) if java else self.structures[type_]


def _limits(rule: str) -> Limits:
    if ".." in rule:
        least, most = (int(bound) if bound else None for bound in rule.split(".."))
        return Limits(least=least, most=most)
    if rule[:1].isupper():
        return Limits(enum=tuple(rule.split("|")))
    return _RULES[rule] if rule else NO_LIMITS


STRUCTURES = _Reader(_MODEL.read_text()).structures
REQUESTS = {name.removesuffix("Input"): shape for name, shape in STRUCTURES.items() if name.endswith("Input")}
"""The request of every operation that has one."""


def wrong_type(operation: str, request: Mapping[str, Any]) -> RequestRefused | None:
    """Return the fault of the first member of another JSON type, or None."""
    shape = REQUESTS.get(operation)
    try:
        if shape is not None:
            shape.check(request, 0)
    except RequestRefused as fault:
        return fault
    return None


def read_request(operation: str, request: Request) -> Request:
    """Return a request with flags in words and decimals converted; RequestRefused if a member has another JSON type."""
    shape = REQUESTS.get(operation)
    if shape is None:
        return request
    read: Request = shape.read(request, 0)
    shape.check(read, 0)
    return read
