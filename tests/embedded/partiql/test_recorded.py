"""Answers that others have recorded from the service: DynamoDB Local says some of them in other words, or otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.differential.tables import Index, Table
from tests.embedded.side_by_side import N, Request, S

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConditionalCheckFailed, RequestRefused, TableNotFound

NO_STATEMENT = "Statement wasn't well formed, can't be processed: "
LEFT_OVER = f"{NO_STATEMENT}Unexpected token after expression"
NO_TERM = f"{NO_STATEMENT}Unexpected term"
NO_RIGHT_SIDE = f"{NO_STATEMENT}Missing right-hand side expression of infix operator"
NO_TABLE = f"{NO_STATEMENT}Expected identifier for simple path"
NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"
ALIAS = "Aliasing is not supported"
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
DIGITS = "Attempting to store more than 38 significant digits in a Number"
NO_NUMBER = "The parameter cannot be converted to a numeric value"
NESTED = "Nesting Levels have exceeded supported limits under root"
TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
)
INVALID = "One or more parameter values were invalid: "
DUPLICATES = f"{INVALID}Input collection [a, a] contains duplicates."
WRONG_TYPE = "An operand in the update expression has an incorrect data type"
OF_EXISTS = "operator or function: attribute_exists"
SEVERAL_ATTRIBUTES = (
    "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE keys."
)
OVERLAP = "Overlapping conditions with range keys are not supported in where clause"
ITEM = {
    "pk": S("i"),
    "ss": {"SS": ["a", "b", "c"]},
    "ns": {"NS": ["1", "2"]},
    "s": S("str"),
    "m": {"M": {"sub": S("x"), "inner": {"SS": ["x"]}}},
    "nul": {"NULL": True},
    "flag": {"BOOL": True},
}
WHERE = "SELECT * FROM hash WHERE pk = 'i' AND"


def run(backend: EmbeddedBackend, text: str, *parameters: Request, **more: Any) -> list[Request]:
    request = {"Statement": text, **({"Parameters": list(parameters)} if parameters else {}), **more}
    items: list[Request] = backend.execute("ExecuteStatement", request)["Items"]
    return items


def fault(backend: EmbeddedBackend, text: str, *parameters: Request, **more: Any) -> str:
    with pytest.raises(RequestRefused) as caught:
        run(backend, text, *parameters, **more)
    return caught.value.message


def stored(backend: EmbeddedBackend) -> Request:
    item: Request = backend.execute("GetItem", {"TableName": "hash", "Key": {"pk": S("i")}})["Item"]
    return item


@pytest.fixture
def filled(backend: EmbeddedBackend) -> EmbeddedBackend:
    """The tables, with an item in one and three in another one."""
    backend.execute("PutItem", {"TableName": "hash", "Item": ITEM})
    for number in "123":
        item = {"pk": S("p"), "sk": S(number), "g1": S("g"), "g2": N(number), "c": S("not in all indexes")}
        backend.execute("PutItem", {"TableName": "main", "Item": item})
    return backend


def under(text: str, token: str, behind: str = "") -> str:
    """Where a token stands in a statement of one line."""
    return f"1:{text.index(token, text.index(behind)) + 1}:{len(token)}"


def numbered(count: int) -> str:
    return ", ".join(f"'{number}'" for number in range(count))


REFUSED = [
    ("SELECT * FROM hash WHERE pk = 'x' foo", LEFT_OVER),
    ("SELECT * FROM hash WHERE n = 1 e5", LEFT_OVER),
    ("INSERT INTO hash VALUE {'pk': 'x'} foo", LEFT_OVER),
    ("UPDATE hash SET a = 9 WHERE pk = 'x' foo", LEFT_OVER),
    ("DELETE FROM hash WHERE pk = 'x' foo", LEFT_OVER),
    ("SELECT * FROM hash WHERE pk = 'x')", LEFT_OVER),
    ("DELETE FROM hash WHERE pk = 'x' ORDER BY pk", LEFT_OVER),
    ("SELECT * FROM hash ORDER BY pk WHERE pk = 'x'", LEFT_OVER),
    ("INSERT INTO hash t VALUE {'pk': 'x'}", LEFT_OVER),
    ("FROM hash SET c = 1 WHERE pk = 'x'", LEFT_OVER),
    ("FROM hash SET c = 1 WHERE pk = 'x' SET d = 2", LEFT_OVER),
    ("SELECT * FROM hash WHERE n = 1e2147483648", NO_STATEMENT),
    ("SELECT * FROM hash WHERE n = 1e99999999999", NO_STATEMENT),
    (f"SELECT * FROM hash WHERE n = 1e-{'9' * 5000}", NO_STATEMENT),
    ("SELECT * FROM hash WHERE n = 1.5e-2147483647", NO_STATEMENT),
    ("SELECT * FROM hash WHERE pk = 'x' # note", NO_STATEMENT),
    ("SELECT * FROM hash WHERE pk = 'x' /* note", NO_STATEMENT),
    ("SELECT * FROM hash t WHERE pk = 'x'", ALIAS),
    ("SELECT * FROM hash AS t WHERE pk = 'x'", ALIAS),
    ("UPDATE hash t SET a = 3 WHERE pk = 'x'", ALIAS),
    ("DELETE FROM hash t WHERE pk = 'x'", ALIAS),
    ("SELECT * FROM hash WHERE n = 1e126", f"{OVERFLOW} under root"),
    ("SELECT * FROM hash WHERE n = 1e-131", f"{UNDERFLOW} under root"),
    ("SELECT * FROM hash WHERE n = 123456789012345678901234567890123456789", f"{DIGITS} under root"),
    ("INSERT INTO hash VALUE {'pk': 'x', 'n': 1e126}", f"{OVERFLOW} under root"),
    ("INSERT INTO hash VALUE {'pk': 'x', 'm': {'x': 1e126}}", f"{OVERFLOW} under root.x"),
    ("INSERT INTO hash VALUE {'pk': 'x', 'l': [1, 1e126]}", f"{OVERFLOW} under root[1]"),
    ("UPDATE hash SET a = 1e-131 WHERE pk = 'x'", f"{UNDERFLOW} under root"),
    ("SELECT * FROM hash WHERE", NO_TERM),
    ("SELECT * FROM hash WHERE;", NO_TERM),
    ("UPDATE hash SET a = 1 WHERE", NO_TERM),
    ("DELETE FROM hash WHERE", NO_TERM),
    ("SELECT * FROM hash WHERE NOT", NO_TERM),
    ("SELECT * FROM hash WHERE (", NO_TERM),
    ("SELECT * FROM nowhere WHERE", NO_TERM),
    ("SELECT * FROM", NO_TERM),
    ("SELECT * FROM hash WHERE pk = 'x' AND", NO_RIGHT_SIDE),
    ("SELECT * FROM hash WHERE pk = 'x' OR", NO_RIGHT_SIDE),
    ("SELECT * FROM hash WHERE ORDER BY pk", f"{NO_STATEMENT}Unexpected keyword"),
    ("SELECT * FROM hash WHERE IS NULL", f"{NO_STATEMENT}Unexpected operator"),
    ("SELECT * FROM hash WHERE pk = LIKE", f"{NO_STATEMENT}Unexpected operator"),
    ("SELECT * FROM hash WHERE pk = 'x' AND a IS FOO", f"{NO_STATEMENT}Expected type name"),
    ("x IS INT4", "Unsupported operation: IsType"),
    ("x IS DOUBLE PRECISION", "Unsupported operation: IsType"),
    ("DELETE FROM", NO_TABLE),
    ("DELETE FROM;", NO_TABLE),
    ("DELETE FROM WHERE pk = 'x'", NO_TABLE),
    ("FROM hash SET c = 1", NO_KEY),
    ("FROM hash REMOVE a", NO_KEY),
    ("FROM hash WHERE a = 1 SET c = 1", NO_KEY),
    ("SELECT * FROM \"\" WHERE pk = 'x'", "Path component cannot be an empty string"),
    ("SELECT * FROM main.\"\" WHERE pk = 'x'", "Path component cannot be an empty string"),
    ("SELECT * FROM main.main WHERE pk = 'x'", "The table does not have the specified index"),
    ("SELECT c, b, d FROM main.ginc WHERE g2 = 1", f"{INVALID}Global secondary index ginc does not project [c, d]"),
    ("SELECT d, c FROM main.ginc", f"{INVALID}Global secondary index ginc does not project [d, c]"),
    (
        "SELECT pk FROM main.lkeys WHERE pk = 'p' AND c = 'x'",
        f"{INVALID}Secondary index lkeys does not project one or more filter attributes: [c]",
    ),
    *(
        (
            f"SELECT pk FROM main.gkeys WHERE {where}",
            f"{INVALID}Secondary index gkeys does not project one or more filter attributes: [{names}]",
        )
        for where, names in (
            ("g1 = 'g' AND b = '1' AND (a = '2' OR sk = '3')", "a, b"),
            ("g1 = 'g' AND (zz = '1' OR aa = '2' OR NOT mm = '3')", "zz, aa, mm"),
            ("g1 IN ['g', 'h'] AND size(zz) = 1", "zz"),
            ("(g1 = 'g' OR g1 = 'h') AND zz = '1'", "zz"),
            ("g1 = 'b' AND u1 = '1' OR g1 = 'q' AND u2 = '1'", "u2"),
            ("g1 = 'q' AND u1 = '1' OR g1 = 'b' AND u2 = '1'", "u1"),
        )
    ),
    ("SELECT pk FROM main.gkeys WHERE g1 = 'g' AND zz = '1' OR g1 = 'g' AND aa = '1'", OVERLAP),
    *(
        (f"SELECT sk FROM main WHERE {where}", "Too many decomposed read operations for a given query.")
        for where in (
            f"pk IN [{numbered(51)}]",
            f"pk = 'p' AND sk IN [{numbered(51)}]",
            f"pk IN [{numbered(26)}] AND sk IN ['1', '2']",
        )
    ),
    (
        "SELECT * FROM nowhere WHERE pk = 'x' AND a < true",
        "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL",
    ),
    (f"{WHERE} attribute_exists('ss')", f"Operator or function requires a document path; {OF_EXISTS}"),
    (
        f"{WHERE} attribute_exists()",
        f"Incorrect number of operands for operator or function; {OF_EXISTS}, number of operands: 0",
    ),
    (f"{WHERE} attribute_exists(m.inner)", f"{NO_STATEMENT}Invalid path dot component"),
    ("UPDATE hash SET ss = set_add(ss, <<1>>) WHERE pk = 'i'", WRONG_TYPE),
    ("UPDATE hash SET s = set_add(s, <<'x'>>) WHERE pk = 'i'", WRONG_TYPE),
    ("UPDATE hash SET ss = set_delete(ss, <<1>>) WHERE pk = 'i'", WRONG_TYPE),
    (
        "UPDATE hash SET ss = set_add(ss, <<'x', 'x'>>) WHERE pk = 'i'",
        f"{INVALID}Input collection [x, x] contains duplicates.",
    ),
    ("UPDATE hash SET ss = set_add(ss, <<>>) WHERE pk = 'i'", "Empty bags are not supported"),
    (
        "UPDATE hash SET ns = set_add(ns, <<3, 3.0>>) WHERE pk = 'i'",
        f"{INVALID}Input collection [3, 3.0] contains duplicates! under root",
    ),
    ("SELECT l[-1] FROM hash", "List index is not within the allowable range; index: [-1] at 1:11:1"),
    ("SELECT l[2147483648] FROM hash", "List index is not within the allowable range; index: [2147483648] at 1:10:10"),
    ("UPDATE hash SET d = " + "{'a': " * 32 + "1" + "}" * 32 + " WHERE pk = 'i'", NESTED + ".a" * 32),
    ("UPDATE hash SET d = {'a': " + "[" * 31 + "1" + "]" * 31 + "} WHERE pk = 'i'", NESTED + ".a" + "[0]" * 31),
    ("UPDATE hash SET m.inner = set_add(m.inner, <<'y'>>) WHERE pk = 'i'", f"{NO_STATEMENT}Invalid path dot component"),
    ("SELECT * FROM main WHERE pk = 'p' AND a = '1' OR pk = 'p' AND sk = '2'", OVERLAP),
    ("SELECT * FROM main WHERE pk = 'p' AND a <> '1' OR pk = 'p' AND sk = '2'", OVERLAP),
]
FUNCTIONS = [
    (f"{WHERE} EXISTS(ss)", "Unrecognized function: exists at {}", "EXISTS", ""),
    (f"{WHERE} set_add(ss, <<'x'>>) = ss", "Unrecognized function: set_add at {}", "set_add", ""),
    ("SELECT attribute_exists(ss) FROM hash", "Unexpected path component at {}", "attribute_exists", ""),
    (
        "INSERT INTO hash VALUE {'pk': 'x', 'ss': set_add(<<'a'>>, <<'b'>>)}",
        "Unsupported data type: set_add under key root at {}",
        *("set_add", ""),
    ),
    *(
        (f"UPDATE hash SET {change} WHERE pk = 'i'", message, token, behind)
        for name in ("set_add", "set_delete")
        for change, message, token, behind in (
            (
                f"t = {name}(ss, <<'x'>>)",
                f"The first argument to {name.upper()} must equal the assignment value at {{}}",
                name,
                "",
            ),
            (
                f"ss = {name}(<<'a'>>, <<'b'>>)",
                f"The first argument to {name.upper()} must equal the assignment value at {{}}",
                name,
                "",
            ),
            (
                f"ss = {name}(ss, 'x')",
                f"The second argument to {name.upper()} must be a value with type SET at {{}}",
                "ss",
                name,
            ),
            (f"ss = {name}(ss)", f"{name.upper()} must have exactly two arguments at {{}}", name, ""),
        )
    ),
]


@pytest.mark.parametrize(
    ("text", "message"),
    [*REFUSED, *((text, message.format(under(text, token, behind))) for text, message, token, behind in FUNCTIONS)],
)
def test_what_is_wrong_with_a_statement_is_told_in_the_words_of_the_service(
    filled: EmbeddedBackend, text: str, message: str
) -> None:
    assert fault(filled, text) == message
    assert stored(filled) == ITEM


def test_an_index_is_not_read_consistently_and_a_missing_table_is_not_updated(filled: EmbeddedBackend) -> None:
    text = "SELECT * FROM main.gall WHERE g1 = 'g'"
    assert (
        fault(filled, text, ConsistentRead=True)
        == "Strongly consistent read is not supported on Global Secondary Indexes"
    )
    with pytest.raises(TableNotFound, match="Requested resource not found"):
        run(filled, "FROM nowhere WHERE pk = 'x' SET c = 1")


def test_an_index_over_several_attributes_is_not_read(filled: EmbeddedBackend) -> None:
    text = ("a", "S"), ("b", "S")
    filled.execute(
        "CreateTable", Table("several", ("pk", "S"), None, (Index("both", text, (("c", "S"),)),)).definition()
    )
    for where in ("WHERE a = 'x'", "WHERE a = 5", "WHERE pk = 'x'", "", "WHERE a = 'x' AND b = 'y' ORDER BY c DESC"):
        assert fault(filled, f"SELECT * FROM several.both {where}") == SEVERAL_ATTRIBUTES
    assert fault(filled, "SELECT COUNT(*) FROM several.both") == SEVERAL_ATTRIBUTES
    assert fault(filled, "SELECT * FROM several.both WHERE") == NO_TERM
    assert fault(filled, "SELECT * FROM several.both WHERE a = ?", N("x")) == f"{NO_NUMBER}: x"
    answer = filled.execute(
        "BatchExecuteStatement", {"Statements": [{"Statement": "SELECT * FROM several.both WHERE a = 'x' AND b = 'y'"}]}
    )
    assert answer["Responses"] == [{"Error": {"Code": "ValidationError", "Message": SEVERAL_ATTRIBUTES}}]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("attribute_exists(ss) = true", True),
        ("attribute_exists(nope) = false", True),
        ("true <> attribute_exists(ss)", False),
        ("contains(nope, 'z') = false", True),
        ("(s = 'str' OR s = 'x') = ?", True),
        ("NOT attribute_exists(ss) = true", False),
        ("flag IS BOOL", True),
        ("s IS BOOL", False),
        ("NOT attribute_exists(nope)", True),
        ("ATTRIBUTE_EXISTS(m.sub)", True),
        ("attribute_exists(m.nope)", False),
        ("nul IS NULL", True),
        ("s IS NOT NULL", True),
    ],
)
def test_a_condition_holds_where_it_does_in_the_service(filled: EmbeddedBackend, condition: str, holds: bool) -> None:
    parameters = [{"BOOL": True}] if "?" in condition else []
    assert run(filled, f"{WHERE} {condition}", *parameters) == ([ITEM] if holds else [])


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("pk = 'p' AND NOT sk = '1' OR pk = 'p' AND sk = '2'", "23"),
        ("pk = 'p' AND sk <> '1' OR pk = 'p' AND sk = '2'", "23"),
        ("pk = 'p' AND NOT begins_with(sk, 'x') OR pk = 'p' AND sk = '2'", "123"),
        ("pk = 'p' AND NOT sk IN ['1', '3'] OR pk = 'p' AND sk = '2'", "2"),
        ("pk = 'p' AND NOT (sk = '1') OR pk = 'p' AND sk = '2'", "23"),
        ("pk = 'p' OR pk = 'p' AND NOT sk = '1'", "123"),
        ("pk = 'p' AND (sk = '1' OR sk = '2')", "12"),
        ("pk = 'p' AND sk < '2' OR pk = 'p' AND sk > '2'", "13"),
        ("pk = 'p' AND (a = 'x' OR g1 = 'g')", "123"),
        ("pk = 'p' AND sk = '1' AND sk = '2' OR pk = 'p'", "123"),
        ("pk = 'q' AND a = 'x' OR pk = 'p' AND sk = '2'", "2"),
        ("(" * 3 + "pk = 'p')) OR a = 'x') AND sk = '3'", "3"),
    ],
)
def test_alternatives_that_read_other_parts_or_say_what_the_sort_key_is_not_are_taken(
    filled: EmbeddedBackend, condition: str, found: str
) -> None:
    rows = run(filled, f"SELECT sk FROM main WHERE {condition}")
    assert sorted(row["sk"]["S"] for row in rows) == list(found)


@pytest.mark.parametrize(
    "condition",
    [
        "pk = 'p' OR pk = 'p' AND sk = '2'",
        "pk IN ['p', 'q', 'p']",
        "pk = 'p' AND (sk > '0' OR sk < '5')",
        "pk = 'p' AND (sk = '1' OR a = 'x')",
        "pk = 'p' AND sk BETWEEN '1' AND '2' OR pk IN ['p', 'q'] AND begins_with(sk, '2')",
    ],
)
def test_alternatives_that_read_the_same_part_of_a_partition_are_refused(
    filled: EmbeddedBackend, condition: str
) -> None:
    assert fault(filled, f"SELECT sk FROM main WHERE {condition}") == OVERLAP


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("g1 = 'h' AND c = 'x' OR g1 = 'g'", "123"),
        ("g1 = 'g' AND c = 'not in all indexes' OR g1 = 'h'", ""),
        ("g1 = 'g' AND sk = '2' OR g1 = 'h' AND c = 'x'", "2"),
        ("g1 = 'g' AND (g1 = 'h' OR c = 'x')", ""),
        ("g1 = 'g' AND c = 'x' OR sk = '3'", "3"),
        ("g1 > 'a' AND c = 'x'", ""),
        ("NOT c = 'x'", "123"),
    ],
)
def test_an_alternative_may_look_at_what_an_index_does_not_hold_if_another_does_not(
    filled: EmbeddedBackend, condition: str, found: str
) -> None:
    rows = run(filled, f"SELECT sk FROM main.gkeys WHERE {condition}")
    assert sorted(row["sk"]["S"] for row in rows) == list(found)


def test_alternatives_are_not_counted_where_some_are_of_any_partition(filled: EmbeddedBackend) -> None:
    assert run(filled, f"SELECT sk FROM main WHERE pk IN [{numbered(51)}] OR sk = '2'") == [{"sk": S("2")}]


UPDATES = [
    ("FROM hash WHERE pk = 'i' SET c = 1", {**ITEM, "c": N(1)}),
    ("from hash where pk = 'i' and s = 'str' remove ss", {name: ITEM[name] for name in ITEM if name != "ss"}),
    ("FROM hash WHERE pk = ? SET c = 2, s = 'x' REMOVE m.sub", None),
]


@pytest.mark.parametrize(("text", "expected"), UPDATES)
def test_an_update_may_begin_with_its_table(filled: EmbeddedBackend, text: str, expected: Request | None) -> None:
    parameters = [S("i")] if "?" in text else []
    returned = run(filled, f"{text} RETURNING ALL NEW *", *parameters)
    assert returned == [stored(filled)]
    assert stored(filled) == (expected or {**ITEM, "c": N(2), "s": S("x"), "m": {"M": {"inner": {"SS": ["x"]}}}})


def test_an_update_that_begins_with_its_table_has_its_conditions(filled: EmbeddedBackend) -> None:
    for text in ("FROM hash WHERE pk = 'i' AND s = 'x' SET c = 5", "FROM hash WHERE pk = 'none' SET c = 1"):
        with pytest.raises(ConditionalCheckFailed):
            run(filled, text)
    statement = {"Statement": "FROM hash WHERE pk = 'i' SET c = 1"}
    assert filled.execute("ExecuteTransaction", {"TransactStatements": [statement]}) == {"Responses": []}
    answer = filled.execute("BatchExecuteStatement", {"Statements": [statement]})
    assert answer == {"Responses": [{"TableName": "hash"}]}
    assert stored(filled)["c"] == N(1)


def deep(levels: int, leaf: Request) -> Request:
    for _ in range(levels):
        leaf = {"M": {"n": leaf}}
    return leaf


PARAMETERS = [
    *(
        (N(text), f"{NO_NUMBER}: {text}")
        for text in ("1e99999999999", "-1e99999999999", "1e2147483648", "1e-2147483648")
    ),
    (N("1e2147483647"), UNDERFLOW),
    (N(""), NO_NUMBER),
    ({"L": [N(1), N("1e99999999999")]}, f"{NO_NUMBER}: 1e99999999999"),
    ({"NS": ["1", "1e99999999999"]}, f"{NO_NUMBER}: 1e99999999999"),
    ({"M": {"d": deep(40, S("x")), "n": N("abc")}}, TOO_DEEP),
    ({"M": {"n": N("abc"), "d": deep(100, S("x"))}}, f"{NO_NUMBER}: abc"),
    (deep(40, N("abc")), TOO_DEEP),
    ({"SS": ["a", "a"]}, DUPLICATES),
]


def test_a_parameter_is_looked_at_before_the_statement(filled: EmbeddedBackend) -> None:
    assert fault(filled, "UPDATE hash SET WHERE", {"SS": ["a", "a"]}) == DUPLICATES


@pytest.mark.parametrize(("text", "key"), [("[{}]", "root[0]"), ("{{'k': {}}}", "root.k")])
def test_a_parameter_stands_in_no_list_and_no_map(filled: EmbeddedBackend, text: str, key: str) -> None:
    statement = f"UPDATE hash SET s = {text.format('?')} WHERE pk = 'i'"
    said = fault(filled, statement, S("x"))
    assert said == f"Unsupported data type: Parameter under key {key} at {under(statement, '?')}"


def test_the_first_of_a_list_may_have_a_sign(filled: EmbeddedBackend) -> None:
    assert run(filled, "SELECT s[-0] FROM hash WHERE pk = 'i'") == [{}]


@pytest.mark.parametrize(("parameter", "message"), PARAMETERS)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM hash WHERE pk = 'i' AND n = ?",
        "INSERT INTO hash VALUE {'pk': 'x', 'n': ?}",
        "UPDATE hash SET n = ? WHERE pk = 'i'",
        "SELECT * FROM hash WHERE pk = ?",
    ],
)
def test_a_parameter_is_read_as_the_service_reads_it(
    filled: EmbeddedBackend, text: str, parameter: Request, message: str
) -> None:
    statement = {"Statement": text, "Parameters": [parameter]}
    assert fault(filled, text, parameter) == message
    with pytest.raises(RequestRefused) as caught:
        filled.execute("ExecuteTransaction", {"TransactStatements": [statement]})
    assert caught.value.message == message
    answer = filled.execute("BatchExecuteStatement", {"Statements": [statement]})
    assert answer == {"Responses": [{"Error": {"Code": "ValidationError", "Message": message}}]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM hash WHERE", NO_TERM),
        (
            f"{WHERE} attribute_exists(ss)",
            "Select statements within ExecuteTransaction must specify the primary key in the where clause.",
        ),
        ("SELECT * FROM main.gall WHERE g1 = 'g'", "Reads on indices are not supported within transactions."),
        (
            "UPDATE hash SET a = 1 WHERE pk = 'i' RETURNING ALL NEW *",
            "RETURNING clause is not supported in ExecuteTransaction.",
        ),
        ("UPDATE hash SET a = <<'x', 'x'>> WHERE pk = 'i'", f"{INVALID}Input collection [x, x] contains duplicates."),
    ],
)
def test_a_transaction_says_which_statement_is_wrong(filled: EmbeddedBackend, text: str, message: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        filled.execute("ExecuteTransaction", {"TransactStatements": [{"Statement": text}]})
    assert caught.value.message == f"Validation failed in TransactStatements[0]: {message}"


@pytest.mark.parametrize(
    "text",
    [
        f"{WHERE} attribute_exists(ss)",
        "SELECT * FROM hash WHERE s = 'str'",
        "SELECT * FROM main WHERE pk = 'p'",
        "SELECT * FROM main.gall WHERE g1 = 'g'",
        "SELECT * FROM main.gall WHERE pk = 'p' AND sk = '1' AND g1 = 'g'",
    ],
)
def test_a_batch_reads_items_by_their_keys_alone(filled: EmbeddedBackend, text: str) -> None:
    answer = filled.execute("BatchExecuteStatement", {"Statements": [{"Statement": text}]})
    message = "Select statements within BatchExecuteStatement must specify the primary key in the where clause."
    assert answer == {"Responses": [{"Error": {"Code": "ValidationError", "Message": message}}]}
