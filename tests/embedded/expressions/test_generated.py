"""Generated conditions and updates do the same here and on DynamoDB Local."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobtable.embedded.expressions import (
    Placeholders,
    compile_condition,
    compile_projection,
    compile_update,
    prepare_key_condition,
)
from jobtable.embedded.expressions.grammar import Function, Parser, Sum
from jobtable.embedded.table_schema import KeyAttribute
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Item

COMPARED = settings(
    max_examples=120,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

SCALARS: st.SearchStrategy[AttributeValue] = st.sampled_from(
    [
        *({"S": text} for text in ("", "a", "ab", "b", "S")),
        *({"N": number} for number in ("0", "1", "2", "-1.5", "10000000000000000000000000000000000001")),
        *({"B": binary} for binary in ("", "YQ==", "YWI=")),
        *({"BOOL": truth} for truth in (True, False)),
        {"NULL": True},
        *({"SS": members} for members in (["a"], ["a", "b"])),
        *({"NS": numbers} for numbers in (["1"], ["1", "2"])),
        {"BS": ["YQ=="]},
    ]
)
ATTRIBUTE_VALUES: st.SearchStrategy[AttributeValue] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda elements: {"L": elements})
        | st.dictionaries(st.sampled_from("xy"), inner, max_size=2).map(lambda members: {"M": members})
    ),
    max_leaves=5,
)
ITEMS: st.SearchStrategy[Item] = st.dictionaries(st.sampled_from("abcd"), ATTRIBUTE_VALUES, max_size=4)
VALUES = st.fixed_dictionaries({f":{name}": ATTRIBUTE_VALUES for name in "uvw"})

PATHS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["a", "b", "c", "d", "#a"]),
        st.sampled_from(["", "", "", ".x", ".y", "[0]", "[1]", "[1].x", ".x[0]"]),
    ),
)
NAMED_VALUES = st.sampled_from([":u", ":v", ":w"])
OPERANDS = PATHS | NAMED_VALUES | PATHS.map("size({})".format)
TESTS = st.one_of(
    st.builds("{} {} {}".format, OPERANDS, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), OPERANDS),
    st.builds("{} BETWEEN {} AND {}".format, OPERANDS, OPERANDS, OPERANDS),
    st.builds("{} IN ({}, {})".format, OPERANDS, OPERANDS, OPERANDS),
    PATHS.map("attribute_exists({})".format),
    PATHS.map("attribute_not_exists({})".format),
    st.builds("{}({}, {})".format, st.sampled_from(["contains", "begins_with", "attribute_type"]), OPERANDS, OPERANDS),
)
CONDITIONS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.builds("{} AND {}".format, inner, inner),
        st.builds("{} OR {}".format, inner, inner),
        inner.map("NOT {}".format),
        inner.map("({})".format),
    ),
    max_leaves=4,
)

UPDATE_OPERANDS = st.one_of(
    PATHS,
    NAMED_VALUES,
    st.builds("if_not_exists({}, {})".format, PATHS, PATHS | NAMED_VALUES),
)
ASSIGNED = st.one_of(
    UPDATE_OPERANDS,
    st.builds("{} {} {}".format, UPDATE_OPERANDS, st.sampled_from("+-"), UPDATE_OPERANDS),
    st.builds("list_append({}, {})".format, UPDATE_OPERANDS, UPDATE_OPERANDS),
)


KEY_OPERANDS = st.sampled_from(["pk", "sk", "#a", "pk.x", "size(sk)", ":u", ":v", ":w"])
KEY_CONDITIONS = st.lists(
    st.one_of(
        st.just("pk = :u"),
        st.builds("{} {} {}".format, KEY_OPERANDS, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), KEY_OPERANDS),
        st.builds("{} BETWEEN {} AND {}".format, KEY_OPERANDS, KEY_OPERANDS, KEY_OPERANDS),
        st.builds("begins_with({}, {})".format, KEY_OPERANDS, KEY_OPERANDS),
        st.sampled_from(["contains(sk, :u)", "NOT sk = :u", "(sk > :v)", "(pk = :u OR sk = :v)", "sk IN (:u)"]),
    ),
    min_size=1,
    max_size=3,
).map(" AND ".join)


def section(keyword: str, action: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(action, max_size=2).map(lambda actions: f"{keyword} {', '.join(actions)}" if actions else "")


UPDATES = (
    st.tuples(
        section("SET", st.builds("{} = {}".format, PATHS, ASSIGNED)),
        section("REMOVE", PATHS),
        section("ADD", st.builds("{} {}".format, PATHS, NAMED_VALUES)),
        section("DELETE", st.builds("{} {}".format, PATHS, NAMED_VALUES)),
    )
    .map(lambda sections: " ".join(filter(None, sections)))
    .filter(bool)
)


def placed(expression: str, values: dict[str, Any]) -> tuple[dict[str, str] | None, dict[str, Any] | None]:
    used = {name: value for name, value in values.items() if name in expression}
    return ({"#a": "a"} if "#a" in expression else None), used or None


def outcome(call: Callable[[], Any]) -> Any:
    """What the call gives, or the message with which it is refused."""
    try:
        return call()
    except RequestRefused as error:
        if "valid types" in error.message or "attribute_type, operand type: {" in error.message:
            # DynamoDB Local lists types in an order of its own, and its internal ones among them.
            return error.message.partition("{")[0]
        if "Two document paths" in error.message:
            # Of three or more paths DynamoDB Local does not always name two that are at odds.
            return error.message.partition("; path one")[0]
        return error.message


@COMPARED
@given(item=ITEMS, expression=CONDITIONS, values=VALUES)
def test_conditions(local: Any, item: Item, expression: str, values: dict[str, Any]) -> None:
    names, used = placed(expression, values)
    local.put(item)
    here = outcome(lambda: compile_condition(expression, Placeholders(names, used)).holds(item))
    assert here == outcome(lambda: local.holds(expression, names, used))


@COMPARED
@given(item=ITEMS, expression=UPDATES, values=VALUES)
def test_updates(local: Any, item: Item, expression: str, values: dict[str, Any]) -> None:
    names, used = placed(expression, values)
    local.put(item)

    def updated_there() -> Item:
        local.execute(
            "UpdateItem",
            TableName="things",
            Key={"pk": {"S": "k"}},
            UpdateExpression=expression,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=used,
        )
        attributes: Item = local.attributes()
        return attributes

    here = outcome(lambda: compile_update(expression, Placeholders(names, used)).apply(item))
    there = outcome(updated_there)
    actions = Parser(expression).update().actions
    is_one_plain_action = len(actions) == 1 and not isinstance(actions[0].value, (Sum, Function))
    if isinstance(here, str) and not here.startswith("Invalid") and not is_one_plain_action:
        # Which of several parts that cannot be applied is reported depends on the inside of DynamoDB Local.
        assert isinstance(there, str)
        assert not there.startswith("Invalid")
    else:
        assert here == there


@COMPARED
@given(item=ITEMS, paths=st.lists(PATHS, min_size=1, max_size=4))
def test_projections(local: Any, item: Item, paths: list[str]) -> None:
    expression = ", ".join(paths)
    names, _ = placed(expression, {})
    local.put(item)

    def projected_there() -> Item:
        answer = local.execute(
            "GetItem",
            TableName="things",
            Key={"pk": {"S": "k"}},
            ProjectionExpression=expression,
            ExpressionAttributeNames=names,
        )
        projected: Item = answer["Item"]
        return projected

    here = outcome(lambda: compile_projection(expression, Placeholders(names)).apply(item))
    assert here == outcome(projected_there)


@COMPARED
@given(expression=KEY_CONDITIONS, values=VALUES)
def test_key_conditions(local: Any, expression: str, values: dict[str, Any]) -> None:
    names, used = placed(expression, values)

    def queried_there() -> None:
        local.execute(
            "Query",
            TableName="sorted_things",
            KeyConditionExpression=expression,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=used,
        )

    def compiled_here() -> None:
        unmatched = prepare_key_condition(expression, Placeholders(names, used))
        unmatched.against((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "S"),))

    here, there = outcome(compiled_here), outcome(queried_there)
    if there is not None and there.startswith("Key attributes must be scalars"):
        # The service looks at a key condition before it knows which attributes are keys.
        assert here is not None
        return
    assert there == (here if here is None else _in_words_of_local(here))


def _in_words_of_local(message: str) -> str:
    """The service names the attribute that is missed, counts conditions, and says which expression is malformed."""
    message = re.sub("(missed key schema element): .*", r"\1", message)
    message = re.sub(r"The number of query conditions .*", "Conditions can be of length 1 or 2 only", message)
    return re.sub("^Invalid KeyConditionExpression: (KeyCond|Invalid (operator|condition) )", r"\1", message)
