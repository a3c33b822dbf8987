"""State machines and durable functions through a server: every verb does what it does at the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.remote import functions
from tests.remote.functions import driving, wait_until
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    JobtableError,
    NotFoundError,
    TaskClosedError,
    TokenRefusedError,
)
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.machine_verbs import AliasRoute, MachineChange, MachineDraft
from jobtable.workflows.asl.machine import InvalidDefinitionError
from jobtable.workflows.durable.entities import DurableStatus
from jobtable.workflows.function_records import FunctionRecords

ARNS = Arns("eu-central-1", "123456789012")
PASS = '{ "StartAt": "Done",\n  "States": {"Done": {"Type": "Succeed"}} }'
OTHER = json.dumps({"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 1, "End": True}}})


def draft(name: str, **more: Any) -> MachineDraft:
    return MachineDraft(name, PASS, "arn:aws:iam::123456789012:role/any", **more)


def same_error(act: Callable[[Services], object], *sides: Services) -> JobtableError:
    """Do something at the store and through the server; both must refuse it alike. Gives the server's error."""
    errors = []
    for services in sides:
        with pytest.raises(JobtableError) as raised:
            act(services)
        errors.append(raised.value)
    assert {(type(error), error.message) for error in errors} == {(type(errors[0]), errors[0].message)}
    return errors[-1]


def test_a_machine_lives_its_whole_life_through_a_server(served: Served, remote: Services) -> None:
    here, there = served.services.machines, remote.machines
    made = there.create(
        draft("life", settings={"tracingConfiguration": {"enabled": True}}, tags={"team": "shop"}),
        arns=ARNS,
        publish=True,
        description="first",
    )
    assert made.machine == here.get("life") == there.get("life")
    assert made.version == here.get_version("life", 1) == there.get_version("life", 1)
    assert there.read_definition(made.machine.definition_sha256) == PASS
    changed = there.update("life", MachineChange(OTHER), publish=True)
    assert changed.machine == here.get("life")
    assert changed.version == here.get_version("life", 2)
    alias = there.create_alias("life", "live", (AliasRoute(1, 10), AliasRoute(2, 90)), "for customers")
    assert alias == here.get_alias("life", "live") == there.get_alias("life", "live")
    same_error(lambda services: services.machines.delete_version("life", 1), served.services, remote)
    alias = there.update_alias("life", "live", (AliasRoute(2, 100),), "newer")
    assert alias == here.get_alias("life", "live")
    assert there.runnable("life", "live") == here.runnable("life", "live")
    assert there.runnable("life", "1") == here.runnable("life", "1")
    assert there.runnable("life") == here.runnable("life")
    assert there.tag("life", {"a": "b"}, frozenset({"team"})) == here.get("life")
    assert here.get("life").tags == {"a": "b"}
    for mine, theirs in ((here.list(), there.list()), (here.versions("life"), there.versions("life"))):
        assert list(mine) == list(theirs)
    assert list(here.aliases("life")) == list(there.aliases("life"))
    there.delete_alias("life", "live")
    there.delete_alias("life", "live")
    there.delete_version("life", 1)
    assert [version.number for version in here.versions("life")] == [2]
    published = there.publish("life", revision_id=changed.machine.revision_id)
    assert published == here.publish("life")
    there.delete("life")
    same_error(lambda services: services.machines.get("life"), served.services, remote)


def test_refusals_are_those_of_the_store(served: Served, remote: Services) -> None:
    sides = (served.services, remote)
    remote.machines.create(draft("taken"), arns=ARNS)
    assert remote.machines.create(draft("taken"), arns=ARNS).machine == served.services.machines.get("taken")
    other = MachineDraft("taken", OTHER)
    refused = same_error(lambda services: services.machines.create(other, arns=ARNS), *sides)
    assert type(refused) is AlreadyExistsError
    refused = same_error(lambda services: services.machines.publish("taken", revision_id="old"), *sides)
    assert type(refused) is ConflictError
    for act in (
        lambda services: services.machines.get("none"),
        lambda services: services.machines.update("none", MachineChange(PASS)),
        lambda services: services.machines.publish("none"),
        lambda services: services.machines.get_version("taken", 7),
        lambda services: services.machines.get_alias("taken", "live"),
        lambda services: services.machines.create_alias("taken", "live", (AliasRoute(7, 100),)),
        lambda services: services.activities.get("none"),
        lambda services: services.executions.get("taken", "none"),
        lambda services: services.executions.get_map_run("none"),
        lambda services: services.durable.get("none", "none"),
        lambda services: services.durable.start("none", 1),
        lambda services: services.durable.invoke("none"),
    ):
        assert type(same_error(act, *sides)) is NotFoundError


