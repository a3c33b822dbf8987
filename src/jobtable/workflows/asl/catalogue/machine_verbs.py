"""The verbs of state machines, their versions and aliases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from jobtable.errors import ConflictError
from jobtable.store.queries import Query
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.records import StateMachine, StateMachineAlias, StateMachineVersion
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.verbs import RunnableMachine

MOST_VERSIONS = 1000
LOCAL_ROLE = "arn:aws:iam::000000000000:role/local"
"""The role of a machine that names none: only AWS asks for one."""
MOST_ALIASES = 100


class MachineDeletingError(ConflictError):
    """The state machine is being deleted: it starts nothing and cannot be changed."""


class QuotaExceededError(ConflictError):
    """A state machine has as many versions or aliases as it may have."""


@dataclass(frozen=True)
class MachineDraft:
    """A state machine to be created."""

    name: str
    definition: str
    role_arn: str = LOCAL_ROLE
    type: MachineType = MachineType.STANDARD
    settings: Mapping[str, Any] = field(default_factory=dict)
    """`loggingConfiguration`, `tracingConfiguration` and `encryptionConfiguration`, which are kept for AWS."""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MachineChange:
    """What to change of a state machine; None leaves it as it is."""

    definition: str | None = None
    role_arn: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings to replace."""


@dataclass(frozen=True)
class AliasRoute:
    """A version, and the percentage of the executions that an alias sends to it."""

    version: int
    weight: int


class Revision(NamedTuple):
    """A state machine after a change, and the version that it was published as."""

    machine: StateMachine
    version: StateMachineVersion | None


class MachineVerbs(Protocol):
    """State machines under their names.

    Errors: NotFoundError for an unknown machine, version or alias, AlreadyExistsError for a taken name,
    InvalidDefinitionError for a definition with faults, MachineDeletingError, QuotaExceededError, and ConflictError for
    a revision that is no longer the current one or a version that an alias names.
    """

    def create(
        self, draft: MachineDraft, *, arns: Arns, publish: bool = False, description: str | None = None
    ) -> Revision:
        """Create a machine; creating the same once more returns it. With `publish` it becomes version 1."""
        ...

    def update(
        self, name: str, change: MachineChange, *, publish: bool = False, description: str | None = None
    ) -> Revision:
        """Change a machine for the executions that start from now on. A change makes a new revision."""
        ...

    def get(self, name: str) -> StateMachine:
        """Return a machine."""
        ...

    def list(self) -> Query[StateMachine]:
        """The machines by name, with those that are being deleted."""
        ...

    def delete(self, name: str) -> None:
        """Delete a machine with its versions and aliases, as soon as its executions have ended."""
        ...

    def read_definition(self, sha256: str) -> str:
        """Return the text of a definition."""
        ...

    def runnable(self, name: str, qualifier: str | None = None) -> RunnableMachine:
        """Return what an execution runs: the machine, a version, or a version that an alias chooses by its weights."""
        ...

    def tag(self, name: str, add: Mapping[str, str], remove: frozenset[str] = frozenset()) -> StateMachine:
        """Add and remove tags."""
        ...

    def publish(self, name: str, *, revision_id: str | None = None, description: str | None = None) -> Revision:
        """Publish the current revision as a version. A revision is published once."""
        ...

    def get_version(self, name: str, number: int) -> StateMachineVersion:
        """Return a version."""
        ...

    def versions(self, name: str) -> Query[StateMachineVersion]:
        """The versions of a machine, the newest first."""
        ...

    def delete_version(self, name: str, number: int) -> None:
        """Delete a version that no alias names. Its executions go on. A missing version is not an error."""
        ...

    def create_alias(
        self, name: str, alias: str, routes: tuple[AliasRoute, ...], description: str | None = None
    ) -> StateMachineAlias:
        """Create an alias; creating the same once more returns it."""
        ...

    def update_alias(
        self, name: str, alias: str, routes: tuple[AliasRoute, ...] | None, description: str | None = None
    ) -> StateMachineAlias:
        """Change an alias; None leaves its routes or its description as they are."""
        ...

    def get_alias(self, name: str, alias: str) -> StateMachineAlias:
        """Return an alias."""
        ...

    def aliases(self, name: str) -> Query[StateMachineAlias]:
        """The aliases of a machine, by name."""
        ...

    def delete_alias(self, name: str, alias: str) -> None:
        """Delete an alias; its versions stay. A missing one is not an error."""
        ...
