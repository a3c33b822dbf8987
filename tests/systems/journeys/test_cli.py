"""`jobtable journeys`: a journey from its creation to its backup, and what is said where something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import CommandLine
from tests.cli.exporting import check_that_a_missing_folder_is_refused, check_that_only_files_are_replaced

from jobtable.app import Services
from jobtable.systems.journeys.entities import Journey
from jobtable.systems.journeys.parts import JourneyStatus

OWN_STAGES = """
from jobtable.systems.journeys.stage import Stage

class Failing(Stage):
    def field_mapping(self):
        raise RuntimeError("no mapping today")

    def mapping_validation(self):
        pass
"""


@pytest.fixture
def catalogue(cli: CommandLine) -> str:
    cli.run("journeys", "example", "catalogue.db", "--products", "30")
    return "catalogue.db"


def test_a_journey_runs_from_the_command_line(cli: CommandLine, catalogue: str, tmp_path: Path) -> None:
    created = cli.json("journeys", "create", catalogue, "--id", "JRN-1", "--priority", "high")
    assert created["journey"]["status"] == "pending"
    assert len(created["stages"]) == 6
    done = cli.json("journeys", "run", "JRN-1")
    assert (done["journey"]["status"], done["journey"]["overall_progress"]) == ("completed", 100)
    assert [each["journey_id"] for each in cli.json("journeys", "list", "--status", "completed")] == ["JRN-1"]
    assert "No journey is running." in cli.run("journeys", "list", "--status", "running").output
    assert "verification_validation" in cli.run("journeys", "show", "JRN-1").stdout

    warnings = cli.run("journeys", "logs", "JRN-1", "--level", "warning").stdout
    assert "product.legacy_flag is always NULL" in warnings
    full = cli.run("journeys", "logs", "JRN-1", "--stage", "raw_analysis", "--step", "schema_extraction", "--full")
    assert len(full.stdout.splitlines()) == 8
    for more in ([], ["--full"]):
        levels = cli.run("journeys", "logs", "JRN-1", "--level", "warning", "-n", "2", *more).stdout.splitlines()
        assert len(levels) == 2
        assert levels[-1].split(" ", 1)[1] == warnings.splitlines()[-1].split(" ", 1)[1]
        assert len(cli.run("journeys", "logs", "JRN-1", "-n", "3", *more).stdout.splitlines()) == 3
        unknown = cli.run("journeys", "logs", "JRN-1", "--step", "nine", *more, code=3)
        assert "journey JRN-1 has no step nine" in unknown.stderr
    reports = cli.json("journeys", "reports", "JRN-1", "--stage", "raw_analysis", "--type", "timeline")
    report = cli.run("journeys", "report", "JRN-1", reports[0]["report_id"]).stdout
    assert '"timeline"' in report
    rules = cli.json("journeys", "rules", "JRN-1", "--stage", "tmf_mapping")
    assert [rule["priority"] for rule in rules] == ["critical", "high", "high", "medium", "medium"]
    cli.run("journeys", "rule", "JRN-1", rules[0]["rule_id"], "inactive")
    assert len(cli.json("journeys", "rules", "JRN-1", "--stage", "tmf_mapping")) == 4

    exported = cli.json("journeys", "export", "JRN-1", "backup.zip")
    assert (tmp_path / "backup.zip").stat().st_size == exported["bytes"]
    told = cli.run("journeys", "import", "backup.zip", code=4).stderr
    assert "already exists; choose `--existing merge` or `--existing replace`" in told
    cli.run("journeys", "import", "backup.zip", "--existing", "replace", "--yes")
    cli.run("journeys", "delete", "JRN-1", "--yes")
    imported = cli.json("journeys", "import", "backup.zip")
    assert (imported["items"], imported["objects"]) == (exported["items"], exported["objects"])
    (tmp_path / "backup.zip").write_bytes((tmp_path / "backup.zip").read_bytes()[:-10])
    assert "cut or altered" in cli.run("journeys", "import", "backup.zip", code=1).stderr


def test_a_failed_stage_is_shown_and_retried(cli: CommandLine, catalogue: str, tmp_path: Path) -> None:
    (tmp_path / "own_stages.py").write_text(OWN_STAGES)
    stage = "tmf_mapping=own_stages:Failing"
    cli.run("journeys", "create", catalogue, "--id", "JRN-1", "--stage", stage, "--can-skip", "tmf_mapping")
    failed = cli.json("journeys", "run", "JRN-1", code=5)
    assert failed["journey"]["status"] == "failed"
    assert "no mapping today" in cli.run("journeys", "show", "JRN-1").stdout
    again = cli.json("journeys", "retry", "JRN-1", code=5)
    assert again["journey"]["execution_counts"]["tmf_mapping"] == 2
    cli.run("journeys", "run", "JRN-1", code=4)


def test_a_journey_is_submitted_paused_resumed_and_cancelled(cli: CommandLine, catalogue: str) -> None:
    cli.run("journeys", "create", catalogue, "--id", "JRN-1", "--can-skip", "data_migration")
    cli.run("journeys", "pause", "JRN-1", code=4)
    running = cli.json("journeys", "run", "JRN-1", "--submit-only", "--skip", "data_migration")
    assert running["journey"]["status"] == "running"
    assert [stage["status"] for stage in running["stages"]][4] == "skipped"
    cli.run("journeys", "pause", "JRN-1")
    cli.run("journeys", "resume", "JRN-1", "--submit-only")
    cli.run("journeys", "cancel", "JRN-1")
    with Services.open(cli.store) as services:
        assert services.store.get(Journey.key(journey_id="JRN-1")).status is JourneyStatus.CANCELLED


def test_what_is_wrong_is_said_in_one_line(cli: CommandLine, catalogue: str) -> None:
    cli.make_store()
    assert "no journey JRN-9; `jobtable journeys list`" in cli.run("journeys", "show", "JRN-9", code=3).stderr
    assert "has no stage nine" in cli.run("journeys", "create", catalogue, "--stage", "nine=a:B", code=3).stderr
    cli.run("journeys", "create", catalogue, "--stage", "nine", code=2)
    cli.run("journeys", "example", catalogue, code=2)
    assert "unable to open" in cli.run("journeys", "example", "missing/x.db", code=2).stderr
    cli.run("journeys", "create", catalogue, "--id", "JRN-1", "--no-rules")
    twice = cli.run("journeys", "create", catalogue, "--id", "JRN-1", code=4)
    assert twice.stderr == "Error: journey JRN-1 already exists\n"
    assert "has no such reports" in cli.run("journeys", "reports", "JRN-1").stderr
    cli.run("journeys", "report", "JRN-1", "none", code=3)
    cli.run("journeys", "rule", "JRN-1", "none", "active", code=3)
    cli.run("journeys", "logs", "JRN-1", "--stage", "nine", code=3)
    assert "no rules" in cli.run("journeys", "rules", "JRN-1").stderr.replace("such ", "")


def test_an_export_without_a_name_stays_in_this_folder(
    cli: CommandLine, catalogue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.run("journeys", "create", catalogue, "--id", "../up/JRN-1", "--no-rules")
    for folder in (tmp_path / "up", tmp_path / "here"):
        folder.mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert cli.json("journeys", "export", "../up/JRN-1")["file"] == "%2E.%2Fup%2FJRN-1.zip"
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["%2E.%2Fup%2FJRN-1.zip"]
    assert list((tmp_path / "up").iterdir()) == []


def test_only_files_are_written(cli: CommandLine) -> None:
    check_that_only_files_are_replaced(cli, "journeys", "export", "JRN-1")
    check_that_a_missing_folder_is_refused(cli, "journeys", "export", "JRN-1")


def test_a_limit_that_is_too_large_is_wrong_usage(cli: CommandLine) -> None:
    assert "Error: Invalid value" in cli.run("journeys", "logs", "x", "--limit", "9" * 30, code=2).stderr
