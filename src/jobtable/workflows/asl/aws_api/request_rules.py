"""The members of every request."""

from __future__ import annotations

from jobtable.workflows.asl.aws_api.member_rules import Flag, Many, Members, Number, Rule, Text

MOST_DATA_BYTES = 262_144

_FLAG = Flag()
_NAME = Text(1, 80)
_ARN, _LONG_ARN = Text(1, 256), Text(1, 2000)
_ALIAS_NAME = Text(1, 80, pattern=r"^(?=.*[a-zA-Z_\-\.])[a-zA-Z0-9_\-\.]+$")
_DEFINITION = Text(1, 1_048_576, is_sensitive=True)
_DATA = Text(0, MOST_DATA_BYTES, is_sensitive=True)
_ERROR, _CAUSE = Text(0, 256, is_sensitive=True), Text(0, 32_768, is_sensitive=True)
_DESCRIPTION = Text(0, 256, is_sensitive=True)
_TASK_TOKEN = Text(1, 2048, is_sensitive=True)
_TRACE = Text(0, 256, pattern=r"\p{ASCII}*")
_TYPE = Text(choices=("STANDARD", "EXPRESS"))
_STATUS = Text(choices=("SUCCEEDED", "TIMED_OUT", "PENDING_REDRIVE", "ABORTED", "FAILED", "RUNNING"))
_INCLUDED = Text(choices=("ALL_DATA", "METADATA_ONLY"))
_COUNT = Number(0)
_PERCENTAGE = Number(0, 100, is_fraction=True)
_STATE_NAME = Text(1, 80, is_sensitive=True)

_PAGE: dict[str, Rule] = {"maxResults": Number(0, 1000), "nextToken": Text(1, 1024)}
_TAGS = Many(Members({}, {"key": Text(1, 128), "value": Text(0, 256)}, "Tag"))
_ENCRYPTION = Members(
    {"type": Text(choices=("AWS_OWNED_KEY", "CUSTOMER_MANAGED_KMS_KEY"))},
    {"kmsKeyId": Text(1, 2048), "kmsDataKeyReusePeriodSeconds": Number(60, 900)},
)
_LOG_GROUP = Members({}, {"cloudWatchLogsLogGroup": Members({}, {"logGroupArn": _ARN})})
_LOGGING = Members(
    {},
    {
        "level": Text(choices=("ALL", "ERROR", "FATAL", "OFF")),
        "includeExecutionData": _FLAG,
        "destinations": Many(_LOG_GROUP),
    },
)
_SETTINGS: dict[str, Rule] = {
    "loggingConfiguration": _LOGGING,
    "tracingConfiguration": Members({}, {"enabled": _FLAG}),
    "encryptionConfiguration": _ENCRYPTION,
}
_PUBLISHING: dict[str, Rule] = {"publish": _FLAG, "versionDescription": _DESCRIPTION}
_ROUTES = Many(
    Members({"stateMachineVersionArn": _ARN, "weight": Number(0, 100)}, {}, "RoutingConfigurationListItem"), 1, 2
)
_MOCK = Members(
    {},
    {
        "result": _DATA,
        "errorOutput": Members({}, {"error": _ERROR, "cause": _CAUSE}),
        "fieldValidationMode": Text(choices=("STRICT", "PRESENT", "NONE")),
    },
)
_TEST_CONFIGURATION = Members(
    {},
    {
        "retrierRetryCount": _COUNT,
        "errorCausedByState": _STATE_NAME,
        "mapIterationFailureCount": _COUNT,
        "mapItemReaderData": _DATA,
    },
)

_MACHINE: dict[str, Rule] = {"stateMachineArn": _ARN}
_ALIAS: dict[str, Rule] = {"stateMachineAliasArn": _ARN}
_EXECUTION: dict[str, Rule] = {"executionArn": _ARN}
_ACTIVITY: dict[str, Rule] = {"activityArn": _ARN}
_MAP_RUN: dict[str, Rule] = {"mapRunArn": _LONG_ARN}
_RESOURCE: dict[str, Rule] = {"resourceArn": _ARN}
_TOKEN: dict[str, Rule] = {"taskToken": _TASK_TOKEN}
_START: dict[str, Rule] = {"name": _NAME, "input": _DATA, "traceHeader": _TRACE}

