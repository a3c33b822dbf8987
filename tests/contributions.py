"""What the tests of the systems add to tests of the whole product: modules of one name in their folders."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).parent


def contributions(name: str) -> list[Any]:
    """The modules `tests/systems/*/NAME.py`."""
    files = sorted(_TESTS.glob(f"systems/*/{name}.py"))
    return [import_module(".".join(("tests", *file.relative_to(_TESTS).with_suffix("").parts))) for file in files]
