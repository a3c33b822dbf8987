"""The parameters of a sweep: choices and ranges, and the condition under which a parameter exists."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from jobtable.jobs.submit.definition import find_non_finite

Value: TypeAlias = JsonValue
MOST_POINTS = 1_000_000
"""The limit of a grid; trial numbers have six digits."""
_NOISE = 1e-9
"""The rounding error allowed in a sum of floats, as a fraction of a step."""
Params: TypeAlias = dict[str, Any]
"""The parameters of one trial by name, without those that do not exist under its other values."""


def required_in_json(member: str) -> Callable[[dict[str, Any]], None]:
    """Make the JSON schema (`json_schema_extra`) require a member that has a default in Python."""

    def require(schema: dict[str, Any]) -> None:
        schema["required"] = [member, *(name for name in schema.get("required", ()) if name != member)]

    return require


class _Parameter(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=required_in_json("type"))

    when: dict[str, list[Value]] = {}
    """The parameter exists only if each of these others has one of these values."""

    def only_if(self, **others: Value | list[Value]) -> Self:
        """Return this parameter, which exists only if each of the others has the value, or one of the list."""
        wanted = {name: value if isinstance(value, list) else [value] for name, value in others.items()}
        return self.model_copy(update={"when": {**self.when, **wanted}})

    @field_validator("when", mode="before", json_schema_input_type=dict[str, Value])
    @classmethod
    def _as_lists(cls, when: Any) -> Any:
        if not isinstance(when, dict):
            return when
        return {name: value if isinstance(value, list) else [value] for name, value in when.items()}


class Choice(_Parameter):
    """One of some values, which have no order."""

    type: Literal["choice"] = "choice"
    values: Annotated[list[Value], Field(min_length=1)]

    @field_validator("values")
    @classmethod
    def _distinct(cls, values: list[Value]) -> list[Value]:
        # A table stores 1.0 as 1. If one number is a float, all are, before and after they are stored.
        if any(isinstance(value, float) for value in values):
            values = [float(value) if _is_number(value) else value for value in values]
        if (place := find_non_finite(values)) is not None:
            raise ValueError(f"{values} has a number at {place} that is not finite and cannot be stored")
        if len({_identity(value) for value in values}) < len(values):
            raise ValueError(f"{values} has a duplicate")
        return values

    def draw(self, random: Random) -> Value:
        """Draw a random value."""
        return self.values[random.randrange(len(self.values))]

    def grid(self) -> list[Value]:
        """Return all values."""
        return self.values

    def restored(self, value: Value) -> Value:
        """Return a stored value as it was, or raise ValueError if this parameter does not have it."""
        return self.values[self.index(value)]

    def index(self, value: Value) -> int:
        """Return the index of a value, or raise ValueError."""
        for index, own in enumerate(self.values):
            if same(own, value):
                return index
        raise ValueError(f"{value!r} is not one of {self.values}")

    def distance(self, one: Value, other: Value) -> float:
        """Return 0 for equal values, else 1."""
        return 0.0 if same(one, other) else 1.0


class IntRange(_Parameter):
    """A whole number from low to high, both included, in steps; with `log`, evenly spread over magnitudes."""

    type: Literal["int"] = "int"
    low: int
    high: int
    step: Annotated[int, Field(ge=1)] = 1
    log: bool = False

    @model_validator(mode="after")
    def _possible(self) -> Self:
        _check_range(self.low, self.high, has_step=self.step != 1, log=self.log)
        return self

    @property
    def last(self) -> int:
        """The highest value that the steps reach."""
        return self.low + (self.high - self.low) // self.step * self.step

    def draw(self, random: Random) -> int:
        """Draw a random value."""
        if self.log:
            exact = _log_uniform(random, self.low - 0.5, self.high + 0.5)
            return min(max(round(exact), self.low), self.high)
        return random.randrange(self.low, self.last + 1, self.step)

    def grid(self) -> list[Value]:
        """Return all values; with `log`, each is twice the one before, up to high."""
        if not self.log:
            _check_grid((self.last - self.low) // self.step + 1)
            return list(range(self.low, self.last + 1, self.step))
        doubled = [self.low]
        while doubled[-1] * 2 < self.high:
            doubled.append(doubled[-1] * 2)
        return [*doubled, self.high] if doubled[-1] != self.high else list(doubled)

    def restored(self, value: Value) -> int:
        """Return a stored value as it was, or raise ValueError if this parameter does not have it."""
        if not _is_number(value) or int(value) != value or not self.low <= value <= self.last:
            raise ValueError(f"{value!r} is not a whole number from {self.low} to {self.last}")
        if (int(value) - self.low) % self.step:
            raise ValueError(f"{value!r} is not {self.low} plus steps of {self.step}")
        return int(value)

    def distance(self, one: Value, other: Value) -> float:
        """Return how far apart two values are, from 0 to 1."""
        return _distance(float(self.low), float(self.last), self.restored(one), self.restored(other), log=self.log)


class FloatRange(_Parameter):
    """A number from low to high, optionally in steps; with `log`, evenly spread over magnitudes."""

    type: Literal["float"] = "float"
    low: Annotated[float, Field(allow_inf_nan=False)]
    high: Annotated[float, Field(allow_inf_nan=False)]
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    log: bool = False

    @model_validator(mode="after")
    def _possible(self) -> Self:
        _check_range(self.low, self.high, has_step=self.step is not None, log=self.log)
        return self

    @property
    def step_count(self) -> int:
        """The number of steps between low and high."""
        if self.step is None:
            raise ValueError("the range has no step")
        return int((_exact(self.high) - _exact(self.low)) / _exact(self.step))

    @property
    def last(self) -> float:
        """The highest value that the steps reach."""
        return self.high if self.step is None else self.at(self.step_count)

    def at(self, steps: int) -> float:
        """Return the value after some steps, without the rounding errors of adding floats."""
        return float(_exact(self.low) + steps * _exact(self.step or 0.0))

    def nearest(self, value: float) -> float:
        """Return the value of this parameter that is nearest to a number."""
        if self.step is not None:
            value = self.at(round((value - self.low) / self.step))
        return min(max(value, self.low), self.last)

    def draw(self, random: Random) -> float:
        """Draw a random value."""
        if self.step is not None:
            return self.at(random.randrange(self.step_count + 1))
        return self.nearest(
            _log_uniform(random, self.low, self.high) if self.log else random.uniform(self.low, self.high)
        )

    def grid(self) -> list[Value]:
        """Return all values; ValueError without a step."""
        if self.step is None:
            raise ValueError("a grid needs a step, or a choice of values, for every float")
        _check_grid(self.step_count + 1)
        return [self.at(steps) for steps in range(self.step_count + 1)]

    def restored(self, value: Value) -> float:
        """Return a stored value as it was, or raise ValueError if this parameter does not have it."""
        if not _is_number(value) or not self.low <= value <= self.high:
            raise ValueError(f"{value!r} is not a number from {self.low} to {self.high}")
        if self.step is not None and abs(self.nearest(value) - value) > self.step * _NOISE:
            raise ValueError(f"{value!r} is not {self.low} plus steps of {self.step}")
        return float(value)

    def distance(self, one: Value, other: Value) -> float:
        """Return how far apart two values are, from 0 to 1."""
        return _distance(self.low, self.high, self.restored(one), self.restored(other), log=self.log)


Parameter: TypeAlias = Annotated[Choice | IntRange | FloatRange, Field(discriminator="type")]


def choice(*values: Value) -> Choice:
    """Return a parameter with one of these values."""
    return Choice(values=list(values))


def int_range(low: int, high: int, *, step: int = 1, log: bool = False) -> IntRange:
    """Return a parameter that is a whole number from low to high, both included."""
    return IntRange(low=low, high=high, step=step, log=log)


def float_range(low: float, high: float, *, step: float | None = None, log: bool = False) -> FloatRange:
    """Return a parameter that is a number from low to high."""
    return FloatRange(low=low, high=high, step=step, log=log)


def _check_range(low: float, high: float, *, has_step: bool, log: bool) -> None:
    if low > high:
        raise ValueError(f"low {low} is above high {high}")
    if log and low <= 0:
        raise ValueError(f"a log scale must start above 0, not at {low}")
    if log and has_step:
        raise ValueError("a range has either a step or a log scale")


def _check_grid(count: int) -> None:
    if count > MOST_POINTS:
        raise ValueError(f"{count:,} values are too many for a grid of at most {MOST_POINTS:,}; use a larger step")


def _log_uniform(random: Random, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))


def _distance(low: float, high: float, one: float, other: float, *, log: bool) -> float:
    if low == high:
        return 0.0
    if log:
        return abs(math.log(one) - math.log(other)) / (math.log(high) - math.log(low))
    return abs(one - other) / (high - low)


def _exact(number: float) -> Decimal:
    return Decimal(repr(number))


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def same(one: Value, other: Value) -> bool:
    """Return whether two values are equal once stored: 1 and 1.0 are, 1 and True are not."""
    return _identity(one) == _identity(other)


def _identity(value: Value) -> str:
    if isinstance(value, float) and value.is_integer():
        return json.dumps(int(value))
    return json.dumps(value, sort_keys=True)
