"""Who goes on at a rung."""

from __future__ import annotations

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import TrialState
from pydantic import ValidationError

from jobtable.systems.sweeps.samplers import Direction
from jobtable.systems.sweeps.stoppers import Asha, Median, cutoffs, is_worse

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


def pruned(value: float, study: optuna.Study) -> bool:
    """Whether Optuna prunes the next trial of a study when it reports a value at the first epoch."""
    trial = study.ask()
    trial.report(value, 1)
    is_pruned = trial.should_prune()
    study.tell(trial, None if is_pruned else value, state=TrialState.PRUNED if is_pruned else None)
    return is_pruned


@settings(max_examples=30)
@given(values, directions, st.integers(2, 4))
def test_asha_stops_whom_optuna_stops(values: list[float], direction: Direction, factor: int) -> None:
    """Only where there are few peers it does not: there Optuna compares with whoever is there."""
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=factor)
    study = optuna.create_study(direction=direction, pruner=pruner)
    for number, value in enumerate(values):
        is_pruned = pruned(value, study)
        cutoff = Asha(factor=factor).cutoff(values[:number], direction)
        assert cutoff is None or is_worse(value, cutoff, direction) == is_pruned


@settings(max_examples=30)
@given(values.filter(lambda values: len(values) % 2), st.floats(-100, 100), directions)
def test_the_median_stops_whom_optuna_stops(peers: list[float], own: float, direction: Direction) -> None:
    """With an even number of peers it does not always: there Optuna takes the mean of the two in the middle."""
    pruner = optuna.pruners.MedianPruner(n_startup_trials=0)
    study = optuna.create_study(direction=direction, pruner=pruner)
    study.add_trials([optuna.create_trial(value=peer, intermediate_values={1: peer}) for peer in peers])
    cutoff = Median(fewest_peers=1).cutoff(peers, direction)
    assert cutoff is not None
    assert is_worse(own, cutoff, direction) == pruned(own, study)


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
