"""The statements of generated codecs that put fields into an item, and read them out of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jobtable.model.access import Access
from jobtable.model.schema import FieldSchema
from jobtable.model.source import Source


def encode_fields(writer: Source, fields: Iterable[FieldSchema], target: str, head: dict[str, str]) -> None:
    """Write the statements that put fields into the dict `target`; `head` goes in first."""
    sources = dict(head)
    later: list[FieldSchema] = []
    for field in fields:
        if (field.optional and not field.is_null_written) or field.kind.empty_is_absent:
            later.append(field)
        else:
            sources[field.attribute] = _encode_source(field, f"d[{field.name!r}]", writer)
    writer.line(f"    {target} = {{{', '.join(f'{k!r}: {v}' for k, v in sources.items())}}}")
    for field in later:
        test = "v" if field.kind.empty_is_absent else "v is not None"
        writer.line(f"    v = d[{field.name!r}]")
        writer.line(f"    if {test}: {target}[{field.attribute!r}] = {field.kind.encode('v', writer.names)}")


def _encode_source(field: FieldSchema, value: str, writer: Source) -> str:
    source = field.kind.encode(value, writer.names)
    return f'({{"NULL": True}} if {value} is None else {source})' if field.optional else source


def decode_fields(writer: Source, fields: Iterable[FieldSchema], sources: Mapping[str, str], access: Access) -> None:
    """Write the statement that makes the dict `values` of an instance; `sources` are known already."""
    pairs: dict[str, str] = {}
    for field in fields:
        if field.name in sources:
            pairs[field.name] = sources[field.name]
            continue
        decoded = _decode_source(field, "a", writer, access)
        if field.optional:
            if field.info.is_required() or field.info.default is None:
                is_none = f"(a := {access.maybe(field)}) is None or {field.kind.is_null('a', access)}"
            else:
                is_none = field.kind.is_null(f"(a := {access.required(field)})", access)
            pairs[field.name] = f"(None if {is_none} else {decoded})"
        elif field.kind.empty_is_absent:
            empty = "frozenset()" if getattr(field.kind, "frozen", False) else "set()"
            pairs[field.name] = f"({empty} if (a := {access.maybe(field)}) is None else {decoded})"
        elif not field.info.is_required() and field.info.default_factory is None:
            default = writer.names.of(field.info.default, "default")
            default = field.kind.copy(default, writer.names) or default
            pairs[field.name] = f"({default} if (a := {access.maybe(field)}) is None else {decoded})"
        else:
            pairs[field.name] = _decode_source(field, access.required(field), writer, access)
    writer.line(f"    values = {{{', '.join(f'{k!r}: {v}' for k, v in pairs.items())}}}")


def _decode_source(field: FieldSchema, wire: str, writer: Source, access: Access) -> str:
    decoded = field.kind.decode(wire, writer.names, access)
    return f"{writer.names.of(_as_it_stands(field), 'as_it_stands')}({decoded})" if field.is_validated else decoded


def _as_it_stands(field: FieldSchema) -> Callable[[Any], Any]:
    """A function that gives a value if the field takes it as it is; others go the slow way, which keeps both forms."""

    def as_it_stands(value: Any) -> Any:
        if field.accept(value) != value:
            raise ValueError(f"{field.name} is not stored in its canonical form")
        return value

    return as_it_stands
