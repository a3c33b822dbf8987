"""SELECT, mostly compared with DynamoDB Local."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.side_by_side import N, Pair, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.values import BECOMES_TOO_DEEP, TOO_DEEP
from jobtable.errors import RequestError, RequestRefused


def select(text: str, *parameters: Request, **more: Any) -> Request:
    return {"Statement": text, **({"Parameters": list(parameters)} if parameters else {}), **more}


def rows(backend: EmbeddedBackend, text: str, *parameters: Request, **more: Any) -> list[Request]:
    """All rows of all pages."""
    request = select(text, *parameters, **more)
    found: list[Request] = []
    while True:
        answer = backend.execute("ExecuteStatement", request)
        found += answer["Items"]
        if "NextToken" not in answer:
            return found
        request["NextToken"] = answer["NextToken"]


@pytest.fixture
def filled(backend: EmbeddedBackend) -> EmbeddedBackend:
    """Three partitions of three items each."""
    for name in "pqr":
        for number in range(3):
            item = {"pk": S(name), "sk": S(str(number)), "n": N(number), "g1": S("g"), "g2": N(number)}
            backend.execute("PutItem", {"TableName": "main", "Item": item})
    return backend


SAME = [
    "SELECT * FROM main WHERE pk = 'p' AND sk = '1'",
    "select sk, a from \"main\" where pk = 'p' and sk >= '2';",
    "SELECT sk FROM main WHERE pk = 'p' AND sk BETWEEN '1' AND '3' -- the end",
    "SELECT sk FROM main WHERE pk = 'p' AND begins_with(sk, '2')",
    "SELECT sk FROM main WHERE pk = 'p' AND sk <> '1' AND NOT sk = '2'",
    "SELECT sk FROM main WHERE pk = 'p' AND (g2 = 1 OR g2 > 2)",
    "SELECT sk FROM main WHERE pk = 'p' AND g2 IN (1, 2) ORDER BY sk ASC",
    "SELECT sk FROM main WHERE pk = 'p' AND g2 NOT IN [1, 2]",
    "SELECT sk FROM main WHERE pk = 'p' AND g2 NOT BETWEEN 1 AND 2",
    "SELECT sk FROM main WHERE pk = 'p' AND (g2 > 1) = (g2 < 3)",
    "SELECT sk FROM main WHERE pk = 'p' AND (g2 > 1) <> attribute_exists(a)",
    "SELECT sk FROM main WHERE pk = 'p' AND (g2 > 1) <> 'x'",
    "SELECT sk FROM main WHERE pk = 'p' AND 1 = (g2 > 1)",
    "SELECT sk FROM main WHERE pk = 'p' AND (g2 > 1) = nowhere",
    "SELECT sk FROM main WHERE pk = 'p' AND (g2 > 1) <> nowhere",
    "SELECT sk FROM main WHERE pk = 'p' AND (g2 > 1) <> a",
    "SELECT sk FROM main WHERE pk = 'p' AND size(a) = 1 AND contains(a, 'A') AND attribute_type(a, 'S')",
    "SELECT sk FROM main WHERE pk = 'p' AND b IS MISSING AND a IS NOT MISSING AND a IS STRING AND c IS NOT NULL",
    "SELECT sk FROM /* here */ main WHERE pk = 'p' AND g2 = +1.0e0",
    "SELECT sk FROM main WHERE pk = 'p' AND g2 > -1 AND a <> 'it''s'",
    "SELECT sk FROM main WHERE pk IN ['p', 'q']",
    "SELECT sk FROM main.gall WHERE g1 = 'g' AND g2 > 2",
    'SELECT * FROM "main"."gkeys" WHERE g1 = \'none\'',
    "SELECT a FROM main.lkeys WHERE pk = 'p' AND g2 < 2",
    "SELECT * FROM main WHERE pk = 'nobody'",
    "SELECT none FROM main WHERE pk = 'p' AND sk = '1'",
    "SELECT pk FROM hash WHERE pk = '1' OR pk = '1'",
]


@pytest.mark.parametrize("text", SAME)
def test_a_select_gives_what_dynamodb_local_gives(filled_pair: Pair, text: str) -> None:
    filled_pair.both("ExecuteStatement", select(text))


def test_a_parameter_to_compare_with_may_be_a_level_deeper_than_an_item(filled_pair: Pair) -> None:
    parameter: Request = {"N": "1"}
    for _ in range(32):
        parameter = {"L": [parameter]}
    text = "SELECT * FROM main WHERE pk = 'p' AND a = ?"
    assert filled_pair.both("ExecuteStatement", select(text, parameter)).code is None
    assert filled_pair.both("ExecuteStatement", select(text, {"L": [parameter]})).message == TOO_DEEP


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM hash WHERE pk = 'i' AND d = {deep}",
        "INSERT INTO hash VALUE {{'pk': 'x', 'd': {deep}}}",
        "UPDATE hash SET d = {deep} WHERE pk = 'i'",
    ],
)
def test_a_value_that_is_written_out_may_not(filled_pair: Pair, text: str) -> None:
    statement = text.format(deep="[" * 32 + "1" + "]" * 32)
    said = filled_pair.both("ExecuteStatement", select(statement)).message
    assert said == f"{BECOMES_TOO_DEEP} under root{'[0]' * 32}"


REFUSED = [
    ("SELECT sk FROM main ORDER BY sk", "Must have WHERE clause in the statement when using ORDER BY clause."),
    (
        "SELECT sk FROM main WHERE a = 'A' ORDER BY sk",
        "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause.",
    ),
    (
        "SELECT sk FROM main WHERE pk = 'p' ORDER BY a",
        "Variable reference a in ORDER BY clause must be part of the primary key",
    ),
    (
        "SELECT sk FROM main WHERE pk = 'p' ORDER BY a.b",
        "Argument to ORDER BY must be of type VariableReference. Type: PATH",
    ),
    ("SELECT a AS b FROM main", "Aliasing is not supported"),
    ("SELECT a FROM main m", "Aliasing is not supported"),
    ("SELECT a, a FROM main", "Duplicate identifiers in select clause: a"),
    ("SELECT b.a, a FROM main", "Duplicate identifiers in select clause: a"),
    (
        f"SELECT a{'.b' * 32} FROM main",
        "The document path has too many nesting levels; nesting levels: 33",
    ),
    (
        f"SELECT a FROM main WHERE a{'.b' * 32} = 1",
        "The document path has too many nesting levels; nesting levels: 33",
    ),
    ("SELECT a.* FROM main", "Changing item's hierarchy while reading isn't supported"),
    ("SELECT DISTINCT a FROM main", "Unsupported token in expression: DISTINCT"),
    ("SELECT VALUE a FROM main", "Select projection doesn't support value or pivot keywords"),
    ("SELECT size(a) FROM main", "Unexpected path component at 1:8:4"),
    ("SELECT n+1 FROM main", "Unexpected path component at 1:9:1"),
    ("SELECT * FROM main, hash", "Only select from a single table or index is supported."),
    ("SELECT * FROM main.gall.more", "A path may contain at most 2 components in the FROM clause"),
    ("SELECT * FROM main.none", "The table does not have the specified index"),
    ("SELECT sk, COUNT(*) FROM main", "Unexpected path component at 1:12:5"),
    (
        "SELECT * FROM main WHERE pk = 1",
        "Key attribute's data type should match its data type in table's schema: Key pk",
    ),
    ("SELECT * FROM main WHERE a", "WHERE clause must contain an expression that resolves to a boolean"),
    ("SELECT * FROM main WHERE pk = 'p' AND a", "The arguments to AND/OR must be Expressions"),
    ("SELECT * FROM main WHERE NOT a", "The argument to NOT must be a Type or Expression"),
    ("SELECT * FROM main WHERE a = MISSING", "MISSING must be compared using IS operator"),
    ("SELECT * FROM main WHERE a + 1 = 2", "Unsupported operator in Condition Expression. Operator: +"),
    ("SELECT * FROM main WHERE a LIKE 'A'", "Unsupported operator in Condition Expression. Operator: like"),
    ("SELECT * FROM main LIMIT 1", "Unsupported clause: LIMIT at 1:26:1"),
    ("SELECT * FROM main WHERE pk = 'p' ORDER BY pk LIMIT 10", "Unsupported clause: LIMIT at 1:53:2"),
    ("SELECT * FROM main GROUP BY pk, sk HAVING pk = 'p' LIMIT 1", "Unsupported clause: GROUP BY"),
    ("SELECT * FROM main HAVING pk = 'p'", "Unsupported clause: HAVING at 1:30:1"),
    ("SELECT * FROM main WHERE l[*] = 1", "Wildcard path component like a[*].b are not supported at 1:28:1"),
    ("SELECT * FROM main WHERE size(a.*) = 1", "Unpivot path component like a.*.b are not supported at 1:33:1"),
    ("SELECT * FROM main WHERE CASE WHEN a = 1 THEN true END", "Unsupported token in expression: CASE at 1:26:4"),
    ("SELECT * FROM main WHERE COUNT(a) = 1", "Unsupported token in expression: count at 1:26:5"),
    ("SELECT * FROM main WHERE a = -0.0", "Negative zero decimal is not supported under key root at 1:31:3"),
    ("SELECT * FROM main WHERE a = <<-0e5>>", "Negative zero decimal is not supported under key root at 1:33:3"),
    ("SELECT * FROM main WHERE a = {'b': 1, 'b': 2}", "Duplicate keys in tuple. Key: b under root at 1:30:1"),
    (
        "SELECT * FROM main WHERE a = {'b': {1.5: 1}}",
        "Tuple keys must be of type String. Actual type: DECIMAL under root.b at 1:37:3",
    ),
    (
        "SELECT * FROM main WHERE pk = 'p' ORDER BY 'sk'",
        'Argument to ORDER BY must be of type VariableReference. Type: "sk"',
    ),
    ("SELECT * FROM 'main'", "Unexpected from source"),
    ("INSERT INTO main VALUE {'pk':'z','pk':'y'}", "Duplicate keys in tuple. Key: pk under root at 1:34:4"),
    ("SELECT -1 FROM main", "Unexpected path component at 1:9:1"),
    ("DROP TABLE main", "Unsupported operation: DropTable"),
    ("CREATE TABLE other", "Unsupported operation: CreateTable"),
    ("SELECT * FROM main WHERE other(a)", "Unrecognized function: other at 1:26:5"),
    (
        "SELECT * FROM main WHERE a IS INT",
        "Unsupported data type for IS operator: INTEGER. Supported data types are [MISSING, NULL, BOOLEAN, BLOB,"
        " STRING, NUMERIC, STRUCT, TUPLE, LIST] at 1:28:2",
    ),
    (
        "SELECT * FROM main WHERE list_append(a, a)",
        "The function is not allowed in a condition expression; function: list_append",
    ),
    (
        "SELECT * FROM main WHERE a = a",
        "The first operand must be distinct from the remaining operands for this operator or function; operator: =,"
        " first operand: [a]",
    ),
    ("SELECT * FROM main WHERE pk = ?", "Number of parameters in request and statement don't match."),
    ("EXISTS(SELECT * FROM main)", "EXISTS can only be used in ExecuteTransaction write requests."),
]


REFUSED_CHANGES = [
    ("a IS NULL", "IS operator is not supported in update expressions"),
    ("list_append(a IS NULL, a)", "IS operator is not supported in update expressions"),
    ("a IS NOT NULL", "Unsupported operator in Update Expression. Operator: not"),
    ("1 AND b = 2", "Unsupported operator in Update Expression. Operator: and"),
    ("a < 1", "Unsupported operator in Update Expression. Operator: <"),
    ("a BETWEEN 1 AND 2", "Unsupported operator in Update Expression. Operator: between"),
    ("a NOT IN [1]", "Unsupported operator in Update Expression. Operator: not"),
    ("(a LIKE 'A')", "Unsupported operator in Update Expression. Operator: like"),
    ("a || 'A'", "Unsupported operator in Update Expression. Operator: ||"),
]


@pytest.mark.parametrize(("value", "message"), REFUSED_CHANGES)
def test_what_cannot_be_assigned_is_refused_in_the_words_of_the_service(
    filled_pair: Pair, value: str, message: str
) -> None:
    text = f"UPDATE main SET a = {value} WHERE pk = 'p' AND sk = 'a'"
    assert filled_pair.both("ExecuteStatement", select(text)).message == message


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_a_select_cannot_do_is_refused_in_the_words_of_the_service(
    filled_pair: Pair, text: str, message: str
) -> None:
    assert filled_pair.both("ExecuteStatement", select(text)).message == message


def test_a_nested_path_is_a_row_under_its_last_name(filled: EmbeddedBackend) -> None:
    inner = {"M": {"x": N(1), "l": {"L": [N(5), S("t")]}}}
    filled.execute("PutItem", {"TableName": "hash", "Item": {"pk": S("1"), "m": inner}})
    assert rows(filled, "SELECT pk, m.x, m['l'][1], m.none FROM hash WHERE pk = ?", S("1")) == [
        {"pk": S("1"), "x": N(1), "l[1]": S("t")}
    ]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("sk", "p0 p1 p2 q0 q1 q2 r0 r1 r2"),
        ("sk DESC", "p2 p1 p0 q2 q1 q0 r2 r1 r0"),
        ("pk DESC", "r0 r1 r2 q0 q1 q2 p0 p1 p2"),
        ("pk DESC, sk DESC", "r2 r1 r0 q2 q1 q0 p2 p1 p0"),
    ],
)
@pytest.mark.parametrize("limit", [None, 1, 2, 100])
def test_rows_come_in_the_order_of_their_keys_partition_by_partition(
    filled: EmbeddedBackend, order: str, expected: str, limit: int | None
) -> None:
    more = {} if limit is None else {"Limit": limit}
    found = rows(filled, f"SELECT pk, sk FROM main WHERE pk IN ['r', 'p', 'q'] ORDER BY {order}", **more)
    assert " ".join(row["pk"]["S"] + row["sk"]["S"] for row in found) == expected


def test_a_query_of_one_partition_comes_in_the_wanted_order(filled: EmbeddedBackend) -> None:
    found = rows(filled, "SELECT sk FROM main WHERE pk = 'p' AND sk > '0' ORDER BY sk DESC")
    assert found == [{"sk": S("2")}, {"sk": S("1")}]


def test_a_value_may_stand_before_what_it_is_compared_with(filled: EmbeddedBackend) -> None:
    found = rows(filled, "SELECT sk FROM main WHERE 'p' = pk AND '0' < sk AND 2 > n")
    assert found == [{"sk": S("1")}]


def test_limit_counts_what_is_looked_at(filled: EmbeddedBackend) -> None:
    request = select("SELECT sk FROM main WHERE pk = 'p' AND n = 2", Limit=2)
    first = filled.execute("ExecuteStatement", request)
    assert first["Items"] == []
    assert first["LastEvaluatedKey"] == {"pk": S("p"), "sk": S("1")}
    second = filled.execute("ExecuteStatement", {**request, "NextToken": first["NextToken"]})
    assert second == {"Items": [{"sk": S("2")}]}


def test_a_read_of_one_item_has_no_next_page(filled: EmbeddedBackend) -> None:
    assert "NextToken" not in filled.execute(
        "ExecuteStatement", select("SELECT sk FROM main WHERE pk = 'p' AND sk = '1'", Limit=1)
    )


def test_several_partitions_come_in_pages_of_ten(filled: EmbeddedBackend) -> None:
    for number in range(15):
        filled.execute("PutItem", {"TableName": "hash", "Item": {"pk": S(f"{number:02}")}})
    keys = ", ".join(f"'{number:02}'" for number in range(15))
    first = filled.execute("ExecuteStatement", select(f"SELECT pk FROM hash WHERE pk IN [{keys}]"))
    assert len(first["Items"]) == 10
    assert len(rows(filled, f"SELECT pk FROM hash WHERE pk IN [{keys}]")) == 15


def test_the_service_takes_fifty_partitions_at_once(filled: EmbeddedBackend) -> None:
    keys = ", ".join(f"'{number}'" for number in range(51))
    with pytest.raises(RequestRefused, match="Too many decomposed read operations for a given query"):
        rows(filled, f"SELECT pk FROM hash WHERE pk IN [{keys}]")


@pytest.mark.parametrize("other", ["SELECT sk FROM main WHERE pk = 'q'", "SELECT sk FROM main"])
def test_a_token_goes_with_its_statement_alone(filled: EmbeddedBackend, other: str) -> None:
    request = select("SELECT sk FROM main WHERE pk = ?", S("p"), Limit=1)
    token = filled.execute("ExecuteStatement", request)["NextToken"]
    foreign = [
        select(other, NextToken=token),
        select(request["Statement"], S("q"), NextToken=token),
        request | {"NextToken": token[:-2] + ("AA" if token[-2:] != "AA" else "BB")},
        request | {"NextToken": "x"},
    ]
    for one in foreign:
        with pytest.raises(RequestRefused, match="Invalid NextToken"):
            filled.execute("ExecuteStatement", one)


def test_capacity_is_that_of_a_query_or_a_scan(filled: EmbeddedBackend) -> None:
    def units(text: str, **more: Any) -> Any:
        request = select(text, ReturnConsumedCapacity="INDEXES", **more)
        return filled.execute("ExecuteStatement", request)["ConsumedCapacity"]

    assert units("SELECT * FROM main WHERE pk = 'p'") == {
        "TableName": "main",
        "CapacityUnits": 0.5,
        "Table": {"CapacityUnits": 0.5},
    }
    assert units("SELECT * FROM main WHERE pk = 'p'", ConsistentRead=True)["CapacityUnits"] == 1.0
    assert units("SELECT * FROM main WHERE pk IN ['p', 'q', 'none']")["CapacityUnits"] == 1.5
    assert units("SELECT * FROM main.gall WHERE g1 = 'g'") == {
        "TableName": "main",
        "CapacityUnits": 0.5,
        "Table": {"CapacityUnits": 0.0},
        "GlobalSecondaryIndexes": {"gall": {"CapacityUnits": 0.5}},
    }


def test_a_filter_cannot_look_at_what_an_index_does_not_hold(filled: EmbeddedBackend) -> None:
    with pytest.raises(RequestRefused, match="Secondary index gkeys does not project one or more filter attributes"):
        rows(filled, "SELECT pk FROM main.gkeys WHERE g1 = 'g' AND n = 1")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM main WHERE " + "(" * 4000,
        "SELECT * FROM main WHERE " + "NOT " * 2000 + "a = 1",
        "SELECT * FROM main WHERE a = " + "[" * 4000,
        "UPDATE main SET a = 1" + "+1" * 4000 + " WHERE pk = 'p' AND sk = '1'",
        "SELECT * FROM main WHERE a" + "=1" * 4000,
        "SELECT * FROM main WHERE " + "a=1 OR " * 1000 + "a=1",
    ],
    ids=["parentheses", "negations", "lists", "sums", "comparisons", "conditions"],
)
def test_a_statement_that_is_nested_too_deeply_is_refused(filled: EmbeddedBackend, statement: str) -> None:
    with pytest.raises(RequestRefused, match=r"nested too deeply|too many operators"):
        filled.execute("ExecuteStatement", {"Statement": statement})


def test_a_statement_is_data_and_never_sql(filled: EmbeddedBackend) -> None:
    hostile = "x'; DROP TABLE items; --"
    written = hostile.replace("'", "''")
    filled.execute("ExecuteStatement", {"Statement": f"INSERT INTO hash VALUE {{'pk': '{written}'}}"})
    assert rows(filled, f"SELECT * FROM hash WHERE pk = '{written}'") == [{"pk": S(hostile)}]
    with pytest.raises(RequestError, match="Table name should be within the length"):
        rows(filled, f'SELECT * FROM "{hostile}"')
    assert rows(filled, f'SELECT "{hostile}" FROM hash WHERE pk = ?', S(hostile)) == [{}]
