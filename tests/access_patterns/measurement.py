"""The page docs/reference/access-patterns.md: every access pattern, with the read units that it costs in its world."""

from __future__ import annotations

import importlib
from pathlib import Path

from jobtable.embedded import EmbeddedBackend
from jobtable.reference import access_patterns, system_of
from jobtable.store import Store
from tests.access_patterns import World

_TESTS = Path(__file__).parents[1]
PAGE = _TESTS.parent / "docs" / "reference" / "access-patterns.md"

_HEAD = """# Access patterns

Every question that the designs ask of the tables: the verb that answers it, the index that it reads, and the read units
that it consumed in the tests, with a handful of items. None of them scans a table. `make reference` generates this
page.

| system | pattern | verb | index | read units |
| --- | --- | --- | --- | --- |
"""


def worlds() -> list[World]:
    """The worlds of all systems."""
    files = sorted(_TESTS.glob("systems/*/*access_patterns.py"))
    names = [
        "access_patterns.jobs",
        "access_patterns.workflows",
        "access_patterns.assist",
        "access_patterns.inbox",
        *(".".join(file.relative_to(_TESTS).with_suffix("").parts) for file in files),
    ]
    return [importlib.import_module(f"tests.{name}").WORLD for name in names]


def read_units(world: World) -> dict[tuple[str, str], float]:
    """What each question of a world costs on the embedded engine."""
    measured = {}
    with Store(EmbeddedBackend(None)) as store:
        world.create(store)
        for name, question in world.questions.items():
            with store.capacity.measure() as spent:
                list(question.ask(store))
            measured[name] = sum(units.read for units in spent.values())
    return measured


def render() -> str:
    """The page."""
    measured = {name: units for world in worlds() for name, units in read_units(world).items()}
    rows = []
    for pattern in access_patterns():
        system = system_of(pattern.module)
        units = measured.get((system, pattern.title))
        shown = "not measured" if units is None else f"{units:g}"
        rows.append(f"| {system} | {pattern.title} | `{pattern.verb}` | {pattern.index} | {shown} |\n")
    return _HEAD + "".join(rows)
