"""What the pinned cases do not show of updates: inputs stay as they are, returned parts, depth, exact arithmetic."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from jobtable.embedded.expressions import Placeholders, Update, compile_update
from jobtable.errors import RequestRefused
from jobtable.store.backend import AttributeValue, Item

ITEM: Item = {
    "a": {"M": {"b": {"S": "dog"}, "c": {"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]}}},
    "d": {"S": "cat"},
    "big": {"N": "9" * 38},
}
VALUES: dict[str, AttributeValue] = {":s": {"S": "x"}, ":n": {"N": "7"}, ":one": {"N": "1"}, ":half": {"N": "0.5"}}


def compiled(text: str, **values: AttributeValue) -> Update:
    return compile_update(text, Placeholders(None, VALUES | {f":{name}": value for name, value in values.items()}))


@pytest.mark.parametrize(
    "text",
    [
        "SET a.b = :s, a.c[1] = :n, a.c[9] = :s, d = :s",
        "REMOVE a.b, a.c[0], a.c[2], d",
        "SET a.c = list_append(a.c, a.c)",
    ],
)
def test_the_old_item_is_not_changed(text: str) -> None:
    before = copy.deepcopy(ITEM)
    compiled(text).apply(ITEM)
    assert before == ITEM


# The service gives back the touched paths only, DynamoDB Local the whole top-level attribute.
@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("SET d = :s, e = :n", {"d": {"S": "cat"}}, {"d": {"S": "x"}, "e": {"N": "7"}}),
        ("SET a.b = :s", {"a": {"M": {"b": {"S": "dog"}}}}, {"a": {"M": {"b": {"S": "x"}}}}),
        (
            "SET a.c[1] = :n",
            {"a": {"M": {"c": {"L": [{"N": "2"}]}}}},
            {"a": {"M": {"c": {"L": [{"N": "7"}]}}}},
        ),
        ("SET a.x = :n", {}, {"a": {"M": {"x": {"N": "7"}}}}),
        ("SET a.c[100] = :n", {}, {}),
        ("REMOVE a.c[1], a.c[3]", {"a": {"M": {"c": {"L": [{"N": "2"}]}}}}, {"a": {"M": {"c": {"L": [{"N": "3"}]}}}}),
        ("REMOVE d", {"d": {"S": "cat"}}, {}),
    ],
)
def test_updated_part(text: str, old: Item, new: Item) -> None:
    update = compiled(text)
    assert update.updated_part(ITEM) == old
    assert update.updated_part(update.apply(ITEM)) == new


def test_top_level_names_are_those_written() -> None:
    assert compiled("SET a.b = d, e = if_not_exists(f, :s) REMOVE g ADD h :n").top_level_names == set("aegh")


def test_reads_see_the_old_item() -> None:
    item: Item = {"x": {"N": "1"}, "y": {"N": "2"}}
    assert compiled("SET x = y, y = x").apply(item) == {"x": {"N": "2"}, "y": {"N": "1"}}


@pytest.mark.parametrize("text", ["SET big = big + :half", "ADD big :half"])
def test_sums_are_exact_or_refused(text: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        compiled(text).apply(ITEM)
    assert caught.value.message == (
        "Number overflow. Attempting to store a number with magnitude larger than supported range"
    )


def test_sums_may_carry() -> None:
    assert compiled("SET big = big + :one").apply(ITEM)["big"] == {"N": "1" + "0" * 38}


def nested(levels: int) -> AttributeValue:
    value: AttributeValue = {"S": "leaf"}
    for _ in range(levels):
        value = {"L": [value]}
    return value


@pytest.mark.parametrize(("levels", "fits"), [(30, True), (31, False)])
def test_depth(local: Any, levels: int, fits: bool) -> None:
    item: Item = {"a": {"M": {}}}
    local.put(item)
    outcomes: list[str | None] = []
    for apply in (
        lambda: compiled("SET a.b = :deep", deep=nested(levels)).apply(item),
        lambda: local.execute(
            "UpdateItem",
            TableName="things",
            Key={"pk": {"S": "k"}},
            UpdateExpression="SET a.b = :deep",
            ExpressionAttributeValues={":deep": nested(levels)},
        ),
    ):
        try:
            apply()
            outcomes.append(None)
        except RequestRefused as error:
            outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]
    assert (outcomes[0] is None) == fits
