"""Reports and files of journeys by the API."""

from __future__ import annotations

import httpx
import pytest
from tests.web.conftest import Served

from jobtable.access.entities import AnsweredRequest
from jobtable.systems.journeys.service import Journeys


@pytest.fixture
def client(open_server: Served) -> httpx.Client:
    return open_server.client()


def test_a_report_whose_answer_was_lost_with_its_server_is_stored_once(
    open_server: Served, client: httpx.Client
) -> None:
    source = {"schema_id": "s", "schema_name": "n"}
    new = {"journey_id": "told", "name": "j", "created_by": "a", "oda_component_type": "X", "source": source}
    assert client.post("/api/v1/journeys", json=new).status_code == 201
    journeys, store = open_server.services.get(Journeys), open_server.services.store
    journeys.create_execution(journeys.get_stage("told", "raw_analysis"), "told-1")
    body = {"report_type": "custom", "title": "Coverage", "content": {"fields": 3}}
    at, key = "/api/v1/journeys/told/executions/told-1/reports", {"Idempotency-Key": "told"}
    first = client.post(at, json=body, headers=key)
    store.delete(AnsweredRequest.key(caller="local", request_key="told"))
    again = client.post(at, json=body, headers=key)
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    assert len(list(journeys.list_job_reports("told-1"))) == 1


def test_the_file_of_a_journey_is_called_after_it_and_errors_tell_nothing_of_the_servers_folders(
    client: httpx.Client,
) -> None:
    source = {"schema_id": "s", "schema_name": "n"}
    new = {"journey_id": "J 1", "name": "j", "created_by": "a", "oda_component_type": "X", "source": source}
    assert client.post("/api/v1/journeys", json=new).status_code == 201
    exported = client.get("/api/v1/journeys/J%201/export")
    assert exported.headers["content-disposition"] == "attachment; filename*=utf-8''J%201.zip"
    for body in (b"", b"PK" * 100, exported.content[:-1]):
        refused = client.post("/api/v1/journey-imports", content=body, headers={"Content-Type": "application/zip"})
        assert (refused.status_code, refused.json()["type"]) == (400, "ArchiveError")
        assert refused.json()["detail"].startswith("the file ")
        assert "/tmp" not in refused.text


_LISTS_UNDER = [
    *(f"journeys/ID/{name}" for name in ("stages", "rules", "executions", "rules?stage_id=s")),
    *(f"journey-executions/ID/{name}" for name in ("logs", "recent-logs", "reports")),
]


@pytest.mark.parametrize("path", _LISTS_UNDER)
def test_a_list_under_what_is_not_there_is_not_found(client: httpx.Client, path: str) -> None:
    answer = client.get(f"/api/v1/{path.replace('ID', 'nosuch')}")
    assert (answer.status_code, answer.json()["type"]) == (404, "NotFoundError")
