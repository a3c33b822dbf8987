"""The rules of requests are those of the description of Step Functions that boto3 has."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workflows.service_rules import differences

from jobtable.errors import OperationRefused
from jobtable.workflows.asl.aws_api.member_rules import check
from jobtable.workflows.asl.aws_api.request_rules import REQUESTS

SERVICE = botocore.session.get_session().get_service_model("stepfunctions")
ROUTE = "RoutingConfigurationListItem(stateMachineVersionArn=b, weight=1)"


def test_every_operation_has_its_members() -> None:
    assert set(REQUESTS) == set(SERVICE.operation_names)
    found = [
        each
        for name, rule in REQUESTS.items()
        for each in differences(rule, SERVICE.operation_model(name).input_shape, name)
        if each[1] != each[2]
    ]
    assert found == []


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        (
            "CreateStateMachine",
            {"name": "", "roleArn": "r" * 257},
            "3 validation errors detected: Value null at 'definition' failed to satisfy constraint: Member must not "
            "be null; Value '' at 'name' failed to satisfy constraint: Member must have length greater than or equal "
            f"to 1; Value '{'r' * 257}' at 'roleArn' failed to satisfy constraint: Member must have length less than "
            "or equal to 256",
        ),
        (
            "ListExecutions",
            {"statusFilter": "succeeded", "stateMachineArn": None},
            "1 validation error detected: Value 'succeeded' at 'statusFilter' failed to satisfy constraint: Member "
            "must satisfy enum value set: [SUCCEEDED, TIMED_OUT, PENDING_REDRIVE, ABORTED, FAILED, RUNNING]",
        ),
        (
            "ListStateMachines",
            {"maxResults": 1001},
            "1 validation error detected: Value '1001' at 'maxResults' failed to satisfy constraint: Member must have "
            "value less than or equal to 1000",
        ),
        (
            "CreateStateMachineAlias",
            {"name": "123", "routingConfiguration": [{"stateMachineVersionArn": "a", "weight": 101}]},
            "2 validation errors detected: Value '123' at 'name' failed to satisfy constraint: Member must satisfy "
            r"regular expression pattern: ^(?=.*[a-zA-Z_\-\.])[a-zA-Z0-9_\-\.]+$; Value '101' at "
            "'routingConfiguration.1.member.weight' failed to satisfy constraint: Member must have value less than or "
            "equal to 100",
        ),
        (
            "UpdateStateMachineAlias",
            {"stateMachineAliasArn": "a", "routingConfiguration": [{"stateMachineVersionArn": "b", "weight": 1}] * 3},
            f"1 validation error detected: Value '[{', '.join([ROUTE] * 3)}]' at 'routingConfiguration' failed to "
            "satisfy constraint: Member must have length less than or equal to 2",
        ),
        (
            "StartExecution",
            {"stateMachineArn": "a", "input": "x" * 262_145},
            "1 validation error detected: Value at 'input' failed to satisfy constraint: Member must have length less "
            "than or equal to 262144",
        ),
    ],
)
def test_broken_constraints_are_reported_together(operation: str, request_: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationRefused) as refused:
        check(REQUESTS[operation], request_)
    assert (refused.value.code, refused.value.message) == ("ValidationException", message)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"name": 1}, "NUMBER_VALUE can not be converted to String"),
        ({"publish": "yes"}, "STRING_VALUE can not be converted to Boolean"),
        ({"name": {}}, "Start of structure or map found where not expected."),
        ({"definition": []}, "Start of list found where not expected."),
        ({"tags": "a"}, "Expected list or null"),
        ({"tags": ["a"]}, "Expected null"),
        ({"tags": [{"key": False}]}, "FALSE_VALUE can not be converted to String"),
        ({"encryptionConfiguration": {"kmsDataKeyReusePeriodSeconds": 1.5}}, "DECIMAL_VALUE can not be converted to"),
    ],
)
def test_another_json_type_is_reported_alone(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationRefused, match=message) as refused:
        check(REQUESTS["CreateStateMachine"], request_)
    assert refused.value.code == "SerializationException"


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    operation = draw(st.sampled_from(sorted(REQUESTS)))
    members = [*REQUESTS[operation].required, *REQUESTS[operation].optional]
    return operation, draw(st.dictionaries(st.sampled_from(members) | st.text(max_size=5), ANY, max_size=6))


@given(requests())
def test_a_request_is_checked_or_refused(drawn: tuple[str, dict[str, Any]]) -> None:
    operation, request = drawn
    try:
        check(REQUESTS[operation], request)
    except OperationRefused as refused:
        assert refused.code in {"ValidationException", "SerializationException"}  # noqa: PT017
