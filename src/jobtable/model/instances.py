"""Instances of entities and parts, made without validation from values that are known to be right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BaseModel

from jobtable.model.schema import FieldSchema
from jobtable.model.source import Source

UNDECLARED = "_undeclared"
"""The private attribute of an entity that keeps the attributes it does not declare."""

_INSTANCE = {
    "__dict__": "values",
    "__pydantic_fields_set__": "{fields_set}",
    "__pydantic_extra__": "None",
    "__pydantic_private__": f"{{{{{UNDECLARED!r}: more}}}}",
}
"""What an instance of a pydantic model consists of: slot -> source of its value."""


def copier(cls: type[BaseModel], fields: Iterable[FieldSchema]) -> Callable[[Any], Any]:
    """A generated function that copies an instance, with everything in it that can be changed."""
    writer = Source()
    writer.line("def copy(model):")
    writer.line("    values = model.__dict__.copy()")
    for field in fields:
        copied = field.kind.copy("v", writer.names)
        if copied is not None:
            writer.line(f"    if (v := values[{field.name!r}]) is not None: values[{field.name!r}] = {copied}")
    writer.line(f"    more = model.__pydantic_private__[{UNDECLARED!r}]")
    construct(writer, cls)
    return writer.function("copy")


def construct(writer: Source, cls: type[BaseModel]) -> None:
    """Write the statements that make an instance from `values` and `more`, without validation."""
    name = writer.names.of(cls, "cls")
    fields_set = writer.names.of(set(cls.model_fields), "fields_set")
    writer.line(f"    self = {writer.names.of(object.__new__, 'new')}({name})")
    for slot, value in _INSTANCE.items():
        put = writer.names.of(vars(BaseModel)[slot].__set__, "put")
        writer.line(f"    {put}(self, {value.format(fields_set=fields_set)})")
    writer.line("    return self")
