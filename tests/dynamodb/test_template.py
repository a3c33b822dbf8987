"""The template describes what `store.tables.create` makes, and its policies allow what is needed and no more."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.dynamodb.policy_backend import PolicyBackend
from typer.testing import CliRunner

from jobtable.access.entities import AccessToken, Role
from jobtable.access.tokens import Tokens
from jobtable.cli.main import app
from jobtable.dynamodb.template import cloudformation_template
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import AccessDenied, DefinitionError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job, main
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.worker import Worker
from jobtable.model import Table
from jobtable.objects.filesystem import FilesystemObjectStore
from jobtable.reference import tables
from jobtable.store import Store
from jobtable.store.tables import create_request

PREFIX = "prod-"
LONGEST_POLICY = 6144
"""How many characters a managed policy may have, without white space."""
ARN = "arn:aws:dynamodb:ap-southeast-2:123456789012:table/"


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["tables", "template", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load(printed("--prefix", PREFIX))
    return made


def described_tables(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    resources = template["Resources"].values()
    found = [each for each in resources if each["Type"] == "AWS::DynamoDB::Table"]
    assert all(each["DeletionPolicy"] == each["UpdateReplacePolicy"] == "Retain" for each in found)
    return {each["Properties"]["TableName"]: dict(each["Properties"]) for each in found}


@pytest.mark.parametrize("arguments", [["--prefix", PREFIX], ["--system", "albums", "--json"]], ids=" ".join)
def test_cfn_lint_finds_nothing(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / "template"
    file.write_text(printed(*arguments))
    linted = subprocess.run(
        [str(Path(sys.executable).parent / "cfn-lint"), str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (linted.returncode, linted.stdout) == (0, ""), linted.stderr


def test_json_and_yaml_say_the_same(template: dict[str, Any]) -> None:
    assert json.loads(printed("--prefix", PREFIX, "--json")) == template


def test_every_declared_table_is_described_as_it_is_created(template: dict[str, Any]) -> None:
    described = described_tables(template)
    assert list(described) == [PREFIX + table.name for table in tables()]
    for table in tables():
        properties = described[PREFIX + table.name]
        assert properties.pop("DeletionProtectionEnabled") is True
        assert properties.pop("TimeToLiveSpecification", {}).get("AttributeName") == table.ttl
        recovery = properties.pop("PointInTimeRecoverySpecification", {"PointInTimeRecoveryEnabled": False})
        assert recovery["PointInTimeRecoveryEnabled"] is table.recovery
        if table.stream:
            properties["StreamSpecification"]["StreamEnabled"] = True
        assert properties == create_request(table, PREFIX + table.name)


def test_what_is_described_can_be_created_and_does_not_differ(each_store: Store) -> None:
    made = cloudformation_template(tables(), prefix=each_store.prefix)
    for table, properties in zip(tables(), described_tables(made).values(), strict=True):
        ttl = properties.pop("TimeToLiveSpecification", None)
        recovery = properties.pop("PointInTimeRecoverySpecification", None)
        properties.pop("DeletionProtectionEnabled")
        if table.stream:
            properties["StreamSpecification"]["StreamEnabled"] = True
        each_store.ask("CreateTable", properties, "test")
        if ttl:
            name = properties["TableName"]
            each_store.ask("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": ttl}, "test")
        if recovery and isinstance(each_store.backend, EmbeddedBackend):  # DynamoDB Local has no backups
            backups = {"TableName": properties["TableName"], "PointInTimeRecoverySpecification": recovery}
            each_store.ask("UpdateContinuousBackups", backups, "test")
        assert each_store.tables.differences(table) == []


def test_only_the_chosen_tables_are_in_it() -> None:
    made = yaml.safe_load(printed("--system", "conversations", "--without-index", "ConversationIndex"))
    described = described_tables(made)
    assert all(name.startswith("Delphi_") for name in described)
    assert not any("GlobalSecondaryIndexes" in properties for properties in described.values())
    assert "/index/" not in json.dumps(made)


def test_the_bucket_is_private_and_reached_with_tls_only(template: dict[str, Any]) -> None:
    bucket = template["Resources"]["ObjectsBucket"]["Properties"]
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert "BucketName" not in bucket
    (refusal,) = template["Resources"]["ObjectsBucketPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert (refusal["Effect"], refusal["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_the_outputs_are_settings(template: dict[str, Any]) -> None:
    outputs = {name: each["Value"] for name, each in template["Outputs"].items()}
    assert outputs["Store"] == {"Fn::Sub": "dynamodb://${AWS::Region}?prefix=prod-"}
    assert outputs["Objects"] == {"Fn::Sub": "s3://${ObjectsBucket}?region=${AWS::Region}"}


def statements(template: dict[str, Any], policy: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = template["Resources"][policy]["Properties"]["PolicyDocument"]["Statement"]
    return found


@pytest.mark.parametrize("policy", ["ReadPolicy", "FullPolicy", "WorkerPolicy"])
def test_a_policy_names_resources_of_the_template_alone_and_is_not_too_long(
    template: dict[str, Any], policy: str
) -> None:
    for statement in statements(template, policy):
        if statement["Sid"] == "TableNames":
            assert (statement["Action"], statement["Resource"]) == (["dynamodb:ListTables"], "*")
        elif statement["Effect"] == "Allow":
            assert all("*" not in action for action in statement["Action"])
            assert all(name in template["Resources"] for name in names_in(statement["Resource"]))
    text = json.dumps(statements(template, policy))
    for logical_id, resource in template["Resources"].items():
        text = text.replace(logical_id, ARN + resource["Properties"].get("TableName", logical_id))
    assert len(text) < LONGEST_POLICY


def names_in(resource: Any) -> Iterator[str]:
    for place in resource if isinstance(resource, list) else [resource]:
        if "Fn::GetAtt" in place:
            yield place["Fn::GetAtt"][0]
        else:
            yield place["Fn::Sub"].partition(".")[0].removeprefix("${")


def test_who_reads_cannot_write(template: dict[str, Any]) -> None:
    allowed = [each for each in statements(template, "ReadPolicy") if each["Effect"] == "Allow"]
    actions = {action for each in allowed for action in each["Action"]}
    assert not [action for action in actions if any(word in action for word in ("Put", "Update", "Delete", "Write"))]


def open_with(policy: str, template: dict[str, Any], folder: Path) -> Jobs:
    """The jobs of a store, as they are with the policy."""
    backend = PolicyBackend(EmbeddedBackend(folder / "jobs.db"), template, policy)
    return Jobs(Store(backend, prefix=PREFIX), FilesystemObjectStore(folder / "objects"))


def test_the_policies_are_enough_for_what_they_are_for_and_no_more(template: dict[str, Any], tmp_path: Path) -> None:
    with Store(EmbeddedBackend(tmp_path / "jobs.db"), prefix=PREFIX) as store:
        store.tables.create(main)
    full, reader, working = (
        open_with(name, template, tmp_path) for name in ("FullPolicy", "ReadPolicy", "WorkerPolicy")
    )
    feed = reader.store.changes(main)
    token = Tokens(full.store).create(Role.READ, name="dashboard")
    job = full.submit(NewJob(name="train", task="tests.cli.tasks:train"))
    opener = partial(open_with, "WorkerPolicy", template, tmp_path)
    assert Worker(opener, ["default"], mode="inline", until_empty=True).run().completed == 1

    assert reader.queries.get_job(job.job_id).status == "COMPLETED"
    assert len(list(feed.read())) > 0
    assert reader.store.tables.names() == ["jobtable"]
    assert [each.job_id for each in full.store.scan(Job)] == [job.job_id]
    with pytest.raises(AccessDenied):
        reader.submit(NewJob(name="train", task="tests.cli.tasks:train"))
    for jobs in (reader, working):
        with pytest.raises(AccessDenied):
            list(jobs.store.scan(Job))
    with pytest.raises(AccessDenied):
        Tokens(working.store).create(Role.FULL, name="mine")
    for jobs in (reader, working):
        with pytest.raises(AccessDenied):
            jobs.store.get(AccessToken.key(token_id=token.record.token_id))
        with pytest.raises(AccessDenied):
            list(Tokens(jobs.store).list())
    for jobs in (full, reader, working):
        jobs.store.close()


def test_tables_that_one_template_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(DefinitionError, match=r"a-b1 and a_b1 would both be AB1Table"):
        cloudformation_template([Table("a-b1", pk="id"), Table("a_b1", pk="id")])


def test_a_prefix_that_no_table_can_have_is_refused() -> None:
    done = CliRunner().invoke(app, ["tables", "template", "--prefix", "not allowed "])
    assert done.exit_code == 1
    assert "'not allowed jobtable' is not a valid table name" in done.output
