"""The error tree is as its docstring draws it."""

from __future__ import annotations

import re

import pytest

from jobtable import errors


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
