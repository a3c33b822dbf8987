"""What is proposed depends on the seed, the numbers and the records alone."""

from __future__ import annotations

import itertools
import json
import math
import re
import warnings
from collections.abc import Sequence
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.exceptions import ExperimentalWarning
from optuna.trial import TrialState
from tests.systems.sweeps.spaces import EVERYTHING, spaces
from tests.systems.sweeps.test_space import as_stored

from jobtable.errors import TaskError
from jobtable.systems.sweeps import samplers
from jobtable.systems.sweeps.optuna_samplers import _distribution, _sampler, find_problem
from jobtable.systems.sweeps.parameters import Params, float_range, int_range
from jobtable.systems.sweeps.samplers import EndedTrial, Grid, Optuna, Proposal, RandomChoice, Sampler, TrialRequest
from jobtable.systems.sweeps.space import Space

PLANE = Space({"x": float_range(-5, 5), "y": float_range(-5, 5)})
MIXED = Space({"x": float_range(-5, 5), "y": float_range(-5, 5, step=0.5), "z": int_range(1, 64, log=True)})
NAMES = ["tpe", "cmaes", "qmc", "nsgaii"]


def asked(sampler: Sampler, space: Space, ended: Sequence[EndedTrial], count: int = 8, seed: int = 1) -> list[Proposal]:
    return sampler.propose(TrialRequest(space, seed, "minimize", ended, len(ended), count))


def loss(params: Params) -> float:
    x, y = float(params["x"]), float(params["y"])
    return (x - 1.0) ** 2 + (y + 2.0) ** 2


def stored(space: Space, proposal: Proposal, number: int) -> EndedTrial:
    """What a table gives back of a trial: some fail, some are stopped."""
    params = space.restored(as_stored(json.loads(json.dumps(proposal.params))))
    memory = as_stored(json.loads(json.dumps(dict(proposal.memory))))
    value = loss(params) if "x" in params else float(number % 5)
    if number % 7 == 6:
        return EndedTrial(params, "failed", memory=memory)
    if number % 7 == 5:
        return EndedTrial(params, "stopped", reports={1: value, 3: value}, memory=memory)
    return EndedTrial(params, "completed", value, {1: value + 1}, memory)


def swept(sampler: Sampler, space: Space, generations: int, size: int = 8, seed: int = 1) -> list[EndedTrial]:
    ended: list[EndedTrial] = []
    for _ in range(generations):
        proposals = asked(sampler, space, ended, size, seed)
        ended += [stored(space, p, number) for number, p in enumerate(proposals, start=len(ended))]
    return ended


@given(spaces(), st.integers(0, 99), st.integers(1, 9))
def test_a_random_trial_depends_on_its_number_alone(space: Space, seed: int, split: int) -> None:
    whole = asked(RandomChoice(), space, [], 10, seed)
    parts = [RandomChoice().propose(TrialRequest(space, seed, "minimize", [], n, split)) for n in range(0, 10, split)]
    assert list(itertools.chain(*parts))[:10] == whole


def test_seeds_and_numbers_give_different_trials() -> None:
    trials = [asked(RandomChoice(), PLANE, [], 100, seed) for seed in (1, 2)]
    assert len({p.params["x"] for p in itertools.chain(*trials)}) == 200


def test_a_grid_is_walked_once() -> None:
    space = Space({"a": int_range(1, 3), "b": int_range(1, 2)})
    parts = [Grid().propose(TrialRequest(space, 0, "minimize", [], first, 4)) for first in (0, 4, 8)]
    assert [len(part) for part in parts] == [4, 2, 0]
    assert [p.params for p in itertools.chain(*parts)] == list(space.combinations())


@pytest.mark.parametrize("name", NAMES)
def test_whoever_takes_over_asks_for_the_same(name: str) -> None:
    sampler = Optuna.model_validate({"name": name})
    ended = swept(sampler, EVERYTHING, 5)
    assert swept(sampler, EVERYTHING, 5) == ended
    for generation in range(5):
        again = asked(sampler, EVERYTHING, ended[: generation * 8])
        expected = ended[generation * 8 : generation * 8 + 8]
        assert [p.params for p in again] == [e.params for e in expected]
    assert len({json.dumps(e.params, sort_keys=True) for e in ended}) == len(ended)


