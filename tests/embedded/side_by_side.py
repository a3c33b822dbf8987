"""The embedded engine and DynamoDB Local side by side, on the same tables with the same items."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tests.embedded.differential.faults import without_count
from tests.embedded.differential.peers import Answer, EmbeddedPeer, LocalPeer, Peer
from tests.embedded.differential.tables import Index, Table

from jobtable.embedded import EmbeddedBackend

Request = dict[str, Any]


def S(text: str) -> dict[str, str]:  # noqa: N802 - reads as the wire form does
    return {"S": text}


def N(number: float | str) -> dict[str, str]:  # noqa: N802 - reads as the wire form does
    return {"N": str(number)}


_KEYS_ONLY = {"ProjectionType": "KEYS_ONLY"}
_PK, _SK, _G1, _G2, _L1 = ("pk", "S"), ("sk", "S"), ("g1", "S"), ("g2", "N"), ("l1", "S")

TABLES = (
    Table("hash", _PK),
    Table("binary", ("pk", "N"), ("sk", "B")),
    Table(
        "main",
        _PK,
        _SK,
        (
            Index("gall", (_G1,), (_G2,)),
            Index("gkeys", (_G1,), (), _KEYS_ONLY),
            Index("ginc", (_G2,), (_G1,), {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "b"]}),
            Index("lall", (_PK,), (_L1,), is_local=True),
            Index("lkeys", (_PK,), (_G2,), _KEYS_ONLY, is_local=True),
        ),
    ),
)

# What DynamoDB Local says, and what the service says in its place. Both are patterns of whole messages.
REWORDED: tuple[tuple[str, str], ...] = (
    ("Cannot do operations on a non-existent table", "Requested resource not found"),
    ("Value (null|\\[\\]) at .*|Value t+ at .*", "1 validation error detected: Value .*"),
    ("Member must have length less than or equal to 100", "1 validation error detected: Value .* equal to 100"),
    ("Nesting Levels have exceeded supported limits", "Nesting Levels have exceeded supported limits under root.*"),
    ("Invalid table/index name.*", "[12] validation errors? detected: .*([tT]ableName|Map keys must).*"),
    ("Cannot have null key for .*", "1 validation error detected: Value null at 'key' .*"),
    ("Item to put in PutItem cannot be null", "1 validation error detected: Value null at 'item' .*"),
    ("The supplied Item contains a null AttributeValue", "1 validation error detected: Value null at 'requestItems.*"),
    (
        "The number of conditions on the keys is invalid|One of the required keys was not given a value|"
        "One or more parameter values were invalid: Type mismatch for key|Invalid attribute value type",
        "The provided key element does not match the schema|"
        "One or more parameter values were invalid: (Missing the key|Type mismatch for (key|Index Key)) .*",
    ),
    (
        "One or more parameter values were invalid: Type mismatch for Index Key",
        "One or more parameter values were invalid: Type mismatch for Index Key .* IndexName: .*",
    ),
    (
        "Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes|"
        "One or more parameter values were invalid: Size limit exceeded",
        "One or more parameter values were invalid: (Size of hashkey|Aggregated size of all range keys) has .*",
    ),
    ("Payload in response is too large.*", "Payload in response is too large.*"),
    ("One or more parameter values are not valid.*IndexKey: \\w+", "One or more .* not valid.*IndexKey: \\w+"),
    ("A value provided cannot be converted into a number", "The parameter cannot be converted to a numeric value.*"),
    ("Limit must be greater than or equal to 1", "1 validation error detected: Value .*at '[lL]imit' .*"),
    (
        "Return values set to invalid value",
        "ReturnValues can only be ALL_OLD or NONE|1 validation error detected: Failed .* enum value set: .*ALL_OLD.*",
    ),
    (
        "ExpressionAttributeValues can only be specified when using expressions: .*",
        "ExpressionAttributeValues can only be specified when using expressions",
    ),
    ("Select must be ALL_ATTRIBUTES, .*", "1 validation error detected: Value '\\w+' at 'select' .*"),
    (
        "(KeyConditionExpressions|Invalid (operator used|condition) in KeyConditionExpression:) .*",
        "Invalid KeyConditionExpression: (KeyConditionExpressions|Invalid (operator used|condition) in) .*",
    ),
    (
        "Conditions can be of length 1 or 2 only|Query key condition not supported",
        "The number of query conditions .*",
    ),
    ("Query condition missed key schema element", "Query condition missed key schema element: .*"),
    (
        "Exclusive Start Key must have same size as table's key schema|Type mismatch for attribute to update",
        "The provided starting key is invalid.*",
    ),
    (
        "The provided starting key does not match the range key predicate",
        "The provided starting key is outside query boundaries based on provided conditions|"
        "The query can return at most one row and cannot be restarted",
    ),
    ("If segment is specified, .*", "The TotalSegments parameter is required .*"),
    ("If total segments is specified, .*", "The Segment parameter is required .*"),
    ("1 validation error detected: Value '-?\\d+' at 'segment' .*", "The Segment parameter is zero-based .*|1 valid.*"),
    ("1 validation error detected: Value '0' at 'segment' .*", "1 validation error detected: Value '0' at 'total.*"),
    (
        "BatchGetItem must have some requests set|BatchWriteItem cannot have a null or no requests set",
        "1 validation error detected: Value .*at '[rR]equestItems' .*|The requestItems parameter is required .*",
    ),
    ("The list of keys in RequestItems for .*", "1 validation error detected: Value .*at '[rR]equestItems\\.hash.*"),
    (
        "The batch write request list for a table .*|Too many items requested for the BatchWriteItem call",
        "1 validation error detected: Value .* at 'requestItems' failed to satisfy constraint: Map value must .*",
    ),
    (
        "Too many items requested for the BatchGetItem call",
        "1 validation error .* at 'RequestItems\\.hash.* equal to 100",
    ),
    ("The table does not have the specified index: .*", "The table does not have the specified index"),
    ("Unrecognized function: .*", "Unrecognized function: .* at 1:.*"),
    ("Empty bags are not supported at 1:.*", "Empty bags are not supported"),
    ("The first argument to SET_.*", "The first argument to SET_.* at 1:.*"),
    (
        "Only single item select is supported",
        "Select statements within BatchExecuteStatement must specify the primary key in the where clause\\.",
    ),
)


@dataclass(frozen=True)
class Pair:
    """The engine and DynamoDB Local."""

    backend: EmbeddedBackend
    embedded: Peer
    local: Peer

    def both(self, operation: str, request: Request) -> Answer:
        """Ask both, check that they say the same, and give the engine's answer."""
        ours, theirs = self.embedded.ask(operation, request), self.local.ask(operation, request)
        assert ours.code == theirs.code, f"{operation} {request}: {ours} but {theirs}"
        message = without_count(ours.message)
        if ours.code is not None and message != theirs.message:
            assert _says_the_same(message, theirs.message), f"{operation} {request}: {ours} but {theirs}"
        elif _unordered(ours.body) != _unordered(_in_same_words(theirs.body, ours.body)):
            raise AssertionError(f"{operation} {request}: {ours.body} but {theirs.body}")
        return ours


