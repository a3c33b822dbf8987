"""A definition as it is deployed: the names in it become placeholders, and what they name is what it needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jobtable.errors import DefinitionError, ValueRefusedError
from jobtable.workflows.asl.arns import find_states_arn
from jobtable.workflows.asl.resources import Pattern, Resource, ResourceKind, parse_resource
from jobtable.workflows.durable.durable_arns import read_function


class TargetKind(StrEnum):
    """What a state asks."""

    FUNCTION = "function"
    TABLE = "table"
    BUCKET = "bucket"
    QUEUE = "queue"
    TOPIC = "topic"
    MACHINE = "state machine"
    ACTIVITY = "activity"


@dataclass(frozen=True)
class Need:
    """What a state asks of AWS: an action in the words of the States Language, and its target."""

    place: str
    """The state's path in the definition."""
    service: str
    action: str
    kind: TargetKind
    name: str | None
    """None if the state computes it."""
    pattern: Pattern = Pattern.RESPONSE
    key: str | None = None
    """Of an object, if it is written in the definition."""


@dataclass(frozen=True)
class Substitution:
    """A placeholder, and what takes its place."""

    placeholder: str
    kind: TargetKind
    name: str


_MEMBERS: dict[str, tuple[str, TargetKind]] = {
    "lambda": ("FunctionName", TargetKind.FUNCTION),
    "sqs": ("QueueUrl", TargetKind.QUEUE),
    "sns": ("TopicArn", TargetKind.TOPIC),
    "states": ("StateMachineArn", TargetKind.MACHINE),
    "s3": ("Bucket", TargetKind.BUCKET),
}
"""The member of a state's arguments that names what a service is asked for; tables may be named anywhere in them."""
_WORDS = {
    TargetKind.FUNCTION: "FunctionArn",
    TargetKind.TABLE: "TableName",
    TargetKind.QUEUE: "QueueUrl",
    TargetKind.TOPIC: "TopicArn",
    TargetKind.MACHINE: "MachineArn",
    TargetKind.ACTIVITY: "ActivityArn",
}


