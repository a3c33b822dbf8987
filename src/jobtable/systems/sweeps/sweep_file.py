"""Sweeps from YAML files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ValidationError

from jobtable.errors import ValueRefusedError
from jobtable.jobs.submit.definition import RetryPolicy
from jobtable.jobs.submit.definition_files import WrittenDefinition, parse_definition, read_definition
from jobtable.systems.sweeps.parameters import Choice, FloatRange, IntRange
from jobtable.systems.sweeps.samplers import Grid, Optuna, RandomChoice
from jobtable.systems.sweeps.stoppers import Asha, Median
from jobtable.systems.sweeps.sweep import Sweep

_MODELS: dict[str | int, type[BaseModel]] = {
    "retry": RetryPolicy,
    "choice": Choice,
    "int": IntRange,
    "float": FloatRange,
    "grid": Grid,
    "random": RandomChoice,
    "asha": Asha,
    "median": Median,
}
"""The parts of a sweep by the last word of their location; all other samplers are Optuna's."""


def read_sweep(file: Path | str) -> Sweep:
    """Read a sweep from a YAML or JSON file; ValueRefusedError says what is wrong, and where."""
    path = Path(file)
    return _sweep(read_definition(path), str(path), name=path.stem)


def parse_sweep(text: str, source: str, *, name: str) -> Sweep:
    """Read a sweep from a text; `name` is the default of its name."""
    return _sweep(parse_definition(text, source), source, name=name)


def _sweep(written: WrittenDefinition, source: str, *, name: str) -> Sweep:
    if not isinstance(written.value, dict):
        raise ValueRefusedError(f"{source} does not define a sweep; write members such as task, space and trials")
    try:
        return Sweep.model_validate({"name": name, **written.value})
    except ValidationError as error:
        raise ValueRefusedError(f"{source}: {'; '.join(_problems(error, written))}") from error


def _problems(error: ValidationError, written: WrittenDefinition) -> Iterator[str]:
    """Yield what is wrong, and where; the members of each part are listed once."""
    listed: set[type[BaseModel]] = set()
    for each in error.errors():
        place, message = each["loc"], each["msg"].removeprefix("Value error, ")
        if each["type"] == "extra_forbidden":
            model = Sweep if len(place) == 1 else _MODELS.get(place[-2], Optuna)
            message = "unknown member" + ("" if model in listed else f"; use one of {', '.join(model.model_fields)}")
            listed.add(model)
        elif each["type"] == "union_tag_not_found":
            message = f"{each.get('ctx', {}).get('discriminator')} is missing"
        line = written.find_line(place)
        yield f"{'' if line is None else f'line {line}: '}{'.'.join(map(str, place)) or 'sweep'}: {message}"
