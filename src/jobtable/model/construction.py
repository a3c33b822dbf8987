"""Instances of entities and parts, made without validation from values that are known to be right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel

from jobtable.model.pydantic_internals import put_extra, put_fields_set, put_private, put_values
from jobtable.model.schema import FieldSchema
from jobtable.model.source import Source

M = TypeVar("M", bound=BaseModel)

UNDECLARED = "_undeclared"
"""The private attribute of an entity that keeps the attributes it does not declare."""

AS_READ = "_as_read"
"""The private attribute of an entity that keeps the fields which its item has in another form than it would write."""

AsRead: TypeAlias = tuple[Any, dict[str, Any]]
"""The value that a field had when it was read, and the form in which the item has it."""

_NOTHING_MORE: dict[str, Any] = {UNDECLARED: None, AS_READ: None}
"""The private attributes of most instances. They share it: it is put in place of another, and never changed."""


def begin(model: BaseModel, _: Any, /) -> None:
    """The `model_post_init` of a class that has no private attributes but these."""
    put_private(model, _NOTHING_MORE)


def put_undeclared(model: BaseModel, attributes: dict[str, Any] | None) -> None:
    """Give an instance the attributes that its class does not declare."""
    put_private(model, {**private_of(model), UNDECLARED: attributes or None})


def private_of(model: BaseModel) -> dict[str, Any]:
    """The private attributes of an instance; asking for one by its name takes pydantic ten times as long."""
    return model.__pydantic_private__ or _NOTHING_MORE


def put_as_read(model: BaseModel, forms: dict[str, AsRead]) -> None:
    """Give an instance the other forms that its item has."""
    if forms:
        put_private(model, {**private_of(model), AS_READ: forms})


def shallow_copy(model: M) -> M:
    """A copy that shares the values, as pydantic's own, in a third of the time; for models without extra fields."""
    copied = object.__new__(type(model))
    put_values(copied, model.__dict__.copy())
    put_fields_set(copied, model.__pydantic_fields_set__.copy())
    put_extra(copied, None)
    put_private(copied, dict(model.__pydantic_private__ or ()))
    return copied


def without_forms(model: M) -> M:
    """A copy that does not know in which forms its item has the fields."""
    copied = shallow_copy(model)
    put_private(copied, {**private_of(model), AS_READ: None})
    return copied


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
    writer.line(f"    if (forms := model.__pydantic_private__[{AS_READ!r}]) is not None:")
    writer.line(f"        {writer.names.of(put_as_read, 'put_as_read')}(self, forms)")
    writer.line("    return self")
    return writer.function("copy")


def construct(writer: Source, cls: type[BaseModel]) -> None:
    """Write the statements that make an instance, `self`, from `values` and `more`, without validation."""
    of = writer.names.of
    writer.line(f"    self = {of(object.__new__, 'new')}({of(cls, 'cls')})")
    writer.line(f"    {of(put_values, 'put_values')}(self, values)")
    writer.line(f"    {of(put_fields_set, 'put_fields_set')}(self, {of(set(cls.model_fields), 'fields_set')})")
    writer.line(f"    {of(put_extra, 'put_extra')}(self, None)")
    if cls.model_post_init is begin:
        private = (
            f"{of(_NOTHING_MORE, 'nothing_more')} if more is None else {{{UNDECLARED!r}: more, {AS_READ!r}: None}}"
        )
        writer.line(f"    {of(put_private, 'put_private')}(self, {private})")
    else:
        writer.line("    self.model_post_init(None)")
        writer.line(f"    if more is not None: {of(put_undeclared, 'put_undeclared')}(self, more)")
