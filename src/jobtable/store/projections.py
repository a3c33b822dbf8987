"""Reading some attributes instead of whole entities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobtable.errors import ItemShapeError, ValueRefusedError
from jobtable.model.conditions import Placeholders
from jobtable.model.expressions import Attribute
from jobtable.model.schema import EntitySchema
from jobtable.store.backend import Item, Request


def project(request: Request, attributes: Sequence[Attribute[Any]], schema: EntitySchema) -> Request:
    """The request, asking only for these attributes, for the keys (a cursor needs them), and for the type."""
    if not attributes:
        raise ValueRefusedError(f"{schema.name}: name the attributes to read")
    if any(attribute.is_nested for attribute in attributes):
        raise ValueRefusedError(f"{schema.name}: name whole attributes, not paths inside them")
    placeholders = Placeholders("p", schema=schema)
    index = schema.table.indexes[request["IndexName"]] if "IndexName" in request else None
    names = dict.fromkeys((*schema.table.primary, *(index.attributes if index else ())))
    type_attribute = schema.table.type_attribute
    if type_attribute is not None and (index is None or index.holds(type_attribute)):
        names[type_attribute] = None
    paths = [placeholders.name(name) for name in names]
    paths += dict.fromkeys(a.path.write(placeholders) for a in attributes if a.path.steps[0] not in names)
    return {
        **request,
        "ProjectionExpression": ", ".join(paths),
        "ExpressionAttributeNames": {**request.get("ExpressionAttributeNames", {}), **placeholders.names},
    }


def values_of(item: Item, attributes: Sequence[Attribute[Any]]) -> Any:
    """The values of the attributes: a tuple, or the bare value of a single one."""
    values = tuple(_value_of(item, attribute) for attribute in attributes)
    return values[0] if len(values) == 1 else values


def _value_of(item: Item, attribute: Attribute[Any]) -> Any:
    field = attribute.field
    holder: Any = item if field.envelope is None else item.get(field.envelope, {}).get("M", {})
    wire = holder.get(field.attribute)
    if wire is None and not field.optional and field.info.is_required():
        raise ItemShapeError(f"{attribute!r} is missing in an item of {field.owner}")
    if wire is None and field.kind.empty_is_absent and not field.optional:
        return field.accept(set())
    if wire is None:
        return field.info.get_default(call_default_factory=True, validated_data={})
    return field.accept(field.kind.loosen(wire))
