"""How many bytes DynamoDB counts for the items of one entity: one generated function for each.

It relies on the declared shape. Values whose shape is not declared are left to the backend, which looks at them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from jobtable.model import wire
from jobtable.model.schema import EntitySchema, FieldSchema
from jobtable.model.source import Source
from jobtable.store.backend import Item
from jobtable.store.sizes import CONTAINER_BYTES, number_size, utf8_length, value_size

_TEXTS = (wire.Text, wire.Instant, wire.Day)
_NUMBERS = (wire.Int, wire.Float, wire.DecimalNumber)


class Measure(NamedTuple):
    """What is known of the sizes of an entity's items."""

    size: Callable[[Item], int]
    """The bytes of all attributes but the unknown ones, with their names."""
    unknown: tuple[str, ...]
    """The attributes whose values may have any shape."""


@lru_cache(maxsize=4096)
def measure_of(schema: EntitySchema) -> Measure:
    """The measure of an entity's items."""
    primary = [part.attribute for part in schema.primary.parts]
    fixed = dict.fromkeys([*primary, *filter(None, [schema.table.type_attribute])], "S")
    loose: dict[str, str] = {}
    for field in schema.fields.values():
        if not field.is_key_only and field.envelope is None:
            is_loose = (field.optional and not field.is_null_written) or field.kind.empty_is_absent
            (loose if is_loose else fixed)[field.attribute] = _tag(field)
    for key in schema.indexes.values():
        is_sparse = any(schema.fields[name].optional for name in key.inputs)
        (loose if is_sparse else fixed).update((part.attribute, "S") for part in key.templated)
    for field in schema.fields.values():
        if field.envelope is not None:
            fixed[field.envelope] = "?"
    unknown = tuple(name for name, tag in (fixed | loose).items() if tag == "?")
    return Measure(_sizer(_known(fixed), _known(loose)), unknown)


def _known(attributes: dict[str, str]) -> dict[str, str]:
    return {name: tag for name, tag in attributes.items() if tag != "?"}


def _tag(field: FieldSchema) -> str:
    """The type of a field's values: S, N, BOOL, L or M of texts; "" for another one of a known shape, "?" of any."""
    kind = field.kind
    if not _is_plain(kind):
        return "?"
    if field.is_null_written:
        return ""
    if isinstance(kind, _TEXTS):
        return "S"
    if isinstance(kind, _NUMBERS):
        return "N"
    if isinstance(kind, wire.Many | wire.Mapped) and isinstance(kind.inner, _TEXTS):
        return "L" if isinstance(kind, wire.Many) else "M"
    return "BOOL" if isinstance(kind, wire.Bool) else ""


def _is_plain(kind: wire.WireType) -> bool:
    """Whether every value of a kind is valid, and not nested deeply."""
    if isinstance(kind, wire.Many | wire.Mapped | wire.Nullable):
        return not isinstance(kind.inner, wire.Distinct) and _is_plain(kind.inner)
    return not isinstance(kind, wire.Anything | wire.Nested)


def _sizer(fixed: dict[str, str], loose: dict[str, str]) -> Callable[[Item], int]:
    """The function for attributes that are always there, and for those that may be."""
    source = Source()
    number, whole = source.names.of(_number_size, "number_size"), source.names.of(value_size, "value_size")
    terms = {
        "N": f"{number}({{}}['N'])",
        "": f"{whole}({{}})",
        "L": f"{CONTAINER_BYTES} + len({{}}['L'])",
        "M": f"{CONTAINER_BYTES} + len({{}}['M'])",
        "BOOL": "1",
    }
    # All texts are joined, because the bytes of one are counted as fast as those of many.
    texts = {"S": "{}['S']", "L": "*[x['S'] for x in {}['L']]", "M": "*{0}['M'], *[x['S'] for x in {0}['M'].values()]"}
    values = {f"item[{name!r}]": tag for name, tag in fixed.items()}
    names = sum(utf8_length(name) for name in fixed)
    source.line("def size(item):")
    source.line("    get = item.get")
    source.line(f"    texts = [{', '.join(texts[tag].format(value) for value, tag in values.items() if tag in texts)}]")
    sizes = [terms[tag].format(value) for value, tag in values.items() if tag in terms]
    source.line(f"    size = {' + '.join([str(names), *sizes])}")
    for name, tag in loose.items():
        own = f" + {terms[tag].format('v')}" if tag in terms else ""
        text = f"; texts += [{texts[tag].format('v')}]" if tag in texts else ""
        source.line(f"    if (v := get({name!r})) is not None: size += {utf8_length(name)}{own}{text}")
    source.line("    text = ''.join(texts)")
    source.line(f"    return size + (len(text) if text.isascii() else {source.names.of(utf8_length, 'utf8')}(text))")
    return source.function("size")


_number_size = lru_cache(maxsize=16384)(number_size)  # most numbers come again
