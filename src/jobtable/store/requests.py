"""The request of each verb: from entities, selections and expressions to DynamoDB's wire form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic_core import PydanticSerializationError, from_json, to_json

from jobtable.errors import ValueRefusedError
from jobtable.model.conditions import AttributeIs, Condition, HasAttribute, Placeholders, all_of, as_condition
from jobtable.model.entity import Entity
from jobtable.model.expressions import Clause, Update, is_as_read, write_updates
from jobtable.model.schema import EntitySchema
from jobtable.model.selection import BoundKey, Selection
from jobtable.store.backend import Item
from jobtable.store.encoding import encoder_of
from jobtable.store.sizes import MAX_ITEM_SIZE, item_size
from jobtable.store.updates import UpdatePlan

Target = Selection[Any] | Entity
"""What a verb works on: one complete key, or the entity that has it."""


class Write(NamedTuple):
    """One write, as PutItem, UpdateItem, DeleteItem or a transaction's action takes it."""

    verb: str
    schema: EntitySchema
    members: dict[str, Any]
    """The request without table, return values and capacity."""

    @property
    def key(self) -> Item:
        """The primary key of the item that it writes."""
        if "Key" in self.members:
            key: Item = self.members["Key"]
            return key
        item = self.members["Item"]
        return {name: item[name] for name in self.schema.table.primary}

    def describe(self) -> str:
        """For messages: what is done to which key."""
        return f"{self.verb} {self.schema.name} {self.schema.codec.describe_key(self.key)}"


def schema_of(target: Target) -> EntitySchema:
    if isinstance(target, Selection):
        return selected(target)
    try:
        return type(target).__schema__
    except AttributeError:
        raise _wrong_kind(target) from None


def selected(selection: Selection[Any]) -> EntitySchema:
    if not isinstance(selection, Selection):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be unchecked
        raise _wrong_kind(selection)
    schema: EntitySchema = selection.entity.__schema__
    return schema


def _wrong_kind(given: object) -> TypeError:
    """What is said of something else in the place of a selection, or of an entity."""
    if isinstance(given, BoundKey):
        return TypeError(f"{given!r} selects nothing yet; call it with its fields, {given.example}")
    if isinstance(given, Entity):
        return TypeError(f"got a whole {type(given).__name__} instead of its key; write {_example(type(given))}")
    if isinstance(given, type) and issubclass(given, Entity):
        told = f"write {_example(given)}, or store.scan({given.__name__}) for all of them"
        return TypeError(f"the class {given.__name__} selects nothing; {told}")
    return TypeError(f"{given!r} is neither a selection, as in Job.key(job_id=...), nor an entity")


def _example(entity: type[Entity]) -> str:
    return BoundKey(entity, entity.__schema__.primary).example


def key_of(target: Target) -> Item:
    """The primary key of a target, in wire form."""
    return target.whole_key() if isinstance(target, Selection) else schema_of(target).codec.key_of(target)


def put(entity: Entity, when: Condition | bool | None, *, verb: str = "put", is_encoded: bool = False) -> Write:
    """Write the whole item; `add` writes only where there is none. `is_encoded`: the backend takes an EncodedItem."""
    schema: EntitySchema = getattr(type(entity), "__schema__", None) or schema_of(entity)
    item = _item_of(entity, schema, is_encoded=is_encoded)
    if verb == "add":
        demanded = _where_there_is_none(schema.table.pk)
    else:
        demanded = _where_no_other_is(schema) if when is None else _where_it_is_own(schema, when)
    return Write(verb, schema, {"Item": item, **demanded})


@lru_cache
def _where_there_is_none(pk: str) -> dict[str, Any]:
    """The condition of an add, which is the same for all items of a table."""
    return _conditional(HasAttribute(pk, present=False), Placeholders())


def _where_it_is_own(schema: EntitySchema, when: Condition | bool | None) -> dict[str, Any]:
    """The condition of a put or delete: no item of another entity is there, and what the caller demands."""
    if when is None:
        return _where_no_other_is(schema)
    condition = all_of(_is_own_or_none(schema), as_condition(when))
    return _conditional(condition, Placeholders(schema=schema, pk=schema.table.pk))


@lru_cache(maxsize=4096)
def _where_no_other_is(schema: EntitySchema) -> dict[str, Any]:
    """The same where the caller demands nothing."""
    return _conditional(_is_own_or_none(schema), Placeholders(pk=schema.table.pk))


def update(target: Target, updates: Sequence[Update], when: Condition | bool | None) -> Write:
    """Change some attributes of an item that must be there."""
    schema = schema_of(target)
    key = key_of(target)
    given = target.values if isinstance(target, Selection) else {n: getattr(target, n) for n in schema.primary.inputs}
    plan = UpdatePlan(schema, updates, given, None if isinstance(target, Selection) else target)
    placeholders = Placeholders(schema=schema)
    expression = plan.write(placeholders)
    condition = all_of(_is_there(schema), as_condition(when), *plan.conditions)
    members = {"Key": key, "UpdateExpression": expression}
    return Write("update", schema, members | _conditional(condition, placeholders))


