"""Spaces for the tests of sweeps: one that has everything, and a strategy for all others."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from jobtable.systems.sweeps.parameters import Choice, FloatRange, IntRange, Value, choice, float_range, int_range
from jobtable.systems.sweeps.space import Space

EVERYTHING = Space(
    {
        "booster": choice("tree", "dart", "linear"),
        "depth": int_range(2, 9).only_if(booster=["tree", "dart"]),
        "drop": float_range(0, 0.5).only_if(booster="dart"),
        "layers": choice([64], [64, 32], None),
        "rate": float_range(0.001, 1, log=True),
        "ratio": float_range(0, 1, step=0.1),
        "size": int_range(1, 1024, log=True),
        "stride": int_range(1, 10, step=4),
    }
)

_whole = st.integers(-1000, 1000)
_numbers = st.floats(-1000, 1000, allow_subnormal=False)
_positive = st.floats(0.001, 1000)


def _ints() -> st.SearchStrategy[IntRange]:
    plain = st.builds(
        lambda low, width, step: int_range(low, low + width, step=step), _whole, st.integers(0, 50), st.integers(1, 7)
    )
    logs = st.builds(lambda low, width: int_range(low, low + width, log=True), st.integers(1, 99), st.integers(0, 999))
    return plain | logs


def _floats() -> st.SearchStrategy[FloatRange]:
    plain = st.builds(lambda one, other: float_range(min(one, other), max(one, other)), _numbers, _numbers)
    logs = st.builds(lambda one, other: float_range(min(one, other), max(one, other), log=True), _positive, _positive)
    steps = st.builds(
        lambda low, count, step: float_range(low / 10, low / 10 + count * step, step=step),
        _whole,
        st.integers(0, 20),
        st.sampled_from([0.1, 0.25, 0.3, 1.0, 7.5]),
    )
    return plain | logs | steps


def _choices() -> st.SearchStrategy[Choice]:
    values = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=3)
    return st.lists(values, min_size=1, max_size=4).filter(_is_distinct).map(lambda chosen: choice(*chosen))


def _is_distinct(values: list[Any]) -> bool:
    plain = [("bool" if isinstance(v, bool) else "number" if isinstance(v, int | float) else "text", v) for v in values]
    return all(one != other for i, one in enumerate(plain) for other in plain[:i])


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Spaces of some parameters, of which some exist only under a condition on an earlier one."""
    parameters: dict[str, Choice | IntRange | FloatRange] = {}
    for index in range(draw(st.integers(1, 5))):
        parameter = draw(_ints() | _floats() | _choices())
        subjects = [name for name, p in parameters.items() if not isinstance(p, FloatRange)]
        if len(subjects) > 0 and draw(st.booleans()):
            subject = draw(st.sampled_from(subjects))
            wanted: list[Value] = [draw(st.sampled_from(parameters[subject].grid()))]
            parameter = parameter.only_if(**{subject: wanted})
        parameters[f"p{draw(st.integers(0, 99))}-{index}"] = parameter
    return Space(parameters)
