"""`jobtable workflows template`: from definitions and modules to a template."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.cli.conftest import CommandLine
from tests.registered_functions import only_functions_of

from jobtable.cli.output import ExitCode

MODULE = "tests.workflows.deployment.handlers"
CHARGE = "arn:aws:lambda:us-east-1:000000000000:function:deployed-charge"


@pytest.fixture(autouse=True)
def _own_functions() -> Iterator[None]:
    with only_functions_of(MODULE):
        yield


@pytest.fixture
def file() -> Path:
    path = Path("orders.asl.json")
    states = {"Charge": {"Type": "Task", "Resource": CHARGE, "End": True}}
    path.write_text(json.dumps({"StartAt": "Charge", "States": states}, indent=2))
    return path


def test_a_template_is_printed_as_yaml_and_json(cli: CommandLine, file: Path) -> None:
    words = ("workflows", "template", str(file), "--module", MODULE, "--prefix", "prod-")
    printed = cli.run(*words).stdout
    made = yaml.safe_load(printed)
    assert made == cli.json(*words)
    machine = made["Resources"]["OrdersMachine"]["Properties"]
    assert (machine["StateMachineName"], machine["StateMachineType"]) == ("prod-orders", "STANDARD")
    assert "      DefinitionString: |" in printed, "people read it"
    Path("template.yaml").write_text(printed)
    command = [str(Path(sys.executable).parent / "cfn-lint"), "template.yaml"]
    linted = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, "")


def test_an_express_machine_has_its_type_and_a_log(cli: CommandLine, file: Path) -> None:
    made = cli.json("workflows", "template", str(file), "--module", MODULE, "--express", "orders")
    assert made["Resources"]["OrdersMachine"]["Properties"]["StateMachineType"] == "EXPRESS"
    assert made["Resources"]["OrdersMachineLog"]["Type"] == "AWS::Logs::LogGroup"
    refused = cli.run("workflows", "template", str(file), "--express", "none", code=ExitCode.USAGE)
    assert "--express none: no file defines this machine" in refused.stderr


def test_a_definition_with_faults_is_refused(cli: CommandLine, file: Path) -> None:
    file.write_text("{}")
    refused = cli.run("workflows", "template", str(file), "--module", MODULE, code=ExitCode.FAILED)
    assert "StartAt" in refused.stderr
    missing = cli.run("workflows", "template", str(file), "--module", "tests.none", code=ExitCode.USAGE)
    assert "cannot import tests.none" in missing.stderr