REQUESTS: dict[str, Members] = {
    "CreateStateMachine": Members(
        {"name": _NAME, "definition": _DEFINITION, "roleArn": _ARN},
        {"type": _TYPE, "tags": _TAGS, **_SETTINGS, **_PUBLISHING},
    ),
    "UpdateStateMachine": Members(_MACHINE, {"definition": _DEFINITION, "roleArn": _ARN, **_SETTINGS, **_PUBLISHING}),
    "DescribeStateMachine": Members(_MACHINE, {"includedData": _INCLUDED}),
    "DescribeStateMachineForExecution": Members(_EXECUTION, {"includedData": _INCLUDED}),
    "DeleteStateMachine": Members(_MACHINE, {}),
    "ListStateMachines": Members({}, _PAGE),
    "ValidateStateMachineDefinition": Members(
        {"definition": _DEFINITION},
        {"type": _TYPE, "severity": Text(choices=("ERROR", "WARNING")), "maxResults": Number(0, 100)},
    ),
    "PublishStateMachineVersion": Members(_MACHINE, {"revisionId": Text(), "description": _DESCRIPTION}),
    "DeleteStateMachineVersion": Members({"stateMachineVersionArn": _LONG_ARN}, {}),
    "ListStateMachineVersions": Members(_MACHINE, _PAGE),
    "CreateStateMachineAlias": Members(
        {"name": _ALIAS_NAME, "routingConfiguration": _ROUTES}, {"description": _DESCRIPTION}
    ),
    "UpdateStateMachineAlias": Members(_ALIAS, {"description": _DESCRIPTION, "routingConfiguration": _ROUTES}),
    "DescribeStateMachineAlias": Members(_ALIAS, {}),
    "DeleteStateMachineAlias": Members(_ALIAS, {}),
    "ListStateMachineAliases": Members(_MACHINE, _PAGE),
    "StartExecution": Members(_MACHINE, _START),
    "StartSyncExecution": Members(_MACHINE, {**_START, "includedData": _INCLUDED}),
    "StopExecution": Members(_EXECUTION, {"error": _ERROR, "cause": _CAUSE}),
    "DescribeExecution": Members(_EXECUTION, {"includedData": _INCLUDED}),
    "ListExecutions": Members(
        {},
        {
            **_MACHINE,
            **_MAP_RUN,
            "statusFilter": _STATUS,
            "redriveFilter": Text(choices=("REDRIVEN", "NOT_REDRIVEN")),
            "maxResults": _PAGE["maxResults"],
            "nextToken": Text(1, 3096),
        },
    ),
    "GetExecutionHistory": Members(_EXECUTION, {**_PAGE, "reverseOrder": _FLAG, "includeExecutionData": _FLAG}),
    "RedriveExecution": Members(_EXECUTION, {"clientToken": Text(1, 64, pattern="[!-~]+")}),
    "CreateActivity": Members({"name": _NAME}, {"tags": _TAGS, "encryptionConfiguration": _ENCRYPTION}),
    "DescribeActivity": Members(_ACTIVITY, {}),
    "DeleteActivity": Members(_ACTIVITY, {}),
    "ListActivities": Members({}, _PAGE),
    "GetActivityTask": Members(_ACTIVITY, {"workerName": _NAME}),
    "SendTaskSuccess": Members({**_TOKEN, "output": _DATA}, {}),
    "SendTaskFailure": Members(_TOKEN, {"error": _ERROR, "cause": _CAUSE}),
    "SendTaskHeartbeat": Members(_TOKEN, {}),
    "DescribeMapRun": Members(_MAP_RUN, {}),
    "ListMapRuns": Members(_EXECUTION, _PAGE),
    "UpdateMapRun": Members(
        _MAP_RUN,
        {"maxConcurrency": _COUNT, "toleratedFailureCount": _COUNT, "toleratedFailurePercentage": _PERCENTAGE},
    ),
    "TagResource": Members({**_RESOURCE, "tags": _TAGS}, {}),
    "UntagResource": Members({**_RESOURCE, "tagKeys": Many(Text(1, 128))}, {}),
    "ListTagsForResource": Members(_RESOURCE, {}),
    "TestState": Members(
        {"definition": _DEFINITION},
        {
            "roleArn": _ARN,
            "input": _DATA,
            "inspectionLevel": Text(choices=("INFO", "DEBUG", "TRACE")),
            "revealSecrets": _FLAG,
            "variables": _DATA,
            "stateName": _STATE_NAME,
            "mock": _MOCK,
            "context": _DATA,
            "stateConfiguration": _TEST_CONFIGURATION,
        },
    ),
}
"""The request of every operation. A test compares them with the description of the service that boto3 has."""
