"""Samplers: they propose the parameters of the next trials of a sweep.

Proposals depend on the seed, the trial numbers, and the results in the order of those numbers; never on time, on the
process, or on the order in which trials ended.
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
"""The modules that some samplers import during a sweep."""


@dataclass(frozen=True)
class EndedTrial:
    """What a sampler sees of a trial that has ended."""

    params: Params
    ending: Ending
    value: float | None = None
    """Its objective if it completed."""
    reports: Mapping[int, float] = field(default_factory=dict)
    """Its reports of the objective, by epoch."""
    memory: Mapping[str, Any] = field(default_factory=dict)
    """What the sampler noted when it proposed the trial."""


@dataclass(frozen=True)
class Proposal:
    """A trial to make: its parameters, and what the sampler wants to see of it again."""

    params: Params
    memory: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialRequest:
    """What a sampler is asked for: the next `count` trials, given the results of all earlier ones."""

    space: Space
    seed: int
    direction: Direction
    ended: Sequence[EndedTrial]
    """In the order of their numbers; empty for samplers that do not look back, or if no trial waits for another."""
    first_number: int
    count: int
    given: Sequence[Params] = ()
    """The parameters of the first of them, whatever the sampler would propose."""


class _Sampler(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=required_in_json("name"))

    @property
    def learns(self) -> bool:
        """Whether results change the proposals."""
        return False

    @property
    def looks_back(self) -> bool:
        """Whether it needs the earlier trials; a sampler that does not learn may note its position in them."""
        return False

    def find_problem(self) -> str | None:
        """Return why the sampler cannot be used here, in one line, or None."""
        return None


class SamplerClass(ABC):
    """A sampler of your own: subclass it, and name it in a sweep as `module:Class` or with the class itself.

        class Halving(SamplerClass):
            def __init__(self, start: float = 1.0) -> None: ...  # the options in the sweep's definition

            def propose(self, request: TrialRequest) -> list[Proposal]:
                return [*map(Proposal, request.given), Proposal({"x": ...})]

    Each generation makes a new instance. Proposals must depend on the request alone, so that a planning job that runs
    again makes the same trials. The workers and the process that submits the sweep must be able to import the class.
    """

    @abstractmethod
    def propose(self, request: TrialRequest) -> list[Proposal]:
        """Return the next trials: the given ones first, and at most `request.count`. Fewer end the sweep."""


class Grid(_Sampler):
    """Every combination, in a fixed order."""

    name: Literal["grid"] = "grid"

    def propose(self, request: TrialRequest) -> list[Proposal]:
        end = request.first_number + request.count
        return [Proposal(p) for p in itertools.islice(request.space.combinations(), request.first_number, end)]


class RandomChoice(_Sampler):
    """Random parameters, which depend only on the seed, the trial number and the name of the parameter."""

    name: Literal["random"] = "random"

    def propose(self, request: TrialRequest) -> list[Proposal]:
        numbers = range(request.first_number, request.first_number + request.count)
        drawn = [self._drawn(request.space, request.seed, number) for number in numbers[len(request.given) :]]
        return [Proposal(params) for params in (*request.given, *drawn)]

    def _drawn(self, space: Space, seed: int, number: int) -> Params:
        # Not for secrets: a seed must give the same draw everywhere.
        return space.assemble(lambda name, parameter: parameter.draw(Random(f"{seed}/{number}/{name}")))  # noqa: S311


class Optuna(_Sampler):
    """One of Optuna's samplers, asked for one generation of trials at a time."""

    name: Literal["tpe", "cmaes", "gp", "qmc", "nsgaii"]
    options: dict[str, Any] = {}
    """Arguments of the sampler's class in Optuna."""

    @field_validator("options")
    @classmethod
    def _without_seed(cls, options: dict[str, Any]) -> dict[str, Any]:
        if "seed" in options:
            raise ValueError("set the seed of the sweep instead of the sampler's")
        return options

    @property
    def learns(self) -> bool:
        return self.name != "qmc"

    @property
    def looks_back(self) -> bool:
        return True

    def find_problem(self) -> str | None:
        for module in ("optuna", _NEEDED_BESIDE_OPTUNA.get(self.name, "optuna")):
            if find_spec(module) is None:
                needed = module if module == "torch" else "'jobtable[sweeps]'"
                return f"sampler {self.name} needs {module}, which is not installed: pip install {needed}"
        from jobtable.systems.sweeps.optuna_samplers import find_problem  # noqa: PLC0415 - as below

        return find_problem(self.name, self.options)

    def propose(self, request: TrialRequest) -> list[Proposal]:
        from jobtable.systems.sweeps.optuna_samplers import propose  # noqa: PLC0415 - needs Optuna, which comes with an extra

        return propose(self.name, self.options, request)


class OwnSampler(_Sampler):
    """A subclass of SamplerClass by its path; `sampler: "mysamplers:Halton"` is the short form."""

    name: Literal["own"] = "own"
    path: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
    options: dict[str, Any] = {}
    """Arguments of the class."""

    @property
    def learns(self) -> bool:
        return True

    @property
    def looks_back(self) -> bool:
        return True

    def find_problem(self) -> str | None:
        try:
            self._made()
        except ValueRefusedError as error:
            return str(error)
        return None

    def propose(self, request: TrialRequest) -> list[Proposal]:
        """Ask the class; ValueRefusedError if it proposes too many trials, or parameters outside the space."""
        proposals = self._made().propose(request)
        if len(proposals) > request.count:
            raise ValueRefusedError(f"{self.path} proposed {len(proposals)} trials instead of up to {request.count}")
        return [replace(each, params=request.space.restored(each.params)) for each in proposals]

    def _made(self) -> SamplerClass:
        module_name, _, class_name = current_path(self.path).partition(":")
        try:
            found = getattr(import_module(module_name), class_name)
            # Checked before it is called: the path comes from the caller who submits the sweep.
            if isinstance(found, type) and issubclass(found, SamplerClass):
                return found(**self.options)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise ValueRefusedError(f"cannot use sampler {self.path}: {kind_and_text(error)}") from error
        raise ValueRefusedError(f"{self.path} is not a subclass of SamplerClass")


Sampler: TypeAlias = Annotated[Grid | RandomChoice | Optuna | OwnSampler, Field(discriminator="name")]
