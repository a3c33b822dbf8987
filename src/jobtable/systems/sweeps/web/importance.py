"""How much each parameter of a sweep affects the objective."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

_GROUPS = 5
_LEAST_TRIALS = 4


def parameter_importance(trials: Sequence[tuple[Mapping[str, Any], float]]) -> list[tuple[str, float]]:
    """Return the share of the objective's variance that each parameter explains by itself, largest first.

    Numbers form five groups of equal size, other values one group each. What the groups would explain by chance is
    subtracted, and parameters that explain the same share it, so the sum is at most 1. Few trials yield nothing.
    """
    if len(trials) < _LEAST_TRIALS:
        return []
    mean = fmean(value for _, value in trials)
    total = sum((value - mean) ** 2 for _, value in trials)
    if total == 0:
        return []
    names = sorted({name for params, _ in trials for name in params})
    shares = {name: _share(_grouped(name, trials), mean, total) for name in names}
    whole = max(1.0, sum(shares.values()))
    return sorted(((name, share / whole) for name, share in shares.items()), key=lambda pair: (-pair[1], pair[0]))


def _share(groups: list[list[float]], mean: float, total: float) -> float:
    """Return how much of the variance lies between the groups, beyond that between random groups."""
    count = sum(map(len, groups))
    if count == len(groups):
        return 0.0  # each trial is a group of its own, which proves nothing
    between = sum(len(group) * (fmean(group) - mean) ** 2 for group in groups)
    within = (total - between) / (count - len(groups))
    return max(0.0, 1 - within / (total / (count - 1)))


def _grouped(name: str, trials: Sequence[tuple[Mapping[str, Any], float]]) -> list[list[float]]:
    values: list[tuple[Any, float]] = [(params.get(name), value) for params, value in trials]
    numbers = [given for given, _ in values if isinstance(given, int | float) and not isinstance(given, bool)]
    is_number = len(numbers) == len(values) and len(set(numbers)) > _GROUPS
    groups: dict[Any, list[float]] = defaultdict(list)
    if is_number:
        for place, (_, value) in enumerate(sorted(values, key=lambda pair: pair[0])):
            groups[place * _GROUPS // len(values)].append(value)
    else:
        for given, value in values:
            groups[repr(given)].append(value)
    return list(groups.values())
