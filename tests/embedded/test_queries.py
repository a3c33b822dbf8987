"""Query and Scan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded.side_by_side import TABLES, N, Pair, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestRefused

MAIN: Request = {"TableName": "main"}


def keyed(condition: str, **values: Request) -> Request:
    return {
        **MAIN,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {f":{name}": value for name, value in values.items()},
    }


P = keyed("pk = :p", p=S("p"))
P_FILTERED = keyed("pk = :p", p=S("p"), a=S("A"))
TOO_MANY = " AND ".join(["a = :p"] * 151)
GALL = {**keyed("g1 = :g", g=S("g")), "IndexName": "gall"}
GKEYS = {**keyed("g1 = :g", g=S("g")), "IndexName": "gkeys"}
GINC = {**keyed("g2 = :g", g=N(1)), "IndexName": "ginc"}
LALL = {**P, "IndexName": "lall"}
LKEYS = {**P, "IndexName": "lkeys"}
START = {"pk": S("p"), "sk": S("1")}
INDEX_START = {**START, "g1": S("g"), "g2": N(1)}
CAPACITY = {"ReturnConsumedCapacity": "INDEXES"}


def deep_filters(levels: int) -> list[Request]:
    value: Request = {"N": "1"}
    for _ in range(levels):
        value = {"L": [value]}
    return [
        {"FilterExpression": "a = :a", "ExpressionAttributeValues": {":a": value}},
        {"ScanFilter": {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [value]}}},
    ]


QUERIES: list[Request] = [
    P,
    *({**P, "Limit": limit} for limit in (1, 4, 5, 6)),
    {**P, "ScanIndexForward": False, "Limit": 2},
    {**P, "ScanIndexForward": False, "Limit": 2, "ExclusiveStartKey": {"pk": S("p"), "sk": S("22")}},
    {**P, "ExclusiveStartKey": START},
    {**P, "ExclusiveStartKey": {"pk": S("p"), "sk": S("11")}},
    {**P, "Select": "COUNT"},
    {**P, "Select": "COUNT", "Limit": 2},
    {**P_FILTERED, "Select": "COUNT", "FilterExpression": "a <> :a"},
    {**P_FILTERED, "FilterExpression": "a = :a", "Limit": 2, **CAPACITY},
    {**P, "Select": "ALL_ATTRIBUTES", "Limit": 1},
    {**P, "Select": "SPECIFIC_ATTRIBUTES", "ProjectionExpression": "a", "Limit": 2},
    {**P, "ProjectionExpression": "nothing"},
    {**P, "ReturnConsumedCapacity": "TOTAL"},
    {**P, "ConsistentRead": True, **CAPACITY},
    keyed("pk = :p AND sk = :s", p=S("p"), s=S("2")) | {"Limit": 1},
    keyed("pk = :p AND sk = :s", p=S("p"), s=S("2")) | {"ExclusiveStartKey": {"pk": S("p"), "sk": S("2")}},
    keyed("pk = :p AND sk < :s", p=S("p"), s=S("2")),
    keyed("pk = :p AND sk <= :s", p=S("p"), s=S("2")),
    keyed("pk = :p AND sk > :s", p=S("p"), s=S("2")),
    keyed("pk = :p AND sk >= :s", p=S("p"), s=S("2")),
    keyed("pk = :p AND sk BETWEEN :s AND :t", p=S("p"), s=S("1"), t=S("3")),
    keyed("pk = :p AND begins_with(sk, :s)", p=S("p"), s=S("3")),
    {**GALL, "Limit": 2, **CAPACITY},
    {**GALL, "ExclusiveStartKey": INDEX_START},
    {**GALL, "ExclusiveStartKey": INDEX_START, "ScanIndexForward": False},
    {**GALL, "ProjectionExpression": "c"},
    {**GALL, "FilterExpression": "pk = :g"},
    {**GINC, **CAPACITY},
    {**GINC, "Select": "ALL_PROJECTED_ATTRIBUTES"},
    {**LALL, "Limit": 2, **CAPACITY},
    {**LALL, "Limit": 2, "ReturnConsumedCapacity": "TOTAL"},
    {**LKEYS, **CAPACITY, "ConsistentRead": True},
    {**LKEYS, **CAPACITY, "Select": "ALL_ATTRIBUTES", "Limit": 2},
    {**LKEYS, **CAPACITY, "ProjectionExpression": "a, pk", "Limit": 2},
]


@pytest.mark.parametrize("request_", QUERIES)
def test_queries_are_answered_as_dynamodb_does(filled_pair: Pair, request_: Request) -> None:
    assert filled_pair.both("Query", request_).code is None


BAD_QUERIES: list[Request] = [
    MAIN,
    {**MAIN, "KeyConditionExpression": ""},
    {**P, "TableName": "nope"},
    {**P, "Limit": 0},
    {**P, "Limit": -1},
    {**P, "Select": "x"},
    {**P, "Select": "SPECIFIC_ATTRIBUTES"},
    {**P, "Select": "ALL_PROJECTED_ATTRIBUTES"},
    *({**P, "Select": select, "ProjectionExpression": "a"} for select in ("COUNT", "ALL_ATTRIBUTES")),
    {**GKEYS, "Select": "ALL_ATTRIBUTES"},
    {**GKEYS, "ProjectionExpression": "a"},
    {**GKEYS, "ConsistentRead": True},
    {**GKEYS, "FilterExpression": "a = :g"},
    {**GINC, "ProjectionExpression": "a, c"},
    {**LKEYS, "FilterExpression": "a = :p"},
    {**GALL, "IndexName": "nope"},
    {**P, "FilterExpression": "pk = :p"},
    {**P, "FilterExpression": "sk = :p"},
    {**GALL, "FilterExpression": "g2 = :g"},
    {**P, "FilterExpression": "a = "},
    {**P, "FilterExpression": "g2.b = :p"},
    {**P, "ProjectionExpression": "pk[0]"},
    {**P, "FilterExpression": ""},
    {**P, "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [S("p")]}}},
    {**P, "QueryFilter": {"a": {"ComparisonOperator": "NULL"}}},
    {**P, "ConditionalOperator": "AND"},
    *(
        {**P, "ExclusiveStartKey": start}
        for start in (
            {},
            {"pk": S("p")},
            {"pk": S("q"), "sk": S("1")},
            {"pk": S("p"), "sk": N("x")},
            {"pk": S("p"), "sk": S("")},
            {**START, "x": S("1")},
        )
    ),
    *(
        {**GALL, "ExclusiveStartKey": start}
        for start in (START, {**INDEX_START, "x": S("1")}, {**INDEX_START, "g1": S("o")})
    ),
    {**LALL, "ExclusiveStartKey": START},
    {**LALL, "ExclusiveStartKey": {**START, "pk": S("q"), "l1": S("l")}},
    keyed("pk = :p AND sk > :s", p=S("p"), s=S("2")) | {"ExclusiveStartKey": START},
    keyed("pk = :p AND sk < :s", p=S("p"), s=S("2")) | {"ExclusiveStartKey": {"pk": S("p"), "sk": S("3")}},
    keyed("pk = :p AND begins_with(sk, :s)", p=S("p"), s=S("2")) | {"ExclusiveStartKey": START},
    keyed("pk = :p AND sk BETWEEN :s AND :p", p=S("p"), s=S("2")) | {"ExclusiveStartKey": START},
    keyed("pk = :p AND sk BETWEEN :s AND :t", p=S("p"), s=S("1"), t=S("x" * 1025)),
    keyed("pk = :p AND sk = :s", p=S("p"), s=S("x" * 1025)),
    keyed("pk = :p AND sk < :s", p=S("p"), s=S("x" * 1025)),
    keyed("pk = :p AND begins_with(sk, :s)", p=S("p"), s=S("ä" * 513)),
    # Several faults at once: the first one is told.
    {**P_FILTERED, "ProjectionExpression": "a", "Select": "COUNT"},
    {**P_FILTERED, "ExclusiveStartKey": {}},
    {**keyed("zz = :p", p=S("a")), "FilterExpression": "pk = :p"},
    {**P, "FilterExpression": "pk = :p", "ExclusiveStartKey": {}},
    {**P, "Select": "SPECIFIC_ATTRIBUTES", "ExclusiveStartKey": {}},
    {**keyed("zz = :p", p=S("a")), "IndexName": "gkeys", "ConsistentRead": True, "Select": "ALL_ATTRIBUTES"},
    {**keyed("zz = :p", p=S("a")), "IndexName": "gkeys", "Select": "ALL_ATTRIBUTES"},
    {**GKEYS, "FilterExpression": "a = :g", "ProjectionExpression": "b"},
    {**GKEYS, "ProjectionExpression": "b", "ExclusiveStartKey": {}},
    *(
        {**P, "FilterExpression": condition}
        for condition in (
            f"{TOO_MANY} OR contains(b, b)",
            f"contains(b, b) OR {TOO_MANY}",
            f"a = :missing OR {TOO_MANY}",
            "a = :p OR (" * 200 + "#missing = :p" + ")" * 200,
            "a = " + "size(" * 500 + "b" + ")" * 500,
        )
    ),
    keyed(f"pk = :missing AND {TOO_MANY}", p=S("p")),
]


@pytest.mark.parametrize("request_", BAD_QUERIES)
def test_faults_of_queries_are_reported_as_dynamodb_does(filled_pair: Pair, request_: Request) -> None:
    assert filled_pair.both("Query", request_).code is not None


INVALID_START = "The provided starting key is invalid"
KEY_MISMATCH = "The provided key element does not match the schema"
NO_VALUE = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
ALL_OF_GKEYS = (
    "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index"
    " gkeys because its projection type is not ALL"
)
# DynamoDB Local words these in another way, or looks in another order.
SERVICE_FAULTS: list[tuple[str, Request, str]] = [
    # The values of the start, then expressions (the key condition first), then the index.
    ("Query", {**MAIN, "KeyConditionExpression": "", "ExclusiveStartKey": {"pk": {}}}, f"{INVALID_START}: {NO_VALUE}"),
    ("Query", {**P, "ExclusiveStartKey": {"pk": N("x")}}, "The parameter cannot be converted to a numeric value: x"),
    ("Scan", {**MAIN, "ExclusiveStartKey": {"pk": {}}, "Segment": 1}, f"{INVALID_START}: {NO_VALUE}"),
    ("Scan", {**MAIN, "FilterExpression": "", "Segment": 1}, "The TotalSegments parameter is required but was not"),
    (
        "Query",
        {**MAIN, "KeyConditionExpression": "", "FilterExpression": "", "ProjectionExpression": ""},
        "Invalid KeyConditionExpression: The expression can not be empty;",
    ),
    ("Query", {**keyed("pk <> :p", p=S("p")), "FilterExpression": ""}, "Invalid FilterExpression: The expression can"),
    (
        "Query",
        {**GALL, "IndexName": "a!"},
        "2 validation errors detected: Value 'a!' at 'indexName' failed to satisfy constraint: Member must satisfy"
        " regular expression pattern: [a-zA-Z0-9_.-]+; Value 'a!' at 'indexName' failed to satisfy constraint: Member"
        " must have length greater than or equal to 3",
    ),
    # The partition of the start, then the conditions, then the rest of the start.
    ("Query", {**keyed("z = :p", p=S("p")), "ExclusiveStartKey": {"pk": S("p")}}, INVALID_START),
    ("Query", {**keyed("z = :p", p=S("p")), "ExclusiveStartKey": {"pk": N(1), "x": S("1")}}, KEY_MISMATCH),
    (
        "Query",
        {**keyed("z = :p", p=S("p")), "ExclusiveStartKey": {"pk": S("p"), "sk": N(1)}},
        "Query condition missed key schema element: pk",
    ),
    ("Query", {**P, "ExclusiveStartKey": {"pk": S("p"), "x": S("1")}}, INVALID_START),
    ("Query", {**P, "ExclusiveStartKey": {"pk": S("p"), "sk": N(1)}}, KEY_MISMATCH),
    ("Query", {**GALL, "ExclusiveStartKey": {**INDEX_START, "g2": S("o")}}, KEY_MISMATCH),
    ("Query", {**GALL, "ExclusiveStartKey": {**INDEX_START, "sk": N(1)}}, f"{INVALID_START}: {KEY_MISMATCH}"),
    # The condition on the sort key, then that on the partition.
    (
        "Query",
        {**keyed("pk = :p AND sk > :s", p=S("p"), s=S("2")), "ExclusiveStartKey": {"pk": S("q"), "sk": S("1")}},
        "The provided starting key does not match the range key predicate",
    ),
    (
        "Query",
        {**keyed("pk = :p AND sk > :s", p=S("p"), s=S("2")), "ExclusiveStartKey": {"pk": S("q"), "sk": S("3")}},
        "The query can return at most one row and cannot be restarted",
    ),
    # No item has a partition key of so many bytes.
    *(
        ("Query", request, "One or more parameter values were invalid: Size of hashkey has exceeded the maximum")
        for request in (keyed("pk = :p", p=S("ä" * 1025)), {**keyed("g1 = :g", g=S("x" * 2049)), "IndexName": "gall"})
    ),
    # The filter, then the projection, then paths into keys.
    (
        "Query",
        {**P, "FilterExpression": "pk.a = :p"},
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: pk",
    ),
    ("Query", {**GKEYS, "Select": "ALL_ATTRIBUTES", "FilterExpression": "pk.a = :g"}, ALL_OF_GKEYS),
    # A scan says of a start with other attributes just that it is invalid.
    *(
        ("Scan", {**MAIN, "ExclusiveStartKey": start}, INVALID_START)
        for start in ({}, {"pk": S("p")}, {**START, "x": S("1")})
    ),
    ("Scan", {**MAIN, "ExclusiveStartKey": {**START, "sk": N(1)}}, f"{INVALID_START}: {KEY_MISMATCH}"),
    ("Scan", {**MAIN, "IndexName": "gall", "ExclusiveStartKey": {**INDEX_START, "g2": S("o")}}, KEY_MISMATCH),
    (
        "Scan",
        {**MAIN, "IndexName": "gall", "ExclusiveStartKey": {**INDEX_START, "sk": N(1)}},
        f"{INVALID_START}: {KEY_MISMATCH}",
    ),
    (
        "Scan",
        {**MAIN, "IndexName": "gkeys", "Select": "ALL_ATTRIBUTES", "ExclusiveStartKey": {**START, "g1": S("g")}},
        ALL_OF_GKEYS,
    ),
]


@pytest.mark.parametrize(("operation", "request_", "message"), SERVICE_FAULTS)
def test_faults_that_dynamodb_local_reports_otherwise(
    backend: EmbeddedBackend, operation: str, request_: Request, message: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute(operation, request_)
    assert caught.value.message.startswith(message)
    assert not caught.value.message.startswith(f"{message}: ")


SCANS: list[Request] = [
    {},
    *deep_filters(32),
    {"Limit": 2, "ReturnConsumedCapacity": "TOTAL"},
    {"Limit": 5},
    {"Limit": 6, "ConsistentRead": True, **CAPACITY},
    {"Select": "COUNT", "Limit": 2},
    {"FilterExpression": "pk = :p", "ExpressionAttributeValues": {":p": S("zz")}, **CAPACITY},
    {"IndexName": "gall", **CAPACITY},
    {"IndexName": "lall", "Limit": 2},
    {"ProjectionExpression": "a"},
]
BAD_SCANS: list[Request] = [
    *deep_filters(33),
    {"Limit": 0},
    {"Segment": 0},
    {"TotalSegments": 1},
    {"Segment": 1, "TotalSegments": 1},
    {"Segment": -1, "TotalSegments": 1},
    {"Segment": 0, "TotalSegments": 0},
    {"Segment": 0, "TotalSegments": 1_000_001},
    {"IndexName": "gkeys", "ConsistentRead": True},
    {"IndexName": "gkeys", "ProjectionExpression": "a"},
    {"IndexName": "gkeys", "Select": "ALL_ATTRIBUTES"},
    {"IndexName": "nope"},
    {"IndexName": "gall", "ExclusiveStartKey": START},
    {"Select": "ALL_PROJECTED_ATTRIBUTES"},
    {"Select": "SPECIFIC_ATTRIBUTES"},
    {"Select": "COUNT", "ProjectionExpression": "a"},
]


@pytest.mark.parametrize("request_", [*SCANS, *BAD_SCANS])
def test_scans_are_answered_as_dynamodb_does(filled_pair: Pair, request_: Request) -> None:
    answer = filled_pair.both("Scan", {**MAIN, **request_})
    assert (answer.code is None) == (request_ in SCANS)


SPECIFIC = "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
WITHOUT_INDEX = "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
JUST_COUNT = "Cannot specify the ProjectionExpression when choosing to get only the Count"


@pytest.mark.parametrize("operation", ["Query", "Scan"])
@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"Select": "SPECIFIC_ATTRIBUTES"}, SPECIFIC),
        ({"Select": "ALL_PROJECTED_ATTRIBUTES"}, WITHOUT_INDEX),
        ({"Select": "COUNT", "ProjectionExpression": "a"}, JUST_COUNT),
        (
            {"Select": "ALL_PROJECTED_ATTRIBUTES", "ProjectionExpression": "a"},
            "Cannot specify the ProjectionExpression when choosing to get ALL_PROJECTED_ATTRIBUTES",
        ),
    ],
)
def test_the_fault_of_a_selection_is_counted(
    backend: EmbeddedBackend, operation: str, selection: Request, message: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute(operation, (P if operation == "Query" else MAIN) | selection)
    assert caught.value.message == f"1 validation error detected: {message}"


@pytest.mark.parametrize(
    ("operation", "request_", "member", "least"),
    [
        ("Query", {**P, "Limit": 0}, "Limit", 1),
        ("Scan", {**MAIN, "Limit": 0}, "Limit", 1),
        ("Scan", {**MAIN, "Segment": -1, "TotalSegments": 4}, "Segment", 0),
    ],
)
def test_a_number_that_is_too_low_is_not_shown(
    backend: EmbeddedBackend, operation: str, request_: Request, member: str, least: int
) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute(operation, request_)
    assert caught.value.message == (
        f"1 validation error detected: Value at '{member}' failed to satisfy constraint: Member must have value greater"
        f" than or equal to {least}"
    )


def test_a_segment_must_be_below_their_number(backend: EmbeddedBackend) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute("Scan", {**MAIN, "Segment": 3, "TotalSegments": 3})
    assert caught.value.message == "The Segment parameter is zero-based and must be less than parameter TotalSegments"


@pytest.mark.parametrize(("operation", "said_behind"), [("Query", ""), ("Scan", ": FilterExpression is null")])
def test_what_could_use_values_is_said_to_scan_alone(
    backend: EmbeddedBackend, operation: str, said_behind: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        backend.execute(operation, {**MAIN, "ExpressionAttributeValues": {":a": S("a")}})
    assert caught.value.message == (
        f"ExpressionAttributeValues can only be specified when using expressions{said_behind}"
    )


def put_sized(backend: EmbeddedBackend, count: int, size: int, **attributes: Request) -> None:
    """Items of exactly that size in the partition p."""
    for number in range(count):
        item = {"pk": S("p"), "sk": S(f"{number:02}"), **attributes}
        used = 3 + 4 + sum(len(name) + len(next(iter(value.values()))) for name, value in attributes.items())
        backend.execute("PutItem", {**MAIN, "Item": {**item, "a": S("x" * (size - used - 1))}})


@pytest.mark.parametrize(
    ("count", "size", "expected", "has_more"),
    [(20, 104_858, 10, True), (20, 104_857, 11, True), (8, 131_072, 8, False), (9, 131_072, 8, True)],
    ids=["item over 1 MB is the last", "item below 1 MB is not", "exactly 1 MB and the end", "exactly 1 MB"],
)
def test_a_page_ends_with_the_item_that_reaches_1_mb(
    backend: EmbeddedBackend, count: int, size: int, expected: int, has_more: bool
) -> None:
    put_sized(backend, count, size)
    for operation, request in (("Query", P), ("Scan", MAIN)):
        page = backend.execute(operation, {**request, **CAPACITY})
        assert page["Count"] == page["ScannedCount"] == expected
        assert ("LastEvaluatedKey" in page) == has_more
        assert page["ConsumedCapacity"]["CapacityUnits"] == -(-expected * size // 4096) * 0.5


def test_a_page_is_measured_before_the_filter(backend: EmbeddedBackend) -> None:
    """DynamoDB Local measures it after, which AWS's documentation contradicts."""
    put_sized(backend, 20, 104_858)
    page = backend.execute("Query", {**P, "FilterExpression": "attribute_not_exists(a)"})
    assert (page["Items"], page["ScannedCount"]) == ([], 10)
    assert page["LastEvaluatedKey"] == {"pk": S("p"), "sk": S("09")}


