"""The error tree is as its docstring draws it."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import jobtable
from jobtable import errors
from jobtable.remote.server_requests import error_of
from jobtable.web.problems import problem_of

SERVICES_OWN_TEXT = {
    "errors.py",
    "embedded/storage/connections.py",
    "embedded/server/aws_protocol.py",
    "web/problems.py",
}
"""Files that read a text of DynamoDB, SQLite, pydantic or Starlette, which have no code for what it says."""


def drawn() -> dict[str, str]:
    """Each class of the drawing, with its parent."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^    ([│├└─ ]*)(\w+)", line)
        if match is None or not hasattr(errors, match[2]):
            continue
        depth = len(match[1]) // 4
        path[depth:] = [match[2]]
        if depth:
            parents[match[2]] = path[depth - 1]
    return parents


def test_the_drawing_is_the_tree() -> None:
    real = {
        name: cls.__bases__[0].__name__
        for name, cls in vars(errors).items()
        if isinstance(cls, type) and issubclass(cls, errors.JobtableError) and cls is not errors.JobtableError
    }
    assert drawn() == real


def test_the_drawing_says_what_is_retryable() -> None:
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^    [│├└─ ]+(\w+)", line)
        if match and hasattr(errors, match[1]) and issubclass(getattr(errors, match[1]), errors.RequestError):
            assert getattr(errors, match[1]).retryable == ("retryable" in line), line


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ConditionalCheckFailedException", errors.ConditionalCheckFailed),
        ("ProvisionedThroughputExceededException", errors.Throttled),
        ("LimitExceededException", errors.Throttled),
        ("UnrecognizedClientException", errors.AccessDenied),
        ("SomethingNew", errors.RequestError),
    ],
)
def test_codes_become_classes_and_are_kept(code: str, expected: type[errors.RequestError]) -> None:
    error = errors.request_error(code, "why", {"Item": {}})
    assert type(error) is expected
    assert (error.code, error.message, error.details, str(error)) == (code, "why", {"Item": {}}, f"{code}: why")


@pytest.mark.parametrize(
    ("error", "told"),
    [(KeyError("x"), "KeyError: 'x'"), (KeyboardInterrupt(), "KeyboardInterrupt"), (SystemExit(0), "SystemExit: 0")],
)
def test_an_error_of_others_is_told_with_its_kind(error: BaseException, told: str) -> None:
    assert errors.kind_and_text(error) == told


def test_a_hint_follows_the_statement() -> None:
    error = errors.JobStateError("job 1 is RUNNING", hint="cancel it", reason=errors.ErrorReason.JOB_ACTIVE)
    assert (error.statement, str(error)) == ("job 1 is RUNNING", "job 1 is RUNNING; cancel it")
    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)


@pytest.mark.parametrize(
    "error",
    [
        errors.missing("job", 7),
        errors.missing("table", "x", hint="the tables are a, b"),
        errors.JobStateError("job 1 is RUNNING", hint="cancel it", reason=errors.ErrorReason.JOB_ACTIVE),
        errors.TableNotFound("no table: x", hint="create it", reason=errors.ErrorReason.TABLE_MISSING),
        errors.Throttled("slow down", code="RequestLimitExceeded"),
    ],
)
def test_an_error_survives_its_way_through_the_api(error: errors.JobtableError) -> None:
    again = error_of(problem_of(error).model_dump(), "http://server")
    assert type(again) is type(error)
    assert {**vars(again), "details": None} == {**vars(error), "details": None}


def test_nothing_is_decided_by_the_text_of_an_error() -> None:
    text = r"(str\((error|fault|problem|refusal)\)|(error|fault|problem|refusal)\.(message|detail|args)\b)"
    decision = re.compile(rf"{text}(\.(startswith|endswith|partition)\b| [!=]= | in )|( in|[!=]=) {text}")
    package = Path(jobtable.__path__[0])
    found = {str(file.relative_to(package)) for file in package.rglob("*.py") if decision.search(file.read_text())}
    assert found <= SERVICES_OWN_TEXT
