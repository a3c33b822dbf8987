"""Updates that keep index keys right: a change of a field rewrites, in the same request, each key made from it.

Its text and the keys that follow depend only on which fields it changes, and how, so they are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from jobtable.errors import ValueRefusedError
from jobtable.model.conditions import Condition, Placeholders, WireForm, Written
from jobtable.model.expressions import Update, UpdateForm, is_as_read, write_updates
from jobtable.model.schema import EntitySchema, FieldSchema, KeyPart, KeySchema

_MOST_KEPT = 1024
_LONGEST_KEPT = 1024
"""Characters on the ways to places inside fields: the names in a map can be any, and as long as they like."""

_Forms: TypeAlias = tuple[UpdateForm, ...]


@dataclass
class UpdatePlan:
    """The changes that one request makes, and what must hold for them to be right."""

    schema: EntitySchema
    updates: Sequence[Update]
    key_values: Mapping[str, Any]
    """The fields that the primary key gives."""
    read: Any = None
    """An entity that was read before, for inputs of index keys that the update does not set."""
    is_upsert: bool = False
    """Whether the item need not be there."""
    conditions: list[Condition] = field(default_factory=list)

    def write(self, placeholders: Placeholders) -> str:
        """The update expression; it comes before all others of its request."""
        try:
            forms = tuple([update.attribute.form_of(update.action) for update in self.updates])
        except AttributeError:
            self._refuse_wrong_kind()
            raise
        is_kept = _is_short(forms)
        changes = _key_changes(self.schema, forms) if is_kept else _key_changes.__wrapped__(self.schema, forms)
        values: list[WireForm] = []
        for update in self.updates:
            values += update.values()
        rendered: dict[str, WireForm | None] = {}
        if self.is_upsert:
            added = _additions(self.schema, forms) if is_kept else additions(self.schema, forms)
            rendered |= added.attributes(self.key_values)
        if changes:
            new = {update.attribute.field.name: update.value_afterwards for update in self.updates}
            for change in changes:
                rendered |= self._rendered(change, new)
        values += [value for value in rendered.values() if value is not None]
        keys = tuple([(name, value is None) for name, value in rendered.items()])
        text = _text(forms, keys) if is_kept else _text.__wrapped__(forms, keys)
        placeholders.take(text, values)
        return text.text

    def _refuse_wrong_kind(self) -> None:
        """Raise TypeError if something else stands in the place of a change."""
        given: Sequence[object] = self.updates
        for each in given:
            if not isinstance(each, Update):
                advice = "write it as Job.status.set(...), or .increment(), .append(...)"
                raise TypeError(f"{each!r:.100} is not a change; {advice}") from None

    def _rendered(self, change: _KeyChange, new: Mapping[str, Any]) -> Mapping[str, WireForm | None]:
        """What is written of a key; None for each attribute of one that the item leaves."""
        if change.is_sparse and any(new.get(name, "") is None for name in change.changed):
            return change.left
        values = {name: self._value(name, change.key, new) for name in change.inputs}
        return change.left if None in values.values() else change.render(values)

    def _value(self, name: str, key: KeySchema, new: Mapping[str, Any]) -> Any:
        """An input of a key: from the update, from the primary key, or from the entity that was read."""
        if name in new:
            return new[name]
        if name in self.key_values:
            return self.key_values[name]
        if self.read is None:
            advice = f"set it too, or pass the {self.schema.name} that you read"
            raise ValueRefusedError(f"{key.pattern} is also built from {name}, which is missing; {advice}")
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
    render: Callable[[Mapping[str, Any]], dict[str, WireForm]]
    left: Mapping[str, None]
    """The attributes of the key, all of which go when an item leaves the index."""


@lru_cache(maxsize=_MOST_KEPT)
def _key_changes(schema: EntitySchema, forms: _Forms) -> tuple[_KeyChange, ...]:
    """The index keys that follow from changes of these forms, which the entity must allow."""
    _refuse_foreign(schema, forms)
    changed = frozenset([form.field.name for form in forms])
    known = {form.field.name for form in forms if form.is_whole}
    changes = []
    for key in schema.indexes.values():
        own = changed.intersection(key.inputs)
        if own and key.templated:
            for form in forms:
                if form.field.name in own - known:
                    raise ValueRefusedError(f"{form} is part of {key.pattern}; set it, so that the key is known")
            sparse = any(schema.fields[name].optional for name in key.inputs)
            # A sparse key may be absent as a whole, so all of it is written; of one that is always there, what changed.
            parts = tuple(part for part in key.templated if sparse or not own.isdisjoint(part.inputs))
            inputs = key.inputs if sparse else tuple(dict.fromkeys(name for part in parts for name in part.inputs))
            left = dict.fromkeys(part.attribute for part in key.templated)
            changes.append(_KeyChange(key, own, sparse, inputs, schema.codec.renderer(parts), left))
    return tuple(changes)


def _refuse_foreign(schema: EntitySchema, forms: _Forms) -> None:
    if not forms:
        raise ValueRefusedError(f"{schema.name}: an update needs at least one change")
    seen = set()
    for form in forms:
        if (form.field.name, form.steps) in seen:
            raise ValueRefusedError(f"{form} is changed twice in one update; combine the changes")
        seen.add((form.field.name, form.steps))
        schema.refuse_foreign(form.field)
        if form.field.name in schema.primary.inputs:
            raise ValueRefusedError(f"{form} is part of the primary key; delete the item and add it again")


@lru_cache(maxsize=_MOST_KEPT)
def _text(forms: _Forms, keys: tuple[tuple[str, bool], ...]) -> Written:
    """The text for changes of these forms and for attributes of index keys, each of which is removed or set."""
    placeholders = Placeholders()
    clauses = [form.write(placeholders) for form in forms]
    for name, is_removed in keys:
        placed = placeholders.name(name)
        clauses.append(("REMOVE", placed) if is_removed else ("SET", f"{placed} = {placeholders.value()}"))
    return placeholders.written(write_updates(clauses))


def _is_short(forms: _Forms) -> bool:
    """Whether what is made of the forms may be kept."""
    length = 0
    for form in forms:
        if form.steps:
            length += sum([len(str(step)) for step in form.steps])
    return length <= _LONGEST_KEPT


# --- items that an upsert creates

_GIVING = ("set", "set_if_missing", "increment", "append", "add")
"""The changes after which an item has the field, whether it was there or not."""


class Additions(NamedTuple):
    """The attributes of a new item that follow from its primary key; one that is there has them as well."""

    type: Mapping[str, WireForm]
    stored: tuple[FieldSchema, ...]
    """The fields of the primary key that stand in the item, too."""
    render: Callable[[Mapping[str, Any]], dict[str, WireForm]]
    """The attributes of index keys that are made from the primary key alone."""

    def attributes(self, key_values: Mapping[str, Any]) -> dict[str, WireForm]:
        """All of them, by their names."""
        stored = {field.attribute: field.kind.to_wire(key_values[field.name]) for field in self.stored}
        return {**self.type, **stored, **self.render(key_values)}


def additions(schema: EntitySchema, forms: tuple[UpdateForm, ...]) -> Additions:
    """What a new item of these changes has besides them; ValueRefusedError if it would not be whole."""
    _refuse_places_inside(schema, forms)
    _refuse_missing(schema, forms)
    type_attribute = schema.table.type_attribute
    if type_attribute is None and all(form.action not in _GIVING for form in forms):
        # DynamoDB makes no item where an update sets nothing.
        raise ValueRefusedError(f"a new {schema.name} cannot be created only by removing something; set a field too")
    of_primary = [schema.fields[name] for name in schema.primary.inputs]
    return Additions(
        {type_attribute: {"S": schema.type_name}} if type_attribute else {},
        tuple(f for f in of_primary if not f.is_key_only and f.attribute not in schema.table.primary),
        schema.codec.renderer(_parts_from_primary(schema, forms)),
    )


def _refuse_places_inside(schema: EntitySchema, forms: tuple[UpdateForm, ...]) -> None:
    for form in forms:
        if form.steps:
            raise ValueRefusedError(f"{form} is inside a field that a new item may lack; set the whole field")
    for name in dict.fromkeys((*(form.field.name for form in forms), *schema.primary.inputs)):
        field = schema.fields[name]
        if field.envelope and not field.is_key_only:
            told = f"{schema.name}.{name} is inside {field.envelope}, which a new item lacks"
            raise ValueRefusedError(f"{told}; add the item, and update it if it already exists")


def _refuse_missing(schema: EntitySchema, forms: tuple[UpdateForm, ...]) -> None:
    for form in forms:
        if form.action == "increment" and form.field.default is None:
            raise ValueRefusedError(f"{form} has no default to start from in a new item; use add")
    given = {form.field.name for form in forms if form.action in _GIVING}.union(schema.primary.inputs)
    missing = [name for name, field in schema.fields.items() if name not in given and not _has_default(field)]
    if missing:
        pronoun = "it" if len(missing) == 1 else "them"
        raise ValueRefusedError(f"a new {schema.name} would lack {', '.join(missing)}; set {pronoun} too")


def _has_default(field: FieldSchema) -> bool:
    """Whether a field that the item lacks is the same each time that it is read."""
    is_made = field.info.default_factory is not None and field.default is None and not field.kind.empty_is_absent
    return field.may_be_missing and not is_made


def _parts_from_primary(schema: EntitySchema, forms: tuple[UpdateForm, ...]) -> tuple[KeyPart, ...]:
    """What the primary key gives to index keys. One that would be wrong in a new item is refused."""
    changed = {form.field.name for form in forms}
    found: list[KeyPart] = []
    for key in schema.indexes.values():
        others = set(key.inputs).difference(schema.primary.inputs)
        unknown = sorted(others - changed)
        # Without a value for one of its fields a new item is not in the index, and one that is there stays where it is.
        if unknown and others.isdisjoint(changed) and any(schema.fields[name].default is None for name in unknown):
            continue
        if unknown:
            told = f"{key.pattern} is built from {' and '.join(unknown)}; set it too, so that a new item has the key"
            raise ValueRefusedError(told)
        found += [part for part in key.templated if others.isdisjoint(part.inputs)]
    return tuple(found)


_additions = lru_cache(maxsize=_MOST_KEPT)(additions)
