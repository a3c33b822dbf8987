"""Stoppers: which trials are not worth their time.

At some epochs, the rungs, a trial is compared with others at the same rung, and goes on only if it is good enough. Who
the others are decides what is guaranteed:

`peers="earlier"` (the default): the trials of earlier generations, which have all ended before the trial begins. What a
value must reach at each rung is fixed when the generation is planned and stands in the trial's definition. So which
trials are stopped depends on no timing at all: a sweep that was interrupted, or that ran on other workers, stops the
same ones. The first generation has nobody to be compared with, and runs to its end.

`peers="now"`: whoever has reached the rung by now, as ASHA was published. Stops from the first generation on, and
whether a trial is stopped depends on which of the others happened to be faster.
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
    """What every stopper has."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=required_in_json("name"))

    first_epoch: _Epoch = 1
    """The first rung."""
    last_epoch: _Epoch | None = None
    """How many epochs a trial has. A trial that has come so far is not stopped any more."""
    peers: Peers = "earlier"

    @model_validator(mode="after")
    def _there_is_a_rung(self) -> Self:
        if self.last_epoch is not None and self.first_epoch >= self.last_epoch:
            raise ValueError(f"the first rung (epoch {self.first_epoch}) is not before the last epoch")
        return self

    def judged(self, reports: Sequence[float], direction: Direction) -> float:
        """Which of a trial's reports so far, the last of them at a rung, is compared with the cutoff."""
        return reports[-1]

    def _is_judged(self, epoch: int) -> bool:
        return epoch >= self.first_epoch and (self.last_epoch is None or epoch < self.last_epoch)


class Asha(_Stopper):
    """Successive halving: of the trials at a rung the best 1/factor go on to the next, which is factor times later."""

    name: Literal["asha"] = "asha"
    factor: Annotated[int, Field(ge=2)] = 3

    def rung_at(self, epoch: int) -> int | None:
        """The last rung that a trial has reached at an epoch, or None where it is not judged."""
        if not self._is_judged(epoch):
            return None
        rung = self.first_epoch
        while rung * self.factor <= epoch:
            rung *= self.factor
        return rung

    def cutoff(self, peers: Sequence[float], direction: Direction) -> float | None:
        """The worst value that goes on among these peers, or None if they are too few to stop anybody."""
        if len(peers) < self.factor:
            return None
        going_on = max(1, (len(peers) + 1) // self.factor)
        return sorted(peers, reverse=direction == "maximize")[going_on - 1]


class Median(_Stopper):
    """A trial whose best value so far is worse than the median of the others at the same epoch is stopped."""

    name: Literal["median"] = "median"
    every: _Epoch = 1
    """Epochs from one rung to the next."""
    fewest_peers: Annotated[int, Field(ge=1)] = 5

    def judged(self, reports: Sequence[float], direction: Direction) -> float:
        """The best report so far."""
        return min(reports) if direction == "minimize" else max(reports)

    def rung_at(self, epoch: int) -> int | None:
        """The last rung that a trial has reached at an epoch, or None where it is not judged."""
        if not self._is_judged(epoch):
            return None
        return epoch - (epoch - self.first_epoch) % self.every

    def cutoff(self, peers: Sequence[float], direction: Direction) -> float | None:
        """The worst value that goes on among these peers, or None if they are too few to stop anybody."""
        if len(peers) < self.fewest_peers:
            return None
        # Of two values in the middle the worse one, so that half of the peers themselves would go on.
        return statistics.median_high(peers) if direction == "minimize" else statistics.median_low(peers)


Stopper: TypeAlias = Annotated[Asha | Median, Field(discriminator="name")]


def cutoffs(stopper: Asha | Median, at_rungs: Mapping[int, Sequence[float]], direction: Direction) -> dict[int, float]:
    """What a value must reach at each rung, given the values of the peers there."""
    found = {rung: stopper.cutoff(values, direction) for rung, values in at_rungs.items()}
    return {rung: cutoff for rung, cutoff in found.items() if cutoff is not None}


def is_worse(value: float, than: float, direction: Direction) -> bool:
    """Whether a value is worse than another; equal values are not."""
    return value > than if direction == "minimize" else value < than
