"""Journeys of a server: read through its store, changed through its REST API."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from jobtable.files import whole_file
from jobtable.jobs.engine import Jobs
from jobtable.objects.object_store import CHUNK_SIZE
from jobtable.remote.server_requests import Server, only_at_store, path_of
from jobtable.systems.journeys.archives.archive import Exported
from jobtable.systems.journeys.archives.check import MOST_BYTES, checked_archive
from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.archives.restore import Existing, Imported
from jobtable.systems.journeys.entities import Journey, SecondBrainRule, StageDefinition
from jobtable.systems.journeys.journey_template import DEFAULT_TEMPLATE, JourneyTemplate
from jobtable.systems.journeys.parts import RuleStatus
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.service import Journeys

_GIVEN = {
    *("journey_id", "name", "description", "priority", "created_by"),
    *("oda_component_type", "source", "configuration", "parameters"),
}
"""What a caller says about a new journey; the rest is its progress."""


class ServerJourneys(Journeys):
    """The records of a server's journeys."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(jobs.store, clock=jobs.clock)
        self._server = server

    def create_journey(
        self, journey: Journey, stages: Sequence[StageDefinition] | None = None, rules: Sequence[SecondBrainRule] = ()
    ) -> None:
        self._create(journey, {"stages": to_jsonable_python(stages), "rules": to_jsonable_python(list(rules))})

    def create_from_template(
        self, journey: Journey, template: JourneyTemplate = DEFAULT_TEMPLATE, *, with_example_rules: bool = False
    ) -> None:
        body = {
            "implementations": dict(template.implementations),
            "skippable": sorted(template.skippable),
            "example_rules": with_example_rules,
        }
        self._create(journey, {"template": body})

    def change_rule_status(self, rule: SecondBrainRule, status: RuleStatus) -> SecondBrainRule:
        path = path_of("journeys", rule.journey_id, "stages", rule.stage_id, "rules", rule.rule_id)
        return SecondBrainRule.model_validate(self._server.write("PATCH", path, {"status": status.value}))

    def _create(self, journey: Journey, more: dict[str, Any]) -> None:
        body = {**journey.model_dump(mode="json", include=_GIVEN), **more}
        self._server.create("/journeys", body)


@only_at_store("execute", "settle")
class ServerRunner(JourneyRunner):
    """Journeys that the workers of a server run; the token decides in whose name."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(jobs)
        self._server = server

    def run(self, journey_id: str, *, by: str = "user") -> Journey:
        return self._do(journey_id, "run")

    def pause(self, journey_id: str) -> Journey:
        return self._do(journey_id, "pause")

    def resume(self, journey_id: str, *, by: str = "user") -> Journey:
        return self._do(journey_id, "resume")

    def cancel(self, journey_id: str, *, by: str = "user") -> Journey:
        return self._do(journey_id, "cancel")

    def retry(self, journey_id: str, *, by: str = "user") -> Journey:
        return self._do(journey_id, "retry")

    def skip(self, journey_id: str, stage_id: str) -> None:
        self._do(journey_id, "stages", stage_id, "skip")

    def _do(self, journey_id: str, *verb: str) -> Journey:
        return Journey.model_validate(self._server.write("POST", path_of("journeys", journey_id, *verb)))


class ServerBackups(JourneyBackups):
    """The journeys of a server as local files."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(ServerRunner(server, jobs))
        self._server = server

    def get_journey_complete(self, journey_id: str, path: Path) -> Exported:
        with whole_file(path) as file:
            with self._server.open(path_of("journeys", journey_id, "export")) as stream:
                shutil.copyfileobj(stream, file, CHUNK_SIZE)
            file.flush()
            with checked_archive(Path(file.name)) as archive:
                return archive.manifest.exported()

    def import_journey_complete(
        self, path: Path, existing: Existing = Existing.REFUSE, *, most_bytes: int = MOST_BYTES
    ) -> Imported:
        with checked_archive(path, most_bytes=most_bytes):
            answer = self._server.upload(
                "POST", "/journey-imports", path, query={"existing": existing.value}, media_type="application/zip"
            )
        return Imported(**answer)

    def delete_journey(self, journey_id: str, *, stop: bool = False, by: str = "user") -> int:
        return int(self._server.write("DELETE", path_of("journeys", journey_id), query={"stop": stop})["count"])