def _says_the_same(ours: str, theirs: str) -> bool:
    return any(re.fullmatch(local, theirs) and re.fullmatch(service, ours) for local, service in REWORDED)


def _in_same_words(theirs: Request, ours: Request) -> Request:
    """An answer to several statements, with the service's words for what DynamoDB Local words in another way."""
    responses, others = theirs.get("Responses"), ours.get("Responses")
    if not isinstance(responses, list) or not isinstance(others, list) or len(responses) != len(others):
        return theirs
    told: list[Request] = []
    for one, other in zip(responses, others, strict=True):
        words, said = one.get("Error", {}).get("Message", ""), other.get("Error", {}).get("Message", "")
        told.append(one | {"Error": one["Error"] | {"Message": said}} if words and _says_the_same(said, words) else one)
    return theirs | {"Responses": told}


def _unordered(body: Request) -> Request:
    """ConsumedCapacity and Responses of several tables come in no order."""
    listed = body.get("ConsumedCapacity")
    if not isinstance(listed, list):
        return body
    return body | {"ConsumedCapacity": sorted(listed, key=lambda one: str(one["TableName"]))}


class LocalTables:
    """DynamoDB Local's tables, which serve one pair at a time."""

    def __init__(self, url: str) -> None:
        self._local = LocalPeer(url)
        self._pair: Pair | None = None
        self._is_filled = False

    def empty(self) -> Pair:
        """A pair with empty tables."""
        self.close_pair()
        return self._prepare({})

    def filled(self) -> Pair:
        """A pair with a few items, for requests that change nothing; made again only if another came between."""
        if self._pair is not None and self._is_filled:
            return self._pair
        self.close_pair()
        rows = [
            {"pk": S("p"), "sk": S(str(i)), "g1": S("g"), "g2": N(i), "l1": S(f"l{i}"), "a": S("A"), "c": S("C")}
            for i in range(5)
        ]
        self._is_filled = True
        return self._prepare({"main": rows, "hash": [{"pk": S(str(i)), "a": S("A")} for i in range(5)]})

    def close_pair(self) -> None:
        """Remove the tables of the last pair."""
        if self._pair is not None:
            self._pair.backend.close()
        for table in TABLES:
            self._local.ask("DeleteTable", {"TableName": table.name})
        self._pair, self._is_filled = None, False

    def close(self) -> None:
        """Remove the tables, and let DynamoDB Local go."""
        self.close_pair()
        self._local.close()

    def _prepare(self, items: dict[str, list[Request]]) -> Pair:
        backend = EmbeddedBackend(None)
        self._pair = pair = Pair(backend, EmbeddedPeer(backend), self._local)
        for peer in (pair.embedded, pair.local):
            for table in TABLES:
                created = peer.ask("CreateTable", table.definition())
                assert created.code is None, created
            for name, rows in items.items():
                for row in rows:
                    stored = peer.ask("PutItem", {"TableName": name, "Item": row})
                    assert stored.code is None, stored
        return pair
