"""Aliases of state machines on a store."""

from __future__ import annotations

import re

from jobtable.errors import AlreadyExistsError, ValueRefusedError, missing
from jobtable.model import unchanged
from jobtable.store.transactions import Transaction
from jobtable.workflows.asl.catalogue.machine_reads import MachineReads
from jobtable.workflows.asl.catalogue.machine_verbs import (
    MOST_ALIASES,
    AliasRoute,
    MachineDeletingError,
    QuotaExceededError,
)
from jobtable.workflows.asl.catalogue.records import (
    MachineStatus,
    StateMachine,
    StateMachineAlias,
    StateMachineVersion,
)

_NAME = re.compile(r"(?=.*[a-zA-Z_\-.])[a-zA-Z0-9_\-.]{1,80}")
_WHOLE = 100


class MachineAliases(MachineReads):
    """The verbs of aliases. Each change requires that the versions of its routes exist."""

    def create_alias(
        self, name: str, alias: str, routes: tuple[AliasRoute, ...], description: str | None = None
    ) -> StateMachineAlias:
        """Create an alias, or return the same one."""
        _check_name(alias)
        _check_routes(routes)
        weights = [[each.version, each.weight] for each in routes]

        def create(machine: StateMachine) -> StateMachineAlias:
            existing = self.store.find(StateMachineAlias.key(machine=name, name=alias))
            if existing is not None:
                if (existing.weights, existing.description) != (weights, description):
                    raise AlreadyExistsError(f"alias {alias} of state machine {name} already exists; update it")
                return existing
            if self.store.count(StateMachineAlias.key(machine=name)) >= MOST_ALIASES:
                raise QuotaExceededError(
                    f"state machine {name} has {MOST_ALIASES} aliases; delete one before you create another"
                )
            now = self.store.clock.now()
            made = StateMachineAlias(
                machine=name, name=alias, description=description, weights=weights, created_at=now, updated_at=now
            )
            with self.store.transaction() as tx:
                tx.add(made)
                self._count_change(tx, machine, routes)
            return made

        return self.store.retrying(lambda: self._machine(name, routes), create, f"create alias {alias} of {name}")

    def update_alias(
        self, name: str, alias: str, routes: tuple[AliasRoute, ...] | None, description: str | None = None
    ) -> StateMachineAlias:
        """Change an alias."""
        if routes is not None:
            _check_routes(routes)

        def update(machine: StateMachine) -> StateMachineAlias:
            existing = self.get_alias(name, alias)
            updates = [StateMachineAlias.updated_at.set(self.store.clock.now())]
            if routes is not None:
                updates.append(StateMachineAlias.weights.set([[each.version, each.weight] for each in routes]))
            if description is not None:
                updates.append(StateMachineAlias.description.set(description))
            with self.store.transaction() as tx:
                tx.update(existing, *updates, when=unchanged(existing, StateMachineAlias.updated_at))
                self._count_change(tx, machine, routes or ())
            return self.get_alias(name, alias)

        return self.store.retrying(lambda: self._machine(name, routes or ()), update, f"update alias {alias} of {name}")

    def delete_alias(self, name: str, alias: str) -> None:
        """Delete an alias; its versions stay."""
        self.store.delete(StateMachineAlias.key(machine=name, name=alias))

    def _machine(self, name: str, routes: tuple[AliasRoute, ...]) -> StateMachine:
        machine = self.store.find(StateMachine.key(name=name))
        if machine is None:
            raise missing("state machine", name)
        if machine.status is MachineStatus.DELETING:
            raise MachineDeletingError(f"state machine {name} is being deleted and has no new aliases")
        for each in routes:
            if self.store.find(StateMachineVersion.key(machine=name, number=each.version)) is None:
                raise missing("version", f"{each.version} of state machine {name}")
        return machine

    def _count_change(self, tx: Transaction, machine: StateMachine, routes: tuple[AliasRoute, ...]) -> None:
        """Note a change of the aliases with it, and require that the versions still exist."""
        tx.update(
            machine,
            StateMachine.alias_changes.set(machine.alias_changes + 1),
            when=unchanged(machine, StateMachine.alias_changes, StateMachine.status),
        )
        for each in routes:
            version = StateMachineVersion.key(machine=machine.name, number=each.version)
            tx.check(version, StateMachineVersion.number == each.version)


def _check_name(alias: str) -> None:
    if not _NAME.fullmatch(alias):
        raise ValueRefusedError(
            f"invalid name of alias {alias[:100]!r}; use 1 to 80 letters, digits, underscores, hyphens and dots, not "
            "digits alone"
        )


def _check_routes(routes: tuple[AliasRoute, ...]) -> None:
    versions, weights = [each.version for each in routes], [each.weight for each in routes]
    if not 1 <= len(set(versions)) == len(versions) <= 2:
        raise ValueRefusedError("an alias names one version, or two different ones")
    if sum(weights) != _WHOLE or min(weights) < 0:
        raise ValueRefusedError(f"the weights of an alias must add up to {_WHOLE}, not {sum(weights)}")
