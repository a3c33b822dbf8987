"""Every fault is found at its place, with AWS's code, together with all others; and every rule finds one."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.workflows.asl.case_files import read_cases
from tests.workflows.asl.machine_definition.faulty_definitions import WARNINGS, Faulty, read_faulty_definitions

from jobtable.workflows.asl import machine_definition
from jobtable.workflows.asl.entities import MachineType
from jobtable.workflows.asl.machine import Diagnostic, InvalidDefinitionError, Language, StateType
from jobtable.workflows.asl.machine_definition import check_definition, diagnose, findings, read_definition
from jobtable.workflows.asl.machine_definition.state_fields import STATES
from jobtable.workflows.asl.machine_definition.value_checks import anything, static

FAULTY = list(read_faulty_definitions())
FOLDER = Path(machine_definition.__file__).parent
REPORTS = {"error", "warn", "add"}


@pytest.mark.parametrize("faulty", FAULTY, ids=str)
def test_all_faults_of_a_definition_are_found(faulty: Faulty) -> None:
    found = sorted(faulty.diagnose(), key=lambda each: (each.code, each.location))
    expected = sorted(faulty.faults)

    assert [(each.code, each.location) for each in found] == [fault[:2] for fault in expected]
    assert {each.severity for each in found} == {"WARNING" if code in WARNINGS else "ERROR" for code, _, _ in expected}
    rest = list(found)
    for code, location, part in expected:
        matching = [each for each in rest if (each.code, each.location) == (code, location) and part in each.message]
        assert matching, (location, part, [each.message for each in rest if each.location == location])
        rest.remove(matching[0])


def test_there_are_many() -> None:
    assert len({each.name for each in FAULTY}) == len(FAULTY)
    assert sum(len(each.faults) for each in FAULTY) >= 150


def test_no_rule_is_without_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: set[tuple[str, int]] = set()
    add = findings.Findings.add

    def record(self: findings.Findings, *fault: str) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and Path(frame.f_code.co_filename).name == "findings.py":
            frame = frame.f_back
        assert frame is not None
        reported.add((Path(frame.f_code.co_filename).name, frame.f_lineno))
        add(self, *fault)

    monkeypatch.setattr(findings.Findings, "add", record)
    for faulty in FAULTY:
        faulty.diagnose()
    for text in (deep_states(60), deep_result(150)):
        diagnose(text, MachineType.STANDARD)

    uncovered = [
        f"{name}:{first}"
        for name, first, last in report_sites()
        if not any(name == at and first <= line <= last for at, line in reported)
    ]
    assert uncovered == []


def report_sites() -> list[tuple[str, int, int]]:
    """The calls that report a fault: their file and their lines."""
    return [
        (path.name, node.lineno, node.end_lineno or node.lineno)
        for path in sorted(FOLDER.glob("*.py"))
        if path.name != "findings.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in REPORTS
        if node.func.attr != "add" or "findings" in ast.unparse(node.func)
    ]


MEMBERS = [
    (state_type, language, name)
    for state_type, shape in STATES.items()
    for language in Language
    for name, check in {**shape.members, **shape.of(language)}.items()
    if check not in (anything, static)
]


@pytest.mark.parametrize(("state_type", "language", "name"), MEMBERS)
def test_no_member_takes_every_value(state_type: StateType, language: Language, name: str) -> None:
    """The list is wrong for all but what JSONata reads, which is wrong for the text."""
    text = json.dumps(
        {
            "QueryLanguage": "JSONPath",
            "StartAt": "A",
            "States": {"A": {"Type": state_type, "QueryLanguage": language, name: None}},
        }
    )
    faults = [
        fault
        for wrong in ("[5]", '"{% ( %}"')
        for fault in diagnose(text.replace("null", wrong), MachineType.STANDARD)
        if fault.location.startswith(f"/States/A/{name}")
    ]
    assert faults


@pytest.mark.parametrize(("state_type", "language"), [(each, language) for each in StateType for language in Language])
def test_members_of_the_other_language_and_of_none_are_refused(state_type: StateType, language: Language) -> None:
    shape = STATES[state_type]
    other = next(each for each in Language if each is not language)
    refused = [name for name in shape.of(other) if name not in shape.of(language)]
    state = {"Type": state_type, "QueryLanguage": language, "Unknown": 1, **dict.fromkeys(refused, 1)}

    found = diagnose(json.dumps({"StartAt": "A", "States": {"A": state}}), MachineType.STANDARD)

    messages = {each.message for each in found if each.location == "/States/A"}
    assert "Field 'Unknown' is not supported" in messages
    for name in refused:
        assert (
            f"The QueryLanguage is set to '{language}', but field '{name}' is only supported for the '{other}'"
            " QueryLanguage"
        ) in messages


# --- definitions without faults ---------------------------------------------------------------------------------------


def test_no_case_of_the_interpreter_has_an_error() -> None:
    found = [
        (str(case), each)
        for case in read_cases()
        for machine in (case.definition, *case.machines.values())
        for each in diagnose(json.dumps(machine), MachineType(case.type))
        if each.severity == "ERROR"
    ]
    assert found == []


VALID: dict[str, dict[str, Any]] = {
    "a context object and functions": {
        "Type": "Fail",
        "ErrorPath": "$$.State.Name",
        "CausePath": "States.Format('{} of {}', $.a, States.UUID())",
    },
    "no retriers and catchers": {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": "f"},
        "Retry": [],
        "Catch": [],
        "End": True,
    },
    "a loop in an item processor": {
        "Type": "Map",
        "MaxConcurrency": 10**18,
        "ItemProcessor": {
            "StartAt": "B",
            "States": {"B": {"Type": "Pass", "Next": "C"}, "C": {"Type": "Pass", "Next": "B"}},
        },
        "End": True,
    },
    "no retry interval": {
        "Type": "Task",
        "Resource": "arn:aws:lambda:us-east-1:000000000000:function:f",
        "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 0, "BackoffRate": 1}],
        "End": True,
    },
    "a constant condition": {
        "Type": "Choice",
        "QueryLanguage": "JSONata",
        "Choices": [{"Condition": True, "Next": "Z"}],
        "Assign": {"größe": "{% $states.input %}"},
    },
    "expressions for numbers and texts": {
        "Type": "Map",
        "QueryLanguage": "JSONata",
        "Items": "{% [1, 2] %}",
        "MaxConcurrency": "{% $states.input.n %}",
        "ToleratedFailurePercentage": "{% 50 %}",
        "ItemBatcher": {"MaxItemsPerBatch": "{% 2 %}", "BatchInput": {"a": "{% 1 %}"}},
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSON", "MaxItems": "{% $maxItems := 2 %}"},
            "Arguments": {"Bucket": "{% $states.input.Bucket %}", "Key": "{% $states.input.Key %}"},
        },
        "ResultWriter": {
            "Resource": "arn:aws:states:::s3:putObject",
            "Arguments": "{% $states.input.destination %}",
            "WriterConfig": {"Transformation": "FLATTEN", "OutputType": "JSONL"},
        },
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
            "StartAt": "B",
            "States": {"B": {"Type": "Succeed"}},
        },
        "End": True,
    },
}


@pytest.mark.parametrize("name", VALID)
def test_a_valid_state_has_no_fault(name: str) -> None:
    text = json.dumps({"StartAt": "A", "States": {"A": VALID[name], "Z": {"Type": "Succeed"}}})
    unreachable = {'State "Z" is not reachable.'}
    assert {each.message for each in diagnose(text, MachineType.STANDARD)} <= unreachable


# --- sizes and depths -------------------------------------------------------------------------------------------------


def deep_states(levels: int) -> str:
    """Parallel states in each other."""
    machine: dict[str, Any] = {"StartAt": "S", "States": {"S": {"Type": "Succeed"}}}
    for level in range(levels):
        machine = {
            "StartAt": f"P{level}",
            "States": {f"P{level}": {"Type": "Parallel", "Branches": [machine], "End": True}},
        }
    return json.dumps(machine)


def deep_result(levels: int) -> str:
    """Lists in each other."""
    result = "[" * levels + "]" * levels
    return '{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true, "Result": ' + result + "}}}"


def only(text: str) -> Diagnostic:
    """The one fault of a text."""
    (found,) = diagnose(text, MachineType.STANDARD)
    return found


def test_machines_may_be_nested_fifty_levels_deep() -> None:
    assert diagnose(deep_states(50), MachineType.STANDARD) == []
    assert read_definition(deep_states(50)).start_at == "P49"
    found = only(deep_states(51))
    assert (found.code, found.message) == ("TOO_DEEPLY_NESTED", "States are nested more than 50 levels deep")
    assert found.location.count("/Branches[0]/States/") == 50


def test_values_may_be_nested_a_hundred_levels_deep() -> None:
    assert diagnose(deep_result(100), MachineType.STANDARD) == []
    found = only(deep_result(101))
    assert (found.code, found.location) == ("TOO_DEEPLY_NESTED", "/States/A/Result")


@pytest.mark.parametrize(
    ("levels", "code", "part"),
    [
        (498, "TOO_DEEPLY_NESTED", "nested 501 levels deep"),
        (1000, "INVALID_JSON_DESCRIPTION", "Document nesting depth (1003) exceeds the maximum allowed (1000)"),
        (400_000, "INVALID_JSON_DESCRIPTION", "exceeds the maximum allowed (1000)"),
    ],
)
def test_a_deeper_document_is_not_read(levels: int, code: str, part: str) -> None:
    found = only(deep_result(levels))
    assert found.code == code
    assert part in found.message
    with pytest.raises(InvalidDefinitionError):
        read_definition(deep_result(levels))


def test_brackets_in_texts_are_not_deep() -> None:
    text = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Succeed", "Comment": '[{"\\' * 10_000}}})
    assert diagnose(text, MachineType.STANDARD) == []


def test_a_definition_has_at_most_a_mebibyte() -> None:
    text = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Succeed", "Comment": ""}}})
    longest = text.replace('""', '"' + "x" * (1_048_576 - len(text)) + '"')
    assert diagnose(longest, MachineType.STANDARD) == []
    assert "at most 1048576" in only(longest + " ").message


def test_a_long_number_is_no_number() -> None:
    assert "Number value length (5000)" in only('{"TimeoutSeconds": ' + "9" * 5000 + "}").message


def test_a_text_that_utf8_cannot_represent_is_no_definition() -> None:
    assert only('{"\ud800": 1}').code == "INVALID_JSON_DESCRIPTION"


def test_a_million_faults_are_cut() -> None:
    states = ",".join(f'"{number}":0' for number in range(50_000))
    found = diagnose('{"StartAt": "A", "States": {' + states + "}}", MachineType.STANDARD)
    assert len(found) == 1000


def test_errors_refuse_a_definition_and_warnings_do_not() -> None:
    static_result = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": "$.a", "End": True}}}
    check_definition(json.dumps(static_result), MachineType.STANDARD)
    with pytest.raises(InvalidDefinitionError, match="These fields are required") as caught:
        check_definition("{}", MachineType.STANDARD)
    assert [each.location for each in caught.value.diagnostics] == ["/"]
