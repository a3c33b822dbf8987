"""Names that a package exports from modules which load when one of their names is first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module


def offer(
    package: str, names: Sequence[str], modules: Sequence[str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package that exports these names, each from the first module with it."""

    def get(name: str) -> object:
        for module in modules if name in names else ():
            loaded = import_module(f"{package}.{module}")
            if hasattr(loaded, name):
                return getattr(loaded, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted(names)
