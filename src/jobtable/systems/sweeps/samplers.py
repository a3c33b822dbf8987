"""Samplers: which parameters the next trials of a sweep get.

What a sampler proposes depends on the seed, on the numbers of the trials, and on the results that it is given, in the
order of trial numbers. It never depends on time, on the process, or on the order in which trials ended.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from random import Random
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from jobtable.errors import ValueRefusedError, kind_and_text
from jobtable.system import current_path
from jobtable.systems.sweeps.parameters import Params, required_in_json
from jobtable.systems.sweeps.space import Space

Direction: TypeAlias = Literal["minimize", "maximize"]
Ending: TypeAlias = Literal["completed", "stopped", "failed"]
_NEEDED_BESIDE_OPTUNA = {"cmaes": "cmaes", "gp": "torch", "qmc": "scipy"}
"""The modules that some samplers import in the middle of a sweep."""


@dataclass(frozen=True)
class EndedTrial:
    """What is known of a trial that has ended."""

    params: Params
    ending: Ending
    value: float | None = None
    """Its objective, if it is completed."""
    reports: Mapping[int, float] = field(default_factory=dict)
    """What it reported on the way, by epoch."""
    memory: Mapping[str, Any] = field(default_factory=dict)
    """What the sampler noted when it proposed the trial."""


@dataclass(frozen=True)
class Proposal:
    """A trial to make: its parameters, and what the sampler wants to see again of it."""

    params: Params
    memory: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialRequest:
    """What a sampler is asked: the next `count` trials, given what became of all the ones before."""

    space: Space
    seed: int
    direction: Direction
    ended: Sequence[EndedTrial]
    """In the order of their numbers; empty for samplers that do not look back, or where no trial waits for another."""
    first_number: int
    count: int
    given: Sequence[Params] = ()
    """What the first of them have, whatever the sampler would propose."""


class _Sampler(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=required_in_json("name"))

    @property
    def learns(self) -> bool:
        """Whether results change what is proposed."""
        return False

    @property
    def looks_back(self) -> bool:
        """Whether it is to be told of the trials before; one that does not learn may note in them how far it is."""
        return False

    def find_problem(self) -> str | None:
        """Return in one line why the sampler cannot be used here, or None if it can."""
        return None


class SamplerClass(ABC):
    """A sampler of your own. A sweep names it `module:Class`; it is made anew, with the options, for each generation.

    What it proposes must depend on the question alone, so that a planning job that runs again makes the same trials.
    """

    @abstractmethod
    def propose(self, question: TrialRequest) -> list[Proposal]:
        """Return the next trials: the given ones first, and `question.count` at most. Fewer end the sweep."""


class Grid(_Sampler):
    """Every combination, in a fixed order."""

    name: Literal["grid"] = "grid"

    def propose(self, question: TrialRequest) -> list[Proposal]:
        """The combinations with the trials' numbers; fewer when they are used up."""
        end = question.first_number + question.count
        return [Proposal(p) for p in itertools.islice(question.space.combinations(), question.first_number, end)]


class RandomChoice(_Sampler):
    """Every parameter at random, by the seed, the number of the trial and the parameter's name alone."""

    name: Literal["random"] = "random"

    def propose(self, question: TrialRequest) -> list[Proposal]:
        """The parameters that belong to the trials' numbers."""
        numbers = range(question.first_number, question.first_number + question.count)
        drawn = [self._drawn(question.space, question.seed, number) for number in numbers[len(question.given) :]]
        return [Proposal(params) for params in (*question.given, *drawn)]

    def _drawn(self, space: Space, seed: int, number: int) -> Params:
        # Not for secrets: what matters is that a seed gives the same draw everywhere.
        return space.assemble(lambda name, parameter: parameter.draw(Random(f"{seed}/{number}/{name}")))  # noqa: S311


class Optuna(_Sampler):
    """One of Optuna's samplers, asked for one generation of trials at a time."""

    name: Literal["tpe", "cmaes", "gp", "qmc", "nsgaii"]
    options: dict[str, Any] = {}
    """Arguments of the sampler in Optuna."""

    @field_validator("options")
    @classmethod
    def _without_seed(cls, options: dict[str, Any]) -> dict[str, Any]:
        if "seed" in options:
            raise ValueError("the seed is the sweep's own: write seed beside sampler")
        return options

    @property
    def learns(self) -> bool:
        """Whether results change what is proposed."""
        return self.name != "qmc"

    @property
    def looks_back(self) -> bool:
        """Whether it is to be told of the trials before."""
        return True

    def find_problem(self) -> str | None:
        """Return in one line why Optuna's sampler cannot be used here or with the options, or None if it can."""
        for module in ("optuna", _NEEDED_BESIDE_OPTUNA.get(self.name, "optuna")):
            if find_spec(module) is None:
                needed = module if module == "torch" else "'jobtable[sweeps]'"
                return f"the sampler {self.name} needs {module}, which is not installed here: pip install {needed}"
        from jobtable.systems.sweeps.optuna_samplers import find_problem  # noqa: PLC0415 - as below

        return find_problem(self.name, self.options)

    def propose(self, question: TrialRequest) -> list[Proposal]:
        """What Optuna asks for after it was told of every trial before."""
        from jobtable.systems.sweeps.optuna_samplers import propose  # noqa: PLC0415 - needs Optuna, which comes with an extra

        return propose(self.name, self.options, question)


class OwnSampler(_Sampler):
    """A subclass of SamplerClass that `path` names; `sampler: "mysamplers:Halton"` is the short form."""

    name: Literal["own"] = "own"
    path: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
    options: dict[str, Any] = {}
    """Arguments of the class."""

    @property
    def learns(self) -> bool:
        """It gets every result, so each generation waits for the one before."""
        return True

    @property
    def looks_back(self) -> bool:
        """It gets every trial before."""
        return True

    def find_problem(self) -> str | None:
        """Return in one line why the class cannot be used here, or None if it can."""
        try:
            self._made()
        except ValueRefusedError as error:
            return str(error)
        return None

    def propose(self, question: TrialRequest) -> list[Proposal]:
        """Ask the class; ValueRefusedError if it proposes what the space does not have, or too much."""
        proposals = self._made().propose(question)
        if len(proposals) > question.count:
            raise ValueRefusedError(
                f"{self.path} proposed {len(proposals)} trials; at most {question.count} were asked for"
            )
        return [replace(each, params=question.space.restored(each.params)) for each in proposals]

    def _made(self) -> SamplerClass:
        module_name, _, class_name = current_path(self.path).partition(":")
        try:
            found = getattr(import_module(module_name), class_name)
            # Checked before it is called: a path comes from whoever submits the sweep.
            if not (isinstance(found, type) and issubclass(found, SamplerClass)):
                raise ValueRefusedError(f"{self.path} is not a subclass of SamplerClass")
            return found(**self.options)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            if isinstance(error, ValueRefusedError):
                raise
            raise ValueRefusedError(f"sampler {self.path} cannot be used: {kind_and_text(error)}") from error


Sampler: TypeAlias = Annotated[Grid | RandomChoice | Optuna | OwnSampler, Field(discriminator="name")]
