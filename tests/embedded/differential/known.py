"""Where DynamoDB Local is not what AWS documents; the engine follows AWS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.embedded.differential.peers import Answer


@dataclass(frozen=True)
class Case:
    """One request and its two answers."""

    operation: str
    request: dict[str, Any]
    embedded: Answer
    local: Answer


@dataclass(frozen=True)
class KnownDifference:
    """A difference that is DynamoDB Local's, why, and how it is recognised."""

    name: str
    reason: str
    matches: Callable[[Case], bool]


def _crashed(case: Case) -> bool:
    return case.local.code == "InternalFailure" and case.embedded.code in (
        "SerializationException",
        "ValidationException",
    )


def _missing_table_words(case: Case) -> bool:
    return (
        case.local.code == case.embedded.code == "ResourceNotFoundException"
        and case.local.message == "Cannot do operations on a non-existent table"
        and case.embedded.message.startswith("Requested resource not found")
    )


KNOWN_DIFFERENCES = (
    KnownDifference(
        "internal failure",
        "DynamoDB Local fails inside (status 500) on members of the wrong JSON type and on broken base64; the service "
        "refuses them with SerializationException or ValidationException.",
        _crashed,
    ),
    KnownDifference(
        "missing table",
        "The service says 'Requested resource not found'; DynamoDB Local has words of its own.",
        _missing_table_words,
    ),
)


def known_difference(case: Case) -> KnownDifference | None:
    """The entry of the list that explains why the two answers differ."""
    return next((known for known in KNOWN_DIFFERENCES if known.matches(case)), None)
