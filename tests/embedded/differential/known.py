"""Where DynamoDB Local is not what AWS documents; the engine follows AWS."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.embedded.differential.faults import is_earlier, says_the_same
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


def _converted(case: Case) -> bool:
    return case.embedded.code == "SerializationException" and case.embedded.message.endswith(
        ("cannot be converted to String", "cannot be converted to Integer", "cannot be converted to Boolean")
    )


def _other_words(case: Case) -> bool:
    if case.embedded.code != case.local.code or case.embedded.code is None:
        return False
    if case.embedded.message != case.local.message:
        return says_the_same(case.embedded.message, case.local.message)
    return _with_plain_reasons(case.embedded.body) == _with_plain_reasons(case.local.body)


def _with_plain_reasons(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True).replace("The conditional request failed.", "The conditional request failed")


def _other_order(case: Case) -> bool:
    refusals = ("ValidationException", "ResourceNotFoundException", "ConditionalCheckFailedException")
    return (
        case.embedded.code in refusals
        and case.local.code in (*refusals, "TransactionCanceledException")
        and is_earlier(case.embedded.message, case.local.message)
    )


def _cancelled(case: Case) -> bool:
    if case.embedded.code != "TransactionCanceledException" or case.local.code != "ValidationException":
        return False
    reasons = case.embedded.body.get("CancellationReasons", [])
    messages = [reason["Message"] for reason in reasons if reason["Code"] == "ValidationError"]
    return any(message == case.local.message or says_the_same(message, case.local.message) for message in messages)


def _capacity(case: Case) -> bool:
    embedded, local = (_without_capacity(answer.body) for answer in (case.embedded, case.local))
    return case.embedded.code is None and case.local.code is None and embedded == local


def _without_capacity(body: dict[str, Any]) -> dict[str, Any]:
    members = {name: content for name, content in body.items() if name not in ("ConsumedCapacity", "ItemCollectionMetrics")}
    if "members" in members:
        members["members"] = [name for name in members["members"] if name != "ConsumedCapacity"]
    return members


KNOWN_DIFFERENCES = (
    KnownDifference(
        "failure",
        "DynamoDB Local fails inside (status 500) on members of the wrong JSON type and on broken base64; the service "
        "refuses them with SerializationException or ValidationException.",
        _crashed,
    ),
    KnownDifference(
        "conversion",
        "DynamoDB Local converts scalars of the wrong JSON type (5 to '5'); the service refuses them.",
        _converted,
    ),
    KnownDifference(
        "words",
        "DynamoDB Local has words of its own for some faults, listed one by one beside the service's in `faults`.",
        _other_words,
    ),
    KnownDifference(
        "order",
        "Where a request has several faults, the service looks at the request before it looks at the table, and at the "
        "table before the item; DynamoDB Local mixes these. The engine must have found the earlier fault.",
        _other_order,
    ),
    KnownDifference(
        "cancelled",
        "The service cancels a transaction with the reason ValidationError when an update cannot be applied to the "
        "item (TransactWriteItems documents the messages); DynamoDB Local answers ValidationException.",
        _cancelled,
    ),
    KnownDifference("capacity", "TEMPORARY", _capacity),
)


def known_difference(case: Case) -> KnownDifference | None:
    """The entry of the list that explains why the two answers differ."""
    return next((known for known in KNOWN_DIFFERENCES if known.matches(case)), None)
