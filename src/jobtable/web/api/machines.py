"""Create, check, change and read state machines, their versions and aliases."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from jobtable.errors import ValueRefusedError
from jobtable.web.api.route_parts import Body, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import TheMachines, path_id
from jobtable.workflows.asl.arns import ACCOUNT, REGION, Arns, check_states_name
from jobtable.workflows.asl.catalogue.machine_verbs import (
    LOCAL_ROLE,
    AliasRoute,
    MachineChange,
    MachineDraft,
    MachineVerbs,
    Revision,
)
from jobtable.workflows.asl.catalogue.records import StateMachine, StateMachineAlias, StateMachineVersion
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine import Diagnostic
from jobtable.workflows.asl.machine_definition import diagnose

router = api_router("machines")
creation = api_router("machines", CreationRoute)

_MOST_DEFINITION_CHARACTERS = 1_048_576


def _checked_name(name: str) -> str:
    check_states_name("a machine, execution or activity", name)
    return name


StatesName = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(_checked_name)]
"""A name that the caller chooses for a machine, an execution or an activity."""
Definition = Annotated[str, Field(min_length=1, max_length=_MOST_DEFINITION_CHARACTERS)] | dict[str, Any]
Role = Annotated[str, Field(pattern="^arn:", max_length=256, description="Kept for AWS.")]
Description = Annotated[str, Field(max_length=256)]
Tags = Annotated[dict[str, Annotated[str, Field(max_length=256)]], Field(max_length=50)]
Settings = Annotated[
    dict[str, Any],
    Field(
        description="Kept for AWS: `loggingConfiguration`, `tracingConfiguration` and `encryptionConfiguration`.",
        max_length=3,
    ),
]
Region = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$", description="In the ARNs of what is created.")]
Account = Annotated[str, Field(pattern=r"^[0-9]{12}$", description="In the ARNs of what is created.")]
MachineName = Annotated[str, path_id("orders")]
AliasName = Annotated[str, path_id("live")]


class InAccount(Body):
    """What is created in the name of an AWS account."""

    region: Region = REGION
    account: Account = ACCOUNT

    @property
    def arns(self) -> Arns:
        """Makes the ARNs of the region and account."""
        return Arns(self.region, self.account)


class NewMachine(InAccount):
    """A state machine to create. Creating the same once more returns it."""

    name: StatesName = Field(examples=["orders"])
    definition: Definition = Field(
        description="In the Amazon States Language: JSON, or its text, which is kept as it is."
    )
    type: MachineType = MachineType.STANDARD
    role_arn: Role = LOCAL_ROLE
    settings: Settings = {}
    tags: Tags = {}
    publish: bool = Field(False, description="Also publish it as version 1.")
    description: Description | None = Field(None, description="Of the version.")


class DefinitionToCheck(Body):
    """A definition to check."""

    definition: Definition
    type: MachineType = MachineType.STANDARD


class ChangeOfMachine(Body):
    """What to change of a state machine; null leaves it as it is."""

    definition: Definition | None = None
    role_arn: Role | None = None
    settings: Settings = {}
    publish: bool = Field(False, description="Also publish the new revision as a version.")
    description: Description | None = Field(None, description="Of the version.")


class NewTags(Body):
    """Tags to add and to remove."""

    add: Tags = {}
    remove: list[Annotated[str, Field(max_length=128)]] = Field([], max_length=50)


class Publication(Body):
    """How the current revision is published."""

    revision_id: str | None = Field(None, max_length=200, description="Refused unless it is the current revision.")
    description: Description | None = None


class Route(Body):
    """A version, and the percentage of the executions that it gets."""

    version: int = Field(ge=1, le=999_999)
    weight: int = Field(ge=0, le=100)


class NewAlias(Body):
    """An alias to create. Creating the same once more returns it."""

    alias: str = Field(min_length=1, max_length=80, examples=["live"])
    routes: list[Route] = Field(min_length=1, max_length=2)
    description: Description | None = None


class ChangeOfAlias(Body):
    """What to change of an alias; null leaves it as it is."""

    routes: list[Route] | None = Field(None, min_length=1, max_length=2)
    description: Description | None = None


class MachineRevision(BaseModel):
    """A state machine, and the version that it was published as."""

    machine: StateMachine
    version: StateMachineVersion | None

    @classmethod
    def of(cls, revision: Revision) -> MachineRevision:
        """Return a revision as it is answered."""
        return cls.model_construct(machine=revision.machine, version=revision.version)


class DefinitionText(BaseModel):
    """The definition of a state machine, as it was written."""

    sha256: str
    definition: str


class CheckedDefinition(BaseModel):
    """Whether a definition can be used, and all its faults."""

    is_valid: bool
    faults: list[Diagnostic]


@creation.post("/machines", status_code=201)
@allow(WRITE)
def create_machine(body: NewMachine, machines: TheMachines) -> MachineRevision:
    """Create a state machine."""
    draft = MachineDraft(
        body.name, _text_of(body.definition), body.role_arn, body.type, settings=body.settings, tags=body.tags
    )
    made = machines.create(draft, arns=body.arns, publish=body.publish, description=body.description)
    return MachineRevision.of(made)


@router.post("/machine-checks")
@allow(WRITE)
def check_machine_definition(body: DefinitionToCheck) -> CheckedDefinition:
    """Check a definition without creating anything, and return all its faults with their places."""
    faults = diagnose(_text_of(body.definition), body.type)
    return CheckedDefinition(is_valid=all(each.severity != "ERROR" for each in faults), faults=faults)


@router.patch("/machines/{name}")
@allow(WRITE)
def change_machine(name: MachineName, body: ChangeOfMachine, machines: TheMachines) -> MachineRevision:
    """Change a state machine for the executions that start from now on."""
    definition = None if body.definition is None else _text_of(body.definition)
    change = MachineChange(definition, body.role_arn, body.settings)
    changed = machines.update(name, change, publish=body.publish, description=body.description)
    return MachineRevision.of(changed)


@router.get("/machines/{name}/definition")
@allow(READ)
def get_machine_definition(name: MachineName, machines: TheMachines, version: int | None = None) -> DefinitionText:
    """Return the definition of a state machine as it is now, or of one of its versions."""
    shown = machines.get(name) if version is None else machines.get_version(name, version)
    digest = shown.definition_sha256
    return DefinitionText(sha256=digest, definition=machines.read_definition(digest))


@router.put("/machines/{name}/tags")
@allow(WRITE)
def tag_machine(name: MachineName, body: NewTags, machines: TheMachines) -> StateMachine:
    """Add and remove tags of a state machine."""
    return machines.tag(name, body.add, frozenset(body.remove))


@creation.post("/machines/{name}/versions", status_code=201)
@allow(WRITE)
def publish_machine(name: MachineName, body: Publication, machines: TheMachines) -> MachineRevision:
    """Publish the current revision as a version. A revision is published once."""
    published = machines.publish(name, revision_id=body.revision_id, description=body.description)
    return MachineRevision.of(published)


@creation.post("/machines/{name}/aliases", status_code=201)
@allow(WRITE)
def create_machine_alias(name: MachineName, body: NewAlias, machines: TheMachines) -> StateMachineAlias:
    """Create an alias: a name for a version, or for two that share the executions."""
    return machines.create_alias(name, body.alias, _routes(body.routes), body.description)


@router.patch("/machines/{name}/aliases/{alias}")
@allow(WRITE)
def change_machine_alias(
    name: MachineName, alias: AliasName, body: ChangeOfAlias, machines: TheMachines
) -> StateMachineAlias:
    """Change an alias."""
    routes = None if body.routes is None else _routes(body.routes)
    return machines.update_alias(name, alias, routes, body.description)


add_verbs(
    router,
    TheMachines,
    {"name": MachineName, "alias": AliasName},
    ("list_machines", "GET /machines", MachineVerbs.list),
    ("get_machine", "GET /machines/{name}", MachineVerbs.get),
    ("delete_machine", "DELETE /machines/{name}", MachineVerbs.delete),
    ("list_machine_versions", "GET /machines/{name}/versions", MachineVerbs.versions),
    ("get_machine_version", "GET /machines/{name}/versions/{number}", MachineVerbs.get_version),
    ("delete_machine_version", "DELETE /machines/{name}/versions/{number}", MachineVerbs.delete_version),
    ("list_machine_aliases", "GET /machines/{name}/aliases", MachineVerbs.aliases),
    ("get_machine_alias", "GET /machines/{name}/aliases/{alias}", MachineVerbs.get_alias),
    ("delete_machine_alias", "DELETE /machines/{name}/aliases/{alias}", MachineVerbs.delete_alias),
    under=[MachineVerbs.get],
)


def _text_of(definition: str | dict[str, Any]) -> str:
    if isinstance(definition, str):
        return definition
    text = json.dumps(definition)
    if len(text) > _MOST_DEFINITION_CHARACTERS:
        raise ValueRefusedError(f"a definition has at most {_MOST_DEFINITION_CHARACTERS} characters, not {len(text)}")
    return text


def _routes(routes: list[Route]) -> tuple[AliasRoute, ...]:
    return tuple(AliasRoute(each.version, each.weight) for each in routes)
