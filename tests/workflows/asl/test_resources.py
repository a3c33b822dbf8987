"""The resources of Task states."""

from __future__ import annotations

import pytest

from jobtable.workflows.asl.resources import Pattern, Resource, ResourceKind, parse_resource

ACCOUNT = "us-east-1:000000000000"


@pytest.mark.parametrize(
    ("arn", "kind", "service", "action", "pattern"),
    [
        (f"arn:aws:lambda:{ACCOUNT}:function:charge", ResourceKind.FUNCTION, "lambda", "charge", ""),
        (f"arn:aws:lambda:{ACCOUNT}:function:charge:$LATEST", ResourceKind.FUNCTION, "lambda", "charge", ""),
        (f"arn:aws-cn:lambda:{ACCOUNT}:function:charge:7", ResourceKind.FUNCTION, "lambda", "charge", ""),
        (f"arn:aws:states:{ACCOUNT}:activity:ask", ResourceKind.ACTIVITY, "states", "ask", ""),
        ("arn:aws:states:::lambda:invoke", ResourceKind.SERVICE, "lambda", "invoke", ""),
        (
            "arn:aws:states:::lambda:invoke.waitForTaskToken",
            ResourceKind.SERVICE,
            "lambda",
            "invoke",
            ".waitForTaskToken",
        ),
        ("arn:aws:states:::dynamodb:putItem", ResourceKind.SERVICE, "dynamodb", "putItem", ""),
        ("arn:aws:states:::states:startExecution.sync:2", ResourceKind.SERVICE, "states", "startExecution", ".sync:2"),
        ("arn:aws:states:::states:startExecution.sync", ResourceKind.SERVICE, "states", "startExecution", ".sync"),
        ("arn:aws:states:::aws-sdk:dynamodb:query", ResourceKind.SDK, "dynamodb", "query", ""),
        ("arn:aws:states:::aws-sdk:s3:getObject", ResourceKind.SDK, "s3", "getObject", ""),
    ],
)
def test_a_supported_resource_is_taken_apart(
    arn: str, kind: ResourceKind, service: str, action: str, pattern: str
) -> None:
    qualifier = arn.partition(":charge:")[2] or None
    assert parse_resource(arn) == Resource(kind, service, action, Pattern(pattern), arn, qualifier)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "charge",
        "arn:aws:states:::glue:startJobRun.sync",
        "arn:aws:states:::dynamodb:query",
        "arn:aws:states:::dynamodb:putItem.sync",
        "arn:aws:states:::lambda:invoke.sync",
        "arn:aws:states:::sqs:sendMessage.sync:2",
        "arn:aws:states:::aws-sdk:ec2:runInstances",
        "arn:aws:states:::aws-sdk:dynamodb:dropTable",
        "arn:aws:lambda:us-east-1:000000000000:function:",
        "arn:aws:states:us-east-1:000000000000:stateMachine:other",
    ],
)
def test_other_resources_are_not_supported(text: str) -> None:
    assert parse_resource(text) is None


def test_the_history_names_a_resource_as_aws_does() -> None:
    sync = parse_resource("arn:aws:states:::states:startExecution.sync:2")
    sdk = parse_resource("arn:aws:states:::aws-sdk:dynamodb:query")

    assert sync is not None
    assert (sync.history_type, sync.history_name) == ("states", "startExecution.sync:2")
    assert sdk is not None
    assert (sdk.history_type, sdk.history_name) == ("aws-sdk:dynamodb", "query")
