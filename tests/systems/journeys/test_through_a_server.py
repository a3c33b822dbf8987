"""Journeys through a server, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.remote.conftest import json_far, run_far, working
from tests.running import run_jobs
from tests.systems.journeys.access_patterns import journey
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    DefinitionError,
    NotFoundError,
    RequestRefused,
    ValueRefusedError,
)
from jobtable.remote.server_requests import Server
from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.example.product_catalogue import create_catalogue
from jobtable.systems.journeys.parts import JourneyStatus, RuleStatus
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.service import Journeys


class TestJourneys:
    def test_is_created_from_a_template_run_and_kept_as_a_file(
        self, served: Served, remote: Services, tmp_path: Path
    ) -> None:
        source = tmp_path / "catalogue.db"
        create_catalogue(source, products=5)
        new = journey("R1").replace(parameters={"source": str(source)})
        remote.get(Journeys).create_from_template(new, with_example_rules=True)
        with pytest.raises(AlreadyExistsError):
            remote.get(Journeys).create_from_template(new)
        whole = remote.get(Journeys).get_complete_journey("R1", consistent=True)
        assert whole.journey.parameters == {"source": str(source)}
        assert len(whole.stages) == 6
        assert len(whole.rules) > 3
        changed = remote.get(Journeys).change_rule_status(whole.rules[0], RuleStatus.INACTIVE)
        assert changed.status is RuleStatus.INACTIVE
        assert remote.get(JourneyRunner).run("R1").status is JourneyStatus.RUNNING
        assert remote.get(JourneyRunner).pause("R1").status is JourneyStatus.PAUSED
        assert remote.get(JourneyRunner).resume("R1").status is JourneyStatus.RUNNING
        run_jobs(served.services.engine, "journeys")
        assert remote.get(Journeys).get_journey("R1").status is JourneyStatus.COMPLETED
        exported = remote.get(JourneyBackups).get_journey_complete("R1", tmp_path / "r1.zip")
        assert exported.journey_id == "R1"
        assert remote.get(JourneyBackups).delete_journey("R1") > 10
        imported = remote.get(JourneyBackups).import_journey_complete(tmp_path / "r1.zip")
        assert imported.items > 10
        assert remote.get(Journeys).get_journey("R1").status is JourneyStatus.COMPLETED
        assert [path.name for path in tmp_path.iterdir() if "zip" in path.name] == ["r1.zip"]

    def test_is_created_with_stages_of_its_own(self, remote: Services) -> None:
        remote.get(Journeys).create_journey(journey("R2"))
        stages = list(remote.get(Journeys).list_stages("R2"))
        remote.get(Journeys).create_journey(journey("R3"), [stage.replace(journey_id="R3") for stage in stages[:2]])
        assert [stage.stage_id for stage in remote.get(Journeys).list_stages("R3")] == [s.stage_id for s in stages[:2]]
        with pytest.raises(ConflictError):
            remote.get(JourneyRunner).skip("R3", stages[0].stage_id)
        assert remote.get(JourneyRunner).cancel("R3").status is JourneyStatus.CANCELLED

    @pytest.mark.parametrize(
        ("told", "kind"),
        [
            ({"implementations": {"raw_analysis": "no.such:Class"}}, DefinitionError),
            ({"implementations": {"nowhere": "a:B"}}, NotFoundError),
            ({"skippable": ["nowhere"]}, NotFoundError),
            ({"implementations": {"raw_analysis": "no path"}}, RequestRefused),
            ({"example_rules": "yes"}, RequestRefused),
        ],
    )
    def test_a_template_that_cannot_be_is_refused(
        self, served: Served, told: dict[str, Any], kind: type[Exception]
    ) -> None:
        server = Server(served.url, served.token(Role.FULL))
        new = json.loads(journey("R4").model_dump_json(include={"journey_id", "name", "created_by", "source"}))
        body = {**new, "oda_component_type": "PRODUCTCATALOG", "template": told}
        with pytest.raises(kind):
            server.write("POST", "/journeys", body)
        with pytest.raises(ValueRefusedError, match="either a template, or stages and rules"):
            server.write("POST", "/journeys", {**body, "template": {}, "stages": []})
        assert served.services.get(Journeys).list_stages("R4").first() is None


def test_a_journey_is_created_run_and_followed(served: Served, tmp_path: Path) -> None:
    source = tmp_path / "catalogue.db"
    create_catalogue(source, products=5)
    made = json_far(served, "journeys", "create", str(source), "--id", "CLI-1")
    assert len(made["stages"]) == 6
    assert json_far(served, "journeys", "run", "CLI-1", "--submit-only")["journey"]["status"] == "running"
    with working(served, "journeys"):
        done = json_far(served, "journeys", "run", "CLI-1")
    assert done["journey"]["status"] == "completed"
    run_far(served, "journeys", "export", "CLI-1", str(tmp_path / "backup.zip"))
    run_far(served, "journeys", "import", str(tmp_path / "backup.zip"), "--existing", "replace", "--yes")
