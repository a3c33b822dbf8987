"""How generated decoders reach the attributes of an item, or of a part."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from jobtable.model.schema import EntitySchema, FieldSchema
from jobtable.model.source import Source
from jobtable.model.wire import Form

if TYPE_CHECKING:
    from jobtable.model.entity import Part


class Access(Form, Protocol):
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

    def write_more(self, writer: Source, attributes: frozenset[str]) -> None:
        """Write the statement that collects, as `more`, what the item has beside these; None where that is nothing."""
        ...

    def write_more_inside(self, writer: Source, schema: EntitySchema) -> None:
        """Write the statements that add to `more` what the envelope has that is not declared."""
        ...


class DictAccess:
    """Items as dicts, in DynamoDB's wire form."""

    def under(self, wire: str, tag: str) -> str:
        return f'{wire}["{tag}"]'

    def has(self, wire: str, tag: str) -> str:
        return f'"{tag}" in {wire}'

    def part_decoder(self, part: type[Part]) -> Callable[[Any], Any]:
        return part.__codec__.decode

    def text(self, attribute: str) -> str:
        return f'item[{attribute!r}]["S"]'

    def envelope(self, attribute: str) -> str:
        return f'item[{attribute!r}]["M"]'

    def required(self, field: FieldSchema) -> str:
        return f"{holder_of(field)}[{field.attribute!r}]"

    def maybe(self, field: FieldSchema) -> str:
        return f"{holder_of(field)}.get({field.attribute!r})"

    def write_more(self, writer: Source, attributes: frozenset[str]) -> None:
        known = writer.names.of(attributes, "known")
        writer.line(
            f"    more = None if {known}.issuperset(item) else {{k: item[k] for k in item if k not in {known}}}"
        )

    def write_more_inside(self, writer: Source, schema: EntitySchema) -> None:
        inner = writer.names.of(schema.attributes_inside, "inner")
        writer.line(f"    if not {inner}.issuperset(data):")
        writer.line(f"        rest = {{k: data[k] for k in data if k not in {inner}}}")
        writer.line(f'        more = {{**(more or {{}}), {schema.envelope!r}: {{"M": rest}}}}')


def holder_of(field: FieldSchema) -> str:
    """The name under which generated code has what the attribute of a field stands in."""
    return "data" if field.envelope else "item"
