"""What a request of TestState asks for, and what it may not ask for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobtable.workflows.asl.aws_api.aws_calls import Call
from jobtable.workflows.asl.aws_api.mocked_results import STRICT, check_result
from jobtable.workflows.asl.aws_api.refusals import invalid, invalid_definition, refused
from jobtable.workflows.asl.aws_api.state_test_contexts import check_context
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.json_text import JsonTextFault, read_json
from jobtable.workflows.asl.machine import InvalidDefinitionError, Language, State, StateType
from jobtable.workflows.asl.resources import Pattern, ResourceKind, parse_resource

_STATE_NAME = "StateName"
_MOCKED = frozenset({StateType.TASK, StateType.MAP, StateType.PARALLEL})
_UNMOCKED = "Task, Wait, Pass, Succeed, Fail, Choice"


@dataclass(frozen=True)
class Mock:
    """What the task, the branches or the iterations of a state are taken to have done."""

    result: Any = None
    result_text: str = ""
    error: str | None = None
    cause: str | None = None
    has_failed: bool = False


@dataclass(frozen=True)
class StateTest:
    """A state to be tested."""

    state: State
    input: Any
    input_text: str
    variables: dict[str, Any]
    context: dict[str, Any] | None
    """The whole context object; None for a made-up one."""
    mock: Mock | None
    retry_count: int
    failed_iterations: int | None
    reader_data: str | None
    """What the ItemReader of a Map is taken to have read."""
    failing: tuple[State, ...]
    """The states inside a Map or Parallel from which the mocked error comes, the innermost first."""


def read_state_test(call: Call) -> StateTest:
    """Return what a request asks for, or raise OperationRefused."""
    request = call.request
    state = _state(call)
    mock = _mock(request.get("mock"), state)
    if mock is not None and request.get("revealSecrets"):
        raise invalid("TestState does not support RevealSecrets when a mock is specified.")
    _check_support(request, state, mock)
    text = request.get("input") or "{}"
    configuration = request.get("stateConfiguration") or {}
    _check_configuration(configuration, state, mock)
    return StateTest(
        state=state,
        input=_json(text, "InvalidExecutionInput"),
        input_text=text,
        variables=_object(request.get("variables"), "variables"),
        context=_context(request, state, mock),
        mock=mock,
        retry_count=configuration.get("retrierRetryCount") or 0,
        failed_iterations=configuration.get("mapIterationFailureCount"),
        reader_data=configuration.get("mapItemReaderData"),
        failing=_failing(configuration.get("errorCausedByState"), state),
    )


def _state(call: Call) -> State:
    """Return the state that is tested, the whole definition or a part of it."""
    definition = _definition(call.request["definition"])
    name = call.request.get("stateName")
    language = definition.get("QueryLanguage", Language.JSONPATH)
    if name is None:
        name, fields = _STATE_NAME, definition
    else:
        named = [state for found, state in _states(definition) if found == name]
        if not named:
            raise invalid("State not found in definition")
        fields = named[0]
        language = fields.get("QueryLanguage", language)
    _check_definition(call, name, fields, language)
    return State(name, StateType(fields["Type"]), Language(language), fields, f"/States/{name}")


def _definition(text: str) -> dict[str, Any]:
    try:
        found = read_json(text)
    except JsonTextFault as fault:
        raise refused("InvalidDefinition", f"Invalid State Machine Definition: '{fault}'") from fault
    if not isinstance(found, dict):
        raise refused(
            "InvalidDefinition",
            "Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: Definition must be a valid JSON object'",
        )
    return found


def _states(machine: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the states of a machine and of the machines inside it."""
    states = machine.get("States") if isinstance(machine, dict) else None
    for name, state in states.items() if isinstance(states, dict) else ():
        if isinstance(state, dict):
            yield name, state
            for each in _machines(state):
                yield from _states(each)


def _check_definition(call: Call, name: str, state: Mapping[str, Any], language: str) -> None:
    """Raise OperationRefused for a state with faults, which may name any states as the next ones."""
    stubs = {target: {"Type": "Succeed"} for target in _targets(state) if target != name}
    machine = {"QueryLanguage": language, "StartAt": name, "States": {**stubs, name: state}}
    faults = tuple(
        each
        for each in call.diagnose(json.dumps(machine), MachineType.STANDARD)
        if each.severity == "ERROR" and each.location.startswith(("/States/" + name, "/QueryLanguage"))
    )
    if faults:
        raise invalid_definition(InvalidDefinitionError(faults))


def _targets(state: Mapping[str, Any]) -> Iterator[str]:
    for clause in (state, *_list(state, "Choices"), *_list(state, "Catch")):
        for member in ("Next", "Default"):
            if isinstance(clause, dict) and isinstance(clause.get(member), str):
                yield clause[member]


def _list(state: Mapping[str, Any], name: str) -> list[Any]:
    found = state.get(name)
    return found if isinstance(found, list) else []


