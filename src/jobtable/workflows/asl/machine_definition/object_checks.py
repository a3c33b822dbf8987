"""Shapes of objects: which members they have, and which of them go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobtable.workflows.asl.machine import Language
from jobtable.workflows.asl.machine_definition.findings import Check, Place

_OTHER = {Language.JSONPATH: Language.JSONATA, Language.JSONATA: Language.JSONPATH}


@dataclass(frozen=True)
class Shape:
    """The members of an object, each with its check."""

    members: Mapping[str, Check] = field(default_factory=dict)
    """Those of both query languages."""
    jsonpath: Mapping[str, Check] = field(default_factory=dict)
    jsonata: Mapping[str, Check] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    """Groups of which there must be exactly one member."""
    at_most_one_of: tuple[tuple[str, ...], ...] = ()
    also: tuple[Check, ...] = ()
    """Checks of the whole object, which may rely on nothing but its being one."""

    def of(self, language: Language) -> Mapping[str, Check]:
        """Return the members of a query language only."""
        return self.jsonpath if language is Language.JSONPATH else self.jsonata

    def __call__(self, value: Any, place: Place) -> None:
        """Check an object."""
        if not isinstance(value, dict):
            place.error("Expected value of type [OBJECT]")
            return
        known = {**self.members, **self.of(place.language)}
        self._check_names(value, place, known)
        self._check_presence(value, place, known)
        for name, member in value.items():
            if name in known:
                known[name](member, place.member(name))
        for check in self.also:
            check(value, place)

    def _check_names(self, value: Mapping[str, Any], place: Place, known: Mapping[str, Check]) -> None:
        other = _OTHER[place.language]
        for name in value:
            if name in known:
                continue
            if name in self.of(other):
                place.error(
                    f"The QueryLanguage is set to '{place.language}', but field '{name}' is only supported for the"
                    f" '{other}' QueryLanguage"
                )
            else:
                place.error(f"Field '{name}' is not supported")

    def _check_presence(self, value: Mapping[str, Any], place: Place, known: Mapping[str, Check]) -> None:
        missing = [name for name in self.required if name in known and name not in value]
        if missing:
            place.error(f"These fields are required: [{', '.join(missing)}]")
        for group in (*self.one_of, *self.at_most_one_of):
            allowed = [name for name in group if name in known]
            present = [name for name in allowed if name in value]
            if len(present) > 1:
                place.error(f"There should only be one of the following fields: [{', '.join(allowed)}]")
            elif allowed and not present and group in self.one_of:
                place.error(f"This object should have only one of the following fields: [{', '.join(allowed)}]")
