"""Whatever the documentation of the States Language names is in some case: nothing is left uncovered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
from tests.workflows.asl.case_files import Case, read_cases
from tests.workflows.asl.query_languages.jsonata_examples import read_examples

from jobtable.workflows.asl.resources import Pattern

CASES = list(read_cases())

# --- what the documentation names -------------------------------------------------------------------------------------

COMMON = "Type Comment QueryLanguage Assign Next End"
PATHS = "InputPath OutputPath"
RESULTS = "Parameters ResultSelector ResultPath"
LIMITS = "MaxConcurrency ToleratedFailureCount ToleratedFailurePercentage"
MAP = f"ItemProcessor ItemSelector ItemReader ItemBatcher ResultWriter Label Retry Catch {LIMITS}"
JSONPATH_FIELDS = {
    "Pass": f"{COMMON} {PATHS} Parameters Result ResultPath",
    "Task": f"{COMMON} {PATHS} {RESULTS} Resource Credentials Retry Catch TimeoutSeconds TimeoutSecondsPath"
    " HeartbeatSeconds HeartbeatSecondsPath",
    "Choice": f"Type Comment QueryLanguage Assign {PATHS} Choices Default",
    "Wait": f"{COMMON} {PATHS} Seconds SecondsPath Timestamp TimestampPath",
    "Succeed": f"Type Comment QueryLanguage {PATHS}",
    "Fail": "Type Comment QueryLanguage Error ErrorPath Cause CausePath",
    "Parallel": f"{COMMON} {PATHS} {RESULTS} Branches Retry Catch",
    "Map": f"{COMMON} {PATHS} {RESULTS} {MAP} ItemsPath Iterator"
    " MaxConcurrencyPath ToleratedFailureCountPath ToleratedFailurePercentagePath",
}
JSONATA_FIELDS = {
    "Pass": f"{COMMON} Output",
    "Task": f"{COMMON} Output Arguments Resource Credentials Retry Catch TimeoutSeconds HeartbeatSeconds",
    "Choice": "Type Comment QueryLanguage Assign Output Choices Default",
    "Wait": f"{COMMON} Output Seconds Timestamp",
    "Succeed": "Type Comment QueryLanguage Output",
    "Fail": "Type Comment QueryLanguage Error Cause",
    "Parallel": f"{COMMON} Output Arguments Branches Retry Catch",
    "Map": f"{COMMON} Output Items {MAP}",
}
FIELDS = {"JSONPath": JSONPATH_FIELDS, "JSONata": JSONATA_FIELDS}
MEMBERS = {
    "machine": "Comment StartAt States Version TimeoutSeconds QueryLanguage",
    "ProcessorConfig": "Mode=INLINE Mode=DISTRIBUTED ExecutionType=STANDARD ExecutionType=EXPRESS",
    "Retry": "ErrorEquals IntervalSeconds MaxAttempts BackoffRate MaxDelaySeconds"
    " JitterStrategy=FULL JitterStrategy=NONE",
    "Catch": "ErrorEquals Next ResultPath Assign Output Comment",
    "Choices": "Next Comment Assign Output Condition",
    "ItemReader": "Resource Parameters Arguments ReaderConfig",
    "ReaderConfig": "InputType=CSV InputType=JSON InputType=JSONL InputType=MANIFEST MaxItems MaxItemsPath",
    "ItemBatcher": "MaxItemsPerBatch MaxItemsPerBatchPath MaxInputBytesPerBatch MaxInputBytesPerBatchPath BatchInput",
    "ResultWriter": "Resource Parameters Arguments WriterConfig",
    "WriterConfig": "Transformation=NONE Transformation=COMPACT Transformation=FLATTEN"
    " OutputType=JSON OutputType=JSONL",
}
COMPARISONS = [
    f"{kind}{comparison}{path}"
    for kind in ("String", "Numeric", "Timestamp")
    for comparison in ("Equals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
    for path in ("", "Path")
]
OPERATORS = [
    *COMPARISONS,
    *("And", "Or", "Not", "BooleanEquals", "BooleanEqualsPath", "StringMatches"),
    *("IsNull", "IsPresent", "IsNumeric", "IsString", "IsBoolean", "IsTimestamp"),
]
INTRINSIC_FUNCTIONS = (
    "Array ArrayPartition ArrayContains ArrayRange ArrayGetItem ArrayLength ArrayUnique Base64Encode Base64Decode Hash"
    " JsonMerge StringToJson JsonToString MathRandom MathAdd StringSplit UUID Format"
)
HASHES = "MD5 SHA-1 SHA-256 SHA-384 SHA-512"
ADDED_FUNCTIONS = "partition range hash random uuid parse"
JSONATA_FUNCTIONS = (
    "string length substring substringBefore substringAfter uppercase lowercase trim pad contains split join match"
    " replace eval base64encode base64decode encodeUrlComponent encodeUrl decodeUrlComponent decodeUrl"
    " number abs floor ceil round power sqrt random formatNumber formatBase formatInteger parseInteger"
    " sum max min average count append sort reverse shuffle distinct zip"
    " keys lookup spread merge sift each error assert type"
    " boolean not exists now millis fromMillis toMillis map filter single reduce"
)
ERRORS = (
    "States.ALL States.TaskFailed States.Timeout States.HeartbeatTimeout States.Permissions"
    " States.ResultPathMatchFailure States.ParameterPathFailure States.BranchFailed States.NoChoiceMatched"
    " States.IntrinsicFailure States.ExceedToleratedFailureThreshold States.ItemReaderFailed"
    " States.ResultWriterFailed States.DataLimitExceeded States.QueryEvaluationError States.Runtime"
    " Lambda.ServiceException Lambda.AWSLambdaException Lambda.SdkClientException Lambda.TooManyRequestsException"
    " Lambda.ClientExecutionTimeoutException Lambda.Unknown"
)
NOT_RAISED = {
    "States.ALL": "a wildcard",
    "States.HeartbeatTimeout": "a missed heartbeat is reported as States.Timeout, and this name catches it",
    "States.ParameterPathFailure": "Step Functions reports States.Runtime",
    "States.BranchFailed": "Step Functions reports the error of the branch",
    "States.NoChoiceMatched": "Step Functions reports States.Runtime",
}
"""Names that clauses may contain and no failure has, with the reason; a task may report any name, of course."""
CONTEXT = (
    "Execution.Id Execution.Input Execution.Name Execution.RoleArn Execution.StartTime Execution.RedriveCount"
    " Execution.RedriveTime State.EnteredTime State.Name State.RetryCount StateMachine.Id StateMachine.Name Task.Token"
    " Map.Item.Index Map.Item.Value Map.Item.Key Map.Item.Source"
)
RESERVED = "input context result errorOutput"
RESOURCES = {
    "lambda:invoke": (Pattern.RESPONSE, Pattern.TOKEN),
    "dynamodb:getItem": (Pattern.RESPONSE,),
    "dynamodb:putItem": (Pattern.RESPONSE,),
    "dynamodb:updateItem": (Pattern.RESPONSE,),
    "dynamodb:deleteItem": (Pattern.RESPONSE,),
    "sqs:sendMessage": (Pattern.RESPONSE, Pattern.TOKEN),
    "sns:publish": (Pattern.RESPONSE, Pattern.TOKEN),
    "states:startExecution": tuple(Pattern),
    "aws-sdk:dynamodb:query": (Pattern.RESPONSE,),
    "aws-sdk:s3:getObject": (Pattern.RESPONSE,),
    "aws-sdk:s3:putObject": (Pattern.RESPONSE,),
}
NOT_PRODUCED = {"ActivityScheduleFailed", "LambdaFunctionScheduleFailed", "TaskStartFailed"}
"""Events of a hand-over that failed for reasons that only AWS has; the guide of workflows says which."""

# --- what the cases have ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _State:
    type: str
    language: str
    fields: dict[str, Any]


def _machines(case: Case) -> Iterator[dict[str, Any]]:
    yield case.definition
    yield from case.machines.values()


def _states(machine: dict[str, Any], language: str = "JSONPath") -> Iterator[_State]:
    language = machine.get("QueryLanguage", language)
    for fields in machine["States"].values():
        own = fields.get("QueryLanguage", language)
        yield _State(fields["Type"], own, fields)
        inner = [
            *fields.get("Branches", ()),
            *(fields[name] for name in ("ItemProcessor", "Iterator") if name in fields),
        ]
        for each in inner:
            yield from _states(each, language)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list):
        for element in value:
            yield from _texts(element)


ALL_STATES = [state for case in CASES for machine in _machines(case) for state in _states(machine)]
TEXTS = {
    language: [text for state in ALL_STATES if state.language == language for text in _texts(state.fields)]
    for language in FIELDS
}


def _uncovered(names: str, covered: set[str]) -> list[str]:
    return [name for name in names.split() if name not in covered]


def _holders(value: Any, name: str) -> Iterator[dict[str, Any]]:
    """Find the objects that are, or are in the list of, a member of that name, at any depth."""
    if isinstance(value, dict):
        if name in value:
            found = value[name]
            yield from (each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict))
        for member in value.values():
            yield from _holders(member, name)
    elif isinstance(value, list):
        for element in value:
            yield from _holders(element, name)


def _events(case: Case) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in case.expect.get("events", ()):
        text, details = (each, {}) if isinstance(each, str) else next(iter(each.items()))
        yield text.partition(" ")[0], details


# --- the tests --------------------------------------------------------------------------------------------------------


def test_there_are_at_least_three_hundred_cases_with_whole_histories() -> None:
    assert sum("events" in case.expect for case in CASES) >= 300


def test_every_field_of_every_state_type_in_both_languages() -> None:
    covered = {(state.language, state.type, name) for state in ALL_STATES for name in state.fields}

    uncovered = [
        (language, state_type, name)
        for language, types in FIELDS.items()
        for state_type, names in types.items()
        for name in names.split()
        if (language, state_type, name) not in covered
    ]

    assert uncovered == []


def test_every_member_of_the_fields_that_have_some() -> None:
    definitions = [machine for case in CASES for machine in _machines(case)]
    uncovered = []
    for place, names in MEMBERS.items():
        holders = definitions if place == "machine" else list(_holders(definitions, place))
        covered = {name for holder in holders for name in holder}
        covered |= {f"{name}={value}" for holder in holders for name, value in holder.items() if isinstance(value, str)}
        uncovered += [(place, name) for name in _uncovered(names, covered)]

    assert uncovered == []


def test_every_operator_of_a_choice() -> None:
    rules = [rule for state in ALL_STATES if state.type == "Choice" for rule in state.fields["Choices"]]
    covered = set(re.findall(r'"(\w+)":', json.dumps(rules)))

    assert [name for name in OPERATORS if name not in covered] == []


def test_every_intrinsic_function_and_hash() -> None:
    covered = {name for text in TEXTS["JSONPath"] for name in re.findall(r"States\.(\w+)\(", text)}
    inputs = {text for case in CASES for text in _texts([case.input, case.definition])}

    assert _uncovered(INTRINSIC_FUNCTIONS, covered) == []
    assert _uncovered(HASHES, inputs) == []
    hashed = {name for text in TEXTS["JSONata"] for name in re.findall(r"\$hash\([^)]*'([\w-]+)'\)", text)}
    assert _uncovered(HASHES, hashed) == []


def test_every_function_of_jsonata() -> None:
    in_cases = {name for text in TEXTS["JSONata"] for name in re.findall(r"\$(\w+)\(", text)}
    in_examples = {name for example in read_examples() for name in re.findall(r"\$(\w+)\b", example.expression)}

    assert _uncovered(ADDED_FUNCTIONS, in_cases) == []
    assert _uncovered(f"{JSONATA_FUNCTIONS} {ADDED_FUNCTIONS}", in_examples) == []


def test_every_error_name_is_raised_and_handled() -> None:
    named = {
        name
        for clause in (
            *_holders([s.fields for s in ALL_STATES], "Retry"),
            *_holders([s.fields for s in ALL_STATES], "Catch"),
        )
        for name in clause["ErrorEquals"]
    }
    raised = {str(case.expect.get("error")) for case in CASES}
    raised |= {str(details.get("error")) for case in CASES for _, details in _events(case)}
    raised |= {
        str(case.expect.get("output", {}).get("Error")) for case in CASES if isinstance(case.expect.get("output"), dict)
    }
    raised |= {text for case in CASES for text in _texts(case.expect.get("output"))}

    assert _uncovered(ERRORS, named) == []
    assert [name for name in _uncovered(ERRORS, raised) if name not in NOT_RAISED] == []


def test_every_type_of_event() -> None:
    model = boto3.client("stepfunctions", region_name="us-east-1").meta.service_model
    documented = set(model.shape_for("HistoryEventType").enum)
    covered = {event_type for case in CASES for event_type, _ in _events(case)} | {"ExecutionStarted"}

    assert documented - covered == NOT_PRODUCED


def test_every_member_of_the_context_object_in_both_languages() -> None:
    for language, prefix in (("JSONPath", "$$."), ("JSONata", "$states.context.")):
        texts = "\n".join(TEXTS[language])
        assert [name for name in CONTEXT.split() if prefix + name not in texts] == [], language


def test_every_member_of_states_in_jsonata() -> None:
    texts = "\n".join(TEXTS["JSONata"])

    assert [name for name in RESERVED.split() if f"$states.{name}" not in texts] == []


def test_every_resource_with_every_pattern() -> None:
    used = {state.fields["Resource"] for state in ALL_STATES if state.type == "Task"}
    wanted = {f"arn:aws:states:::{name}{pattern.value}" for name, patterns in RESOURCES.items() for pattern in patterns}

    assert wanted - used == set()
    assert any(":function:" in each for each in used)
    assert any(":activity:" in each for each in used)
