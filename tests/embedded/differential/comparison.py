"""When two answers say the same: what DynamoDB leaves free is made equal, everything else must be."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.embedded.differential.faults import without_count
from tests.embedded.differential.peers import Answer, Peer
from tests.embedded.differential.tables import TABLE_OF

_MOST_PAGES = 60
_SET_TYPES = ("SS", "NS", "BS")
_LISTED = re.compile(r"(\{|\[)([^{}\[\]]*)(\}|\])")


TABLE_OPERATIONS = frozenset(
    (
        "CreateTable",
        "DescribeTable",
        "UpdateTable",
        "DeleteTable",
        "ListTables",
        "UpdateTimeToLive",
        "DescribeTimeToLive",
    )
)
STATEMENT_OPERATIONS = frozenset(("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"))
_FREE_MEMBERS = frozenset(
    [
        "CreationDateTime",
        "TableArn",
        "TableId",
        "TableStatus",
        "TableSizeBytes",
        "ItemCount",
        "LatestStreamArn",
        "LatestStreamLabel",
        "IndexArn",
        "IndexStatus",
        "IndexSizeBytes",
        "Backfilling",
        "LastIncreaseDateTime",
        "LastDecreaseDateTime",
        "NumberOfDecreasesToday",
        "LastUpdateToPayPerRequestDateTime",
        "WarmThroughput",
        "OnDemandThroughput",
        "TableThroughputModeSummary",
    ]
)


_NO_UNITS = {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
"""What is told of the units of a table and its indexes on demand; DynamoDB Local tells it of the table alone."""


def settled(peer: Peer, operation: str, request: dict[str, Any]) -> Answer:
    """The answer of a peer in a form that can be compared: pages are followed to their end, free orders are fixed."""
    first = peer.ask(operation, request)
    if operation in TABLE_OPERATIONS:
        # DynamoDB Local words the faults of table definitions in its own way: the codes must be the same.
        return Answer(_described(first.body), first.code)
    if first.code is not None:
        return Answer(normal(first.body), first.code, _normal_message(first.message))
    if operation == "ExecuteStatement":
        return Answer(_all_rows(peer, request, first.body))
    if operation in ("Query", "Scan"):
        return Answer(_all_pages(peer, operation, request, first.body))
    return Answer(normal(first.body, free_lists=operation in ("BatchGetItem", "BatchWriteItem")))


def _is_on_its_way_out(node: dict[str, Any]) -> bool:
    """Removed indexes may be gone at once, or be shown for a while."""
    return node.get("IndexStatus") == "DELETING"


def _described(node: Any) -> Any:
    """What is said about a table, without what depends on the time and the place, in a fixed order."""
    if isinstance(node, list):
        kept = [element for element in node if not (isinstance(element, dict) and _is_on_its_way_out(element))]
        return sorted((_described(element) for element in kept), key=_text) or None
    if isinstance(node, dict):
        described = {name: _described(content) for name, content in node.items() if name not in _FREE_MEMBERS}
        return {name: content for name, content in described.items() if content not in (None, _NO_UNITS)}
    return node


def _all_pages(peer: Peer, operation: str, request: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    index_name = request.get("IndexName")
    if "ExclusiveStartKey" in request and (operation == "Scan" or index_name):
        return {"accepted": True}  # What lies behind a chosen start depends on hashes, which are free.
    pages = _pages(peer, operation, request, first)
    segments = int(request.get("TotalSegments", 1))  # DynamoDB Local takes 2.0 and '2' as well
    if segments > 1:
        others = [number for number in range(segments) if number != request["Segment"]]
        for number in others:
            sibling = request | {"Segment": number}
            pages += _pages(peer, operation, sibling, peer.ask(operation, sibling).body)
    items = [normal(item) for page in pages for item in page.get("Items", [])]
    if operation == "Scan":
        items.sort(key=_text)
    elif index_name:
        items = _ties_sorted(items, request["TableName"], index_name)
    merged: dict[str, Any] = {
        "Items": items if any("Items" in page for page in pages) else None,
        "Count": sum(page["Count"] for page in pages),
        "ScannedCount": sum(page["ScannedCount"] for page in pages),
        "members": sorted(set(first) - {"LastEvaluatedKey"}),
    }
    if segments == 1:
        merged["ScannedCounts"] = [page["ScannedCount"] for page in pages]
        merged["ConsumedCapacity"] = [normal(page.get("ConsumedCapacity")) for page in pages]
        if operation == "Query" and not index_name:
            merged["LastEvaluatedKeys"] = [normal(page.get("LastEvaluatedKey")) for page in pages]
    return merged


def _all_rows(peer: Peer, request: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """What a statement gives. Where pages end is free, and the order of partitions; DynamoDB Local counts no units."""
    rows, body = [*first["Items"]], first
    for _ in range(_MOST_PAGES):
        if "NextToken" not in body:
            break
        following = peer.ask("ExecuteStatement", request | {"NextToken": body["NextToken"]})
        body = following.body
        rows += body.get("Items", [{"broken chain": following.message}])
    return {"Items": sorted((normal(row) for row in rows), key=_text)}


def _pages(peer: Peer, operation: str, request: dict[str, Any], first: dict[str, Any]) -> list[dict[str, Any]]:
    pages = [first]
    while "LastEvaluatedKey" in pages[-1] and len(pages) < _MOST_PAGES:
        following = peer.ask(operation, request | {"ExclusiveStartKey": pages[-1]["LastEvaluatedKey"]})
        if following.code is not None:
            return [*pages, {"Count": 0, "ScannedCount": 0, "Items": [{"broken chain": following.message}]}]
        pages.append(following.body)
    return pages


def _ties_sorted(items: list[Any], table_name: str, index_name: str) -> list[Any]:
    """Items with equal index keys have no order; where the key is not part of the answer, none can be seen."""
    index = next(index for index in TABLE_OF[table_name].indexes if index.name == index_name)
    names = [name for name, _ in index.sort]
    if any(name not in item for name in names for item in items):
        return sorted(items, key=_text)
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(_text([item[name] for name in names]), []).append(item)
    return [item for group in groups.values() for item in sorted(group, key=_text)]


def normal(node: Any, *, free_lists: bool = False) -> Any:
    """An answer, or a part of one, with sets, and lists whose order is free, in a fixed order."""
    if isinstance(node, list):
        made = [normal(element, free_lists=free_lists) for element in node]
        return sorted(made, key=_text) if free_lists else made
    if not isinstance(node, dict):
        return float(node) if isinstance(node, int | float) and not isinstance(node, bool) else node
    if len(node) == 1:
        kind, content = next(iter(node.items()))
        if kind in _SET_TYPES and isinstance(content, list):
            return {kind: sorted(content)}
        if kind == "L":
            return {kind: [normal(element) for element in content]}
    free = {"ConsumedCapacity"}
    return {
        name: normal(content, free_lists=free_lists or (name in free and isinstance(content, list)))
        for name, content in node.items()
    }


def _normal_message(message: str) -> str:
    """A message without the number of faults; lists of names and of values in it come in no order."""

    def in_order(found: re.Match[str]) -> str:
        return found[1] + ", ".join(sorted(found[2].split(", "))) + found[3]

    return _LISTED.sub(in_order, without_count(message))


def _text(node: Any) -> str:
    return json.dumps(node, sort_keys=True)
