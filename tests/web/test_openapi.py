"""The API's description: schemathesis drives every operation by it, with every check."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import jsonschema_rs
import pytest
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.inbox import applies
from jobtable.jobs.stored.entities import Job, JobStatus, Queue
from jobtable.model import Entity
from jobtable.model.wire import Instant
from jobtable.web.api import examples, openapi_of

CONFIGURATION = Path(__file__).parent / "schemathesis.toml"
NOT_DRIVEN = ("/api/v1/live", "/api/v1/journey-imports")
"""A stream that does not end, and a file: they have tests of their own."""


def drive(url: str, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Let schemathesis loose on a server."""
    # The description is made when it is first asked for; schemathesis has less patience with that.
    httpx.get(f"{url}/api/v1/openapi.json", timeout=120).raise_for_status()
    command = [
        str(Path(sys.executable).parent / "schemathesis"),
        "--config-file",
        str(CONFIGURATION),
        "run",
        f"{url}/api/v1/openapi.json",
        "--header",
        f"Authorization: Bearer {token}",
        "--no-color",
        "--request-timeout",
        "45",  # who deletes what runs waits for its worker
        *(part for path in NOT_DRIVEN for part in ("--exclude-path", path)),
        *arguments,
    ]
    environment = os.environ | {"HYPOTHESIS_STORAGE_DIRECTORY": os.devnull}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    server = Served(require_token=True)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def description(served: Served) -> dict[str, Any]:
    return openapi_of(served.app)


def operations(description: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_schemathesis_finds_nothing(served: Served) -> None:
    token = served.token(Role.FULL)
    done = drive(served.url, token, "--phases", "examples,fuzzing", "--max-examples", "2", "--seed", "1")
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]


def test_every_operation_is_described(description: dict[str, Any]) -> None:
    for name, operation in operations(description):
        assert operation["description"], name
        assert operation["tags"], name
        assert operation["x-roles"], name
        assert {"401", "403", "429"} <= set(operation["responses"]), name


def test_operations_have_names_that_clients_can_use(description: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(description)]
    assert {"submit_job", "list_executions", "list_clusters_of_job"} <= set(names)
    assert len(names) == len(set(names))
    assert all(name.isidentifier() and "api" not in name.split("_") for name in names)


def test_every_group_is_described(description: dict[str, Any]) -> None:
    described = {tag["name"] for tag in description["tags"] if tag["description"]}
    assert described == {tag for _, operation in operations(description) for tag in operation["tags"]}


def test_every_list_has_a_cursor(description: dict[str, Any]) -> None:
    for name, operation in operations(description):
        answer = operation["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema", {})
        if answer.get("$ref", "").rpartition("/")[2].startswith("PageOf"):
            assert {"cursor", "limit"} <= {each["name"] for each in operation["parameters"]}, name


def test_what_creates_takes_an_idempotency_key(description: dict[str, Any]) -> None:
    # What they answer holds a secret, which is not kept: it is shown once.
    secrets = {"POST /api/v1/tokens", "POST /api/v1/tasks", "POST /api/v1/inbox-questions"}
    for name, operation in operations(description):
        if "201" in operation["responses"] and name not in secrets:
            assert "Idempotency-Key" in {each["name"] for each in operation["parameters"]}, name


def test_paths_have_examples(description: dict[str, Any]) -> None:
    for name, operation in operations(description):
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path" and parameter["schema"].get("type") == "string":
                given = (
                    parameter.get("example") or parameter["schema"].get("examples") or parameter["schema"].get("format")
                )
                assert given, f"{name}: {parameter['name']}"


def test_examples_of_bodies_are_what_their_operations_take(description: dict[str, Any]) -> None:
    shown = {}
    for _, operation in operations(description):
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        if "example" in body:
            shown[operation["operationId"]] = body["example"]
            jsonschema_rs.validate({**body["schema"], "components": description["components"]}, body["example"])
    assert shown == examples()


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module whose function the example of a proposal names."""
    module = ModuleType("topics")
    setattr(module, "rename", applies(lambda tx, proposal, jobs: None))  # noqa: B010 - a module has no such attribute
    monkeypatch.setitem(sys.modules, "topics", module)


@pytest.mark.usefixtures("topics")
def test_what_examples_create_is_created(serve: Callable[..., Served], description: dict[str, Any]) -> None:
    client = serve().client()
    for name, operation in operations(description):
        method, _, path = name.partition(" ")
        if "201" in operation["responses"] and "{" not in path and operation["operationId"] in examples():
            answer = client.request(method, path, json=examples()[operation["operationId"]])
            assert answer.status_code == 201, answer.text


def test_times_are_described_as_such_and_sent_so(served: Served, description: dict[str, Any]) -> None:
    client = served.client(Role.FULL)
    sent = client.post("/api/v1/jobs", json={"name": "timed", "task": "m:f", "not_before": "2999-01-01T00:00:00+01:00"})
    entities: dict[str, type[Entity]] = {
        "/jobs": Job,
        "/queues": Queue,
        f"/jobs/{sent.json()['job_id']}/statuses": JobStatus,
    }
    for path, entity in entities.items():
        times = {name for name, field in entity.__schema__.fields.items() if isinstance(field.kind, Instant)}
        properties = description["components"]["schemas"][entity.__name__]["properties"]
        assert {name for name, told in properties.items() if "date-time" in str(told)} == times
        told = {"$ref": f"#/components/schemas/{entity.__name__}", "components": description["components"]}
        items = client.get(f"/api/v1{path}").json()["items"]
        for item in items:
            jsonschema_rs.validator_for(told, validate_formats=True).validate(item)
        assert {item[name][-1] for item in items for name in times if item[name]} == {"Z"}


def test_no_two_groups_have_bodies_of_one_name(description: dict[str, Any]) -> None:
    assert [name for name in description["components"]["schemas"] if name.startswith("jobtable__web__")] == []
