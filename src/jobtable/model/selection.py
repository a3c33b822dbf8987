"""Keys as an entity declares them, and what a program selects with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from jobtable.errors import ValueRefusedError
from jobtable.model.schema import FieldSchema, KeyPart, KeySchema

if TYPE_CHECKING:
    from jobtable.model.entity import Entity

E = TypeVar("E", bound="Entity")
E_co = TypeVar("E_co", bound="Entity", covariant=True)


def _texts(templates: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if templates is None:
        return ()
    return (templates,) if isinstance(templates, str) else tuple(templates)


class Key:
    """A key in an entity's declaration: one template per key attribute; none where the attributes are fields."""

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

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type[E]) -> BoundKey[E]: ...
        @overload
        def __get__(self, instance: E, owner: type[E]) -> BoundKey[E]: ...
        def __get__(self, instance: E | None, owner: type[E]) -> BoundKey[E]: ...


class BoundKey(Generic[E]):
    """A key of an entity's class. Calling it with fields, from left to right, gives a Selection."""

    def __init__(self, entity: type[E], schema: KeySchema) -> None:
        self.entity = entity
        self.schema = schema
        self.declared = Key(
            tuple(str(part) for part in schema.partition if part.template) or None,
            tuple(str(part) for part in schema.sort if part.template) or None,
            index=schema.index.name if schema.index else None,
        )
        self._partition_inputs = tuple(dict.fromkeys(name for part in schema.partition for name in part.inputs))

    def __repr__(self) -> str:
        return f"{self.schema.pattern}({', '.join(self.schema.inputs)})"

    def __call__(self, **given: Any) -> Selection[E]:
        """Select by the fields of the partition, and by any number of those of the sort key, from left to right."""
        fields = self.entity.__schema__.fields
        values = {}
        for name, value in given.items():
            if name not in self.schema.inputs:
                raise ValueRefusedError(f"{self!r} is not made from {name!r}")
            values[name] = fields[name].accept(value)
        for name in self._partition_inputs:
            if values.get(name) is None:
                raise ValueRefusedError(f"{self!r} cannot be asked without {name}")
        codec = self.entity.__schema__.codec
        equal = {part.attribute: codec.render_part(part, values) for part in self.schema.partition}
        return self._with_sort(values, equal)

    def _with_sort(self, values: Mapping[str, Any], equal: dict[str, Any]) -> Selection[E]:
        codec = self.entity.__schema__.codec
        used = set(self._partition_inputs)
        for at, part in enumerate(self.schema.sort):
            if all(name in values for name in part.inputs):
                equal[part.attribute] = codec.render_part(part, values)
                used |= set(part.inputs)
                continue
            rest = [name for later in self.schema.sort[at + 1 :] for name in later.inputs]
            selection = self._partial(part, values, equal)
            known = [name for name in part.inputs if name in values]
            if known != list(part.inputs[: len(known)]) or set(rest) & (values.keys() - used - set(known)):
                raise ValueRefusedError(f"{self!r} is asked from left to right; {', '.join(values)} leaves a gap")
            return selection
        return Selection(self.entity, self.schema, values, equal, None, "", None)

    def _partial(self, part: KeyPart, values: Mapping[str, Any], equal: dict[str, Any]) -> Selection[E]:
        fields = self.entity.__schema__.fields
        if part.template is None:
            return Selection(self.entity, self.schema, values, equal, part, "", fields[part.inputs[0]])
        rendered: list[str] = []
        for template_part in part.template.parts:
            if template_part.form is None:
                continue
            if template_part.field not in values:
                prefix = part.template.prefix(rendered)
                return Selection(self.entity, self.schema, values, equal, part, prefix, fields[template_part.field])
            rendered.append(template_part.form.render(values[template_part.field]))
        raise ValueRefusedError(f"{self!r} is complete")


@dataclass(frozen=True, slots=True)
class Selection(Generic[E_co]):
    """Some items of one partition: key attributes that are equal, and a prefix of the next one."""

    entity: type[E_co]
    key: KeySchema
    values: Mapping[str, Any]
    """The fields that were given."""
    equal: Mapping[str, dict[str, Any]]
    open_part: KeyPart | None
    """The sort attribute that is not fully given; None where the whole key is."""
    prefix: str
    next_field: FieldSchema | None
    """The field that before, after and between speak of."""

    @property
    def is_complete(self) -> bool:
        """Whether the selection names one primary key."""
        return self.open_part is None and self.key.index is None

    def __str__(self) -> str:
        shown = [f"{name}={next(iter(wire.values()))!r}" for name, wire in self.equal.items()]
        if self.prefix and self.open_part:
            shown.append(f"{self.open_part.attribute} begins with {self.prefix!r}")
        return f"{self.key.pattern}({', '.join(shown)})"
