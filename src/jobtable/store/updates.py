"""Updates that keep index keys right: a change of a field rewrites, in the same request, each key made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobtable.errors import ValueRefusedError
from jobtable.model.expressions import AttributeIs, Clause, Condition, Placeholders, Update, write_updates
from jobtable.model.schema import EntitySchema, KeyPart, KeySchema


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
        made_from = self.schema.keys_made_from
        keys = dict.fromkeys(key for update in self.updates for key in made_from[update.attribute.field.name])
        for key in keys:
            clauses += self._write_key(key, placeholders)
        return write_updates(clauses)

    def _write_key(self, key: KeySchema, placeholders: Placeholders) -> list[tuple[Clause, str]]:
        changed = {update.attribute.field.name for update in self.updates}.intersection(key.inputs)
        templated = key.templated
        for update in self.updates:
            if update.attribute.field.name in changed and update.attribute.field.name not in self._new:
                raise ValueRefusedError(
                    f"{update.attribute!r} is part of {key.pattern}: set it, so that the key is known"
                )
        sparse = key in self.schema.sparse_keys
        if sparse and any(self._new.get(name, "") is None for name in changed):
            return [("REMOVE", placeholders.name(part.attribute)) for part in templated]
        # A sparse key may be absent as a whole, so all of it is written; of a key that is always there, what changed.
        wanted = templated if sparse else [part for part in templated if not changed.isdisjoint(part.inputs)]
        values = {name: self._value(name, key) for name in (key.inputs if sparse else _inputs(wanted))}
        if any(value is None for value in values.values()):
            return [("REMOVE", placeholders.name(part.attribute)) for part in templated]
        rendered = ((part, self.schema.codec.render_part(part, values)) for part in wanted)
        return [("SET", f"{placeholders.name(p.attribute)} = {placeholders.value(wire)}") for p, wire in rendered]

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
        entity_field = self.schema.fields[name]
        if value is None:
            self.conditions.append(self.schema.cls.__attributes__[name].missing())
        else:
            self.conditions.append(AttributeIs(entity_field.path, entity_field.kind.to_wire(value)))
        return value


def _inputs(parts: Sequence[KeyPart]) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part.inputs))
