"""Where DynamoDB Local's PartiQL is not what AWS documents, or fails; the engine follows AWS."""

from __future__ import annotations

import re
from typing import Any

from tests.embedded.differential.cases import Case, KnownDifference
from tests.embedded.differential.comparison import STATEMENT_OPERATIONS

_REFUSED = ("ValidationException", "ResourceNotFoundException", "SerializationException")
_CANCELLED = "TransactionCanceledException"


def _is_refused_transaction(case: Case) -> bool:
    """Whether both did nothing, and not because of a condition that only one of them has seen to fail."""
    codes = {case.embedded.code, case.local.code}
    if case.operation != "ExecuteTransaction" or not codes <= {*_REFUSED, _CANCELLED}:
        return False
    reasons, local_reasons = (answer.body.get("CancellationReasons", []) for answer in (case.embedded, case.local))
    return len(reasons) != len(local_reasons) or all(
        "ValidationError" in (local["Code"], reason["Code"]) or local == reason or _is_failed_check(reason, local)
        for reason, local in zip(reasons, local_reasons, strict=True)
    )


def _is_failed_check(reason: dict[str, Any], local: dict[str, Any]) -> bool:
    """DynamoDB Local ends the sentence about an EXISTS with a full stop."""
    return reason | {"Message": ""} == local | {"Message": ""}


def _are_same_but_for_words(case: Case) -> bool:
    """Whether each statement of a batch gave the same, or was refused with the same code."""
    if case.embedded.code is not None or case.local.code is not None:
        return False
    pairs = zip(case.embedded.body.get("Responses", []), case.local.body.get("Responses", []), strict=True)
    return all(one == local or _has_same_error(one, local) for one, local in pairs)


def _has_same_error(one: dict[str, Any], local: dict[str, Any]) -> bool:
    error, local_error = ({**answer.get("Error", {}), "Message": ""} for answer in (one, local))
    if (error.get("Code"), local_error.get("Code")) == ("ValidationError", "ConditionalCheckFailed"):
        return True  # The statement itself is looked at before the item.
    return "Code" in error and error == local_error


def _is_fragment(case: Case) -> bool:
    rows, local_rows = (answer.body.get("Items") or [{}] for answer in (case.embedded, case.local))
    return len(rows) <= 1 and set(rows[0]) <= set(local_rows[0])


def _statements(case: Case) -> str:
    return str([case.request.get(name) for name in ("Statement", "Statements", "TransactStatements")])


