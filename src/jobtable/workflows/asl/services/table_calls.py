"""DynamoDB: the requests of a state, executed by the backend of the store.

A definition names a table as the backend has it, so the same definition runs on AWS and means the tables that clients
of the endpoint see. The store's prefix is part of such a name.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jobtable.errors import RequestError
from jobtable.store.backend import Backend
from jobtable.workflows.asl.interpreter.strand import write_instant
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.run import CallService, Json
from jobtable.workflows.asl.services.service_faults import (
    members_of_request,
    optimized_fault,
    sdk_fault,
    unusable_parameters,
)

_REQUIRED = {
    "getItem": ("TableName", "Key"),
    "putItem": ("TableName", "Item"),
    "updateItem": ("TableName", "Key"),
    "deleteItem": ("TableName", "Key"),
}
_WITH_EXCEPTION = frozenset(
    {
        "ConditionalCheckFailedException",
        "DuplicateItemException",
        "IdempotentParameterMismatchException",
        "IndexNotFoundException",
        "InternalServerError",
        "ItemCollectionSizeLimitExceededException",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "ResourceInUseException",
        "ResourceNotFoundException",
        "TableAlreadyExistsException",
        "TableInUseException",
        "TableNotFoundException",
        "ThrottlingException",
        "TransactionCanceledException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
"""The codes for which the Java SDKs have an exception; any other one is raised as the exception of the service."""


def call_table(backend: Backend, command: CallService, request_id: str) -> Json:
    """Execute a request and return its answer as Step Functions passes it on."""
    arguments = dict(members_of_request(command))
    for name in _REQUIRED.get(command.action, ()):
        if arguments.get(name) is None:
            raise unusable_parameters(arguments, f"The field '{name}' is required but was missing")
    try:
        answer = backend.execute(command.action[:1].upper() + command.action[1:], arguments)
    except RequestError as error:
        raise _fault(command, error, request_id) from error
    return _with_instants(answer)


def _fault(command: CallService, error: RequestError, request_id: str) -> StateFault:
    if error.code == "SerializationException":
        return unusable_parameters(command.arguments, error.message)
    status = 500 if error.code == "InternalServerError" else 400
    exception = error.code if error.code.endswith("Exception") else f"{error.code}Exception"
    if command.service == "dynamodb":
        name = exception if error.code in _WITH_EXCEPTION else "AmazonDynamoDBException"
        service = "AmazonDynamoDBv2"
        return optimized_fault(f"DynamoDB.{name}", service, error.code, error.message, request_id, status)
    name = exception if error.code in _WITH_EXCEPTION else "DynamoDbException"
    return sdk_fault(f"DynamoDb.{name}", "DynamoDb", error.message, request_id, status)


def _with_instants(answer: Any) -> Any:
    """Write the instants of descriptions as Step Functions does; attributes are never numbers on the wire."""
    if isinstance(answer, list):
        return [_with_instants(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    return {
        name: write_instant(datetime.fromtimestamp(value, UTC))
        if name.endswith("DateTime") and isinstance(value, int | float)
        else _with_instants(value)
        for name, value in answer.items()
    }
