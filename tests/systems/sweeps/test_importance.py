"""What the parameters of a sweep have to do with its objective."""

from __future__ import annotations

from random import Random

import pytest

from jobtable.systems.sweeps.web.importance import parameter_importance


@pytest.mark.parametrize("count", [4, 6, 8, 12, 200])
def test_shares_are_those_of_a_whole(count: int) -> None:
    """However few the trials are, and however much the parameters say of each other."""
    random = Random(count)
    for _ in range(20):
        trials = []
        for _ in range(count):
            size = random.random()
            params = {"size": size, "same": size * 2, "kind": random.choice("ab"), "step": random.randrange(9)}
            trials.append((params, size + random.random() / 5))
        shares = dict(parameter_importance(trials))
        assert min(shares.values()) >= 0
        assert sum(shares.values()) <= 1 + 1e-9


def test_what_decides_stands_before_chance() -> None:
    random = Random(1)
    trials = [({"deciding": n % 7, "noise": random.random()}, float(n % 7) + random.random() / 10) for n in range(60)]
    (first, much), (_, little) = parameter_importance(trials)
    assert first == "deciding"
    assert much > 0.9
    assert little < 0.1


def test_a_parameter_with_another_value_in_each_trial_explains_nothing() -> None:
    assert parameter_importance([({"name": f"n{n}"}, float(n)) for n in range(5)]) == [("name", 0.0)]
