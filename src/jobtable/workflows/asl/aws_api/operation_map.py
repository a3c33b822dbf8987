"""The function of each operation. Its module is loaded with the first such request."""

from __future__ import annotations

from importlib import import_module

from jobtable.errors import OperationRefused
from jobtable.workflows.asl.aws_api.aws_calls import Operation

OPERATIONS = {
    "CreateStateMachine": "machine_operations:create",
    "UpdateStateMachine": "machine_operations:update",
    "DescribeStateMachine": "machine_operations:describe",
    "DescribeStateMachineForExecution": "machine_operations:describe_for_execution",
    "DeleteStateMachine": "machine_operations:delete",
    "ListStateMachines": "machine_operations:list_all",
    "ValidateStateMachineDefinition": "definition_checks:validate",
    "PublishStateMachineVersion": "version_operations:publish",
    "DeleteStateMachineVersion": "version_operations:delete",
    "ListStateMachineVersions": "version_operations:list_all",
    "CreateStateMachineAlias": "alias_operations:create",
    "UpdateStateMachineAlias": "alias_operations:update",
    "DescribeStateMachineAlias": "alias_operations:describe",
    "DeleteStateMachineAlias": "alias_operations:delete",
    "ListStateMachineAliases": "alias_operations:list_all",
    "StartExecution": "execution_operations:start",
    "StartSyncExecution": "execution_operations:start_sync",
    "StopExecution": "execution_operations:stop",
    "RedriveExecution": "redrive_operation:redrive",
    "DescribeExecution": "execution_descriptions:describe",
    "ListExecutions": "execution_descriptions:list_all",
    "GetExecutionHistory": "history_operation:history",
    "CreateActivity": "activity_operations:create",
    "DescribeActivity": "activity_operations:describe",
    "DeleteActivity": "activity_operations:delete",
    "ListActivities": "activity_operations:list_all",
    "GetActivityTask": "activity_operations:poll",
    "SendTaskSuccess": "task_operations:succeed",
    "SendTaskFailure": "task_operations:fail",
    "SendTaskHeartbeat": "task_operations:beat",
    "DescribeMapRun": "map_run_operations:describe",
    "ListMapRuns": "map_run_operations:list_all",
    "UpdateMapRun": "map_run_operations:update",
    "TagResource": "tag_operations:tag",
    "UntagResource": "tag_operations:untag",
    "ListTagsForResource": "tag_operations:list_all",
    "TestState": "state_tests:test_state",
}
"""The module of each operation, below `jobtable.workflows.asl.aws_api`, and the function in it."""

_loaded: dict[str, Operation] = {}


def operation_named(name: str) -> Operation:
    """Return the function that runs an operation, or raise OperationRefused if there is none."""
    function = _loaded.get(name)
    if function is None:
        if name not in OPERATIONS:
            raise OperationRefused(f"Step Functions has no operation {name!r}", code="UnknownOperationException")
        module, _, attribute = OPERATIONS[name].partition(":")
        function = _loaded[name] = getattr(import_module(f"jobtable.workflows.asl.aws_api.{module}"), attribute)
    return function
