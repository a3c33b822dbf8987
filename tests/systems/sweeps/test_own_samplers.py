"""Samplers of users: named by a path or given as a class, asked for each generation, and held to the space."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from tests.systems.sweeps.driving import Driver

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ValueRefusedError
from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Status
from jobtable.store import Store
from jobtable.systems.sweeps import OwnSampler, Proposal, SamplerClass, Sweep, TrialRequest, float_range
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.space import Space

SPACE = Space({"x": float_range(-5, 5)})
PATH = f"{__name__}:Halving"


class Halving(SamplerClass):
    """Goes half-way from the best so far to zero."""

    def __init__(self, start: float = 4.0) -> None:
        self.start = start

    def propose(self, request: TrialRequest) -> list[Proposal]:
        best = min((each.value for each in request.ended if each.value is not None), default=None)
        first = self.start if best is None else best / 2
        return [Proposal({"x": first / 2**step}) for step in range(request.count)]


class TooMany(SamplerClass):
    def propose(self, request: TrialRequest) -> list[Proposal]:
        return [Proposal({"x": 1.0})] * (request.count + 1)


class Outside(SamplerClass):
    def propose(self, request: TrialRequest) -> list[Proposal]:
        return [Proposal({"x": 7.0})]


def sweep(**changed: object) -> Sweep:
    given = {"name": "own", "task": "tests.systems.sweeps.sweep_tasks:echo", "space": SPACE, "trials": 4, **changed}
    return Sweep.model_validate({"sampler": PATH, "objective": "x", "generation_size": 2, **given})


def test_a_path_a_class_and_the_whole_form_are_the_same() -> None:
    whole = {"name": "own", "path": PATH, "options": {}}
    assert sweep() == sweep(sampler=Halving) == sweep(sampler=whole) == sweep(sampler=OwnSampler(path=PATH))


def test_the_trials_are_those_that_it_proposes_generation_by_generation() -> None:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(main)
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(sweep(sampler={"name": "own", "path": PATH, "options": {"start": 2.0}}), sweep_id="s")
        driver.run()
        assert driver.jobs.queries.get_job("s").status is Status.COMPLETED
        assert [trial.params for trial in sweeps.list_trials("s")] == [{"x": 2.0}, {"x": 1.0}, {"x": 0.5}, {"x": 0.25}]


@pytest.mark.parametrize(
    ("sampler", "problem"),
    [
        ("no.such.module:Thing", "cannot use sampler no.such.module:Thing: ModuleNotFoundError"),
        (f"{__name__}:Nothing", "AttributeError"),
        ("subprocess:Popen", "subprocess:Popen is not a subclass of SamplerClass"),
        ({"name": "own", "path": PATH, "options": {"wrong": 1}}, "unexpected keyword argument 'wrong'"),
    ],
)
def test_one_that_cannot_be_used_is_refused_when_the_sweep_is_submitted(sampler: object, problem: str) -> None:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(main)
        with pytest.raises(ValueRefusedError, match=problem):
            Sweeps(Driver.on(store).jobs).submit(sweep(sampler=sampler))


@pytest.mark.parametrize(("name", "problem"), [("TooMany", "proposed 3 trials instead of up to 2"), ("Outside", "x: ")])
def test_what_the_space_does_not_have_is_refused(name: str, problem: str) -> None:
    question = TrialRequest(SPACE, 1, "minimize", [], 0, 2)
    with pytest.raises(ValueRefusedError, match=problem):
        OwnSampler(path=f"{__name__}:{name}").propose(question)


def test_a_path_has_a_module_and_a_class() -> None:
    with pytest.raises(ValidationError, match="path"):
        sweep(sampler=":Halving")
