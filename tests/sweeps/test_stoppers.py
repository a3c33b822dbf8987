"""Who goes on at a rung."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from jobtable.sweeps.samplers import Direction
from jobtable.sweeps.stoppers import Asha, Median, cutoffs, is_worse

values = st.lists(st.floats(-100, 100), max_size=40)
directions = st.sampled_from(["minimize", "maximize"])


def test_the_rungs_of_asha_are_powers_of_its_factor() -> None:
    stopper = Asha(first_epoch=2, factor=3, last_epoch=54)
    rungs = {epoch: stopper.rung_at(epoch) for epoch in (1, 2, 5, 6, 17, 18, 53, 54, 99)}
    assert rungs == {1: None, 2: 2, 5: 2, 6: 6, 17: 6, 18: 18, 53: 18, 54: None, 99: None}


def test_the_rungs_of_the_median_have_one_distance() -> None:
    stopper = Median(first_epoch=3, every=4)
    rungs = {epoch: stopper.rung_at(epoch) for epoch in (2, 3, 6, 7, 8, 11)}
    assert rungs == {2: None, 3: 3, 6: 3, 7: 7, 8: 7, 11: 11}


@given(values, st.floats(-100, 100), directions, st.integers(2, 5))
def test_asha_lets_the_best_part_go_on(peers: list[float], own: float, direction: Direction, factor: int) -> None:
    cutoff = Asha(factor=factor).cutoff(peers, direction)
    if len(peers) < factor:
        assert cutoff is None
        return
    assert cutoff is not None
    better = sum(is_worse(own, peer, direction) for peer in peers)
    assert is_worse(own, cutoff, direction) == (better >= max(1, (len(peers) + 1) // factor))


@given(values, directions)
def test_half_of_the_peers_would_pass_the_median(peers: list[float], direction: Direction) -> None:
    cutoff = Median(fewest_peers=4).cutoff(peers, direction)
    if cutoff is None:
        assert len(peers) < 4
        return
    passed = sum(not is_worse(peer, cutoff, direction) for peer in peers)
    assert passed * 2 >= len(peers)


@given(values, directions)
def test_the_order_of_the_peers_does_not_count(peers: list[float], direction: Direction) -> None:
    for stopper in (Asha(), Median()):
        assert stopper.cutoff(peers, direction) == stopper.cutoff(peers[::-1], direction)


def test_what_is_judged() -> None:
    assert Asha().judged([3.0, 1.0, 2.0], "minimize") == 2.0
    assert Median().judged([3.0, 1.0, 2.0], "minimize") == 1.0
    assert Median().judged([3.0, 1.0, 2.0], "maximize") == 3.0


def test_rungs_without_enough_peers_stop_nobody() -> None:
    assert cutoffs(Asha(factor=2), {1: [0.1, 0.2, 0.3, 0.4], 2: [0.1]}, "minimize") == {1: 0.2}


def test_a_stopper_without_a_rung_is_refused() -> None:
    with pytest.raises(ValidationError, match="not before the last epoch"):
        Asha(first_epoch=9, last_epoch=9)
