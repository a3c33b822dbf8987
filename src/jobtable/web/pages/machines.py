"""The pages of state machines: the list, one machine, and the forms that create and change one."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query, Request, Response

from jobtable.app import Services
from jobtable.errors import ValueRefusedError
from jobtable.web.graphs.state_graph import all_states, draw_machine, what_it_does
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.injection import AllServices, path_id
from jobtable.web.pages.frame import page_router, render
from jobtable.web.pages.graph_choices import TheChoices
from jobtable.workflows.asl.catalogue.records import StateMachine
from jobtable.workflows.asl.entities import Execution, ExecutionStatus, MachineType
from jobtable.workflows.asl.machine import InvalidDefinitionError, Machine, State
from jobtable.workflows.asl.machine_definition import read_definition
from jobtable.workflows.asl.machine_transitions import describe_retry

router = page_router()

_PAGE = 30
_LAST = 20
"""How many executions of each machine the list looks at."""
_MOST_RUNNING = 100
_MOST_VERSIONS = _MOST_ALIASES = 50
_LONGEST_SHOWN = 100_000
MachineName = Annotated[str, path_id("orders")]
FIRST_DEFINITION = {"Comment": "", "StartAt": "First", "States": {"First": {"Type": "Pass", "End": True}}}


@dataclass(frozen=True)
class MachineSummary:
    """A machine in the list, with its last executions."""

    machine: StateMachine
    running: int
    last: list[Execution]

    @property
    def counts(self) -> Counter[ExecutionStatus]:
        """The last executions by status."""
        return Counter(each.status for each in self.last)

    @property
    def has_more_running(self) -> bool:
        """Whether more run than were counted."""
        return self.running == _MOST_RUNNING


@router.get("/workflows")
@allow(READ)
def show_machines(request: Request, services: AllServices, cursor: str = "") -> Response:
    """Show all state machines, by name."""
    page = services.machines.list().page(cursor or None, size=_PAGE)
    return render(
        request,
        "workflows/machines.html",
        title="Workflows",
        summaries=[_summary(services, each) for each in page.items],
        cursor=page.cursor,
        is_first=not cursor,
        most_last=_LAST,
    )


def _summary(services: Services, machine: StateMachine) -> MachineSummary:
    executions = services.executions
    running = executions.list(machine.name, status=ExecutionStatus.RUNNING).take(_MOST_RUNNING)
    return MachineSummary(
        machine,
        sum(1 for _ in running),
        list(executions.list(machine.name).take(_LAST)),
    )


@router.get("/workflows/new")
@allow(WRITE)
def show_new_machine(request: Request) -> Response:
    """Show the form for a new state machine."""
    return render(
        request,
        "workflows/definition.html",
        title="New state machine",
        machine=None,
        definition=json.dumps(FIRST_DEFINITION, indent=2),
        types=list(MachineType),
    )


@router.get("/workflows/machines/{name}/definition")
@allow(WRITE)
def show_definition(request: Request, name: MachineName, services: AllServices) -> Response:
    """Show the form that changes a state machine."""
    machine = services.machines.get(name)
    return render(
        request,
        "workflows/definition.html",
        title=f"Change {name}",
        machine=machine,
        definition=services.machines.read_definition(machine.definition_sha256),
        types=[],
    )


@router.get("/workflows/machines/{name}")
@allow(READ)
def show_machine(
    request: Request,
    name: MachineName,
    services: AllServices,
    choices: TheChoices,
    *,
    only: str = "",
    cursor: str = "",
    like: str = "",
    version: Annotated[int, Query(ge=0, le=999_999)] = 0,
) -> Response:
    """Show one machine. `only` filters its executions by status; `like` is one whose input is offered again."""
    machine = services.machines.get(name)
    if only and only not in set(ExecutionStatus):
        raise ValueRefusedError(f"unknown status {only[:40]!r}; must be one of {', '.join(ExecutionStatus)}")
    sha256 = services.machines.get_version(name, version).definition_sha256 if version else machine.definition_sha256
    definition = services.machines.read_definition(sha256)
    status = ExecutionStatus(only) if only else None
    page = services.executions.list(name, status=status).page(cursor or None, size=_PAGE)
    parsed = parsed_definition(definition)
    return render(
        request,
        "workflows/machine.html",
        title=name,
        machine=machine,
        version=version,
        definition=definition,
        longest_shown=_LONGEST_SHOWN,
        picture=None if parsed is None else draw_machine(definition, frozenset(choices.fold)),
        choices=choices,
        chosen=None if parsed is None else find_state(parsed, choices.state),
        describe_retry=describe_retry,
        what_it_does=what_it_does,
        view=None,
        versions=list(services.machines.versions(name).take(_MOST_VERSIONS)),
        aliases=list(services.machines.aliases(name).take(_MOST_ALIASES)),
        page=page,
        only=only,
        cursor=cursor,
        statuses=list(ExecutionStatus),
        like=_input_of(services, name, like),
    )


def parsed_definition(definition: str) -> Machine | None:
    """Return the machine of a stored definition; None for one that an older release accepted."""
    try:
        return read_definition(definition)
    except InvalidDefinitionError:
        return None


def find_state(machine: Machine, path: str) -> State | None:
    """Return the state at a path, or None."""
    return next((state for state in all_states(machine) if state.path == path), None)


def _input_of(services: Services, machine: str, name: str) -> str:
    if not name:
        return "{}"
    execution = services.executions.get(machine, name)
    return shown_json(text_of(services, execution.input, execution.input_object))


def text_of(services: Services, text: str | None, object_key: str | None) -> str | None:
    """Return a text of an execution, from the object store if it is too large for an item."""
    return text if object_key is None else services.objects.get(object_key).decode()


def shown_json(text: str | None) -> str:
    """Return JSON text as people read it; text that is not JSON stays as it is."""
    if text is None:
        return ""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(value, indent=2, ensure_ascii=False)
