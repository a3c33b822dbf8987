"""Parameters are what their space says, before and after they were stored."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.systems.sweeps.spaces import EVERYTHING, spaces

from jobtable.errors import ValueRefusedError
from jobtable.systems.sweeps.parameters import FloatRange, Params, choice, float_range, int_range
from jobtable.systems.sweeps.space import Space


def drawn(space: Space, seed: int) -> Params:
    random = Random(seed)
    return space.assemble(lambda name, parameter: parameter.draw(random))


def as_stored(value: Any) -> Any:
    """What a table makes of JSON: whole floats become ints."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: as_stored(member) for key, member in value.items()}
    return [as_stored(member) for member in value] if isinstance(value, list) else value


@given(spaces(), st.integers(0, 2**32))
def test_what_is_drawn_comes_back_from_a_table_as_it_was(space: Space, seed: int) -> None:
    params = drawn(space, seed)
    back = space.restored(as_stored(json.loads(json.dumps(params))))
    assert back == params
    assert {name: type(value) for name, value in back.items()} == {name: type(v) for name, v in params.items()}


@given(spaces(), st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_a_stored_space_draws_the_same_in_any_order_of_its_members(space: Space, seed: int, random: Random) -> None:
    members = list(as_stored(space.model_dump(mode="json")).items())
    random.shuffle(members)
    assert drawn(Space(dict(members)), seed) == drawn(space, seed)


@given(spaces())
def test_a_grid_has_every_combination_once(space: Space) -> None:
    if any(isinstance(p, FloatRange) and p.step is None for p in space.root.values()):
        with pytest.raises(ValueRefusedError, match="a grid needs a step"):
            space.combinations()
        return
    points = list(itertools.islice(space.combinations(), 300))
    assert len({json.dumps(point, sort_keys=True) for point in points}) == len(points)
    assert all(space.restored(point) == point for point in points)
    assert space.count_combinations(300) == len(points)


def test_a_parameter_exists_only_under_its_condition() -> None:
    space = Space({"a": choice("x", "y"), "b": int_range(1, 2).only_if(a="y"), "c": choice(0, 1).only_if(b=[2])})
    assert list(space.combinations()) == [
        {"a": "x"},
        {"a": "y", "b": 1},
        {"a": "y", "b": 2, "c": 0},
        {"a": "y", "b": 2, "c": 1},
    ]
    with pytest.raises(ValueRefusedError, match="c does not exist under"):
        space.restored({"a": "y", "b": 1, "c": 0})
    with pytest.raises(ValueRefusedError, match="has no b"):
        space.restored({"a": "y"})


def test_draws_reach_every_value_and_the_magnitudes_evenly() -> None:
    points = [drawn(EVERYTHING, seed) for seed in range(2000)]
    assert {p["ratio"] for p in points} == {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
    assert {p["stride"] for p in points} == {1, 5, 9}
    assert {p["depth"] for p in points if "depth" in p} == set(range(2, 10))
    assert 0.28 < sum(p["rate"] < 0.01 for p in points) / 2000 < 0.39
    sizes = [p["size"] for p in points]
    assert (min(sizes), max(sizes) > 1000) == (1, True)


@given(spaces(), st.integers(0, 99), st.integers(0, 99))
def test_distances_are_fair(space: Space, one_seed: int, other_seed: int) -> None:
    one, other = drawn(space, one_seed), drawn(space, other_seed)
    assert space.distance(one, one) == 0
    assert space.distance(one, other) == space.distance(other, one)
    assert 0 <= space.distance(one, other) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("space", "problem"),
    [
        ({}, "at least one parameter"),
        ({"a": {"type": "int", "low": 3, "high": 2}}, "above high"),
        ({"a": {"type": "float", "low": 0, "high": 1, "log": True}}, "must start above 0"),
        ({"a": {"type": "int", "low": 1, "high": 9, "log": True, "step": 2}}, "either a step or a log scale"),
        ({"a": {"type": "float", "low": 0, "high": float("nan")}}, "finite"),
        ({"a": [1, 1.0]}, "has a duplicate"),
        ({"a": []}, "at least 1"),
        ({"a": {"type": "int", "low": 1, "high": 2, "when": {"b": 1}}}, "condition on b, which does not exist"),
        ({"a": [1, 2], "b": {"type": "choice", "values": [1], "when": {"a": 3}}}, "3 is not one of"),
        (
            {"a": {"type": "float", "low": 0, "high": 1}, "b": {"type": "choice", "values": [1], "when": {"a": 0}}},
            "chance",
        ),
        (
            {
                "a": {"type": "choice", "values": [1], "when": {"b": 1}},
                "b": {"type": "choice", "values": [1], "when": {"a": 1}},
            },
            "form a cycle",
        ),
        ({"a": {"type": "int", "low": 1, "hihg": 2}}, "hihg"),
    ],
)
def test_a_space_that_cannot_be_is_refused(space: Any, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Space.model_validate(space)


def test_true_is_not_one_and_one_is_one_point_zero() -> None:
    flag = choice(True, 1, "1")
    assert [flag.index(value) for value in (True, 1, 1.0, "1")] == [0, 1, 1, 2]
    assert float_range(0, 1).restored(1) == 1.0
    with pytest.raises(ValueError, match="not a whole number"):
        int_range(0, 1).restored(True)
