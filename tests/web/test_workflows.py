"""State machines, executions and functions over the REST API: what is particular to their routes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.remote import functions, machines
from tests.remote.functions import driving, wait_until
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.workflows.durable.entities import DurableStatus

SECRET = {
    "DURABLE_KEY": "what signs the ids of callbacks",
    "ACTIVITY#pack": "the tokens of tasks that nobody has taken yet",
}


@pytest.fixture
def client(guarded: Served) -> httpx.Client:
    return guarded.client(Role.FULL)


def created(client: httpx.Client, name: str, definition: Any, **more: Any) -> Any:
    answer = client.post("/api/v1/machines", json={"name": name, "definition": definition, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_definition_may_be_json_or_its_text(client: httpx.Client) -> None:
    text = f"  {machines.PASS}\n"
    created(client, "text", text)
    created(client, "json", json.loads(machines.PASS))
    read = [client.get(f"/api/v1/machines/{name}/definition").json()["definition"] for name in ("text", "json")]
    assert read[0] == text
    assert json.loads(read[1]) == json.loads(machines.PASS)


def test_a_wrong_definition_is_refused_with_all_its_faults(client: httpx.Client) -> None:
    wrong = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}, "C": {"Type": "Nothing"}}}
    refused = client.post("/api/v1/machines", json={"name": "wrong", "definition": wrong})
    assert (refused.status_code, refused.json()["type"]) == (400, "InvalidDefinitionError")
    checked = client.post("/api/v1/machine-checks", json={"definition": wrong}).json()
    assert not checked["is_valid"]
    errors = [fault for fault in checked["faults"] if fault["severity"] == "ERROR"]
    assert refused.json()["errors"] == errors
    assert len(errors) >= 2
    assert client.get("/api/v1/machines/wrong").status_code == 404
    valid = client.post("/api/v1/machine-checks", json={"definition": json.loads(machines.PASS)}).json()
    assert valid == {"is_valid": True, "faults": []}


def test_a_repeated_start_with_a_key_starts_once(client: httpx.Client) -> None:
    created(client, "keyed", machines.WAIT)
    headers = {"Idempotency-Key": "start-1"}
    first, again = (client.post("/api/v1/machines/keyed/executions", json={}, headers=headers) for _ in range(2))
    assert first.json() == again.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert len(client.get("/api/v1/machines/keyed/executions").json()["items"]) == 1


def test_lists_come_in_pages(client: httpx.Client) -> None:
    created(client, "paged", machines.WAIT)
    for number in range(3):
        client.post("/api/v1/machines/paged/executions", json={"name": f"number-{number}"})
    first = client.get("/api/v1/machines/paged/executions", params={"limit": 2}).json()
    second = client.get("/api/v1/machines/paged/executions", params={"limit": 2, "cursor": first["cursor"]}).json()
    assert [each["name"] for each in first["items"] + second["items"]] == ["number-2", "number-1", "number-0"]
    assert second["cursor"] is None
    for wrong in ({"state": "RUNNING"}, {"status": "LOST"}, {"status": ["RUNNING", "FAILED"]}):
        assert client.get("/api/v1/machines/paged/executions", params=wrong).status_code == 422
    assert client.get("/api/v1/machines/none/executions").status_code == 404


def test_the_history_of_a_durable_execution_comes_in_pages(guarded: Served, client: httpx.Client) -> None:
    assert functions.ask.__name__
    client.post("/api/v1/functions/ask/executions", json={"payload": {"question": "?"}, "name": "paged"})
    durable = guarded.services.durable
    with driving(guarded.services):
        wait_until(lambda: any(each.type == "CALLBACK" for each in durable.operations("ask", "paged")))
        client.post("/api/v1/functions/ask/executions/paged/stop", json={"error": {"ErrorMessage": "late"}})
        wait_until(lambda: durable.get("ask", "paged").status is DurableStatus.STOPPED)
    address = "/api/v1/functions/ask/executions/paged/history"
    every = client.get(address).json()["items"]
    for newest_first in (False, True):
        found: list[Any] = []
        cursor: str | None = None
        while True:
            query = {"limit": 2, "newest_first": newest_first} | ({"cursor": cursor} if cursor else {})
            page = client.get(address, params=query).json()
            found += page["items"]
            cursor = page["cursor"]
            if cursor is None:
                break
        assert found == (every[::-1] if newest_first else every)
    assert client.get(address, params={"cursor": "elsewhere"}).status_code == 400


@pytest.mark.parametrize("partition", SECRET)
def test_what_a_reader_could_answer_with_is_withheld(guarded: Served, partition: str) -> None:
    values = {":k": {"S": partition}}
    request = {
        "TableName": "jobtable-workflows",
        "KeyConditionExpression": "PK = :k",
        "ExpressionAttributeValues": values,
    }
    for role, status in ((Role.READ, 403), (Role.FULL, 200)):
        assert guarded.client(role).post("/api/v1/store/Query", json=request).status_code == status, SECRET[partition]


def test_readers_read_and_workers_answer(guarded: Served, client: httpx.Client) -> None:
    created(client, "roles", machines.WAIT)
    reader, worker = guarded.client(Role.READ), guarded.client(Role.WORKER)
    assert reader.get("/api/v1/machines/roles").status_code == 200
    assert reader.post("/api/v1/machines/roles/executions", json={}).status_code == 403
    assert worker.get("/api/v1/machines/roles").status_code == 403
    for path, body in (
        ("task-tokens/success", {"token": "made up", "output": "1"}),
        ("callbacks/success", {"callback_id": "made up"}),
    ):
        assert reader.post(f"/api/v1/{path}", json=body).status_code == 403
        refused = worker.post(f"/api/v1/{path}", json=body).json()
        assert (refused["status"], refused["type"]) == (403, "TokenRefusedError")
