"""The examples of `jsonata/` come out as the documentation of JSONata and of Step Functions says."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from tests.workflows.asl.query_languages.jsonata_examples import Example, read_documents, read_examples

from jobtable.workflows.asl.machine import Language, StateFault
from jobtable.workflows.asl.query_languages import Scope, fill
from jobtable.workflows.asl.query_languages.jsonata_library import JsonataError, parse

EXAMPLES = list(read_examples())
SCOPE = Scope(
    input={"n": 7},
    context={"State": {"Name": "Check"}},
    variables=read_documents(),
    now=datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC),
    random=Random(7),
    result={"answer": 42},
    error_output={"Error": "Boom", "Cause": ""},
)


def evaluate(expression: str) -> Any:
    return fill(f"{{% {expression} %}}", SCOPE, Language.JSONATA, "Output")


def same(found: Any, wanted: Any) -> bool:
    """Compare JSON; numbers as they are written, so that 1.0 is 1, and booleans are no numbers."""
    if isinstance(wanted, float) and isinstance(found, float):
        return math.isclose(found, wanted, rel_tol=1e-12)
    if isinstance(wanted, dict) and isinstance(found, dict):
        return wanted.keys() == found.keys() and all(same(found[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(same, found, wanted))
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_comes_out_as_it_says(example: Example) -> None:
    match example.result:
        case {"$error": "syntax"}:
            with pytest.raises(JsonataError):
                parse(example.expression)
        case {"$error": part}:
            with pytest.raises(StateFault) as failed:
                evaluate(example.expression)
            assert failed.value.error == "States.QueryEvaluationError"
            assert "threw an error during evaluation" in failed.value.cause
            assert part in failed.value.cause.partition("during evaluation")[2]
        case {"$undefined": True}:
            with pytest.raises(StateFault, match=r"returned nothing \(undefined\)\.$"):
                evaluate(example.expression)
        case wanted:
            found = evaluate(example.expression)
            assert same(found, wanted), found


def test_a_function_keeps_its_name_after_another_expression_gave_it_one() -> None:
    assert evaluate('($loud := $trim ~> $uppercase; $loud(" a "))') == "A"
    with pytest.raises(StateFault, match='Argument 1 of function "uppercase" does not match'):
        evaluate("$uppercase(null)")


def test_there_are_at_least_two_hundred_and_fifty_examples() -> None:
    assert len({example.expression for example in EXAMPLES}) >= 250
