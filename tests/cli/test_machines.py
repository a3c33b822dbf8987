"""`jobtable machines` and `jobtable activities`: the whole life of a state machine on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import CommandLine

from jobtable.cli.output import ExitCode

PASS = '{\n  "StartAt": "Done",\n  "States": {"Done": {"Type": "Succeed"}}\n}\n'
WAIT = json.dumps({"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 1, "End": True}}})


@pytest.fixture
def file() -> Path:
    path = Path("orders.asl.json")
    path.write_text(PASS)
    return path


def test_a_machine_is_created_shown_changed_and_deleted(cli: CommandLine, file: Path) -> None:
    made = cli.json("machines", "create", "orders", str(file), "--tag", "team=shop", "--publish")
    assert (made["machine"]["name"], made["machine"]["tags"]) == ("orders", {"team": "shop"})
    assert made["version"]["number"] == 1
    assert cli.json("machines", "create", "orders", str(file), "--publish") == made
    assert cli.run("machines", "show", "orders", "--definition").stdout == PASS
    file.write_text(WAIT)
    refused = cli.run("machines", "create", "orders", str(file), code=ExitCode.CONFLICT)
    assert "another one has this name" in refused.stderr
    changed = cli.json("machines", "update", "orders", str(file), "--publish", "--description", "slower")
    assert changed["version"]["description"] == "slower"
    assert cli.run("machines", "show", "orders", "--definition").stdout == WAIT + "\n"
    assert cli.run("machines", "show", "orders", "--definition", "--version", "1").stdout == PASS
    assert [each["number"] for each in cli.json("machines", "versions", "orders")] == [2, 1]
    assert "slower" in cli.run("machines", "show", "orders").stdout
    assert [each["name"] for each in cli.json("machines", "list")] == ["orders"]
    assert "orders deleted" in cli.run("machines", "delete", "orders", "--yes").stdout
    missing = cli.run("machines", "show", "orders", code=ExitCode.NOT_FOUND)
    assert missing.stderr == "Error: there is no state machine orders; `jobtable machines list` lists them\n"


def test_an_alias_shares_executions_between_versions(cli: CommandLine, file: Path) -> None:
    cli.run("machines", "create", "orders", str(file), "--publish")
    file.write_text(WAIT)
    cli.run("machines", "update", "orders", str(file))
    assert "Published as version 2" in cli.run("machines", "publish", "orders").stderr
    assert cli.json("machines", "alias", "orders", "live", "--route", "1")["weights"] == [[1, 100]]
    changed = cli.json("machines", "alias", "orders", "live", "--route", "1=90", "--route", "2=10")
    assert changed["weights"] == [[1, 90], [2, 10]]
    assert "90 % to version 1" in cli.run("machines", "aliases", "orders").stdout
    kept = cli.run("machines", "delete-version", "orders", "2", code=ExitCode.CONFLICT)
    assert "aliases name version 2 of state machine orders: live" in kept.stderr
    cli.run("machines", "delete-alias", "orders", "live")
    cli.run("machines", "delete-version", "orders", "2")
    assert cli.json("machines", "aliases", "orders") == []
    for wrong in ("x", "1=", "1=a", "=3"):
        cli.run("machines", "alias", "orders", "live", "--route", wrong, code=2 if wrong != "1=" else 0)
    uneven = cli.run("machines", "alias", "orders", "even", "--route", "1=50", code=ExitCode.FAILED)
    assert "must add up to 100, not 50" in uneven.stderr
    cli.run("machines", "alias", "orders", "7", "--route", "1", code=ExitCode.FAILED)


def test_all_faults_of_a_definition_are_printed_with_their_places(cli: CommandLine, file: Path) -> None:
    assert "The definition is valid" in cli.run("machines", "validate", str(file)).stderr
    file.write_text(
        json.dumps({"StartAt": "Lost", "States": {"A": {"Type": "Pass", "Next": "B"}, "C": {"Type": "No"}}})
    )
    faults = cli.json("machines", "validate", str(file), code=ExitCode.FAILED)
    assert len(faults) >= 3
    printed = cli.run("machines", "validate", str(file), code=ExitCode.FAILED).stdout
    for fault in faults:
        assert {"severity", "code", "message", "location"} == set(fault)
        assert fault["location"] in printed
        assert fault["code"] in printed
    refused = cli.run("machines", "create", "orders", str(file), code=ExitCode.FAILED).stderr
    assert all(fault["message"] in refused for fault in faults if fault["severity"] == "ERROR")


def test_a_definition_comes_from_a_file_or_stdin_and_must_be_text(cli: CommandLine) -> None:
    missing = cli.run("machines", "validate", "none.json", code=ExitCode.USAGE)
    assert "cannot read none.json: No such file or directory" in missing.stderr
    Path("picture.json").write_bytes(b"\xff\xfe")
    assert "not text in UTF-8" in cli.run("machines", "validate", "picture.json", code=ExitCode.USAGE).stderr


def test_names_that_aws_refuses_are_refused(cli: CommandLine, file: Path) -> None:
    for name in ("a b", "a/b", "x" * 81):
        refused = cli.run("machines", "create", name, str(file), code=ExitCode.FAILED)
        assert "invalid name of state machine" in refused.stderr
    cli.run("machines", "create", "orders", str(file), "--tag", "none", code=ExitCode.USAGE)


def test_activities_are_created_listed_and_deleted(cli: CommandLine) -> None:
    made = cli.json("activities", "create", "pack")
    assert cli.json("activities", "create", "pack") == made
    assert "pack" in cli.run("activities", "list").stdout
    assert "invalid name of activity" in cli.run("activities", "create", "a b", code=ExitCode.FAILED).stderr
    assert cli.run("activities", "delete", "pack", "--yes").stdout == "pack deleted\n"
    missing = cli.run("activities", "delete", "pack", "--yes", code=ExitCode.NOT_FOUND)
    assert "`jobtable activities list` lists them" in missing.stderr
