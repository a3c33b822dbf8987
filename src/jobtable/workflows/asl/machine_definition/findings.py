"""What a check finds, and where: the faults, the variables that are assigned, and those that are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine import Diagnostic, Language

SCHEMA = "SCHEMA_VALIDATION_FAILED"
ERROR, WARNING = "ERROR", "WARNING"
MOST_KEPT = 1000
"""The faults of each severity that are kept: a hostile definition has a million."""


@dataclass(eq=False)
class Scope:
    """The variables of a machine, a branch or an item processor, with the place that assigns each first."""

    parent: Scope | None = None
    assigned: dict[str, str] = field(default_factory=dict)

    def chain(self) -> Iterator[Scope]:
        """Yield this scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


@dataclass
class Findings:
    """The faults that are found, and what is known about variables."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    reads: list[tuple[Scope, str, str]] = field(default_factory=list)
    """The scope and the place of each expression that reads a variable, and its name."""
    scopes: list[Scope] = field(default_factory=list)
    _kept: dict[str, int] = field(default_factory=dict)

    def add(self, severity: str, code: str, message: str, location: str) -> None:
        """Keep a fault, unless there are too many."""
        kept = self._kept.get(severity, 0)
        if kept < MOST_KEPT:
            self._kept[severity] = kept + 1
            self.diagnostics.append(Diagnostic(severity, code, _printable(message), _printable(location)))


@dataclass(frozen=True)
class Place:
    """A place in a definition, with what a check there needs to know."""

    findings: Findings
    scope: Scope
    language: Language
    machine_type: MachineType
    path: str = ""
    state: str = ""
    """The name of the state."""
    has_error_output: bool = False

    def member(self, name: str) -> Place:
        """Return the place of a member."""
        return replace(self, path=f"{self.path}/{name}")

    def element(self, index: int) -> Place:
        """Return the place of an element."""
        return replace(self, path=f"{self.path}[{index}]")

    def error(self, message: str, code: str = SCHEMA, below: str = "") -> None:
        """Report an error here, or below."""
        self.findings.add(ERROR, code, message, f"{self.path}{below}" or "/")

    def warn(self, code: str, message: str, below: str = "") -> None:
        """Report a warning here, or below."""
        self.findings.add(WARNING, code, message, f"{self.path}{below}" or "/")

    def read(self, names: Iterable[str]) -> None:
        """Remember that an expression here reads variables."""
        self.findings.reads += ((self.scope, self.path, name) for name in sorted(names))


Check: TypeAlias = Callable[[Any, Place], None]
"""Checks a value at a place."""


def _printable(text: str) -> str:
    """Return a text without unpaired surrogates, which JSON text can have and no answer."""
    return text.encode(errors="replace").decode()
