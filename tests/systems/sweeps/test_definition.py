"""Sweeps as people write them: in Python and in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from pydantic import ValidationError
from tests.systems.sweeps import sweep_tasks
from tests.systems.sweeps.spaces import spaces

from jobtable.errors import TaskError, ValueRefusedError
from jobtable.systems.sweeps.parameters import choice, float_range, int_range
from jobtable.systems.sweeps.samplers import Optuna
from jobtable.systems.sweeps.space import Space
from jobtable.systems.sweeps.stoppers import Asha
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.sweep_file import parse_sweep, read_sweep

EXAMPLE = Path(__file__).parents[3] / "examples" / "sweeps" / "gradient_boosting.yaml"

BROAD = "{type: int, low: 1, high: 1001}"
TEXT = """
task: tests.systems.sweeps.sweep_tasks:descend
objective: loss
direction: maximize
trials: 20
sampler: {name: tpe, options: {n_startup_trials: 5}}
stopper: asha
space:
  x: {type: float, low: 1e-4, high: 1, log: true}
  y: [1e-3, 0.5, 2]
  z: {type: int, low: 1, high: 9, step: 2, when: {y: 0.5}}
"""


def test_a_file_says_what_python_says() -> None:
    written = Sweep(
        name="mine",
        task=sweep_tasks.descend,
        objective="loss",
        direction="maximize",
        trials=20,
        sampler=Optuna(name="tpe", options={"n_startup_trials": 5}),
        stopper=Asha(),
        space={
            "x": float_range(0.0001, 1, log=True),
            "y": choice(0.001, 0.5, 2),
            "z": int_range(1, 9, step=2).only_if(y=0.5),
        },
    )
    assert parse_sweep(TEXT, "text", name="mine") == written
    assert written.task == "tests.systems.sweeps.sweep_tasks:descend"


def test_the_example_is_understood() -> None:
    sweep = read_sweep(EXAMPLE)
    assert (sweep.trials, sweep.name) == (30, "gradient boosting")
    assert read_sweep(str(EXAMPLE)) == sweep


def test_the_order_of_a_space_does_not_make_another_sweep() -> None:
    lines = TEXT.strip().splitlines()
    turned = "\n".join([*lines[:-3], lines[-1], lines[-2], lines[-3]])
    assert parse_sweep(turned, "text", name="mine") == parse_sweep(TEXT, "text", name="mine")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1, 2]", "does not define a sweep"),
        ("a: [", "is malformed: line 1, column 5: "),
        ("task: a:b\ntrials: 3\ntrials: 4\nspace: {x: [1]}", "line 2, column 1: trials occurs twice"),
        ("task: a:b\ntrials: 3\nspace: {x: [1]}\nparams: &all {y: *all}", "line 4, column 9: .*recursive"),
        ("task: a:b\ntrials: 3\nspace:\n  x: [1]\n  y: 3", "line 5: space.y: a parameter is a list of values, or has"),
        ("task: a:b\ntrials: 3\nspace:\n  x: {type: int, low: 1}", "line 4: space.x.int.high: Field required"),
        ("task: a:b\ntrials: 3\nspace:\n  x:\n  - 1\n  - 2026-01-01", "line 6: space.x.choice.values.1: "),
        ("task: a:b\ntrials: 3", "space: Field required"),
        ("task: mine\nspace: {x: [1]}\ntrials: 3", "line 1: task: .*must have the form module:function"),
        ("task: a:b\nspace: {x: [1]}", "does not end by itself"),
        ("task: a:b\nspace: {x: [1]}\ntrials: 3\nsampler: tpo", "sampler: Input tag 'tpo'"),
        ("task: a:b\nspace: {x: {type: float, low: 0, high: 1}}\nsampler: grid", "x: a grid needs a step"),
        ("task: a:b\nspace: {x: [1]}\ntrials: 3\nparams: {x: 2}", "x is both in the space and in params"),
        ("task: a:b\nspace: {x: [1]}\ntrials: 3\nobjective: [a, b]", "line 4: objective: a sweep has one objective"),
        ("task: a:b\nspace: {x: [1]}\ntrials: 0", "trials: Input should be greater"),
        ("task: a:b\nspace: {x: [1]}\ntrails: 3", "line 3: trails: unknown member; use one of name, task, "),
        (
            "task: a:b\nspace: {x: [1]}\ntrials: 3\nstopper: {name: asha, eta: 4}",
            "stopper.asha.eta: unknown member; use one of first_epoch, last_epoch, peers, name, factor",
        ),
        (
            "task: a:b\nspace: {x: [1]}\ntrials: 3\nstopper: {peers: now}",
            "line 4: stopper: 'name' is missing",
        ),
        ("task: a:b\nspace: {x: [1]}\ntrials: 3\ngeneration_size: 41", "generation_size: "),
        (f"task: a:b\nsampler: grid\nspace: {{x: {BROAD}, y: {BROAD}}}", "the grid has more than 1,000,000 points"),
        (
            "task: a:b\nsampler: grid\nspace: {x: {type: int, low: 0, high: 100000000000}}",
            "x: 100,000,000,001 values are too many for a grid of at most 1,000,000",
        ),
        (
            "task: a:b\nsampler: grid\ntrials: 3\nspace: {x: {type: float, low: 0, high: 1, step: 1e-9}}",
            "x: 1,000,000,001 values",
        ),
        (
            "task: a:b\nspace: {x: [1]}\ntrials: 3\nsampler: {name: tpe, options: {seed: 1}}",
            "set the seed of the sweep",
        ),
        ("task: a:b\nspace: {x: [1]}\ntrials: 1\nbegin_with: [{x: 1}, {x: 1}]", "has 2 trials, and the sweep only 1"),
        (
            "task: a:b\nspace: {x: [1]}\ntrials: 3\nbegin_with: [{x: 1}, {x: 2}]",
            "x: 2 is not one of",
        ),
        ("task: a:b\nspace: {x: [1]}\ntrials: 3\nbegin_with: [{}]", "begin_with.0: {} has no x"),
        (
            "task: a:b\nspace: {x: {type: float, low: 0, high: 1, step: 0.3}}\ntrials: 3\nbegin_with: [{x: 0.95}]",
            "begin_with.0: x: 0.95 is not 0.0 plus steps of 0.3",
        ),
        ("task: a:b\nspace: {x: [1]}\nsampler: grid\nbegin_with: [{x: 1}]", "remove begin_with"),
        ("task: a:b\nspace: {job: [1]}\ntrials: 3", "a parameter cannot be named job"),
        ("task: a:b\nspace: {x: [1, .nan]}\ntrials: 3", "a number at 1 that is not finite"),
        ("task: a:b\nspace: {x: [1]}\ntrials: 3\nparams: {y: [.inf]}", "params.y.0 is not a finite number"),
        ("task: a:b\nspace: {x: [1]}\ntrials: 3\nmetrics_ttl_seconds: .inf", "metrics_ttl_seconds: .* finite"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(text: str, problem: str) -> None:
    with pytest.raises(ValueRefusedError, match=f"^sweep.yaml.*{problem}.*$") as refused:
        parse_sweep(text, "sweep.yaml", name="sweep")
    assert "\n" not in str(refused.value)


@settings(max_examples=10)
@given(spaces())
def test_a_sweep_comes_back_from_json_and_yaml_as_it_was(space: Space) -> None:
    sweep = Sweep(name="\U0001f680", task="a:b", space=space, trials=3)
    plain = sweep.model_dump(mode="json")
    for text in (json.dumps(plain), yaml.safe_dump(plain)):
        assert parse_sweep(text, "text", name="mine") == sweep


def test_numbers_are_written_as_in_python() -> None:
    sweep = parse_sweep("task: a:b\ntrials: 1e3\nspace: {x: [1e-4, .5e3, 1.e2, -2E+1, 3]}", "text", name="mine")
    assert (sweep.trials, sweep.space.root["x"].grid()) == (1000, [0.0001, 500.0, 100.0, -20.0, 3.0])


def test_a_large_grid_is_taken_as_far_as_the_sweep_says_or_its_conditions_leave() -> None:
    broad = int_range(1, 1001)
    assert Sweep(name="s", task="a:b", space={"x": broad, "y": broad}, sampler="grid", trials=7).trial_count() == 7
    left = {"x": broad, "y": broad.only_if(x=1)}
    assert Sweep(name="s", task="a:b", space=left, sampler="grid").trial_count() == 2001


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueRefusedError, match=r"cannot read .*: No such file or directory"):
        read_sweep(tmp_path / "sweep.yaml")


def test_a_function_that_is_no_task_is_refused() -> None:
    with pytest.raises(TaskError, match="write @task above it"):
        Sweep(name="a", task=print, space={"x": [1]}, trials=1)


@pytest.mark.parametrize(
    ("changes", "generations"),
    [
        ({"trials": 20}, [20]),
        ({"trials": 1200}, [500, 500, 200]),
        ({"trials": 40_001}, [*[1001] * 39, 962]),
        ({"trials": 1200, "sampler": "qmc"}, [1200]),
        ({"trials": 20, "sampler": "tpe"}, [8, 8, 4]),
        ({"trials": 20, "target": 0.5}, [8, 8, 4]),
        ({"trials": 20, "stopper": "asha", "generation_size": 10}, [10, 10]),
        ({"trials": 20, "stopper": {"name": "asha", "peers": "now"}}, [20]),
        ({"sampler": "grid"}, [6]),
        ({"sampler": "grid", "trials": 4}, [4]),
        ({"sampler": "grid", "stopper": "median", "generation_size": 5}, [5, 1]),
    ],
)
def test_only_what_counts_is_waited_for(changes: dict[str, Any], generations: list[int]) -> None:
    sweep = Sweep.model_validate({"name": "a", "task": "a:b", "space": {"x": [1, 2, 3], "y": [1, 2]}, **changes})
    found = [sweep.numbers_of(generation) for generation in range(sweep.generation_count())]
    assert [len(numbers) for numbers in found] == generations
    assert [number for numbers in found for number in numbers] == list(range(sum(generations)))


def test_definitions_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        parse_sweep(TEXT, "text", name="mine").seed = 2


@pytest.mark.parametrize(
    "part", ["Asha", "Median", "Grid", "RandomChoice", "Optuna", "Choice", "IntRange", "FloatRange"]
)
def test_the_description_demands_what_the_parts_are_told_apart_by(part: str) -> None:
    described = Sweep.model_json_schema()["$defs"][part]
    told_apart_by = "type" if part in ("Choice", "IntRange", "FloatRange") else "name"
    assert described["required"].count(told_apart_by) == 1
    assert set(described["required"]) <= set(described["properties"])