def test_the_page_of_an_index_is_measured_by_what_the_index_holds(backend: EmbeddedBackend) -> None:
    put_sized(backend, 20, 104_856, g2=N(1))
    keys = backend.execute("Query", {**LKEYS, **CAPACITY})
    assert keys["Count"] == 20
    assert keys["ConsumedCapacity"]["LocalSecondaryIndexes"] == {"lkeys": {"CapacityUnits": 0.5}}
    fetched = backend.execute("Query", {**LKEYS, "Select": "ALL_ATTRIBUTES", **CAPACITY})
    assert fetched["Count"] == 11
    assert fetched["ConsumedCapacity"]["Table"] == {"CapacityUnits": 11 * 13.0}


def test_the_filter_of_a_scan_sees_what_the_index_holds(backend: EmbeddedBackend) -> None:
    """DynamoDB Local keeps whole items in its indexes, and filters by them."""
    backend.execute("PutItem", {**MAIN, "Item": {**START, "g1": S("g"), "a": S("A")}})
    filtered = {"FilterExpression": "a = :a", "ExpressionAttributeValues": {":a": S("A")}}
    assert backend.execute("Scan", {**MAIN, "IndexName": "gkeys", **filtered})["Count"] == 0
    assert backend.execute("Scan", {**MAIN, **filtered})["Count"] == 1


