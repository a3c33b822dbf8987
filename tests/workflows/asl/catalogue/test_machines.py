"""State machines with their versions and aliases, and activities, on the embedded engine."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import AlreadyExistsError, ConflictError, NotFoundError
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.testing import FakeClock
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.activities import Activities
from jobtable.workflows.asl.catalogue.machine_verbs import (
    AliasRoute,
    MachineChange,
    MachineDeletingError,
    MachineDraft,
    QuotaExceededError,
)
from jobtable.workflows.asl.catalogue.machines import Machines
from jobtable.workflows.asl.catalogue.machines_by_arn import MachinesByArn
from jobtable.workflows.asl.catalogue.records import StateMachineAlias, StateMachineVersion
from jobtable.workflows.asl.entities import Execution, ExecutionStatus, MachineType
from jobtable.workflows.asl.machine import Diagnostic, InvalidDefinitionError
from jobtable.workflows.table_and_queues import workflows

ARNS = Arns("eu-west-1", "123456789012")
PASS = json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Pass", "End": True}}})
OTHER = json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}})


def refuse_empty(definition: str, _: MachineType) -> None:
    if not json.loads(definition):
        raise InvalidDefinitionError((Diagnostic("ERROR", "SCHEMA_VALIDATION_FAILED", "it is empty", "/"),))


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(EmbeddedBackend(None), clock=FakeClock()) as made:
        made.tables.create(workflows)
        yield made


@pytest.fixture
def machines(store: Store) -> Machines:
    return Machines(store, MemoryObjectStore(store.clock), refuse_empty, random=Random(7))


def draft(name: str = "orders", definition: str = PASS, **more: Any) -> MachineDraft:
    return MachineDraft(name, definition, "arn:aws:iam::123456789012:role/any", **more)


def test_creating_the_same_once_more_returns_it(machines: Machines) -> None:
    made = machines.create(draft(tags={"team": "a"}), arns=ARNS)
    assert machines.create(draft(tags={"team": "b"}), arns=ARNS) == made
    assert machines.read_definition(machines.get("orders").definition_sha256) == PASS
    for another in (
        draft(definition=OTHER),
        draft(type=MachineType.EXPRESS),
        draft(settings={"tracingConfiguration": {"enabled": True}}),
    ):
        with pytest.raises(AlreadyExistsError, match="orders"):
            machines.create(another, arns=ARNS)
    with pytest.raises(AlreadyExistsError):
        machines.create(draft(), arns=ARNS, publish=True)
    with pytest.raises(InvalidDefinitionError):
        machines.create(draft("empty", "{}"), arns=ARNS)
    assert [each.name for each in machines.list()] == ["orders"]


def test_a_long_definition_is_kept_as_an_object(machines: Machines) -> None:
    long = json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Pass", "Comment": "é" * 300_000, "End": True}}})
    machines.create(draft(definition=long), arns=ARNS)
    assert machines.runnable("orders").definition == long


def test_a_change_makes_a_revision_and_no_change_makes_none(machines: Machines) -> None:
    machines.create(draft(), arns=ARNS)
    assert machines.get("orders").revision_id is None
    changed = machines.update("orders", MachineChange(definition=OTHER)).machine
    assert changed.revision_id is not None
    assert machines.update("orders", MachineChange(definition=OTHER)).machine == changed
    again = machines.update("orders", MachineChange(settings={"loggingConfiguration": {"level": "ALL"}})).machine
    assert again.revision_id != changed.revision_id
    assert machines.runnable("orders").definition == OTHER
    with pytest.raises(NotFoundError):
        machines.update("unknown", MachineChange(role_arn="x"))


def test_a_revision_is_published_once_and_numbers_are_never_used_twice(machines: Machines) -> None:
    first = machines.create(draft(), arns=ARNS, publish=True, description="one").version
    assert first is not None
    assert (first.number, first.description, first.created_at) == (1, "one", machines.get("orders").created_at)
    assert machines.publish("orders").version == first
    second = machines.update("orders", MachineChange(definition=OTHER), publish=True).version
    assert second is not None
    assert second.number == 2
    machines.delete_version("orders", 2)
    machines.delete_version("orders", 2)
    third = machines.publish("orders", revision_id=second.revision_id).version
    assert third is not None
    assert [each.number for each in machines.versions("orders")] == [3, 1]
    assert (third.number, machines.runnable("orders", "1").definition) == (3, PASS)
    with pytest.raises(ConflictError, match="revision"):
        machines.publish("orders", revision_id="another")
    with pytest.raises(NotFoundError, match="2 of state machine orders"):
        machines.get_version("orders", 2)


def test_an_alias_divides_the_executions_by_its_weights(machines: Machines) -> None:
    machines.create(draft(), arns=ARNS, publish=True)
    machines.update("orders", MachineChange(definition=OTHER), publish=True)
    routes = AliasRoute(1, 80), AliasRoute(2, 20)
    made = machines.create_alias("orders", "live", routes, "both")
    assert machines.create_alias("orders", "live", routes, "both") == made
    with pytest.raises(AlreadyExistsError):
        machines.create_alias("orders", "live", (AliasRoute(1, 100),), "both")
    chosen = Counter(machines.runnable("orders", "live").version for _ in range(200))
    assert 130 <= chosen["1"] <= 190
    assert chosen.total() == 200
    assert machines.runnable("orders", "live").qualifier == "live"
    machines.update_alias("orders", "live", (AliasRoute(2, 100),))
    assert machines.get_alias("orders", "live").description == "both"
    assert machines.runnable("orders", "live").version == "2"


def test_a_version_that_an_alias_names_stays(machines: Machines) -> None:
    machines.create(draft(), arns=ARNS, publish=True)
    with pytest.raises(NotFoundError, match="version 2"):
        machines.create_alias("orders", "live", (AliasRoute(2, 100),))
    machines.create_alias("orders", "live", (AliasRoute(1, 100),))
    with pytest.raises(ConflictError, match="live"):
        machines.delete_version("orders", 1)
    machines.delete_alias("orders", "live")
    machines.delete_alias("orders", "live")
    machines.delete_version("orders", 1)
    with pytest.raises(NotFoundError, match="alias live"):
        machines.update_alias("orders", "live", None, "x")


def test_a_deleted_machine_disappears_when_its_executions_have_ended(machines: Machines, store: Store) -> None:
    machines.create(draft(), arns=ARNS, publish=True)
    machines.create_alias("orders", "live", (AliasRoute(1, 100),))
    running = Execution(
        machine="orders",
        name="one",
        job_id="job",
        definition_sha256=machines.get("orders").definition_sha256,
        region=ARNS.region,
        account=ARNS.account,
        input="{}",
        started_at=store.clock.now(),
    )
    store.add(running)
    machines.delete("orders")
    assert machines.get("orders").status == "DELETING"
    for refused in (
        lambda: machines.runnable("orders"),
        lambda: machines.create(draft(), arns=ARNS),
        lambda: machines.update("orders", MachineChange(role_arn="x")),
        lambda: machines.publish("orders"),
        lambda: machines.create_alias("orders", "other", (AliasRoute(1, 100),)),
    ):
        with pytest.raises(MachineDeletingError):
            refused()
    store.update(running, Execution.status.set(ExecutionStatus.ABORTED))
    with pytest.raises(NotFoundError):
        machines.get("orders")
    assert not [*store.scan(StateMachineVersion), *store.scan(StateMachineAlias)]
    machines.delete("orders")
    assert machines.create(draft(definition=OTHER), arns=ARNS).machine.last_version == 0


def test_quotas(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtable.workflows.asl.catalogue.machines.MOST_VERSIONS", 1)
    monkeypatch.setattr("jobtable.workflows.asl.catalogue.aliases.MOST_ALIASES", 1)
    machines.create(draft(), arns=ARNS, publish=True)
    with pytest.raises(QuotaExceededError, match="versions"):
        machines.update("orders", MachineChange(definition=OTHER), publish=True)
    machines.create_alias("orders", "live", (AliasRoute(1, 100),))
    with pytest.raises(QuotaExceededError, match="aliases"):
        machines.create_alias("orders", "test", (AliasRoute(1, 100),))


def test_machines_are_found_by_their_arns(machines: Machines) -> None:
    machines.create(draft(), arns=ARNS, publish=True)
    by_arn = MachinesByArn(machines)
    assert by_arn.runnable(ARNS.machine("orders")).qualifier is None
    assert by_arn.runnable(f"{ARNS.machine('orders')}:1").version == "1"
    for unknown in ("orders", ARNS.machine("other"), ARNS.activity("orders"), f"{ARNS.machine('orders')}:1:2"):
        with pytest.raises(NotFoundError):
            by_arn.runnable(unknown)


def test_tags_are_added_replaced_and_removed(machines: Machines) -> None:
    machines.create(draft(tags={"a": "1", "b": "2"}), arns=ARNS)
    assert machines.tag("orders", {"b": "3", "c": "4"}, frozenset({"a", "x"})).tags == {"b": "3", "c": "4"}


def test_activities(store: Store) -> None:
    activities = Activities(store)
    made = activities.create("review", arns=ARNS, tags={"a": "1"})
    assert activities.create("review", arns=ARNS) == made
    with pytest.raises(AlreadyExistsError):
        activities.create("review", arns=ARNS, settings={"encryptionConfiguration": {"type": "AWS_OWNED_KEY"}})
    assert [each.name for each in activities.list()] == ["review"]
    assert activities.tag("review", {"b": "2"}, frozenset({"a"})).tags == {"b": "2"}
    activities.delete("review")
    activities.delete("review")
    with pytest.raises(NotFoundError, match="activity review"):
        activities.get("review")