class DeployedDefinition:
    """The definition of one machine with placeholders, and all that it needs of AWS."""

    def __init__(self, text: str) -> None:
        self._original = text
        self.needs: list[Need] = []
        self.substitutions: dict[str, Substitution] = {}
        self.has_distributed_map = False
        self.document: dict[str, Any] = self._machine(json.loads(text), "")

    @property
    def text(self) -> str:
        """The definition with placeholders."""
        return json.dumps(self.document, indent=2, ensure_ascii=False)

    # --- states -----------------------------------------------------------------------------------------------------

    def _machine(self, definition: Mapping[str, Any], place: str) -> dict[str, Any]:
        states = {name: self._state(fields, f"{place}/States/{name}") for name, fields in definition["States"].items()}
        return {**definition, "States": states}

    def _state(self, fields: Mapping[str, Any], place: str) -> dict[str, Any]:
        state = dict(fields)
        if fields["Type"] == "Task":
            self._task(state, place)
        if "Branches" in fields:
            branches = enumerate(fields["Branches"])
            state["Branches"] = [self._machine(each, f"{place}/Branches[{number}]") for number, each in branches]
        for member in ("ItemProcessor", "Iterator"):
            if member in fields:
                state[member] = self._machine(fields[member], f"{place}/{member}")
                config = fields[member].get("ProcessorConfig") or {}
                self.has_distributed_map |= config.get("Mode") == "DISTRIBUTED"
        for member in ("ItemReader", "ResultWriter"):
            if isinstance(fields.get(member), dict) and "Resource" in fields[member]:
                self._file(fields[member], place)
        return state

    def _file(self, member: Mapping[str, Any], place: str) -> None:
        arguments = _arguments_of(member)
        action = str(member["Resource"]).rpartition(":")[2]
        name, key = _literal(arguments, "Bucket"), _literal(arguments, "Key")
        key = f"{_literal(arguments, 'Prefix')}/*" if action == "putObject" and _literal(arguments, "Prefix") else key
        self.needs.append(Need(place, "s3", f"{action} of a Map", TargetKind.BUCKET, name, key=key))

    # --- tasks ------------------------------------------------------------------------------------------------------

    def _task(self, state: dict[str, Any], place: str) -> None:
        resource = parse_resource(state["Resource"])
        if resource is None:
            raise DefinitionError(f"{place}: {state['Resource']} is not a resource that can be deployed")
        if resource.kind in {ResourceKind.FUNCTION, ResourceKind.ACTIVITY}:
            is_function = resource.kind is ResourceKind.FUNCTION
            kind = TargetKind.FUNCTION if is_function else TargetKind.ACTIVITY
            self.needs.append(Need(place, resource.service, "invoke", kind, resource.action))
            state["Resource"] = self._placeholder(kind, resource.action)
            return
        member = "Arguments" if "Arguments" in state else "Parameters"
        arguments = state.get(member)
        if resource.service == "dynamodb":
            if arguments is not None:
                state[member] = self._with_tables(arguments, resource, place)
        else:
            state[member] = self._with_target(arguments, resource, place)

    def _with_target(self, arguments: Any, resource: Resource, place: str) -> Any:
        member, kind = _MEMBERS[resource.service]
        text = _literal(arguments, member)
        name = None if text is None else _name_of(kind, text, place)
        key = _literal(arguments, "Key") if kind is TargetKind.BUCKET else None
        self.needs.append(Need(place, resource.service, resource.action, kind, name, resource.pattern, key))
        if name is None or kind is TargetKind.BUCKET or not isinstance(arguments, dict):
            return arguments
        return {**arguments, member: self._placeholder(kind, name)}

    def _with_tables(self, arguments: Any, resource: Resource, place: str) -> Any:
        names: list[str | None] = [*_tables_in(arguments)]
        for name in names or [None]:
            self.needs.append(Need(place, "dynamodb", resource.action, TargetKind.TABLE, name))
        return self._rename_tables(arguments)

    def _rename_tables(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._rename_tables(each) for each in value]
        if not isinstance(value, dict):
            return value
        renamed: dict[str, Any] = {}
        for name, each in value.items():
            if name == "TableName" and _is_literal(each):
                renamed[name] = self._placeholder(TargetKind.TABLE, each)
            elif name == "RequestItems" and isinstance(each, dict):
                renamed[name] = {self._placeholder(TargetKind.TABLE, table): items for table, items in each.items()}
            else:
                renamed[name] = self._rename_tables(each)
        return renamed

    def _placeholder(self, kind: TargetKind, name: str) -> str:
        placeholder = logical_id(name.rpartition("/")[2].rpartition(":")[2]) + _WORDS[kind]
        written = f"${{{placeholder}}}"
        if written in self._original:
            raise DefinitionError(f"the definition contains {written}, which is the placeholder of {kind} {name}")
        known = self.substitutions.setdefault(placeholder, Substitution(placeholder, kind, name))
        if known.name != name:
            raise DefinitionError(f"{kind} {known.name} and {name} would both be {written}; rename one")
        return written


def logical_id(name: str) -> str:
    """Return a name as a template can have it: its letters and digits, each word with a capital."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in name).split()
    return "".join(word[0].upper() + word[1:] for word in words)


def _arguments_of(member: Mapping[str, Any]) -> Any:
    return member.get("Arguments", member.get("Parameters"))


def _is_literal(value: Any) -> bool:
    return isinstance(value, str) and not value.startswith("{%")


def _literal(arguments: Any, member: str) -> str | None:
    """Return a member that is written in the definition; None if it is computed or missing."""
    value = arguments.get(member) if isinstance(arguments, dict) else None
    return value if _is_literal(value) else None


def _tables_in(value: Any) -> Iterator[str]:
    """Yield the names of tables in the arguments of a state."""
    if isinstance(value, list):
        for each in value:
            yield from _tables_in(each)
    if not isinstance(value, dict):
        return
    for name, each in value.items():
        if name == "TableName" and _is_literal(each):
            yield each
        elif name == "RequestItems" and isinstance(each, dict):
            yield from each
        else:
            yield from _tables_in(each)


def _name_of(kind: TargetKind, text: str, place: str) -> str:
    """Return the name of what an ARN or URL in a definition names."""
    if kind is TargetKind.FUNCTION:
        try:
            return read_function(text).name
        except ValueRefusedError as error:
            raise DefinitionError(f"{place}: {error}") from error
    if kind is TargetKind.MACHINE:
        found = find_states_arn(text)
        if found is None or found.kind != "stateMachine":
            raise DefinitionError(f"{place}: {text!r} is not the ARN of a state machine")
        return found.name
    return text
