"""What a package offers of its modules, which are loaded when something of them is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module


def offer(
    package: str, names: Sequence[str], modules: Sequence[str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that offers these names, each from the first module that has it."""

    def get(name: str) -> object:
        for module in modules if name in names else ():
            loaded = import_module(f"{package}.{module}")
            if hasattr(loaded, name):
                return getattr(loaded, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted(names)
