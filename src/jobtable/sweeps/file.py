"""Sweeps from YAML files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from jobtable.errors import TaskError, ValueRefusedError
from jobtable.sweeps.sweep import Sweep

try:
    import yaml
except ModuleNotFoundError as missing:
    raise TaskError("sweeps from files need the extra 'sweeps': pip install 'jobtable[sweeps]'") from missing


class _Loader(yaml.SafeLoader):
    """YAML in which 1e-4 is a number, as everywhere else; YAML 1.1 takes it for text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
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
    try:
        read: Any = yaml.load(text, _Loader)  # noqa: S506 - a safe loader that knows one more form of numbers
    except yaml.YAMLError as error:
        raise ValueRefusedError(f"{source} is no YAML: {error}") from error
    if not isinstance(read, dict):
        raise ValueRefusedError(f"{source} defines no sweep: write members such as task, space and trials")
    try:
        return Sweep.model_validate({"name": name, **read})
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'sweep'}: {each['msg']}" for each in error.errors())
        raise ValueRefusedError(f"{source}: {problems}") from error
