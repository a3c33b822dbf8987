"""Stoppers: they stop trials that are not worth their time.

At some epochs, the rungs, a trial is compared with its peers at the same rung, and continues only if it is good enough:

`peers="earlier"` (the default): with the trials of earlier generations, which all ended before the trial starts. What a
value must reach at each rung is fixed when the generation is planned, and stored in the trial's definition. So timing
does not matter: an interrupted sweep, or one on other workers, stops the same trials. The first generation has no peers
and runs to its end.

`peers="now"`: with the trials that have reached the rung by now, as ASHA was published. This stops trials from the
first generation on, but which ones depends on which trials happened to be faster.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from jobtable.systems.sweeps.parameters import required_in_json
from jobtable.systems.sweeps.samplers import Direction

_Epoch: TypeAlias = Annotated[int, Field(ge=1)]
Peers: TypeAlias = Literal["earlier", "now"]


class _Stopper(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=required_in_json("name"))

    first_epoch: _Epoch = 1
    """The first rung."""
    last_epoch: _Epoch | None = None
    """The last epoch of a trial, at which it is no longer stopped."""
    peers: Peers = "earlier"

    @model_validator(mode="after")
    def _there_is_a_rung(self) -> Self:
        if self.last_epoch is not None and self.first_epoch >= self.last_epoch:
            raise ValueError(f"the first rung (epoch {self.first_epoch}) is not before the last epoch")
        return self

    def judged(self, reports: Sequence[float], direction: Direction) -> float:
        """Return which of a trial's reports up to a rung is compared with the cutoff."""
        return reports[-1]

    def _is_judged(self, epoch: int) -> bool:
        return epoch >= self.first_epoch and (self.last_epoch is None or epoch < self.last_epoch)


class Asha(_Stopper):
    """Successive halving: the best 1/factor of the trials at a rung continue to the next, factor times later."""

    name: Literal["asha"] = "asha"
    factor: Annotated[int, Field(ge=2)] = 3

    def rung_at(self, epoch: int) -> int | None:
        """Return the last rung that a trial has reached at an epoch, or None if it is not compared there."""
        if not self._is_judged(epoch):
            return None
        rung = self.first_epoch
        while rung * self.factor <= epoch:
            rung *= self.factor
        return rung

    def cutoff(self, peers: Sequence[float], direction: Direction) -> float | None:
        """Return the worst value that may continue among these peers, or None if they are too few."""
        if len(peers) < self.factor:
            return None
        going_on = max(1, (len(peers) + 1) // self.factor)
        return sorted(peers, reverse=direction == "maximize")[going_on - 1]


class Median(_Stopper):
    """Stops a trial whose best value so far is worse than the median of its peers at the same epoch."""

    name: Literal["median"] = "median"
    every: _Epoch = 1
    """Epochs from one rung to the next."""
    fewest_peers: Annotated[int, Field(ge=1)] = 5

    def judged(self, reports: Sequence[float], direction: Direction) -> float:
        """Return the best report so far."""
        return min(reports) if direction == "minimize" else max(reports)

    def rung_at(self, epoch: int) -> int | None:
        """Return the last rung that a trial has reached at an epoch, or None if it is not compared there."""
        if not self._is_judged(epoch):
            return None
        return epoch - (epoch - self.first_epoch) % self.every

    def cutoff(self, peers: Sequence[float], direction: Direction) -> float | None:
        """Return the worst value that may continue among these peers, or None if they are too few."""
        if len(peers) < self.fewest_peers:
            return None
        # The worse of two middle values, so that half of the peers themselves would continue.
        return statistics.median_high(peers) if direction == "minimize" else statistics.median_low(peers)


Stopper: TypeAlias = Annotated[Asha | Median, Field(discriminator="name")]


def cutoffs(stopper: Asha | Median, at_rungs: Mapping[int, Sequence[float]], direction: Direction) -> dict[int, float]:
    """Return what a value must reach at each rung, given the values of the peers there."""
    found = {rung: stopper.cutoff(values, direction) for rung, values in at_rungs.items()}
    return {rung: cutoff for rung, cutoff in found.items() if cutoff is not None}


def is_worse(value: float, than: float, direction: Direction) -> bool:
    """Return whether a value is worse than another; equal values are not."""
    return value > than if direction == "minimize" else value < than
