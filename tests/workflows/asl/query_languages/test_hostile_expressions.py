"""Expressions that want too much: each ends with AWS's error, whatever its size, its depth and the data."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from jobtable.workflows.asl.machine import Language, StateFault
from jobtable.workflows.asl.query_languages import fill, is_present, jsonata_evaluation, place, read_path
from jobtable.workflows.asl.query_languages.scope import Scope

STACK = "Stack overflow error: Check for non-terminating recursive function"
TIMEOUT = "Expression evaluation timeout: Check for infinite loop"
MEMORY = "Expression evaluation memory limit exceeded: Check for excessive memory usage"
TOO_DEEP = "The expression is nested too deeply"
TOO_LONG = "has more than 32768 characters"
STEPS = "its evaluation takes more than 1000000 steps"


def nested(levels: int) -> Any:
    """Objects in each other."""
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


DEEP = nested(3000)
WIDE = [{"a": [{"b": number} for number in range(50)]} for _ in range(500)]


def scope_of(value: Any) -> Scope:
    return Scope(value, {}, {}, datetime(2026, 1, 1, tzinfo=UTC), Random(1))


def fault_of(act: Any, *arguments: Any, **named: Any) -> StateFault:
    with pytest.raises(StateFault) as caught:
        act(*arguments, **named)
    return caught.value


# --- JSONata ----------------------------------------------------------------------------------------------------------

JSONATA = {
    "($f := function($x){ $f($x) + 1 }; $f(1))": STACK,
    "($f := function($x){ [$f($x)] }; $g := function($x){ $f($x) + 1 }; $g(1))": STACK,
    "[1..100000000]": "must not exceed 1e6",
    "[1..9999999]": MEMORY,
    "$count($map([1..1000000], function($x){ $x }))": MEMORY,
    "$pad('x', 1000000000)": MEMORY,
    "$replace($pad('x', 100000, 'x'), 'x', $pad('y', 100000, 'y'))": MEMORY,
    "($f := function($s, $n){ $n = 0 ? $s : $f($s & $s, $n - 1) }; $f('xxxxxxxxxx', 60))": MEMORY,
    "$join($map([1..900], function($x){ $pad('x', 100000, 'x') }))": MEMORY,
    "$split($pad('a', 1000000, 'a'), '')": MEMORY,
    "$power(2, 100000000)": "cannot be represented as a JSON number",
    "$parse($pad('', 100000, '['))": "Invalid JSON",
    "$eval('1')": "Attempted to invoke a non-function",
    "(" * 2000 + "1" + ")" * 2000: TOO_DEEP,
    "[" * 2000 + "1" + "]" * 2000: TOO_DEEP,
    "-" * 5000 + "1": TOO_DEEP,
    "+".join(["1"] * 10_000): TOO_DEEP,
    "function($x){" * 900 + "1" + "}" * 900: TOO_DEEP,
    "1" + "+1" * 20_000: TOO_LONG,
}


@pytest.mark.parametrize("expression", JSONATA, ids=lambda each: each[:60])
def test_an_expression_of_jsonata_is_stopped(expression: str) -> None:
    fault = fault_of(fill, f"{{% {expression} %}}", scope_of({}), Language.JSONATA, "Output")
    assert fault.error == "States.QueryEvaluationError"
    assert JSONATA[expression] in fault.cause
    assert len(fault.cause) < 12_000


@pytest.mark.parametrize(
    "expression",
    [
        "($f := function($x){ $f($x + 1) }; $f(1))",
        "($f := function($x){ $g($x) }; $g := function($x){ $f($x) }; $f(1))",
        "$map([1..10000], function($x){ $map([1..10000], function($y){ $x * $y }) })",
        "$reduce([1..90000], function($a, $b){ $count($sort($states.input, function($x, $y){ $x < $y })) })",
    ],
)
def test_a_loop_of_jsonata_is_stopped(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonata_evaluation, "_MOST_SECONDS", 0.1)
    fault = fault_of(fill, f"{{% {expression} %}}", scope_of(list(range(1000))), Language.JSONATA, "Output")
    assert fault.error == "States.QueryEvaluationError"
    assert TIMEOUT in fault.cause


@pytest.mark.parametrize("expression", ["$states.input", "$count($states.input.**)", "$string($states.input)"])
def test_deep_data_stops_jsonata(expression: str) -> None:
    fault = fault_of(fill, f"{{% {expression} %}}", scope_of(DEEP), Language.JSONATA, "Output")
    assert (fault.error, STACK in fault.cause) == ("States.QueryEvaluationError", True)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("$contains($pad('a', 50000, 'a') & '!', /^(a|a)*$/)", False),
        ("$contains($pad('a', 5000, 'a') & 'b', /(a+)+$/)", False),
        ("$contains($pad('a', 5000, 'a') & 'b', /(x+x+)+y/)", False),
        ("$length($replace($pad('a', 20000, 'a'), /(a*)*b/, 'x'))", 20000),
    ],
)
def test_a_regular_expression_does_not_search_back(expression: str, expected: Any) -> None:
    assert fill(f"{{% {expression} %}}", scope_of({}), Language.JSONATA, "Output") == expected


# --- JSONPath ---------------------------------------------------------------------------------------------------------

PATHS = {
    "$..*..*..*": (WIDE * 10, STEPS),
    "$..a..a..a..a": (DEEP, STEPS),
    "$..[?(@.a[?(@.b > 5)])]": (WIDE * 10, STEPS),
    "$[?($..b)]": (WIDE, STEPS),
    "$[?(" + "(" * 60 + "@.a" + ")" * 60 + ")]": (WIDE, "nested more than 50 levels deep"),
    "$[?(@.a in " + "[" * 60 + "]" * 60 + ")]": (WIDE, "nested more than 50 levels deep"),
    "$" + ".a" * 20_000: (DEEP, TOO_LONG),
    "$[" + "0," * 20_000 + "0]": ([1], TOO_LONG),
    "$[?(@ =~ /" + "(" * 1000 + "a" + ")" * 1000 + "/)]": (["a"], "too deeply nested"),
    "$[?(@ =~ /((a{1,500}){1,500}){1,500}/)]": (["a"], "the regular expression is too"),
    "States.Array(" * 11 + "1" + ")" * 11: (None, "nested more than 10 levels deep"),
    "States.Format('" + "x" * 40_000 + "')": (None, TOO_LONG),
}


@pytest.mark.parametrize("path", PATHS, ids=lambda each: each[:60])
def test_a_path_is_stopped(path: str) -> None:
    value, part = PATHS[path]
    fault = fault_of(read_path, path, scope_of(value), field="InputPath")
    assert fault.error == "States.Runtime"
    assert part in fault.cause


@pytest.mark.parametrize(
    "path", ["$.b", "$.a.b.c", "States.JsonToString($)", "States.ArrayUnique(States.Array($))", "States.Hash($, 'MD5')"]
)
def test_deep_data_stops_a_path(path: str) -> None:
    fault = fault_of(read_path, path, scope_of(DEEP), field="a.$")
    assert fault.error == "States.Runtime"
    assert "nested too deeply" in fault.cause


def test_deep_data_is_there() -> None:
    assert is_present("$.a.a.a", scope_of(DEEP))
    assert not is_present("$.a.b", scope_of(DEEP))
    assert not is_present("$..a..a..a..a", scope_of(DEEP))


def test_a_path_that_finds_nothing_ends_at_once() -> None:
    assert read_path("$[*]" + ".a" * 10_000, scope_of([]), field="InputPath") == []
    with pytest.raises(StateFault, match="Missing property"):
        read_path("$" + ".a" * 10_000, scope_of({}), field="InputPath")


@pytest.mark.parametrize("path", ["$[?(@ =~ /(a+)+$/)]", "$[?(@ =~ /^(a|a)*$/)]", "$[?(@ =~ /(.*)*x/)]"])
def test_a_regular_expression_of_a_path_does_not_search_back(path: str) -> None:
    assert read_path(path, scope_of(["a" * 5_000 + "b"]), field="InputPath") == []


@pytest.mark.parametrize(
    ("function", "value"),
    [
        ("States.ArrayRange(0, 1000000000, 1)", None),
        ("States.ArrayRange(0, 1, 0)", None),
        ("States.StringToJson($)", "[" * 100_000),
        ("States.StringToJson($)", "NaN"),
        (f"States.MathAdd({'9' * 5000}, 1)", None),
        ("States.Base64Encode($)", "x" * 10_001),
        ("States.Hash($, 'SHA-1')", "x" * 10_001),
        ("States.ArrayPartition($, 0)", [1]),
        ("States.ArrayGetItem($, 1000000000000)", [1]),
    ],
)
def test_a_function_is_stopped(function: str, value: Any) -> None:
    fault = fault_of(fill, {"x.$": function}, scope_of(value), Language.JSONPATH)
    assert fault.error == "States.IntrinsicFailure"


@pytest.mark.parametrize("path", ["$" + ".a" * 20_000, "$.a[", "$..a", "$v", "$.a[*]"])
def test_a_result_is_placed_nowhere(path: str) -> None:
    assert fault_of(place, path, {}, 1).error == "States.ResultPathMatchFailure"
