"""Modules of the user that a command imports."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import typer

from jobtable.errors import kind_and_text


def import_module_of_user(name: str) -> ModuleType:
    """Import a module, or raise a usage error that says why it cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever a module raises while it is imported
        advice = f"; run this in its folder (this is {Path.cwd()}), or install it"
        reason = f"{kind_and_text(error)}{advice if isinstance(error, ModuleNotFoundError) else ''}"
        raise typer.BadParameter(f"cannot import {name}: {reason}") from error
