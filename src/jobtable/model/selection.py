"""Keys as an entity declares them, and the items that a program selects with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Never, NoReturn, TypeVar, overload

from jobtable.errors import DefinitionError, ValueRefusedError
from jobtable.model.schema import FieldSchema, KeyPart, KeySchema
from jobtable.model.source import Source

if TYPE_CHECKING:
    from jobtable.model.entity import Entity

E = TypeVar("E", bound="Entity")
E_co = TypeVar("E_co", bound="Entity", covariant=True)


def _texts(templates: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if templates is None:
        return ()
    return (templates,) if isinstance(templates, str) else tuple(templates)


class Key:
    """A key in an entity's declaration: one template per key attribute, or none if the attributes are fields."""

    def __init__(
        self,
        partition: str | tuple[str, ...] | None = None,
        sort: str | tuple[str, ...] | None = None,
        *,
        index: str | None = None,
    ) -> None:
        self.partition = _texts(partition)
        self.sort = _texts(sort)
        self.index = index

    def __call__(self, **_: Any) -> NoReturn:
        """Raise: callers use a BoundKey; only a class without a table still has the Key that it declares."""
        raise DefinitionError("a key selects items only in a class with a table; add table= to its class statement")

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type[E]) -> BoundKey[E]: ...
        @overload
        def __get__(self, instance: E, owner: type[E]) -> BoundKey[E]: ...
        def __get__(self, instance: E | None, owner: type[E]) -> BoundKey[E]: ...


class BoundKey(Generic[E]):
    """A key of an entity's class; call it with fields, from left to right, to get a Selection."""

    def __init__(self, entity: type[E], schema: KeySchema) -> None:
        self.entity = entity
        self.schema = schema
        self.declared = Key(
            tuple(str(part) for part in schema.partition if part.template) or None,
            tuple(str(part) for part in schema.sort if part.template) or None,
            index=schema.index.name if schema.index else None,
        )
        self._builders: dict[tuple[str, ...], Callable[[dict[str, Any]], Selection[E]]] = {}

    def __repr__(self) -> str:
        return f"{self.schema.pattern}({', '.join(self.schema.inputs)})"

    @property
    def example(self) -> str:
        """An example call, for messages."""
        return f"{self.schema.pattern}({', '.join(f'{name}=...' for name in self.schema.inputs)})"

    def __call__(self, *unnamed: Never, **given: Any) -> Selection[E]:
        """Select by the fields of the partition and any number of fields of the sort key, from left to right."""
        if unnamed:
            raise TypeError(f"{self!r} takes its fields by name; write {self.example}")
        build = self._builders.get(tuple(given))
        if build is None:
            build = self._builders[tuple(given)] = self._builder(tuple(given))
        return build(given)

    def _builder(self, names: tuple[str, ...]) -> Callable[[dict[str, Any]], Selection[E]]:
        """A function that makes a selection from these fields; what is wrong with their choice is found here."""
        self._check(names)
        whole = [part for part in self.schema.parts if all(name in names for name in part.inputs)]
        open_part = next((part for part in self.schema.sort if part not in whole), None)
        equal = whole if open_part is None else self.schema.parts[: self.schema.parts.index(open_part)]
        fields = self.entity.__schema__.fields
        following = next((name for name in open_part.inputs if name not in names), None) if open_part else None
        next_field = fields[following] if following else None
        accept, render = self._acceptor(names), self.entity.__schema__.codec.renderer(tuple(equal))
        entity, schema = self.entity, self.schema
        if open_part is None:
            return lambda given: Selection(entity, schema, values := accept(given), render(values), None, "", None)
        prefix_of = open_part.template.prefix_of if open_part.template is not None else None

        def build(given: dict[str, Any]) -> Selection[E]:
            values = accept(given)
            prefix = "" if prefix_of is None else prefix_of(values)
            return Selection(entity, schema, values, render(values), open_part, prefix, next_field)

        return build

    def _acceptor(self, names: tuple[str, ...]) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """A generated function that accepts the values of these fields."""
        fields, source = self.entity.__schema__.fields, Source()
        pairs = [f"{name!r}: {fields[name].accept_source(f'given[{name!r}]', source.names)}" for name in names]
        source.line("def accept(given):")
        source.line(f"    values = {{{', '.join(pairs)}}}")
        if any(fields[name].optional for name in names):
            source.line(f"    if None in values.values(): {source.names.of(self._refuse_none, 'refuse')}()")
        source.line("    return values")
        return source.function("accept")

    def _refuse_none(self) -> NoReturn:
        raise ValueRefusedError(f"{self!r}: None selects nothing, because an item without a value has no such key")

    def _check(self, names: tuple[str, ...]) -> None:
        for name in names:
            if name not in self.schema.inputs:
                raise ValueRefusedError(f"{self!r} has no field {name!r}")
        partition = {name for part in self.schema.partition for name in part.inputs}
        for name in sorted(partition):
            if name not in names:
                raise ValueRefusedError(f"{self!r} requires {name}")
        given = [name in names for name in self.schema.inputs if name not in partition]
        if given != sorted(given, reverse=True):
            raise ValueRefusedError(f"{self!r} takes its fields from left to right; {', '.join(names)} skips one")


class Selection(Generic[E_co]):
    """Some items of one partition: equal key attributes, and a prefix of the next one."""

    __slots__ = ("entity", "equal", "key", "next_field", "open_part", "prefix", "values")

    def __init__(
        self,
        entity: type[E_co],
        key: KeySchema,
        values: Mapping[str, Any],
        equal: dict[str, dict[str, Any]],
        open_part: KeyPart | None,
        prefix: str,
        next_field: FieldSchema | None,
    ) -> None:
        self.entity = entity
        self.key = key
        self.values = values
        """The fields that were given."""
        self.equal = equal
        self.open_part = open_part
        """The sort attribute that is not fully given; None where the whole key is."""
        self.prefix = prefix
        self.next_field = next_field
        """The field that before, after and between speak of."""

    def whole_key(self) -> dict[str, dict[str, Any]]:
        """Return the primary key in wire form; raise ValueRefusedError if the selection is only part of one."""
        if self.key.index is not None:
            told = f"query it, or name one item by {self.entity.key.example}"
            raise ValueRefusedError(f"{self} is a key of the index {self.key.index.name}; {told}")
        if self.open_part is not None:
            raise ValueRefusedError(f"{self} does not name one item; give the whole primary key")
        return self.equal

    def __repr__(self) -> str:
        return f"{self.key.pattern}({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"

    def __str__(self) -> str:
        shown = [f"{name}={next(iter(wire.values()))!r}" for name, wire in self.equal.items()]
        if self.prefix and self.open_part:
            shown.append(f"{self.open_part.attribute} begins with {self.prefix!r}")
        return f"{self.key.pattern}({', '.join(shown)})"
