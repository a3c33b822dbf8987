"""The stages of the bundled journey, which note in a file whenever one of their steps begins."""

from __future__ import annotations

import os
from collections.abc import Callable

from jobtable.systems.journeys.example.data_migration import DataMigration
from jobtable.systems.journeys.example.migration_planning import MigrationPlanning
from jobtable.systems.journeys.example.raw_analysis import RawAnalysis
from jobtable.systems.journeys.example.stripped_schema import StrippedSchema
from jobtable.systems.journeys.example.tmf_mapping import TmfMapping
from jobtable.systems.journeys.example.verification import Verification
from jobtable.systems.journeys.running.stage_run import StageRun
from jobtable.systems.journeys.stage import Stage


class Noted(Stage):
    """Notes each step that begins."""

    def __init__(self, run: StageRun) -> None:
        super().__init__(run)
        for step in self.definition.steps:
            setattr(self, step.step_id, self._noted(step.step_id))

    def _noted(self, step_id: str) -> Callable[[], None]:
        method = getattr(self, step_id)

        def run() -> None:
            line = f"{self._run.execution.job_id} {step_id}\n".encode()
            file = os.open(self.local_path("notes"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(file, line)
            os.close(file)
            method()

        return run


class NotedRawAnalysis(Noted, RawAnalysis):
    """Stage 1."""


class NotedStrippedSchema(Noted, StrippedSchema):
    """Stage 2."""


class NotedTmfMapping(Noted, TmfMapping):
    """Stage 3."""


class NotedMigrationPlanning(Noted, MigrationPlanning):
    """Stage 4."""


class NotedDataMigration(Noted, DataMigration):
    """Stage 5."""


class NotedVerification(Noted, Verification):
    """Stage 6."""


STAGES: dict[str, type[Noted]] = {
    "raw_analysis": NotedRawAnalysis,
    "stripped_schema": NotedStrippedSchema,
    "tmf_mapping": NotedTmfMapping,
    "migration_planning": NotedMigrationPlanning,
    "data_migration": NotedDataMigration,
    "verification_validation": NotedVerification,
}
