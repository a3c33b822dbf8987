"""Tables and their indexes, as declared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jobtable.errors import DefinitionError

if TYPE_CHECKING:
    from jobtable.model.schema import EntitySchema

KeyType = Literal["S", "N", "B"]
Projection = Literal["ALL", "KEYS_ONLY"] | tuple[str, ...]

NAME_PATTERN = re.compile(r"[A-Za-z0-9_.-]{3,255}")
"""What DynamoDB takes as the name of a table or an index."""
_MOST_KEY_ATTRIBUTES = 4
_LONGEST_ATTRIBUTE = 255


def _as_tuple(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


def _check_names(owner: str, names: Iterable[str]) -> None:
    for name in names:
        if not 1 <= len(name.encode()) <= _LONGEST_ATTRIBUTE:
            raise DefinitionError(f"{owner}: an attribute name must have 1 to 255 bytes, not {name!r:.100}")


@dataclass(frozen=True)
class Index:
    """A global secondary index: up to four partition and four sort attributes, queried from left to right."""

    name: str
    partition: tuple[str, ...]
    sort: tuple[str, ...]
    projection: Projection

    def __init__(
        self,
        name: str,
        partition: str | tuple[str, ...],
        sort: str | tuple[str, ...] | None = None,
        *,
        projection: Projection = "ALL",
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "partition", _as_tuple(partition))
        object.__setattr__(self, "sort", _as_tuple(sort))
        object.__setattr__(self, "projection", projection)
        if not NAME_PATTERN.fullmatch(name):
            raise DefinitionError(f"index {name!r}: a name must have 3 to 255 of the characters a-z A-Z 0-9 _ . -")
        if not 1 <= len(self.partition) <= _MOST_KEY_ATTRIBUTES or len(self.sort) > _MOST_KEY_ATTRIBUTES:
            raise DefinitionError(
                f"index {name}: it must have 1 to 4 partition attributes and at most 4 sort attributes"
            )
        _check_names(f"index {name}", self.attributes)
        for attribute in self.attributes:
            if self.attributes.count(attribute) > 1:
                raise DefinitionError(f"index {name}: it has the attribute {attribute!r} twice")
        if isinstance(projection, str) and projection not in ("ALL", "KEYS_ONLY"):
            told = f"its projection must be 'ALL', 'KEYS_ONLY' or a tuple of attribute names, as ({projection!r},)"
            raise DefinitionError(f"index {name}: {told}")

    @property
    def attributes(self) -> tuple[str, ...]:
        """The key attributes, partition first."""
        return self.partition + self.sort

    def holds(self, attribute: str) -> bool:
        """Return whether entries contain an attribute of the item, besides the table's keys."""
        return self.projection == "ALL" or attribute in self.attributes or attribute in self.projection