@pytest.mark.parametrize("name", NAMES)
def test_a_sampler_proposes_what_it_proposes_in_optuna(name: str) -> None:
    """Told of trials by their records, it asks for what it asks for in the study that has made them."""
    ours = swept(Optuna.model_validate({"name": name}), MIXED, 4)
    study = optuna.create_study()
    for first in range(0, len(ours), 8):
        with warnings.catch_warnings(action="ignore", category=ExperimentalWarning):
            study.sampler = _sampler(name, {}, TrialRequest(MIXED, 1, "minimize", [], first, 8))
        generation = ours[first : first + 8]
        trials = [study.ask({name: _distribution(MIXED.root[name]) for name in MIXED.names}) for _ in generation]
        for trial, ended in zip(trials, generation, strict=True):
            assert trial.params == pytest.approx(ended.params)
        for trial, ended in zip(trials, generation, strict=True):
            for epoch, value in ended.reports.items():
                trial.report(value, epoch)
            state = {"failed": TrialState.FAIL, "stopped": TrialState.PRUNED}.get(ended.ending)
            study.tell(trial, ended.value, state=state)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10)
@given(space=spaces(), seed=st.integers(0, 9))
def test_proposals_lie_in_the_space(name: str, space: Space, seed: int) -> None:
    sampler = Optuna.model_validate({"name": name})
    for ended in swept(sampler, space, 2, size=4, seed=seed):
        assert space.restored(ended.params) == ended.params


@pytest.mark.parametrize("name", ["tpe", "cmaes"])
def test_samplers_learn(name: str) -> None:
    """The later trials are better than chance by far: the mean loss of random points of the plane is 21."""
    ended = swept(Optuna.model_validate({"name": name}), PLANE, 12)
    assert math.fsum(loss(e.params) for e in ended[-24:]) / 24 < 6


def test_results_and_not_only_parameters_count() -> None:
    sampler = Optuna(name="tpe")
    ended = swept(sampler, PLANE, 3)
    others = [EndedTrial(e.params, e.ending, None if e.value is None else -e.value, e.reports, e.memory) for e in ended]
    assert asked(sampler, PLANE, ended) != asked(sampler, PLANE, others)


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("tpe", {"n_start": 3}, r"sampler tpe has no option n_start; it has .*n_startup_trials"),
        ("tpe", {"gamma": 3}, "sampler tpe has no option gamma"),
        ("tpe", {"n_startup_trials": "5"}, "option n_startup_trials of sampler tpe must be int, not '5'"),
        ("tpe", {"n_startup_trials": True}, "must be int, not True"),
        ("cmaes", {"sigma0": [1]}, "must be float or None, not "),
        ("qmc", {"qmc_type": "sobel"}, "sampler qmc rejects .*sobel.*sobol"),
        ("nsgaii", {"population_size": 1}, "sampler nsgaii rejects .*: .*population_size"),
    ],
)
def test_options_that_a_sampler_does_not_take_are_told_in_one_line(
    name: str, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(TaskError, match=problem) as refused:
        asked(Optuna.model_validate({"name": name, "options": options}), PLANE, [])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tpe", {"n_startup_trials": 3, "multivariate": True, "group": True}),
        ("cmaes", {"n_startup_trials": 4, "popsize": 6}),
        ("gp", {"deterministic_objective": True, "n_startup_trials": 4}),
        ("qmc", {"qmc_type": "halton", "scramble": True}),
        ("nsgaii", {"population_size": 4, "mutation_prob": None, "crossover_prob": 1}),
    ],
)
def test_options_that_a_sampler_takes_are_no_problem(name: str, options: dict[str, Any]) -> None:
    assert find_problem(name, options) is None


@pytest.mark.parametrize(
    ("name", "module", "install"),
    [
        ("tpe", "optuna", "'jobtable.sweeps.'"),
        ("cmaes", "cmaes", "'jobtable.sweeps.'"),
        ("gp", "torch", "torch"),
    ],
)
def test_what_a_sampler_needs_and_is_not_installed_is_told(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, install: str
) -> None:
    monkeypatch.setattr(samplers, "find_spec", lambda asked: None if asked == module else object())
    problem = Optuna.model_validate({"name": name}).find_problem()
    assert problem is not None
    assert re.fullmatch(f"sampler {name} needs {module}, which is not installed: pip install {install}", problem)
