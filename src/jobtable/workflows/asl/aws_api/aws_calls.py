"""What an operation works with: the request, and the verbs that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.activities import Activities
from jobtable.workflows.asl.catalogue.machine_verbs import MachineVerbs
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine import Diagnostic
from jobtable.workflows.asl.verbs import ExecutionVerbs

Request: TypeAlias = Mapping[str, Any]
Response: TypeAlias = dict[str, Any]
Diagnose: TypeAlias = Callable[[str, MachineType], Sequence[Diagnostic]]
"""Returns all faults of a definition for machines of a type."""


@dataclass(frozen=True)
class Call:
    """One call of an operation."""

    request: Request
    arns: Arns
    """Makes the ARNs of what is created."""
    store: Store
    objects: ObjectStore
    machines: MachineVerbs
    activities: Activities
    executions: ExecutionVerbs
    diagnose: Diagnose

    @property
    def now(self) -> datetime:
        """The time of the store's clock."""
        return self.store.clock.now()

    def read_text(self, text: str, object_key: str | None) -> str:
        """Return a text of an item, or of the object that has it because it is too large for the item."""
        return text if object_key is None else self.objects.get(object_key).decode()


Operation: TypeAlias = Callable[[Call], Response]
"""Runs one operation: returns the answer, or raises OperationRefused."""


def seconds(at: datetime) -> float:
    """Return a time as answers have it: seconds since 1970, to the millisecond."""
    return round(at.timestamp(), 3)


def without_none(**members: Any) -> Response:
    """Return the members that have a value."""
    return {name: value for name, value in members.items() if value is not None}
