"""The space of a sweep: its parameters by name, and the values that one trial may have."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, RootModel, model_validator

from jobtable.errors import ValueRefusedError
from jobtable.jobs.tasks import CONTEXT_NAME
from jobtable.systems.sweeps.parameters import Choice, FloatRange, IntRange, Parameter, Params, Value, same


def _choice_of(given: Any) -> Any:
    if isinstance(given, list):
        return {"type": "choice", "values": given}
    if not isinstance(given, BaseModel) and not (isinstance(given, dict) and "type" in given):
        raise ValueError(
            "a parameter is a list of values, or has a type: {type: choice, values: [...]}, or {type: int, low: 1, "
            "high: 9}, or {type: float, low: 0.1, high: 1, log: true}"
        )
    return given


_Written = Parameter | Annotated[list[Value], Field(min_length=1)]
_OrList = Annotated[Parameter, BeforeValidator(_choice_of, json_schema_input_type=_Written)]


class Space(RootModel[dict[str, _OrList]]):
    """Parameters by name, in an order that depends only on their names and conditions. A plain list means a Choice."""

    model_config = {"frozen": True}

    @model_validator(mode="after")
    def _conditions_hold_together(self) -> Space:
        if not self.root:
            raise ValueError("a space needs at least one parameter")
        if CONTEXT_NAME in self.root:
            raise ValueError(f"a parameter cannot be named {CONTEXT_NAME}; a task gets its context by that name")
        for name, parameter in self.root.items():
            for other, values in parameter.when.items():
                self._check_condition(name, other, values)
        try:
            self.names  # noqa: B018 - sorts them
        except CycleError as error:
            raise ValueError(f"the conditions of {', '.join(error.args[1])} form a cycle") from error
        return self

    def _check_condition(self, name: str, other: str, values: list[Value]) -> None:
        subject = self.root.get(other)
        if subject is None:
            raise ValueError(f"{name} has a condition on {other}, which does not exist")
        if subject.type == "float":
            raise ValueError(f"{name} has a condition on {other}, a float, which is equal only by chance")
        for value in values:
            subject.restored(value)

    @cached_property
    def names(self) -> list[str]:
        """All parameters, each after those in its condition, otherwise by name: a table does not keep their order."""
        sorter = TopologicalSorter({name: sorted(self.root[name].when) for name in sorted(self.root)})
        sorter.prepare()
        ordered: list[str] = []
        while sorter.is_active():
            ready = sorted(sorter.get_ready())
            ordered += ready
            sorter.done(*ready)
        return ordered

    def assemble(self, suggest: Callable[[str, Choice | IntRange | FloatRange], Value]) -> Params:
        """Return the parameters of a trial; `suggest` chooses each one that exists under the values before it."""
        params: Params = {}
        for name in self.names:
            if self._exists(name, params):
                params[name] = suggest(name, self.root[name])
        return params

    def restored(self, stored: Mapping[str, Value]) -> Params:
        """Return stored parameters as they were, or raise ValueRefusedError if this space does not have them."""

        def find(name: str, parameter: Choice | IntRange | FloatRange) -> Value:
            if name not in stored:
                raise ValueRefusedError(f"{dict(stored)} has no {name}, which exists under these values")
            try:
                return parameter.restored(stored[name])
            except ValueError as error:
                raise ValueRefusedError(f"{name}: {error}") from error

        params = self.assemble(find)
        if surplus := sorted(set(stored) - set(params)):
            raise ValueRefusedError(f"{', '.join(surplus)} does not exist under these values: {params}")
        return params

    def combinations(self) -> Iterator[Params]:
        """Yield every point of the grid in a fixed order; ValueRefusedError if a parameter has too many values."""
        return self._combined(self.names, self._grids(), {})

    def _grids(self) -> dict[str, list[Value]]:
        values = {}
        for name in self.names:
            try:
                values[name] = self.root[name].grid()
            except ValueError as error:
                raise ValueRefusedError(f"{name}: {error}") from error
        return values

    def _combined(self, names: list[str], values: Mapping[str, list[Value]], chosen: Params) -> Iterator[Params]:
        if not names:
            yield dict(chosen)
            return
        name, *others = names
        if not self._exists(name, chosen):
            yield from self._combined(others, values, chosen)
            return
        for value in values[name]:
            yield from self._combined(others, values, {**chosen, name: value})

    def count_combinations(self, most: int) -> int:
        """Count the points of the grid, up to `most`."""
        return sum(1 for _ in itertools.islice(self.combinations(), most))

    def has_more_combinations_than(self, most: int) -> bool:
        """Return whether the grid has more points; with conditions they are counted one by one."""
        if math.prod(len(values) for values in self._grids().values()) <= most:
            return False
        has_conditions = any(parameter.when for parameter in self.root.values())
        return not has_conditions or self.count_combinations(most + 1) > most

    def distance(self, one: Params, other: Params) -> float:
        """Return how far apart two trials are: the mean over all parameters, from 0 to 1."""
        return sum(self._apart(name, one, other) for name in self.root) / len(self.root)

    def _apart(self, name: str, one: Params, other: Params) -> float:
        if name in one and name in other:
            return self.root[name].distance(one[name], other[name])
        return 1.0 if name in one or name in other else 0.0

    def _exists(self, name: str, params: Params) -> bool:
        conditions = self.root[name].when.items()
        return all(other in params and any(same(params[other], v) for v in values) for other, values in conditions)
