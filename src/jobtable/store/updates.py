"""Updates that keep index keys right: a change of a field rewrites, in the same request, each key made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from jobtable.errors import ValueRefusedError
from jobtable.model.conditions import Condition, Placeholders
from jobtable.model.expressions import Clause, Update, is_as_read, write_updates
from jobtable.model.schema import EntitySchema, KeySchema


@dataclass
class UpdatePlan:
    """The changes that one request makes, and what must hold for them to be right."""

    schema: EntitySchema
    updates: Sequence[Update]
    key_values: Mapping[str, Any]
    """The fields that the primary key gives."""
    read: Any = None
    """An entity that was read before, for inputs of index keys that the update does not set."""
    conditions: list[Condition] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.updates:
            raise ValueRefusedError(f"{self.schema.name}: an update without changes")
        self._new: dict[str, Any] = {}
        for update in self.updates:
            name = update.attribute.field.name
            if self.schema.fields.get(name) is not update.attribute.field:
                raise ValueRefusedError(f"{update.attribute!r} is no field of {self.schema.name}")
            if name in self.schema.primary.inputs:
                raise ValueRefusedError(
                    f"{update.attribute!r} is part of the primary key; delete the item and add it anew"
                )
            if update.action == "set" and not update.attribute.is_nested:
                self._new[name] = update.value
            elif update.removes:
                self._new[name] = None

    def write(self, placeholders: Placeholders) -> str:
        """The update expression."""
        clauses = [update.write(placeholders) for update in self.updates]
        changed = frozenset([update.attribute.field.name for update in self.updates])
        for change in _key_changes(self.schema, changed):
            clauses += self._write_key(change, placeholders)
        return write_updates(clauses)

    def _write_key(self, change: _KeyChange, placeholders: Placeholders) -> list[tuple[Clause, str]]:
        key = change.key
        for update in self.updates:
            if update.attribute.field.name in change.changed and update.attribute.field.name not in self._new:
                raise ValueRefusedError(
                    f"{update.attribute!r} is part of {key.pattern}: set it, so that the key is known"
                )
        if change.is_sparse and any(self._new.get(name, "") is None for name in change.changed):
            return [("REMOVE", placeholders.name(part.attribute)) for part in key.templated]
        values = {name: self._value(name, key) for name in change.inputs}
        if None in values.values():
            return [("REMOVE", placeholders.name(part.attribute)) for part in key.templated]
        rendered = change.render(values).items()
        return [("SET", f"{placeholders.name(name)} = {placeholders.value(wire)}") for name, wire in rendered]

    def _value(self, name: str, key: KeySchema) -> Any:
        """An input of a key: from the update, from the primary key, or from the entity that was read."""
        if name in self._new:
            return self._new[name]
        if name in self.key_values:
            return self.key_values[name]
        if self.read is None:
            advice = f"set it too, or hand in the {self.schema.name} that was read"
            raise ValueRefusedError(f"{key.pattern} is also made from {name}, which is not given: {advice}")
        value = getattr(self.read, name)
        self.conditions.append(is_as_read(self.read, self.schema.fields[name]))
        return value


class _KeyChange(NamedTuple):
    """An index key that follows a change of some fields."""

    key: KeySchema
    changed: frozenset[str]
    """Those of the fields that the key is made from."""
    is_sparse: bool
    inputs: tuple[str, ...]
    """The fields that what is written of it is made from."""
    render: Callable[[Mapping[str, Any]], dict[str, dict[str, Any]]]


@lru_cache(maxsize=4096)
def _key_changes(schema: EntitySchema, changed: frozenset[str]) -> tuple[_KeyChange, ...]:
    """The index keys that follow when these fields change."""
    changes = []
    for key in schema.indexes.values():
        own = changed.intersection(key.inputs)
        if own and key.templated:
            sparse = any(schema.fields[name].optional for name in key.inputs)
            # A sparse key may be absent as a whole, so all of it is written; of one that is always there, what changed.
            parts = tuple(part for part in key.templated if sparse or not own.isdisjoint(part.inputs))
            inputs = key.inputs if sparse else tuple(dict.fromkeys(name for part in parts for name in part.inputs))
            changes.append(_KeyChange(key, own, sparse, inputs, schema.codec.renderer(parts)))
    return tuple(changes)
