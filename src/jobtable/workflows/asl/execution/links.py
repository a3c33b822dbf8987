"""How what a state started finds back to it, and the ids that follow from that."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import Execution, MachineType
from jobtable.workflows.durable.execution_starts import child_id
from jobtable.workflows.durable.large_payloads import PayloadOwner

OBJECTS = "state-machine"
"""The part of the object keys of all executions, before their ids."""
_EXECUTIONS = uuid.UUID("5a0b7f3c-21de-5c4e-8d0a-0f4f4a1be0c2")
"""The namespace of the ids of executions."""


def execution_id(execution: Execution) -> str:
    """Return the id that an execution keeps, however often it is redriven, and shares with no later one of its name."""
    return identity(execution.machine, execution.name, execution.started_at)


def identity(machine: str, name: str, started_at: datetime) -> str:
    """Return the id of an execution that starts at an instant."""
    return str(uuid.uuid5(_EXECUTIONS, f"{machine}\n{name}\n{started_at.isoformat()}"))


def owner_of(execution: Execution) -> PayloadOwner:
    """Return an execution as the owner of its payloads."""
    return PayloadOwner(OBJECTS, execution_id(execution), execution.name, execution.machine)


def link_to(execution: Execution, frame_id: str, visit: int, **more: Any) -> dict[str, Any]:
    """Return the link to a visit of a frame, in the form in which functions know what called them."""
    return {
        "machine": execution.machine,
        "name": execution.name,
        "frame_id": frame_id,
        "visit": visit,
        "function": OBJECTS,
        "execution_id": execution_id(execution),
        "number": f"{frame_id}/{visit}",
        **more,
    }


def task_id(link: Mapping[str, Any]) -> str:
    """Return the id of the job that does what a visit waits for: the same one however often that is tried."""
    return child_id(link)


def name_of_child(map_run_id: str, frame_id: str) -> str:
    """Return the name of the execution that processes a batch of a distributed Map."""
    return str(uuid.uuid5(uuid.UUID(map_run_id), frame_id))


def arn_of(execution: Execution) -> str:
    """Return the ARN of an execution."""
    arns = Arns(execution.region, execution.account)
    if execution.type is MachineType.EXPRESS:
        return arns.express(execution.machine, execution.name, execution.job_id)
    return arns.execution(execution.machine, execution.name)
