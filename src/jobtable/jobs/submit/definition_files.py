"""Definitions in YAML and JSON files, as people write them: one reader for those of jobs and of systems."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobtable.errors import TaskError, ValueRefusedError

try:
    import yaml
except ModuleNotFoundError as missing:
    raise TaskError("definitions in files need PyYAML: pip install 'jobtable[cli]'") from missing

_MOST_VALUES = 1_000_000
"""More than any definition has; a few lines with nested references could stand for billions."""


class _Loader(yaml.SafeLoader):
    """YAML in which 1e-4 is a number (it is text in YAML 1.1) and no member occurs twice."""

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None and _count(node, {}) > _MOST_VALUES:
            raise yaml.YAMLError(f"its references expand to more than {_MOST_VALUES:,} values")
        return node

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        count_of = Counter(key.value for key in keys)
        for key in keys:
            if count_of[key.value] > 1:
                raise yaml.MarkedYAMLError(problem=f"{key.value} occurs twice", problem_mark=key.start_mark)
        return node

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> str:
        """Return the text of a node; JSON writes a character beyond U+FFFF as two escapes, which YAML does not join."""
        text = str(super().construct_scalar(node))
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


@dataclass(frozen=True)
class WrittenDefinition:
    """A parsed text, with the lines of its parts."""

    value: Any
    _node: yaml.Node | None

    def find_line(self, path: tuple[str | int, ...]) -> int | None:
        """Return the line of a path, or of its innermost part that the text contains."""
        line, node = None, self._node
        for part in path:
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


def read_definition(file: Path) -> WrittenDefinition:
    """Parse a YAML or JSON file, or raise ValueRefusedError with one line."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueRefusedError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueRefusedError(f"cannot read {file}: {error}") from error
    if file.suffix == ".json":
        text = text.replace("\t", " ")  # JSON has tabs only between its parts, where YAML allows none
    return parse_definition(text, str(file))


def parse_definition(text: str, source: str) -> WrittenDefinition:
    """Parse a YAML or JSON text, or raise ValueRefusedError that names the source and the line."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        # Deep, so that recursive parts are refused.
        return WrittenDefinition(None if node is None else loader.construct_object(node, deep=True), node)
    except (yaml.YAMLError, ValueError) as error:  # a date that does not exist is a ValueError
        raise ValueRefusedError(f"{source} is malformed: {_problem(error)}") from error
    except RecursionError as error:
        raise ValueRefusedError(f"{source} is nested too deep") from error


def _count(node: yaml.Node, counted: dict[yaml.Node, int]) -> int:
    """Return how many values a node expands to; references count each time, recursive ones once."""
    if node not in counted:
        counted[node] = 0
        match node:
            case yaml.MappingNode():
                inner = [part for pair in node.value for part in pair]
            case yaml.SequenceNode():
                inner = node.value
            case _:
                inner = []
        counted[node] = 1 + sum(_count(each, counted) for each in inner)
    return counted[node]


def _problem(error: yaml.YAMLError | ValueError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    mark = error.problem_mark
    problem = ", ".join(part for part in (error.context, error.problem) if part)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