def upsert(selection: Selection[Any], updates: Sequence[Update], when: Condition | bool | None) -> Write:
    """Change some attributes of an item, or make it of them."""
    schema = selected(selection)
    key = selection.whole_key()
    placeholders = Placeholders(schema=schema, pk=schema.table.pk)
    expression = UpdatePlan(schema, updates, selection.values, is_upsert=True).write(placeholders)
    condition = all_of(_is_own_or_none(schema), as_condition(when))
    members = {"Key": key, "UpdateExpression": expression}
    return Write("upsert", schema, members | _conditional(condition, placeholders))


def rekey(entity: Entity, item: Item) -> dict[str, Any] | None:
    """Give an item, which was read as this entity, the index keys that its fields make; None if it has them."""
    schema = schema_of(entity)
    made = schema.codec.encode(entity)
    placeholders = Placeholders()
    clauses: list[tuple[Clause, str]] = []
    inputs: set[str] = set()
    for index in schema.indexes.values():
        for name in [part.attribute for part in schema.made_parts(index)]:
            if made.get(name) == item.get(name):
                continue
            inputs.update(index.inputs)
            if name in made:
                clauses.append(("SET", f"{placeholders.name(name)} = {placeholders.value(made[name])}"))
            else:
                clauses.append(("REMOVE", placeholders.name(name)))
    if not clauses:
        return None
    as_read = [is_as_read(entity, schema.fields[name]) for name in sorted(inputs - set(schema.primary.inputs))]
    condition = all_of(_is_there(schema), *as_read)
    members = {"Key": key_of(entity), "UpdateExpression": write_updates(clauses)}
    return members | _conditional(condition, placeholders)


def _is_there(schema: EntitySchema) -> Condition:
    own = _is_own(schema)
    return HasAttribute(schema.table.pk) if own is None else own


def _is_own(schema: EntitySchema) -> Condition | None:
    """That the item under a key is not one of another entity, which may have the key as well; None if none may."""
    if not schema.shares_keys_with or not schema.table.type_attribute:
        return None
    return AttributeIs((schema.table.type_attribute,), {"S": schema.type_name})


def _is_own_or_none(schema: EntitySchema) -> Condition | None:
    """The same, also where there is no item."""
    own = _is_own(schema)
    return None if own is None else HasAttribute(schema.table.pk, present=False) | own


def delete(target: Target, when: Condition | bool | None) -> Write:
    """Take an item out of the table; without a condition it need not be there."""
    schema = schema_of(target)
    return Write("delete", schema, {"Key": key_of(target), **_where_it_is_own(schema, when)})


def check(target: Target, when: Condition | bool) -> Write:
    """Let a transaction happen only if an item is in this state."""
    schema = schema_of(target)
    placeholders = Placeholders(schema=schema, pk=schema.table.pk)
    return Write("check", schema, {"Key": key_of(target)} | _conditional(as_condition(when), placeholders))


def _conditional(condition: Condition | None, placeholders: Placeholders) -> dict[str, Any]:
    members: dict[str, Any] = {}
    if condition is not None:
        members["ConditionExpression"] = condition.write(placeholders)
    placeholders.add_to(members)
    return members


def _item_of(entity: Entity, schema: EntitySchema, *, is_encoded: bool) -> Item:
    """The item of an entity; ValueRefusedError if DynamoDB would not take it."""
    try:
        encoded = encoder_of(schema)(entity)
        item: Item = schema.codec.encode(entity) if encoded is None else encoded
        body = to_json(item) if encoded is None else encoded.body
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        named = f"{schema.name} {schema.codec.describe_key(schema.codec.key_of(entity))!a}"
        raise ValueRefusedError(f"{named} holds a text that is not valid Unicode") from error
    except ValueRefusedError as error:
        raise schema.codec.refusal_of(entity, error) from error
    except (TypeError, AttributeError, KeyError) as error:
        raise schema.codec.misfit_of(entity) or error from error
    if len(body) > MAX_ITEM_SIZE:  # It is never shorter than what DynamoDB counts.
        _refuse_large(from_json(body), schema)
    return item if encoded is None or is_encoded else encoded.whole()


def _refuse_large(item: Item, schema: EntitySchema) -> None:
    size = item_size(item)
    if size > MAX_ITEM_SIZE:
        raise ValueRefusedError(
            f"{schema.name} {schema.codec.describe_key(item)} has {size:,} bytes, and DynamoDB allows "
            f"{MAX_ITEM_SIZE:,}; keep large values in object storage"
        )