def test_a_local_index_that_holds_what_is_wanted_is_read_alone(backend: EmbeddedBackend) -> None:
    """DynamoDB Local charges the table for its key attributes."""
    backend.execute("PutItem", {**MAIN, "Item": {**START, "g2": N(1)}})
    page = backend.execute("Query", {**LKEYS, "ProjectionExpression": "g2, sk", **CAPACITY})
    assert page["Items"] == [{"g2": N(1), "sk": S("1")}]
    assert page["ConsumedCapacity"]["CapacityUnits"] == 0.5


def test_an_empty_answer_costs_half_a_unit(backend: EmbeddedBackend) -> None:
    """As a read of an item that is not there does; DynamoDB Local says 0."""
    assert backend.execute("Query", {**P, **CAPACITY})["ConsumedCapacity"]["CapacityUnits"] == 0.5
    assert backend.execute("Scan", {**MAIN, **CAPACITY})["ConsumedCapacity"]["CapacityUnits"] == 0.5


def test_a_start_key_of_another_segment_is_refused(backend: EmbeddedBackend) -> None:
    start = {"TableName": "hash", "ExclusiveStartKey": {"pk": S("4")}, "TotalSegments": 2}
    backend.execute("PutItem", {"TableName": "hash", "Item": {"pk": S("4")}})
    counts = [backend.execute("Scan", {"TableName": "hash", "Segment": n, "TotalSegments": 2})["Count"] for n in (0, 1)]
    assert backend.execute("Scan", {**start, "Segment": counts.index(1)})["Items"] == []
    with pytest.raises(RequestRefused, match="Please use ExclusiveStartKey with correct Segment"):
        backend.execute("Scan", {**start, "Segment": counts.index(0)})