KNOWN_IN_STATEMENTS: tuple[KnownDifference, ...] = (
    KnownDifference(
        "failure of a statement",
        "DynamoDB Local fails inside (status 500) on some statements, ORDER BY ... DESC among them.",
        lambda case: case.local.code == "InternalFailure",
    ),
    KnownDifference(
        "faults of a statement",
        "What AWS says of a statement that it refuses is not documented: DynamoDB Local's words, and the order in "
        "which it looks, are its own. Those that are known of the service are pinned in the tests of statements.",
        lambda case: case.embedded.code in _REFUSED and case.local.code in _REFUSED,
    ),
    KnownDifference(
        "faults of a batch of statements",
        "The same, told for single statements of a batch. The engine names the table of each that it has found.",
        _are_same_but_for_words,
    ),
    KnownDifference(
        "parameters of a batch of statements",
        "A parameter that is no value is the fault of its statement; DynamoDB Local refuses the batch, unless the "
        "statement is malformed.",
        lambda case: (
            case.operation == "BatchExecuteStatement"
            and case.local.code in _REFUSED
            and any("Error" in one for one in case.embedded.body.get("Responses", []))
        ),
    ),
    KnownDifference(
        "malformed batch of statements",
        "JSON of the wrong type refuses the batch; DynamoDB Local tells it as the fault of a statement.",
        lambda case: (
            case.operation == "BatchExecuteStatement"
            and case.embedded.code == "SerializationException"
            and any("Error" in one for one in case.local.body.get("Responses", []))
        ),
    ),
    KnownDifference(
        "overlapping alternatives",
        "The service refuses alternatives that read one and the same part of a partition, as the same value twice in "
        "an IN; DynamoDB Local reads it once.",
        lambda case: case.embedded.message.startswith("Overlapping conditions") and case.local.code is None,
    ),
    KnownDifference(
        "faults of a transaction of statements",
        "The same, and an INSERT of what is there is the reason DuplicateItem, as in a batch; DynamoDB Local calls it "
        "a ValidationError. Which faults refuse the request and which cancel it is as in TransactWriteItems.",
        _is_refused_transaction,
    ),
    KnownDifference(
        "code of a duplicate",
        "The service calls the error of an INSERT DuplicateItemException; DynamoDB Local leaves the Exception out.",
        lambda case: (case.embedded.code, case.local.code) == ("DuplicateItemException", "DuplicateItem"),
    ),
    KnownDifference(
        "token of a transaction of statements",
        "Both refuse other statements under a known token; the engine says which token that is.",
        lambda case: case.embedded.code == case.local.code == "IdempotentParameterMismatchException",
    ),
    KnownDifference(
        "modified part of an attribute",
        "MODIFIED OLD and MODIFIED NEW of a nested path give that path alone, as UPDATED_OLD and UPDATED_NEW do; "
        "DynamoDB Local gives the whole attribute.",
        lambda case: (
            case.embedded.code is None
            and case.local.code is None
            and re.search(r"RETURNING MODIFIED", _statements(case)) is not None
            and (case.operation == "BatchExecuteStatement" or _is_fragment(case))
        ),
    ),
    KnownDifference(
        "filter of an index",
        "A filter cannot look at attributes that an index does not hold: a query is refused, as Query is, and a scan, "
        "or one alternative of several, finds nothing there; DynamoDB Local looks at the whole items.",
        lambda case: "does not project" in case.embedded.message or (_reads_keys_only(case) and _finds_less(case)),
    ),
    KnownDifference(
        "types of key attributes",
        "DynamoDB Local takes the name of a type, with which IS and attribute_type test a key attribute, for a value "
        "that is compared with it.",
        lambda case: (
            case.embedded.code is None
            and case.local.message.endswith("Condition parameter type does not match schema type")
            and re.search(r" IS |attribute_type", _statements(case)) is not None
        ),
    ),
    KnownDifference(
        "values that no key has",
        "A key attribute that is compared with a value of another type, or one that is too long for a key, is a fault "
        "wherever it stands; DynamoDB Local does not see all of them.",
        lambda case: (
            case.local.code is None
            and re.search("type does not match|type should match|has exceeded the", case.embedded.message) is not None
        ),
    ),
    KnownDifference(
        "enumerations of a statement",
        "DynamoDB Local takes an unknown option, and an empty list of parameters, for none; the service refuses them.",
        lambda case: (
            case.local.code is None
            and re.search("Member must (satisfy enum|have length)", case.embedded.message) is not None
        ),
    ),
)


def _reads_keys_only(case: Case) -> bool:
    indexes = ("ByNumber", "Included", "LocalKeys")
    codes = {case.embedded.code, case.local.code}
    is_read = case.operation == "ExecuteStatement" and codes == {None}
    return is_read and any(name in _statements(case) for name in indexes)


def _finds_less(case: Case) -> bool:
    return all(row in case.local.body["Items"] for row in case.embedded.body["Items"])


def has_statement_twice(operation: str, request: dict[str, Any]) -> bool:
    """Whether a batch has a statement twice. It is refused, but DynamoDB Local does what comes before the second."""
    statements = request.get("Statements")
    if operation != "BatchExecuteStatement" or not isinstance(statements, list):
        return False
    return any(one in statements[:number] for number, one in enumerate(statements))


def known_in_statement(case: Case) -> KnownDifference | None:
    """The entry of the list that explains why the two answers to a statement differ."""
    if case.operation not in STATEMENT_OPERATIONS:
        return None
    return next((known for known in KNOWN_IN_STATEMENTS if known.matches(case)), None)
