"""How generated decoders reach the attributes of an item."""

from __future__ import annotations

from typing import Protocol

from jobtable.model.schema import EntitySchema, FieldSchema
from jobtable.model.source import Names, Source


class Access(Protocol):
    """Writes the source that reads `item`, and `data`, the envelope in it. It fails where they have another shape."""

    def text(self, attribute: str) -> str:
        """The source of the text of an attribute of the item."""
        ...

    def envelope(self, attribute: str) -> str:
        """The source of what the envelope holds."""
        ...

    def required(self, field: FieldSchema) -> str:
        """The source of a field's wire form, which has to be there."""
        ...

    def maybe(self, field: FieldSchema) -> str:
        """The source of a field's wire form, or None."""
        ...

    def is_null(self, field: FieldSchema, wire: str) -> str:
        """The source of the test whether the wire form of an optional field is NULL."""
        ...

    def decode(self, field: FieldSchema, wire: str, names: Names) -> str:
        """The source of the Python value of a wire form that is not NULL."""
        ...

    def write_undeclared(self, writer: Source, schema: EntitySchema) -> None:
        """Write the statements that collect the attributes that are not declared as `more`, or None."""
        ...


class DictAccess:
    """Items as dicts, in DynamoDB's wire form."""

    def text(self, attribute: str) -> str:
        return f'item[{attribute!r}]["S"]'

    def envelope(self, attribute: str) -> str:
        return f'item[{attribute!r}]["M"]'

    def required(self, field: FieldSchema) -> str:
        return f"{holder_of(field)}[{field.attribute!r}]"

    def maybe(self, field: FieldSchema) -> str:
        return f"{holder_of(field)}.get({field.attribute!r})"

    def is_null(self, field: FieldSchema, wire: str) -> str:
        return f"'NULL' in {wire}"

    def decode(self, field: FieldSchema, wire: str, names: Names) -> str:
        return field.kind.decode(wire, names)

    def write_undeclared(self, writer: Source, schema: EntitySchema) -> None:
        write_undeclared(writer, schema.attributes)
        if schema.envelope:
            inner = writer.names.of(schema.attributes_inside, "inner")
            writer.line(f"    if not {inner}.issuperset(data):")
            writer.line(f"        rest = {{k: data[k] for k in data if k not in {inner}}}")
            writer.line(f'        more = {{**(more or {{}}), {schema.envelope!r}: {{"M": rest}}}}')


def holder_of(field: FieldSchema) -> str:
    """The name under which generated code has what the attribute of a field stands in."""
    return "data" if field.envelope else "item"


def write_undeclared(writer: Source, attributes: frozenset[str]) -> None:
    """Write the statement that collects what else `item` has, as `more`, or None."""
    known = writer.names.of(attributes, "known")
    writer.line(f"    more = None if {known}.issuperset(item) else {{k: item[k] for k in item if k not in {known}}}")