def _mock(given: Mapping[str, Any] | None, state: State) -> Mock | None:
    if given is None:
        return None
    if state.type not in _MOCKED:
        raise invalid(f"State type '{state.type}' is not supported when a mock is specified")
    result, failure = given.get("result"), given.get("errorOutput")
    if result is not None and failure is not None:
        raise invalid("A test mock should have only one of the following fields: [result, errorOutput].")
    if failure is not None:
        if failure.get("error") is None:
            raise invalid("The field 'error' is required in mock.errorOutput.")
        return Mock(error=failure["error"], cause=failure.get("cause"), has_failed=True)
    if result is None:
        raise invalid("A test mock should have one of the following fields: [result, errorOutput].")
    try:
        found = read_json(result)
    except JsonTextFault as fault:
        raise invalid("Mocked result must be valid JSON") from fault
    return Mock(_checked_result(found, state, given.get("fieldValidationMode") or STRICT), result)


def _checked_result(result: Any, state: State, mode: str) -> Any:
    if state.type is StateType.TASK and (resource := parse_resource(state.fields["Resource"])) is not None:
        check_result(result, resource, mode)
    if state.type is StateType.MAP and "ResultWriter" in state.fields:
        if not isinstance(result, dict):
            raise invalid("Mocked result must be a JSON object.")
    elif state.type in {StateType.MAP, StateType.PARALLEL} and not isinstance(result, list):
        raise invalid("Mocked result must be an array.")
    if state.type is StateType.PARALLEL and len(result) != len(state.fields["Branches"]):
        raise invalid("Mocked result must contain the same number of items as number of Parallel branches.")
    return result


def _check_configuration(configuration: Mapping[str, Any], state: State, mock: Mock | None) -> None:
    """Raise OperationRefused for a configuration that the state, or its mock, has no use for."""
    of_maps = [name for name in ("mapIterationFailureCount", "mapItemReaderData") if name in configuration]
    if of_maps and state.type is not StateType.MAP:
        raise invalid(f"The field '{of_maps[0]}' of stateConfiguration is only supported for Map states.")
    if "errorCausedByState" in configuration:
        is_mocked = mock is not None and mock.has_failed
        if not is_mocked or state.type not in {StateType.MAP, StateType.PARALLEL}:
            raise invalid("errorCausedByState is only supported with a mocked error of a Map or Parallel state.")


def _failing(name: str | None, state: State) -> tuple[State, ...]:
    """Return the state of that name inside a Map or Parallel state, and those between them."""
    if name is None:
        return ()
    found = next((path for path in _paths(state.fields, state.language) if path[0].name == name), None)
    if found is None:
        raise invalid(f"The state '{name}' of errorCausedByState is not inside the state '{state.name}'.")
    return found


def _paths(fields: Mapping[str, Any], language: Language) -> Iterator[tuple[State, ...]]:
    """Yield each state inside another one, followed by the states around it."""
    for machine in _machines(fields):
        for name, inner in machine.get("States", {}).items():
            own = Language(inner.get("QueryLanguage", machine.get("QueryLanguage", language)))
            state = State(name, StateType(inner["Type"]), own, inner, f"/States/{name}")
            yield (state,)
            for path in _paths(inner, own):
                yield (*path, state)


def _machines(fields: Mapping[str, Any]) -> list[Any]:
    inside = [*_list(fields, "Branches"), fields.get("ItemProcessor"), fields.get("Iterator")]
    return [each for each in inside if isinstance(each, dict)]


def _check_support(request: Mapping[str, Any], state: State, mock: Mock | None) -> None:
    """Raise OperationRefused for a state that can only be tested with a mock."""
    if mock is not None:
        return
    if state.type in {StateType.MAP, StateType.PARALLEL}:
        raise refused(
            "InvalidDefinition",
            f"TestState API does not support Map or Parallel states. Supported state types include: [{_UNMOCKED}]",
        )
    if state.type is StateType.TASK:
        if not request.get("roleArn"):
            raise invalid("RoleArn must be specified when testing a Task state")
        resource = parse_resource(state.fields["Resource"])
        if resource is not None and (
            resource.kind is ResourceKind.ACTIVITY or resource.pattern is not Pattern.RESPONSE
        ):
            raise refused(
                "InvalidDefinition",
                "TestState API does not support activities, '.sync' and '.waitForTaskToken' without a mock.",
            )


def _context(request: Mapping[str, Any], state: State, mock: Mock | None) -> dict[str, Any] | None:
    text = request.get("context")
    if text is None:
        return None
    if mock is None:
        raise invalid("A Context object can only be specified when a mock is specified")
    return check_context(_object(text, "context"), state)


def _object(text: str | None, name: str) -> dict[str, Any]:
    found = {} if text is None else _json(text, "ValidationException")
    if not isinstance(found, dict):
        raise invalid(f"The field '{name}' must be a JSON object")
    return found


def _json(text: str, code: str) -> Any:
    try:
        return read_json(text)
    except JsonTextFault as fault:
        words = f"Invalid State Machine Execution Input: '{fault}'" if code == "InvalidExecutionInput" else str(fault)
        raise refused(code, words) from fault