def test_all_faults_of_a_definition_come_through_the_server(served: Served, remote: Services) -> None:
    wrong = MachineDraft("wrong", "{")
    refused = same_error(lambda services: services.machines.create(wrong, arns=ARNS), served.services, remote)
    assert isinstance(refused, InvalidDefinitionError)
    assert [fault.code for fault in refused.diagnostics] == ["INVALID_JSON_DESCRIPTION"]


def test_an_activity_lives_its_whole_life_through_a_server(served: Served, remote: Services) -> None:
    here, there = served.services.activities, remote.activities
    made = there.create(
        "pack", arns=ARNS, settings={"encryptionConfiguration": {"type": "AWS_OWNED_KEY"}}, tags={"a": "b"}
    )
    assert made == here.get("pack") == there.get("pack")
    assert there.tag("pack", {"c": "d"}, frozenset({"a"})) == here.get("pack")
    assert list(here.list()) == list(there.list())
    there.delete("pack")
    there.delete("pack")
    same_error(lambda services: services.activities.get("pack"), served.services, remote)


def test_a_function_is_called_through_a_server(served: Served, remote: Services) -> None:
    with driving(served.services):
        assert remote.durable.invoke("add", '{"a": 1, "b": 2}').payload == "3"
        failed = remote.durable.invoke("broken", "{}")
        assert failed.is_error
        assert json.loads(failed.payload or "")["errorType"] == "ValueError"
        called = remote.durable.call("add", '{"a": 2, "b": 2}')
        assert called.execution is None
        with pytest.raises(NotFoundError):
            remote.durable.find_answer("broken", called.job_id)
    with pytest.raises(ConflictError, match="has not ended after 0 s"):
        remote.durable.invoke("add", '{"a": 1, "b": 2}', wait_seconds=0)


def test_published_functions_are_listed(served: Served) -> None:
    FunctionRecords(served.services.store).publish()
    listed = served.client(Role.READ).get("/api/v1/functions").json()["items"]
    assert {"ask", "add"} <= {each["name"] for each in listed if each["path"].startswith(functions.__name__)}


def test_a_durable_execution_lives_its_whole_life_through_a_server(served: Served, remote: Services) -> None:
    here, there = served.services.durable, remote.durable
    started = there.start("ask", {"question": "how many?"}, name="first")
    assert started == there.start("ask", {"question": "how many?"}, name="first") == here.get("ask", "first")
    refused = same_error(
        lambda services: services.durable.start("ask", {"question": "why?"}, name="first"), served.services, remote
    )
    assert type(refused) is AlreadyExistsError
    with driving(served.services):
        wait_until(lambda: any(each.type == "CALLBACK" for each in here.operations("ask", "first")))
        (callback,) = [each for each in there.operations("ask", "first") if each.type == "CALLBACK"]
        callback_id = there.callback_id(callback)
        assert callback_id == here.callback_id(callback)
        there.beat_callback(callback_id)
        there.succeed_callback(callback_id, '"seven"')
        closed = same_error(lambda s: s.durable.succeed_callback(callback_id, '"eight"'), served.services, remote)
        assert type(closed) is TaskClosedError
        wait_until(lambda: here.get("ask", "first").status is not DurableStatus.RUNNING)
    ended = there.get("ask", "first")
    assert ended == here.get("ask", "first")
    assert (there.input_of(ended), there.output_of(ended)) == (here.input_of(ended), here.output_of(ended))
    assert json.loads(there.output_of(ended) or "") == '"seven"', "which is the text of the answer"
    assert list(there.operations("ask", "first")) == list(here.operations("ask", "first"))
    for newest_first in (False, True):
        events = list(there.history("ask", "first", newest_first=newest_first))
        assert events == list(here.history("ask", "first", newest_first=newest_first)) != []
        assert list(there.history("ask", "first", newest_first=newest_first, after=3)) == [
            event for event in events if (event["EventId"] < 3 if newest_first else event["EventId"] > 3)
        ]
    assert list(there.list("ask", status=DurableStatus.SUCCEEDED)) == [ended]
    assert there.delete("ask", "first") > 0
    same_error(lambda services: services.durable.get("ask", "first"), served.services, remote)


def test_a_durable_execution_is_stopped_through_a_server(served: Served, remote: Services) -> None:
    remote.durable.start("ask", {"question": "when?"}, name="stopped")
    refused = same_error(lambda services: services.durable.delete("ask", "stopped"), served.services, remote)
    assert type(refused) is ConflictError
    stopped = remote.durable.stop("ask", "stopped", error={"ErrorMessage": "no time"})
    assert (stopped.status, stopped.error) == (DurableStatus.STOPPED, {"ErrorMessage": "no time"})


def test_made_up_callbacks_are_refused_as_at_the_store(served: Served, remote: Services) -> None:
    for made_up in ("nonsense", "bm9uc2Vuc2U="):
        refused = same_error(partial(_beat, made_up), served.services, remote)
        assert type(refused) is TokenRefusedError


def _beat(callback_id: str, services: Services) -> None:
    services.durable.beat_callback(callback_id)
