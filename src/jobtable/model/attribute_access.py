"""How generated decoders reach the attributes of an item, or of a part."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jobtable.model.schema import EntitySchema, FieldSchema
from jobtable.model.source import Source

if TYPE_CHECKING:
    from jobtable.model.entity import Part


class Access:
    """Writes the source that reads `item`, and `data`, the envelope in it, as dicts in wire form.

    The source fails where they have another shape. A derived class reads them in another form than dicts.
    """

    def under(self, wire: str, tag: str) -> str:
        """Return the source of what stands under a tag of a wire form."""
        return f'{wire}["{tag}"]'

    def has(self, wire: str, tag: str) -> str:
        """Return the source of the test whether something stands under a tag that may be missing."""
        return f'"{tag}" in {wire}'

    def part_decoder(self, part: type[Part]) -> Callable[[Any], Any]:
        """Return the function that makes a part of what stands under M."""
        return part.__codec__.decode

    def text(self, attribute: str) -> str:
        """Return the source of the text of an attribute of the item."""
        return f'item[{attribute!r}]["S"]'

    def envelope(self, attribute: str) -> str:
        """Return the source of what the envelope holds."""
        return f'item[{attribute!r}]["M"]'

    def required(self, field: FieldSchema) -> str:
        """Return the source of a field's wire form, which must exist."""
        return f"{holder_of(field)}[{field.attribute!r}]"

    def maybe(self, field: FieldSchema) -> str:
        """Return the source of a field's wire form, or None."""
        return f"{holder_of(field)}.get({field.attribute!r})"

    def write_more(self, writer: Source, attributes: frozenset[str]) -> None:
        """Write the statement that collects, as `more`, what the item has beside these; None if that is nothing."""
        known = writer.names.of(attributes, "known")
        writer.line(
            f"    more = None if {known}.issuperset(item) else {{k: item[k] for k in item if k not in {known}}}"
        )

    def write_more_inside(self, writer: Source, schema: EntitySchema) -> None:
        """Write the statements that add to `more` what the envelope has that is not declared."""
        inner = writer.names.of(schema.attributes_inside, "inner")
        writer.line(f"    if not {inner}.issuperset(data):")
        writer.line(f"        rest = {{k: data[k] for k in data if k not in {inner}}}")
        writer.line(f'        more = {{**(more or {{}}), {schema.envelope!r}: {{"M": rest}}}}')


def holder_of(field: FieldSchema) -> str:
    """The name under which generated code has what the attribute of a field stands in."""
    return "data" if field.envelope else "item"
