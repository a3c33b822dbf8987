"""State machines on a store."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from random import Random

from jobtable.errors import AlreadyExistsError, ConflictError, NotFoundError
from jobtable.model import Update, unchanged
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.workflows.asl.arns import Arns, check_states_name
from jobtable.workflows.asl.catalogue.aliases import MachineAliases
from jobtable.workflows.asl.catalogue.machine_reads import is_version_number, refuse_deleting
from jobtable.workflows.asl.catalogue.machine_verbs import (
    MOST_VERSIONS,
    MachineChange,
    MachineDraft,
    MachineVerbs,
    QuotaExceededError,
    Revision,
)
from jobtable.workflows.asl.catalogue.records import (
    MachineStatus,
    StateMachine,
    StateMachineAlias,
    StateMachineVersion,
)
from jobtable.workflows.asl.entities import Execution, ExecutionStatus, MachineType

CheckDefinition = Callable[[str, MachineType], object]
"""Raises InvalidDefinitionError for a definition with faults."""


class Machines(MachineAliases, MachineVerbs):
    """The state machines of a store: implements MachineVerbs."""

    def __init__(
        self, store: Store, objects: ObjectStore, check: CheckDefinition, *, random: Random | None = None
    ) -> None:
        super().__init__(store, objects, random=random)
        self._check = check

    def create(
        self, draft: MachineDraft, *, arns: Arns, publish: bool = False, description: str | None = None
    ) -> Revision:
        """Create a machine, or return the same one."""
        check_states_name("state machine", draft.name)
        self._check(draft.definition, draft.type)
        digest = self._definitions.keep(draft.definition)

        def create(existing: StateMachine | None) -> Revision:
            if existing is not None:
                return self._same(existing, draft, digest, publish=publish, description=description)
            now = self.store.clock.now()
            machine = StateMachine(
                name=draft.name,
                type=draft.type,
                region=arns.region,
                account=arns.account,
                definition_sha256=digest,
                role_arn=draft.role_arn,
                settings=dict(draft.settings),
                tags=dict(draft.tags),
                created_at=now,
                updated_at=now,
                last_version=int(publish),
                published_version=1 if publish else None,
            )
            version = _version_of(machine, 1, description) if publish else None
            with self.store.transaction() as tx:
                tx.add(machine)
                if version is not None:
                    tx.add(version)
            return Revision(machine, version)

        return self.store.retrying(lambda: self._find(draft.name), create, f"create state machine {draft.name}")

    def _same(
        self, existing: StateMachine, draft: MachineDraft, digest: str, *, publish: bool, description: str | None
    ) -> Revision:
        """Return an existing machine if the draft would create the same; role and tags do not count."""
        refuse_deleting(existing)
        version = None
        if publish and existing.published_version is not None:
            version = self.store.find(StateMachineVersion.key(machine=existing.name, number=existing.published_version))
        is_same = (
            (existing.definition_sha256, existing.type) == (digest, draft.type)
            and existing.settings == dict(draft.settings)
            and (not publish or (version is not None and version.description == description))
        )
        if not is_same:
            raise AlreadyExistsError(
                f"cannot create state machine {draft.name}: another one has this name; update it or delete it first"
            )
        return Revision(existing, version)

    def update(
        self, name: str, change: MachineChange, *, publish: bool = False, description: str | None = None
    ) -> Revision:
        """Change a machine, and publish it if asked."""
        current = self.get(name)
        digest = None
        if change.definition is not None:
            self._check(change.definition, current.type)
            digest = self._definitions.keep(change.definition)

        def update(machine: StateMachine) -> Revision:
            refuse_deleting(machine)
            updates = _updates_of(machine, change, digest)
            if not updates:
                return self._publish(machine, description) if publish else Revision(machine, None)
            revision = StateMachine.revision_id.set(str(uuid.uuid4()))
            when = StateMachine.updated_at.set(self.store.clock.now())
            changed = self.store.update(
                machine,
                *updates,
                revision,
                when,
                StateMachine.published_version.set(None),
                when=unchanged(machine, StateMachine.revision_id, StateMachine.status),
            )
            return self._publish(changed, description) if publish else Revision(changed, None)

        return self.store.retrying(lambda: self.get(name), update, f"update state machine {name}")

    def delete(self, name: str) -> None:
        """Delete a machine as soon as its executions have ended."""
        try:
            self.store.update(StateMachine.key(name=name), StateMachine.status.set(MachineStatus.DELETING))
        except NotFoundError:
            return
        self._find(name)

    def tag(self, name: str, add: Mapping[str, str], remove: frozenset[str] = frozenset()) -> StateMachine:
        """Add and remove tags."""

        def tag(machine: StateMachine) -> StateMachine:
            tags = {key: value for key, value in {**machine.tags, **add}.items() if key not in remove}
            return self.store.update(machine, StateMachine.tags.set(tags), when=unchanged(machine, StateMachine.tags))

        return self.store.retrying(lambda: self.get(name), tag, f"tag state machine {name}")

    # --- versions ---------------------------------------------------------------------------------------------------

    def publish(self, name: str, *, revision_id: str | None = None, description: str | None = None) -> Revision:
        """Publish the current revision as a version."""

        def publish(machine: StateMachine) -> Revision:
            refuse_deleting(machine)
            if revision_id is not None and revision_id != machine.revision_id:
                raise ConflictError(f"the revision of state machine {name} is {machine.revision_id}, not {revision_id}")
            return self._publish(machine, description)

        return self.store.retrying(lambda: self.get(name), publish, f"publish state machine {name}")

    def _publish(self, machine: StateMachine, description: str | None) -> Revision:
        if machine.published_version is not None:
            return Revision(machine, self.get_version(machine.name, machine.published_version))
        if self.store.count(StateMachineVersion.key(machine=machine.name)) >= MOST_VERSIONS:
            raise QuotaExceededError(
                f"state machine {machine.name} has {MOST_VERSIONS} versions; delete one before you publish another"
            )
        version = _version_of(machine, machine.last_version + 1, description, self.store.clock.now())
        with self.store.transaction() as tx:
            tx.add(version)
            tx.update(
                machine,
                StateMachine.last_version.set(version.number),
                StateMachine.published_version.set(version.number),
                when=unchanged(
                    machine, StateMachine.revision_id, StateMachine.last_version, StateMachine.published_version
                ),
            )
        return Revision(self.get(machine.name), version)

    def delete_version(self, name: str, number: int) -> None:
        """Delete a version that no alias names."""

        def delete(machine: StateMachine | None) -> None:
            if machine is None or not is_version_number(number):
                return
            naming = [alias.name for alias in self.aliases(name) if number in {each for each, _ in alias.weights}]
            if naming:
                raise ConflictError(f"aliases name version {number} of state machine {name}: {', '.join(naming)}")
            with self.store.transaction() as tx:
                tx.delete(StateMachineVersion.key(machine=name, number=number))
                if machine.published_version == number:
                    tx.update(
                        machine,
                        StateMachine.published_version.set(None),
                        when=unchanged(machine, StateMachine.alias_changes, StateMachine.published_version),
                    )
                else:
                    tx.check(machine, unchanged(machine, StateMachine.alias_changes))

        self.store.retrying(lambda: self._find(name), delete, f"delete version {number} of state machine {name}")

    # --- deletion ---------------------------------------------------------------------------------------------------

    def _find(self, name: str) -> StateMachine | None:
        """Return a machine; one that is being deleted disappears when nobody finds an execution that runs."""
        found = self.store.find(StateMachine.key(name=name))
        if found is None or found.status is MachineStatus.ACTIVE:
            return found
        running = Execution.by_status(machine=name, status=ExecutionStatus.RUNNING)
        if self.store.query(running).first() is not None:
            return found
        self.store.batch_delete(StateMachineAlias.key(machine=name, name=each.name) for each in self.aliases(name))
        self.store.batch_delete(
            StateMachineVersion.key(machine=name, number=each.number) for each in self.versions(name)
        )
        self.store.delete(StateMachine.key(name=name), when=StateMachine.status == MachineStatus.DELETING)
        return None


def _updates_of(machine: StateMachine, change: MachineChange, digest: str | None) -> list[Update]:
    """Return the updates that change something."""
    updates = []
    if digest is not None and digest != machine.definition_sha256:
        updates.append(StateMachine.definition_sha256.set(digest))
    if change.role_arn is not None and change.role_arn != machine.role_arn:
        updates.append(StateMachine.role_arn.set(change.role_arn))
    settings = {**machine.settings, **change.settings}
    if settings != machine.settings:
        updates.append(StateMachine.settings.set(settings))
    return updates


def _version_of(
    machine: StateMachine, number: int, description: str | None, created_at: object = None
) -> StateMachineVersion:
    return StateMachineVersion.model_validate(
        {
            "machine": machine.name,
            "number": number,
            "type": machine.type,
            "definition_sha256": machine.definition_sha256,
            "role_arn": machine.role_arn,
            "settings": machine.settings,
            "revision_id": machine.revision_id,
            "description": description,
            "created_at": created_at or machine.created_at,
        }
    )
