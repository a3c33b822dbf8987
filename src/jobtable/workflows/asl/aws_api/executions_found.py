"""Executions that requests name, and what their records say."""

from __future__ import annotations

from jobtable.errors import NotFoundError
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.aws_api.aws_calls import Call
from jobtable.workflows.asl.aws_api.named_resources import read_execution_arn
from jobtable.workflows.asl.aws_api.refusals import execution_missing, invalid_arn
from jobtable.workflows.asl.catalogue.records import Activity, StateMachine
from jobtable.workflows.asl.entities import Execution, MachineType


def find_execution(call: Call, arn_text: str) -> Execution:
    """Return the execution that an ARN names, or raise OperationRefused.

    Express executions have no records for people, except the children of a distributed Map.
    """
    arn = read_execution_arn(arn_text)
    if arn.is_express and "/" not in arn.machine:
        raise invalid_arn("Resource type not valid in this context: express")
    try:
        found = call.executions.get(arn.machine, arn.name)
    except NotFoundError as error:
        raise execution_missing(arn_text) from error
    if (found.type is MachineType.EXPRESS) != arn.is_express:
        raise execution_missing(arn_text)
    return found


def definition_of(call: Call, execution: Execution) -> str:
    """Return the definition that an execution runs."""
    return call.machines.read_definition(execution.definition_sha256)


def record_arns(record: Execution | StateMachine | Activity) -> Arns:
    """Return what makes the ARNs of a record's region and account."""
    return Arns(record.region, record.account)


def execution_arn(execution: Execution) -> str:
    """Return the ARN of an execution."""
    arns = record_arns(execution)
    if execution.type is MachineType.EXPRESS:
        return arns.express(execution.machine, execution.name, execution.job_id)
    return arns.execution(execution.machine, execution.name)
