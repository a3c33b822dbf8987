"""Sweeps from YAML files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from jobtable.errors import TaskError, ValueRefusedError
from jobtable.jobs.definition import RetryPolicy
from jobtable.sweeps.parameters import Choice, FloatRange, IntRange
from jobtable.sweeps.samplers import Grid, Optuna, RandomChoice
from jobtable.sweeps.stoppers import Asha, Median
from jobtable.sweeps.sweep import Sweep

try:
    import yaml
except ModuleNotFoundError as missing:
    raise TaskError("sweeps from files need the extra 'sweeps': pip install 'jobtable[sweeps]'") from missing

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
"""What stands within a sweep, by the last word of its place; all other samplers are Optuna's."""


class _Loader(yaml.SafeLoader):
    """YAML in which 1e-4 is a number, as everywhere else (in YAML 1.1 it is text), and no member stands twice."""

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key, _ in node.value:
            if names.count(key.value) > 1:
                raise yaml.MarkedYAMLError(problem=f"{key.value} stands there twice", problem_mark=key.start_mark)
        return node

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> str:
        """The text of a node. JSON writes a sign beyond U+FFFF as two escapes, which YAML does not put together."""
        text = str(super().construct_scalar(node))
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def read_sweep(file: Path) -> Sweep:
    """The sweep that a YAML or JSON file defines, or ValueRefusedError that says what is wrong in it, and where."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueRefusedError(f"cannot read {file}: {error}") from error
    return parse_sweep(text, str(file), name=file.stem)


def parse_sweep(text: str, source: str, *, name: str) -> Sweep:
    """The sweep that a text defines; without a name of its own it has this one."""
    node: yaml.Node | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        read: Any = None if node is None else loader.construct_document(node)
        if not isinstance(read, dict):
            raise ValueRefusedError(f"{source} defines no sweep: write members such as task, space and trials")
        return Sweep.model_validate({"name": name, **read})
    except yaml.YAMLError as error:
        raise ValueRefusedError(f"{source} is no YAML: {_syntax_problem(error)}") from error
    except ValidationError as error:
        raise ValueRefusedError(f"{source}: {'; '.join(_problems(error, node))}") from error
    except RecursionError as error:
        raise ValueRefusedError(f"{source} is nested too deep, or has a part within itself") from error


def _syntax_problem(error: yaml.YAMLError) -> str:
    """What is wrong, in one line."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    mark = error.problem_mark
    told = ", ".join(part for part in (error.context, error.problem) if part)
    return f"line {mark.line + 1}, column {mark.column + 1}: {told}"


def _problems(error: ValidationError, node: yaml.Node | None) -> Iterator[str]:
    """What is wrong, and where. What may stand in a place is told once."""
    listed: set[type[BaseModel]] = set()
    for each in error.errors():
        place, told = each["loc"], each["msg"].removeprefix("Value error, ")
        if each["type"] == "extra_forbidden":
            model = Sweep if len(place) == 1 else _MODELS.get(place[-2], Optuna)
            told = "there is no such member" + ("" if model in listed else f", but {', '.join(model.model_fields)}")
            listed.add(model)
        line = _line(node, place)
        yield f"{'' if line is None else f'line {line}: '}{'.'.join(map(str, place)) or 'sweep'}: {told}"


def _line(node: yaml.Node | None, place: tuple[str | int, ...]) -> int | None:
    """Where the innermost part of a place begins that is in the file: what is missing is not, nor are kinds."""
    line = None
    for part in place:
        match node:
            case yaml.MappingNode():
                found = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            case yaml.SequenceNode() if isinstance(part, int):
                found = (node.value[part], node.value[part])
            case _:
                found = None
        if found is not None:
            line, node = found[0].start_mark.line + 1, found[1]
    return line