class Table:
    """A DynamoDB table: its key attributes, its indexes, and the entities that are declared for it."""

    def __init__(
        self,
        name: str,
        *,
        pk: str,
        sk: str | None = None,
        type_attribute: str | None = None,
        ttl: str | None = None,
        indexes: Iterable[Index] = (),
        stream: bool = False,
        recovery: bool = False,
    ) -> None:
        if isinstance(indexes, Index):
            raise DefinitionError(f"table {name}: indexes must be a list; write indexes=[Index(...)]")
        indexes = tuple(indexes)
        self.name = name
        self.pk = pk
        self.sk = sk
        self.type_attribute = type_attribute
        self.ttl = ttl
        self.indexes = {index.name: index for index in indexes}
        self.stream = stream
        self.recovery = recovery
        self.entities: dict[str, EntitySchema] = {}
        self._key_types: dict[str, dict[str, KeyType]] = {}
        """What each entity puts into key attributes, by its type."""
        if not NAME_PATTERN.fullmatch(name):
            raise DefinitionError(f"table {name!r}: a name must have 3 to 255 of the characters a-z A-Z 0-9 _ . -")
        _check_names(f"table {name}", [each for each in (pk, sk, type_attribute, ttl) if each is not None])
        if pk == sk:
            raise DefinitionError(f"table {name}: {pk!r} is both the partition attribute and the sort attribute")
        if type_attribute in self.primary:
            raise DefinitionError(
                f"table {name}: {type_attribute!r} is both the type attribute and part of the primary key"
            )
        if len(self.indexes) < len(indexes):
            raise DefinitionError(f"table {name}: two indexes have the same name")

    def __repr__(self) -> str:
        return f"Table({self.name!r})"

    @property
    def primary(self) -> tuple[str, ...]:
        """The attributes of the primary key."""
        return (self.pk,) if self.sk is None else (self.pk, self.sk)

    @property
    def type_index(self) -> Index | None:
        """The index that lists all items of a type, if one is declared."""
        return next((i for i in self.indexes.values() if i.partition == (self.type_attribute,)), None)

    def without_index(self, name: str) -> Table:
        """Return the same table without an index that its users do not need."""
        if name not in self.indexes:
            there = f"its indexes are: {', '.join(self.indexes)}" if self.indexes else "it has none"
            raise DefinitionError(f"table {self.name} has no index {name}; {there}")
        smaller = copy(self)
        smaller.indexes = {index.name: index for index in self.indexes.values() if index.name != name}
        return smaller

    def key_types(self) -> dict[str, KeyType]:
        """The DynamoDB type of every key attribute, as its entities use it; text if none does."""
        names = [*self.primary, *(name for index in self.indexes.values() for name in index.attributes)]
        used: dict[str, KeyType] = {}
        for key_types in self._key_types.values():
            used |= key_types
        return {name: used.get(name, "S") for name in names}

    def register(self, entity: EntitySchema, key_types: dict[str, KeyType]) -> None:
        """Add an entity, or raise DefinitionError if it conflicts with those that are registered."""
        earlier = [other for other in self.entities.values() if _is_same_class(other.cls, entity.cls)]
        for other in self.entities.values():
            if other not in earlier:
                self._refuse_collision(entity, other)
                self._refuse_other_key_types(entity, key_types, other)
        for sharer in entity.shares_keys_with:
            sharer.__schema__.take_sharer(entity.cls)
        for other in earlier:
            del self.entities[other.type_name], self._key_types[other.type_name]
        self.entities[entity.type_name] = entity
        self._key_types[entity.type_name] = key_types

    def _refuse_collision(self, entity: EntitySchema, other: EntitySchema) -> None:
        if other.type_name == entity.type_name:
            raise DefinitionError(
                f"{entity.name}: {other.name} already has the type {entity.type_name!r} in {self.name}"
            )
        if self.type_attribute is None:
            raise DefinitionError(
                f"{entity.name}: table {self.name} already contains {other.name}; set its type_attribute"
            )
        if not _are_sharers(entity, other) and entity.primary.may_equal(other.primary):
            raise DefinitionError(
                f"{entity.name} and {other.name} can have the same primary key in {self.name}: "
                f"{entity.primary} and {other.primary}; make a literal part differ, or, if their "
                f"ids never clash, declare shares_keys_with=({other.name},)"
            )

    def _refuse_other_key_types(
        self, entity: EntitySchema, key_types: Mapping[str, KeyType], other: EntitySchema
    ) -> None:
        for name, known in self._key_types[other.type_name].items():
            new = key_types.get(name, known)
            if new != known:
                raise DefinitionError(
                    f"{entity.name}: {name} of table {self.name} would hold {new}, but {other.name} puts {known} there"
                )


def _are_sharers(one: EntitySchema, other: EntitySchema) -> bool:
    pairs = [(one.cls, each) for each in other.shares_keys_with] + [(other.cls, each) for each in one.shares_keys_with]
    return any(_is_same_class(declared, named) for declared, named in pairs)


def _is_same_class(one: type, other: type) -> bool:
    """Whether a class is another one, or that one declared anew: in a notebook a cell is run again."""
    names = {(each.__module__, each.__qualname__) for each in (one, other)}
    return one is other or names == {("__main__", one.__qualname__)}
