"""Compares the rules of requests with the description of a service that boto3 has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from botocore.model import ListShape, Shape, StructureShape

from jobtable.workflows.asl.aws_api.member_rules import Flag, Many, Members, Number, Rule, Text
from jobtable.workflows.durable.lambda_requests import Bytes


def differences(
    rule: Rule, shape: Shape | None, path: str, unread: frozenset[str] = frozenset()
) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a rule says and what the description says, for each point; `unread` are paths without rules."""
    assert shape is not None
    if path in unread:
        return
    if isinstance(rule, Members):
        assert isinstance(shape, StructureShape)
        yield path, set(rule.required), set(shape.required_members)
        members = {**rule.required, **rule.optional}
        yield path, set(members), set(shape.members)
        for name, member in members.items():
            yield from differences(member, shape.members[name], f"{path}.{name}", unread)
    elif isinstance(rule, Many):
        assert isinstance(shape, ListShape)
        yield path, (rule.shortest, rule.longest), (shape.metadata.get("min", 0), shape.metadata.get("max"))
        yield from differences(rule.content, shape.member, f"{path}[]", unread)
    elif isinstance(rule, Text):
        limits = shape.metadata
        yield path, shape.type_name, "string"
        yield path, (rule.shortest, rule.longest), (limits.get("min", 0), limits.get("max"))
        yield path, (rule.pattern, set(rule.choices)), (limits.get("pattern"), set(limits.get("enum", ())))
        yield path, rule.is_sensitive, limits.get("sensitive", False)
    elif isinstance(rule, Number):
        yield path, rule.is_fraction, shape.type_name in ("float", "timestamp")
        yield path, (rule.least, rule.most), (shape.metadata.get("min"), shape.metadata.get("max"))
    elif isinstance(rule, Bytes):
        yield path, (shape.type_name, rule.longest), ("blob", shape.metadata.get("max"))
    else:
        assert isinstance(rule, Flag)
        yield path, shape.type_name, "boolean"