def pages(backend: EmbeddedBackend, operation: str, request: Request) -> list[Request]:
    found: list[Request] = []
    while True:
        page = backend.execute(operation, request)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return found
        request = {**request, "ExclusiveStartKey": page["LastEvaluatedKey"]}


@settings(max_examples=25)
@given(
    rows=st.dictionaries(
        st.tuples(st.sampled_from("pqr"), st.text(max_size=3).filter(bool)),
        st.tuples(st.sampled_from("ghi"), st.integers(-3, 3)),
        max_size=25,
    ),
    limit=st.integers(1, 7),
    segments=st.integers(1, 5),
    forward=st.booleans(),
)
def test_following_the_pages_gives_every_item_once_and_in_order(
    rows: dict[tuple[str, str], tuple[str, int]], limit: int, segments: int, forward: bool
) -> None:
    backend = EmbeddedBackend(None)
    try:
        backend.execute("CreateTable", TABLES[2].definition())
        items = [
            {"pk": S(pk), "sk": S(sk), "g1": S(g1), "g2": N(g2), "l1": S(g1)} for (pk, sk), (g1, g2) in rows.items()
        ]
        for item in items:
            backend.execute("PutItem", {**MAIN, "Item": item})
        _check_queries(backend, items, limit, forward)
        _check_scans(backend, items, limit, segments)
    finally:
        backend.close()


