"""State machines, their versions and aliases, through boto3."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mypy_boto3_stepfunctions import SFNClient
from tests.workflows.asl.aws_api.refusing import ARN, ROLE, refused

PASS = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})
OTHER = json.dumps({"StartAt": "B", "States": {"B": {"Type": "Succeed"}}})


def create(states: SFNClient, name: str = "orders", **members: Any) -> str:
    request: Any = {"name": name, "definition": PASS, "roleArn": ROLE, **members}
    made = states.create_state_machine(**request)
    return made["stateMachineArn"]


# --- machines -------------------------------------------------------------------------------------------------------


def test_a_machine_is_described_as_it_was_created(states: SFNClient) -> None:
    logging: Any = {"level": "OFF", "includeExecutionData": False, "destinations": []}
    arn = create(states, type="EXPRESS", tracingConfiguration={"enabled": True}, loggingConfiguration=logging)
    assert arn == f"{ARN}:stateMachine:orders"
    found = states.describe_state_machine(stateMachineArn=arn)
    assert (found["name"], found["status"], found["type"], found["roleArn"]) == ("orders", "ACTIVE", "EXPRESS", ROLE)
    assert found["definition"] == PASS
    assert found["tracingConfiguration"] == {"enabled": True}
    assert found["loggingConfiguration"]["level"] == "OFF"
    bare = states.describe_state_machine(stateMachineArn=arn, includedData="METADATA_ONLY")
    assert bare["definition"] == "{}"


def test_the_same_machine_may_be_created_twice_and_no_other_of_its_name(states: SFNClient) -> None:
    first = states.create_state_machine(name="orders", definition=PASS, roleArn=ROLE)
    again = states.create_state_machine(name="orders", definition=PASS, roleArn=ROLE)
    assert again["creationDate"] == first["creationDate"]
    error = refused(states.create_state_machine, name="orders", definition=OTHER, roleArn=ROLE)
    assert error == ("StateMachineAlreadyExists", f"State Machine Already Exists: '{first['stateMachineArn']}'")


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"name": "a b"}, ("InvalidName", "Invalid Name: 'a b'")),
        ({"roleArn": "role"}, ("InvalidArn", "Invalid Arn: 'Invalid ARN prefix: role'")),
        ({"versionDescription": "v"}, ("ValidationException", "Version description can only be set when publish is")),
        ({"definition": "{"}, ("InvalidDefinition", "Invalid State Machine Definition: '")),
        ({"definition": '{"StartAt":"A","States":{}}'}, ("InvalidDefinition", "Invalid State Machine Definition: '")),
    ],
)
def test_a_machine_is_refused(states: SFNClient, members: dict[str, str], error: tuple[str, str]) -> None:
    request = {"name": "orders", "definition": PASS, "roleArn": ROLE, **members}
    code, message = refused(states.create_state_machine, **request)
    assert code == error[0]
    assert message.startswith(error[1])
    assert states.list_state_machines()["stateMachines"] == []


def test_a_machine_is_updated(states: SFNClient) -> None:
    arn = create(states)
    before = states.describe_state_machine(stateMachineArn=arn)
    updated = states.update_state_machine(
        stateMachineArn=arn, definition=OTHER, publish=True, versionDescription="the second"
    )
    assert updated["stateMachineVersionArn"] == f"{arn}:1"
    found = states.describe_state_machine(stateMachineArn=arn)
    assert (found["definition"], found["revisionId"]) == (OTHER, updated["revisionId"])
    assert found["creationDate"] == before["creationDate"]
    version = states.describe_state_machine(stateMachineArn=f"{arn}:1")
    assert (version["definition"], version["description"]) == (OTHER, "the second")
    assert refused(states.update_state_machine, stateMachineArn=arn)[0] == "MissingRequiredParameter"
    missing = f"{ARN}:stateMachine:nobody"
    error = refused(states.update_state_machine, stateMachineArn=missing, definition=PASS)
    assert error == ("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{missing}'")


def test_machines_are_listed_in_pages_and_deleted(states: SFNClient) -> None:
    arns = [create(states, f"machine-{number}") for number in range(5)]
    pages = states.get_paginator("list_state_machines").paginate(PaginationConfig={"PageSize": 2})
    listed = [[each["stateMachineArn"] for each in page["stateMachines"]] for page in pages]
    assert listed == [arns[:2], arns[2:4], arns[4:]]
    for _ in range(2):  # deleting one twice is no error
        states.delete_state_machine(stateMachineArn=arns[0])
    assert [each["stateMachineArn"] for each in states.list_state_machines()["stateMachines"]] == arns[1:]
    assert refused(states.describe_state_machine, stateMachineArn=arns[0])[0] == "StateMachineDoesNotExist"
    assert refused(states.list_state_machines, nextToken="abc")[0] == "InvalidToken"
    page = states.list_state_machines(maxResults=2)
    assert refused(states.list_activities, nextToken=page["nextToken"])[0] == "InvalidToken"


@pytest.mark.parametrize(
    ("arn", "message"),
    [
        ("orders", "Invalid Arn: 'Invalid ARN prefix: orders'"),
        (f"{ARN}:activity:orders", "Invalid Arn: 'Resource type not valid in this context: activity'"),
        ("arn:aws:s3:::orders", "Invalid Arn: 'arn:aws:s3:::orders'"),
    ],
)
def test_an_arn_of_something_else_is_refused(states: SFNClient, arn: str, message: str) -> None:
    assert refused(states.describe_state_machine, stateMachineArn=arn) == ("InvalidArn", message)


def test_all_faults_of_a_definition_are_diagnosed(states: SFNClient) -> None:
    definition = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}, "C": {"Type": "Wait", "End": True}}}
    found = states.validate_state_machine_definition(definition=json.dumps(definition), severity="WARNING")
    assert found["result"] == "FAIL"
    assert len(found["diagnostics"]) >= 2
    assert {each["severity"] for each in found["diagnostics"]} >= {"ERROR"}
    one = states.validate_state_machine_definition(definition=json.dumps(definition), maxResults=1)
    assert (len(one["diagnostics"]), one["truncated"]) == (1, True)
    fine = states.validate_state_machine_definition(definition=PASS, type="EXPRESS")
    assert (fine["result"], fine["diagnostics"], fine["truncated"]) == ("OK", [], False)


# --- versions -------------------------------------------------------------------------------------------------------


def test_a_version_keeps_its_definition(states: SFNClient) -> None:
    arn = create(states)
    first = states.publish_state_machine_version(stateMachineArn=arn, description="first")
    again = states.publish_state_machine_version(stateMachineArn=arn, description="first")
    assert again["stateMachineVersionArn"] == first["stateMachineVersionArn"] == f"{arn}:1"
    states.update_state_machine(stateMachineArn=arn, definition=OTHER)
    revision = states.describe_state_machine(stateMachineArn=arn)["revisionId"]
    second = states.publish_state_machine_version(stateMachineArn=arn, revisionId=revision)
    assert second["stateMachineVersionArn"] == f"{arn}:2"
    assert states.describe_state_machine(stateMachineArn=f"{arn}:1")["definition"] == PASS
    listed = states.list_state_machine_versions(stateMachineArn=arn)["stateMachineVersions"]
    assert [each["stateMachineVersionArn"] for each in listed] == [f"{arn}:2", f"{arn}:1"]
    states.delete_state_machine_version(stateMachineVersionArn=f"{arn}:1")
    listed = states.list_state_machine_versions(stateMachineArn=arn, maxResults=1)["stateMachineVersions"]
    assert [each["stateMachineVersionArn"] for each in listed] == [f"{arn}:2"]
    code, message = refused(states.publish_state_machine_version, stateMachineArn=arn, revisionId="old")
    assert code == "ConflictException"
    assert f"The current State Machine revision is {revision}" in message
    assert refused(states.delete_state_machine_version, stateMachineVersionArn=arn)[0] == "InvalidArn"


# --- aliases --------------------------------------------------------------------------------------------------------


@pytest.fixture
def machine(states: SFNClient) -> str:
    """A machine with two versions."""
    arn = create(states, publish=True)
    states.update_state_machine(stateMachineArn=arn, definition=OTHER, publish=True)
    return arn


def routes(machine: str, *weights: tuple[int, int]) -> Any:
    return [{"stateMachineVersionArn": f"{machine}:{version}", "weight": weight} for version, weight in weights]


def test_an_alias_names_versions(states: SFNClient, machine: str) -> None:
    made = states.create_state_machine_alias(name="live", routingConfiguration=routes(machine, (1, 100)))
    alias = made["stateMachineAliasArn"]
    assert alias == f"{machine}:live"
    states.update_state_machine_alias(
        stateMachineAliasArn=alias, description="both", routingConfiguration=routes(machine, (1, 90), (2, 10))
    )
    found = states.describe_state_machine_alias(stateMachineAliasArn=alias)
    assert (found["name"], found["description"]) == ("live", "both")
    assert found["routingConfiguration"] == routes(machine, (1, 90), (2, 10))
    states.create_state_machine_alias(name="next", routingConfiguration=routes(machine, (2, 100)))

    def listed(arn: str) -> list[str]:
        page = states.list_state_machine_aliases(stateMachineArn=arn)
        return [each["stateMachineAliasArn"] for each in page["stateMachineAliases"]]

    assert sorted(listed(machine)) == [alias, f"{machine}:next"]
    assert listed(f"{machine}:1") == [alias]
    code, message = refused(states.delete_state_machine_version, stateMachineVersionArn=f"{machine}:1")
    assert (code, message.endswith("referencing this version: [live]")) == ("ConflictException", True)
    states.delete_state_machine_alias(stateMachineAliasArn=alias)
    assert refused(states.describe_state_machine_alias, stateMachineAliasArn=alias)[0] == "ResourceNotFound"
    states.delete_state_machine_version(stateMachineVersionArn=f"{machine}:1")


@pytest.mark.parametrize(
    ("weights", "code", "message"),
    [
        (((1, 50), (2, 49)), "ValidationException", "Sum of routing configuration weights must equal 100"),
        (((1, 50), (1, 50)), "ValidationException", "Routing configuration must contain distinct"),
        (((9, 100),), "ResourceNotFound", "Request references a resource that does not exist."),
    ],
)
def test_routes_are_refused(
    states: SFNClient, machine: str, weights: tuple[tuple[int, int], ...], code: str, message: str
) -> None:
    error = refused(states.create_state_machine_alias, name="live", routingConfiguration=routes(machine, *weights))
    assert error[0] == code
    assert error[1].startswith(message)
    assert states.list_state_machine_aliases(stateMachineArn=machine)["stateMachineAliases"] == []


def test_another_alias_of_the_name_is_refused(states: SFNClient, machine: str) -> None:
    states.create_state_machine_alias(name="live", routingConfiguration=routes(machine, (1, 100)))
    states.create_state_machine_alias(name="live", routingConfiguration=routes(machine, (1, 100)))
    other = routes(machine, (2, 100))
    error = refused(states.create_state_machine_alias, name="live", routingConfiguration=other)
    assert error[0] == "ConflictException"


# --- tags -----------------------------------------------------------------------------------------------------------


def test_machines_and_activities_have_tags(states: SFNClient) -> None:
    arns = [
        create(states, tags=[{"key": "team", "value": "shop"}]),
        states.create_activity(name="pack", tags=[{"key": "team", "value": "shop"}])["activityArn"],
    ]
    for arn in arns:
        states.tag_resource(resourceArn=arn, tags=[{"key": "team", "value": "web"}, {"key": "cost", "value": "1"}])
        states.untag_resource(resourceArn=arn, tagKeys=["cost", "none"])
        assert states.list_tags_for_resource(resourceArn=arn)["tags"] == [{"key": "team", "value": "web"}]
        many = [{"key": f"k{number}", "value": "v"} for number in range(50)]
        assert refused(states.tag_resource, resourceArn=arn, tags=many)[0] == "TooManyTags"
        assert refused(states.tag_resource, resourceArn=arn, tags=[{"key": "a!", "value": ""}])[0] == (
            "ValidationException"
        )
    missing = f"{ARN}:activity:nobody"
    assert refused(states.list_tags_for_resource, resourceArn=missing)[0] == "ResourceNotFound"


# --- activities -----------------------------------------------------------------------------------------------------


def test_activities_are_created_listed_and_deleted(states: SFNClient) -> None:
    names = ["check", "pack", "ship"]
    arns = [states.create_activity(name=name)["activityArn"] for name in names]
    assert states.create_activity(name="pack")["activityArn"] == arns[1]
    found = states.describe_activity(activityArn=arns[1])
    assert (found["name"], found["activityArn"]) == ("pack", f"{ARN}:activity:pack")
    pages = states.get_paginator("list_activities").paginate(PaginationConfig={"PageSize": 2})
    assert [[each["name"] for each in page["activities"]] for page in pages] == [names[:2], names[2:]]
    states.delete_activity(activityArn=arns[1])
    states.delete_activity(activityArn=arns[1])
    error = refused(states.describe_activity, activityArn=arns[1])
    assert error == ("ActivityDoesNotExist", f"Activity Does Not Exist: '{arns[1]}'")
    assert refused(states.get_activity_task, activityArn=arns[1])[0] == "ActivityDoesNotExist"
    assert refused(states.create_activity, name="a/b")[0] == "InvalidName"
