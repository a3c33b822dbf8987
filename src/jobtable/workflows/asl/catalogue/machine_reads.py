"""What is read of state machines, here or through a server."""

from __future__ import annotations

from random import Random, SystemRandom

from jobtable.errors import missing
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.store.patterns import access_pattern
from jobtable.store.queries import Query
from jobtable.workflows.asl.catalogue.machine_verbs import MachineDeletingError
from jobtable.workflows.asl.catalogue.records import (
    MachineStatus,
    StateMachine,
    StateMachineAlias,
    StateMachineVersion,
)
from jobtable.workflows.asl.definition_texts import Definitions
from jobtable.workflows.asl.verbs import RunnableMachine

_MOST_NUMBER = 999_999


class MachineReads:
    """The reading half of MachineVerbs."""

    def __init__(self, store: Store, objects: ObjectStore, *, random: Random | None = None) -> None:
        self.store = store
        self._definitions = Definitions(store, objects)
        self._random = random or SystemRandom()

    @access_pattern("Get a state machine")
    def get(self, name: str) -> StateMachine:
        """Return a machine."""
        found = self._find(name)
        if found is None:
            raise missing("state machine", name)
        return found

    def _find(self, name: str) -> StateMachine | None:
        return self.store.find(StateMachine.key(name=name))

    @access_pattern("List state machines by name", index="GSI1")
    def list(self) -> Query[StateMachine]:
        """The machines by name."""
        return self.store.query(StateMachine.listed())

    def read_definition(self, sha256: str) -> str:
        """Return the text of a definition."""
        return self._definitions.read(sha256)

    def runnable(self, name: str, qualifier: str | None = None) -> RunnableMachine:
        """Return what an execution runs."""
        machine = self.get(name)
        refuse_deleting(machine)
        if qualifier is None:
            definition = self.read_definition(machine.definition_sha256)
            return RunnableMachine(name, definition, machine.type, role_arn=machine.role_arn)
        number = int(qualifier) if qualifier.isdecimal() else self._choose(self.get_alias(name, qualifier))
        version = self.get_version(name, number)
        definition = self.read_definition(version.definition_sha256)
        return RunnableMachine(name, definition, version.type, qualifier, str(number), version.role_arn)

    @access_pattern("Get a version of a machine")
    def get_version(self, name: str, number: int) -> StateMachineVersion:
        """Return a version."""
        found = None
        if is_version_number(number):
            found = self.store.find(StateMachineVersion.key(machine=name, number=number))
        if found is None:
            raise missing("version", f"{number} of state machine {name}")
        return found

    @access_pattern("List the versions of a machine")
    def versions(self, name: str) -> Query[StateMachineVersion]:
        """The versions of a machine, the newest first."""
        return self.store.query(StateMachineVersion.key(machine=name), newest_first=True)

    @access_pattern("Get an alias of a machine")
    def get_alias(self, name: str, alias: str) -> StateMachineAlias:
        """Return an alias."""
        found = self.store.find(StateMachineAlias.key(machine=name, name=alias))
        if found is None:
            raise missing("alias", f"{alias} of state machine {name}")
        return found

    @access_pattern("List the aliases of a machine")
    def aliases(self, name: str) -> Query[StateMachineAlias]:
        """The aliases of a machine, by name."""
        return self.store.query(StateMachineAlias.key(machine=name))

    def _choose(self, alias: StateMachineAlias) -> int:
        """Return the version that an alias sends the next execution to."""
        versions, weights = zip(*alias.weights, strict=True)
        return int(self._random.choices(versions, weights)[0])


def refuse_deleting(machine: StateMachine) -> None:
    """Raise MachineDeletingError for a machine that is being deleted."""
    if machine.status is MachineStatus.DELETING:
        raise MachineDeletingError(
            f"state machine {machine.name} is being deleted; wait until its executions have ended"
        )


def is_version_number(number: int) -> bool:
    """Return whether a version can have this number."""
    return 1 <= number <= _MOST_NUMBER
