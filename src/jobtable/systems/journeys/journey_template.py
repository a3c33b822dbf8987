"""Journey templates: the stages of a journey and the classes that run them, each of which can be replaced."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from datetime import datetime

from jobtable.errors import DefinitionError, NotFoundError, kind_and_text
from jobtable.system import current_path
from jobtable.systems.journeys.default_stages import default_stages
from jobtable.systems.journeys.entities import StageDefinition
from jobtable.systems.journeys.stage import Stage

_EXAMPLE = "jobtable.systems.journeys.example"


@dataclass(frozen=True)
class JourneyTemplate:
    """What new journeys are made from; every change returns another template."""

    implementations: tuple[tuple[str, str], ...]
    """`module:Class` for each of the default stages."""
    skippable: frozenset[str] = frozenset()

    def replacing(self, stage_id: str, implementation: str | type[Stage]) -> JourneyTemplate:
        """Return this template with another class for one stage."""
        self._refuse_unknown(stage_id)
        path = implementation if isinstance(implementation, str) else path_of(implementation)
        changed = tuple((known, path if known == stage_id else old) for known, old in self.implementations)
        return replace(self, implementations=changed)

    def allowing_skip(self, *stage_ids: str) -> JourneyTemplate:
        """Return this template with more stages that may be skipped."""
        for stage_id in stage_ids:
            self._refuse_unknown(stage_id)
        return replace(self, skippable=self.skippable | set(stage_ids))

    def stages(self, journey_id: str, created_at: datetime) -> list[StageDefinition]:
        """Return the stages of a new journey in order; DefinitionError if a class is missing or lacks a step."""
        paths = dict(self.implementations)
        made = [
            stage.replace(implementation=paths[stage.stage_id], can_skip=stage.stage_id in self.skippable)
            for stage in default_stages(journey_id, created_at)
        ]
        for stage in made:
            stage_class_of(stage).check(stage)
        return made

    def _refuse_unknown(self, stage_id: str) -> None:
        known = [name for name, _ in self.implementations]
        if stage_id not in known:
            raise NotFoundError(f"the template has no stage {stage_id}; it has {', '.join(known)}")


DEFAULT_TEMPLATE = JourneyTemplate(
    (
        ("raw_analysis", f"{_EXAMPLE}.raw_analysis:RawAnalysis"),
        ("stripped_schema", f"{_EXAMPLE}.stripped_schema:StrippedSchema"),
        ("tmf_mapping", f"{_EXAMPLE}.tmf_mapping:TmfMapping"),
        ("migration_planning", f"{_EXAMPLE}.migration_planning:MigrationPlanning"),
        ("data_migration", f"{_EXAMPLE}.data_migration:DataMigration"),
        ("verification_validation", f"{_EXAMPLE}.verification:Verification"),
    )
)
"""The six default stages, run by the classes of the bundled example."""


def path_of(stage_class: type[Stage]) -> str:
    """Return the path by which a stage's record names its class."""
    return f"{stage_class.__module__}:{stage_class.__qualname__}"


def stage_class_of(definition: StageDefinition) -> type[Stage]:
    """Import the class that runs a stage, or raise DefinitionError."""
    path = definition.implementation
    if path is None:
        raise DefinitionError(f"stage {definition.stage_id} has no class to run it; set its implementation")
    module_name, _, class_name = current_path(path).partition(":")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (Exception, SystemExit) as error:  # whatever a module raises while it is imported
        message = f"stage {definition.stage_id}: cannot load {path!r}: {kind_and_text(error)}"
        raise DefinitionError(message) from error
    if not (isinstance(found, type) and issubclass(found, Stage)):
        raise DefinitionError(f"stage {definition.stage_id}: {path!r} is not a subclass of Stage")
    return found
