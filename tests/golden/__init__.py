"""The golden items of the core (here) and of the systems (tests/systems/*/golden), as entities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jobtable.model import Entity
from tests.every_entity import ENTITIES

TIMES = [f"2025-11-01T20:30:0{number}Z" for number in range(3)]
FOLDER = Path(__file__).parent
FILES = {
    f"{path.parent.name}/{path.stem}": path
    for path in sorted([*FOLDER.glob("*/*.json"), *FOLDER.parent.glob("systems/*/golden/*/*.json")])
}
"""By the system and the entity, as in `jobs/JobMetric`; a second item of an entity has its variant behind a dot."""
CLASSES = {(system, cls.__name__): cls for system, cls in ENTITIES}


def golden(name: str, /, **changes: Any) -> Entity:
    """A golden item with other values."""
    system, entity = name.split("/")
    values = json.loads(FILES[name].read_text())["values"]
    return CLASSES[system, entity](**{**values, **changes})