def _check_queries(backend: EmbeddedBackend, items: list[Request], limit: int, forward: bool) -> None:
    paged: Request = {"Limit": limit, "ScanIndexForward": forward}
    for index in ({}, {"IndexName": "lall"}):
        found = pages(backend, "Query", {**P, **paged, **index})
        sort = "l1" if index else "sk"
        assert _sorted(found) == _sorted([item for item in items if item["pk"] == S("p")])
        values = [item[sort]["S"].encode() for item in found]
        assert values == sorted(values, reverse=not forward)
    found = pages(backend, "Query", {**GALL, **paged})
    assert _sorted(found) == _sorted([item for item in items if item["g1"] == S("g")])
    numbers = [int(item["g2"]["N"]) for item in found]
    assert numbers == sorted(numbers, reverse=not forward)


def _check_scans(backend: EmbeddedBackend, items: list[Request], limit: int, segments: int) -> None:
    for index in ({}, {"IndexName": "gall"}):
        found: list[Any] = []
        for segment in range(segments):
            part = {"Segment": segment, "TotalSegments": segments, "Limit": limit}
            found += pages(backend, "Scan", {**MAIN, **index, **part})
        assert _sorted(found) == _sorted(items)


def _sorted(items: list[Request]) -> list[Request]:
    return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
