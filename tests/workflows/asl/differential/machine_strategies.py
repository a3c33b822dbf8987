"""Strategies for machines that both interpreters can run at once: no tasks, no waiting, no loops."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

Fields = dict[str, Any]

INTEGERS = st.integers(-50, 50)
TEXTS = st.text("abcXYZ ,.-+", min_size=1, max_size=8)
SCALARS = st.none() | st.booleans() | INTEGERS | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)
INPUTS = st.fixed_dictionaries(
    {
        "n": INTEGERS,
        "m": INTEGERS,
        "flag": st.booleans(),
        "text": TEXTS,
        "list": st.lists(INTEGERS, min_size=1, max_size=4),
        "o": st.fixed_dictionaries({"k": SCALARS, "deep": st.fixed_dictionaries({"x": INTEGERS})}),
        "p": st.dictionaries(st.sampled_from("kab"), INTEGERS, max_size=2),
        "nothing": st.none(),
    }
)
MEMBERS = ["$.n", "$.m", "$.flag", "$.text", "$.list", "$.o", "$.o.k", "$.o.deep.x", "$.p", "$.nothing", "$.list[0]"]
PATHS = st.sampled_from([*MEMBERS * 6, "$", "$.missing"])
NUMBERS = st.sampled_from(["$.n", "$.m", "$.o.deep.x", "$.list[0]"])
CONTEXT = st.sampled_from(["$$.State.Name", "$$.Execution.Input.n", "$$.Execution.RedriveCount"])


def _calls() -> st.SearchStrategy[str]:
    number = NUMBERS | INTEGERS.map(str)
    array = st.just("$.list")
    return st.one_of(
        st.builds("States.MathAdd({}, {})".format, number, number),
        st.builds("States.ArrayLength({})".format, array),
        st.builds("States.ArrayContains({}, {})".format, array, number),
        st.builds("States.ArrayPartition({}, {})".format, array, st.integers(1, 4)),
        st.builds("States.ArrayUnique({})".format, array),
        st.builds("States.ArrayGetItem({}, 0)".format, array),
        st.builds("States.ArrayRange({}, {}, {})".format, INTEGERS, INTEGERS, st.sampled_from([-7, -1, 1, 3])),
        st.builds("States.Array({}, {})".format, PATHS, number),
        st.builds("States.Format('{{}} of {{}}', {}, {})".format, st.just("$.text"), number),
        st.builds("States.JsonToString({})".format, st.sampled_from(["$.list", "$.n", "$.text"])),
        st.builds("States.StringToJson(States.JsonToString({}))".format, st.sampled_from(["$.list", "$.n"])),
        st.builds("States.Base64Decode(States.Base64Encode({}))".format, st.just("$.text")),
        st.builds(
            "States.Hash($.text, '{}')".format, st.sampled_from(["MD5", "SHA-1", "SHA-256", "SHA-384", "SHA-512"])
        ),
        st.just("States.JsonMerge($.o, $.p, false)"),
        st.builds("States.StringSplit($.text, '{}')".format, st.sampled_from([",", " ,", ".-+"])),
    )


def _templates() -> st.SearchStrategy[Fields]:
    dynamic = PATHS | CONTEXT | _calls()
    flat = st.dictionaries(st.sampled_from(["a.$", "b.$", "c.$"]), dynamic, max_size=3)
    constant = st.dictionaries(st.sampled_from(["x", "y"]), VALUES, max_size=2)
    return st.builds(lambda first, second, inner: {**first, **second, **inner}, flat, constant, _inner(flat))


def _inner(flat: st.SearchStrategy[Fields]) -> st.SearchStrategy[Fields]:
    return st.just({}) | st.builds(lambda template: {"inner": template}, flat)


RESULT_PATHS = st.sampled_from(["$.out"] * 12 + ["$.o.new"] * 3 + [None] * 2 + ["$.list[0]", "$"])


@st.composite
def _pass(draw: st.DrawFn) -> Fields:
    fields: Fields = {"Type": "Pass"}
    if draw(st.booleans()):
        fields["Parameters"] = draw(_templates())
    elif draw(st.booleans()):
        fields["Result"] = draw(VALUES)
    elif draw(st.booleans()):
        fields["InputPath"] = draw(PATHS | CONTEXT | st.none())
    fields["ResultPath"] = draw(RESULT_PATHS)
    if not draw(st.integers(0, 19)):
        fields["OutputPath"] = draw(PATHS | st.none())
    return fields


def _operand(operator: str) -> st.SearchStrategy[Any]:
    if operator.endswith("Path"):
        return PATHS
    if operator.startswith("Numeric"):
        return INTEGERS
    return st.booleans() if operator.startswith(("Boolean", "Is")) else TEXTS


_COMPARISONS = ["Equals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals"]
_TESTS = ["IsNull", "IsNumeric", "IsString", "IsBoolean", "IsPresent"]
_OPERATORS = [
    *(f"{kind}{name}{path}" for kind in ("Numeric", "String") for name in _COMPARISONS for path in ("", "Path")),
    *("BooleanEquals", "BooleanEqualsPath", "StringMatches", *_TESTS),
]


@st.composite
def _comparison(draw: st.DrawFn) -> Fields:
    operator = draw(st.sampled_from(_OPERATORS))
    return {"Variable": draw(PATHS), operator: draw(_operand(operator))}


def _rules() -> st.SearchStrategy[Fields]:
    plain = _comparison()
    several = st.lists(plain, min_size=1, max_size=3)
    return plain | st.one_of(
        st.builds(lambda rules: {"And": rules}, several),
        st.builds(lambda rules: {"Or": rules}, several),
        st.builds(lambda rule: {"Not": rule}, plain),
    )


def _choice(draw: st.DrawFn, targets: list[str]) -> Fields:
    rules = draw(st.lists(_rules(), min_size=1, max_size=3))
    choices = [{**rule, "Next": draw(st.sampled_from(targets))} for rule in rules]
    fields: Fields = {"Type": "Choice", "Choices": choices}
    if draw(st.integers(0, 4)):
        fields["Default"] = draw(st.sampled_from(targets))
    return fields


_KEPT = {f"{name}.$": f"$.{name}" for name in ("n", "m", "flag", "text", "list", "o", "p", "nothing")}


@st.composite
def _fan_out(draw: st.DrawFn, depth: int) -> Fields:
    fields: Fields = {"ResultPath": draw(st.sampled_from(["$.out", "$.out", "$", None]))}
    if draw(st.booleans()):
        fields = {"Type": "Parallel", **fields}
        fields["Branches"] = draw(st.lists(machines(depth + 1), min_size=1, max_size=2))
    else:
        fields = {"Type": "Map", **fields, "ItemsPath": draw(st.sampled_from(["$.list"] * 9 + ["$.n"]))}
        fields["MaxConcurrency"] = draw(st.sampled_from([0, 1, 2]))
        fields["ItemSelector"] = draw(st.just({**_KEPT, "item.$": "$$.Map.Item.Value", "index.$": "$$.Map.Item.Index"}))
        fields["ItemProcessor"] = {"ProcessorConfig": {"Mode": "INLINE"}, **draw(machines(depth + 1))}
    if draw(st.booleans()):
        errors = draw(st.sampled_from([["States.ALL"], ["Broken"], ["States.TaskFailed"], ["Other"]]))
        fields["Catch"] = [{"ErrorEquals": errors, "ResultPath": "$.failure"}]
    return fields


@st.composite
def machines(draw: st.DrawFn, depth: int = 0) -> Fields:
    """Draw a machine whose states only lead forwards."""
    names = [f"S{depth}{number}{draw(st.sampled_from('abcdefgh'))}" for number in range(draw(st.integers(1, 4)))]
    end = f"End{depth}{draw(st.integers(0, 9999))}"
    states: dict[str, Fields] = {}
    for position, name in enumerate(names):
        following = [*names[position + 1 :], end]
        if draw(st.integers(0, 3)) == 0:
            states[name] = _choice(draw, following)
            continue
        kinds = [_pass(), _pass(), st.just({"Type": "Wait", "Seconds": 0}), *([_fan_out(depth)] if depth < 2 else [])]
        fields = {**draw(st.one_of(kinds)), "Next": following[0]}
        for catcher in fields.get("Catch", ()):
            catcher["Next"] = draw(st.sampled_from(following))
        states[name] = fields
    states[end] = draw(
        st.sampled_from(
            [
                {"Type": "Succeed"},
                {"Type": "Succeed"},
                {"Type": "Pass", "End": True},
                {"Type": "Fail", "Error": "Broken", "Cause": "it fell"},
                {"Type": "Succeed", "OutputPath": "$.list"},
            ]
        )
    )
    return {"StartAt": names[0], "States": json.loads(json.dumps(states))}
