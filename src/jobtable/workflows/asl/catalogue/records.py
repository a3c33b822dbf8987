"""The items of state machines, their versions and aliases, and of activities."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from jobtable.jobs.stored.field_types import Count
from jobtable.model import Attr, Entity, Json, Key, Name, Stored, Timestamp, default
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.table_and_queues import workflows


class MachineStatus(StrEnum):
    """The statuses of a state machine."""

    ACTIVE = "ACTIVE"
    DELETING = "DELETING"
    """It starts nothing more, and disappears when its executions have ended."""


class StateMachine(Entity, table=workflows, type="STATE_MACHINE"):
    """A state machine as it is now."""

    key = Key("MACHINE#{name}", "MACHINE")
    listed = Key("MACHINES", "{name}", index="GSI1")

    name: str
    type: MachineType
    status: Attr[MachineStatus] = default(MachineStatus.ACTIVE)
    region: str
    account: str
    definition_sha256: Attr[str]
    role_arn: Attr[str]
    settings: Attr[Json]
    """Kept for AWS: `loggingConfiguration`, `tracingConfiguration` and `encryptionConfiguration`."""
    revision_id: Attr[str | None] = default(None)
    """None until the first change."""
    tags: Attr[dict[str, str]] = default({})
    created_at: Timestamp
    updated_at: Attr[Timestamp]
    last_version: Attr[Count] = default(0)
    published_version: Attr[Count | None] = default(None)
    """The version that this revision was published as."""
    alias_changes: Attr[Count] = default(0)
    """Raised with each change of an alias, so that no version is deleted while an alias starts to name it."""


class StateMachineVersion(Entity, table=workflows, type="STATE_MACHINE_VERSION"):
    """A published revision of a state machine. It never changes."""

    key = Key("MACHINE#{machine}", "VERSION#{number:06d}")

    machine: str
    number: Stored[Annotated[int, Field(ge=1, le=999_999)]]
    type: MachineType
    definition_sha256: str
    role_arn: str
    settings: Json
    revision_id: str | None = None
    description: str | None = None
    created_at: Timestamp


class StateMachineAlias(Entity, table=workflows, type="STATE_MACHINE_ALIAS"):
    """A name for one version of a state machine, or for two that share the executions."""

    key = Key("MACHINE#{machine}", "ALIAS#{name}")

    machine: str
    name: str
    description: Attr[str | None] = default(None)
    weights: Attr[Json]
    """`[[version, weight], ...]`; the weights are percentages."""
    created_at: Timestamp
    updated_at: Attr[Timestamp]


class Activity(Entity, table=workflows, type="ACTIVITY"):
    """A kind of task that programs anywhere poll for."""

    key = Key("ACTIVITY#{name}", "ACTIVITY")
    listed = Key("ACTIVITIES", "{name}", index="GSI1")

    name: str
    region: str
    account: str
    settings: Json
    """Kept for AWS: `encryptionConfiguration`."""
    tags: Attr[dict[str, str]] = default({})
    created_at: Timestamp


class RedriveRequest(Entity, table=workflows, type="REDRIVE_REQUEST"):
    """A redrive that a client asked for with a token: asking again within 15 minutes is the same request."""

    key = Key("REDRIVE#{machine}#{name}", "TOKEN#{token_sha256}")

    machine: str
    name: str
    token_sha256: str
    redriven_at: Timestamp
    time_to_live: Annotated[int | None, Name("TimeToLive")] = None
