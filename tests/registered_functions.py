"""Functions are registered for a whole process; a test may see only those of its own modules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from unittest.mock import patch

from jobtable.workflows import functions


@contextmanager
def only_functions_of(*modules: str) -> Iterator[None]:
    """Hide the functions of other modules, and forget after the block what was registered in it."""
    for module in modules:
        import_module(module)
    paths = tuple(f"{module}:" for module in modules)
    own = {name: found for name, found in functions._REGISTERED.items() if found.path.startswith(paths)}
    with patch.object(functions, "_REGISTERED", own):
        yield
