"""What the API does beyond what its services do: idempotency, cursors, errors, work from afar, tables."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx
import pytest
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, TypeAdapter, ValidationError
from tests.web.conftest import Served, clock_that_was_ahead

from jobtable import errors
from jobtable.access.entities import AnsweredRequest
from jobtable.jobs.stored.entities import Job, JobDependency
from jobtable.jobs.stored.field_types import Status
from jobtable.web import injection
from jobtable.web.problems import STATUS_OF, problem_of, status_of
from jobtable.web.strictness import check_body


@pytest.fixture
def client(open_server: Served) -> httpx.Client:
    return open_server.client()


# --- errors ---------------------------------------------------------------------------------------------------------


def test_every_error_has_a_status_of_its_own_or_of_its_parent() -> None:
    classes = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.JobtableError)]
    for cls in classes:
        parent = next(base for base in cls.__mro__ if base in STATUS_OF)
        direct = cls in STATUS_OF or issubclass(cls, errors.ConflictError)
        assert direct, f"{cls.__name__} would be {STATUS_OF[parent]} like {parent.__name__}: write it down"
        assert status_of(cls("why")) == STATUS_OF[parent]


def test_errors_are_problems(client: httpx.Client) -> None:
    missing = client.get("/api/v1/jobs/none", headers={"X-Request-Id": "r1"})
    assert missing.headers["content-type"] == "application/problem+json"
    assert missing.json() == {
        "type": "NotFoundError",
        "title": "Not Found",
        "status": 404,
        "detail": "there is no job none",
        "hint": "GET /api/v1/jobs lists them",
        "kind": "job",
        "key": "none",
        "request_id": "r1",
    }
    wrong = client.post("/api/v1/queues", json={"queue_name": 1, "max_concurrent_jobs": "many"})
    assert (wrong.status_code, wrong.headers["content-type"]) == (422, "application/problem+json")
    shape = client.post("/api/v1/queues", json={})
    assert shape.json()["errors"] == [{"at": ["body", "queue_name"], "message": "Field required"}]


def test_a_stored_job_that_says_not_what_to_do_is_shown_all_the_same(open_server: Served) -> None:
    store = open_server.services.store
    now = store.clock.now()
    store.put(Job(job_id="odd", name="x", created_at=now, created_by="ada", job_config={"retry": "often"}))
    visitor = open_server.client(Accept="text/html")
    assert [visitor.get(page).status_code for page in ("/jobs", "/jobs/odd")] == [200, 200]


def test_a_group_that_only_looks_like_a_sweep_is_named(client: httpx.Client) -> None:
    looks = {"name": "x", "job_id": "looks", "job_type": "sweep", "config": {"sweep": {"name": 5}}}
    assert client.post("/api/v1/job-groups", json=looks).status_code == 201
    answer = client.get("/api/v1/sweeps/looks")
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("job looks has no valid sweep definition: name: ")


def test_what_pydantic_refuses_is_the_callers_fault_only_where_the_caller_sent_something() -> None:
    with pytest.raises(ValidationError) as raised:
        Job.model_validate({})
    assert problem_of(raised.value).status == 422
    assert problem_of(raised.value, has_body=False).status == 500


def test_what_is_the_servers_own_fault_tells_nothing() -> None:
    problem = problem_of(RuntimeError("the password is 1234"))
    assert problem.status == 500
    assert "1234" not in str(problem.detail)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/api/v1/nowhere", 404), ("PATCH", "/api/v1/jobs", 405), ("POST", "/api/v1/openapi.json", 405)],
)
def test_unknown_paths_and_methods_are_problems_too(client: httpx.Client, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["hint"] == "/api/v1/openapi.json describes every operation"


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/x-www-form-urlencoded"}])
def test_a_body_that_is_not_marked_as_json_is_told_how(client: httpx.Client, headers: dict[str, str]) -> None:
    answer = client.post("/api/v1/jobs", content=b'{"name": "x", "task": "m:f"}', headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (415, "the body is not marked as JSON")
    assert answer.json()["hint"] == "send it with Content-Type: application/json"


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"queue_name": "\xff"}', b"null", b"\x00"])
def test_a_broken_body_is_the_callers_fault(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/api/v1/queues", content=body, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500


def test_a_parameter_that_a_route_does_not_have_is_refused(client: httpx.Client) -> None:
    answer = client.get("/api/v1/jobs", params={"size": 2})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("unknown query parameter 'size'; accepted: ")
    assert "limit" in answer.json()["detail"]
    assert client.get("/api/v1/queues/default", params={"x": 1}).json()["detail"].endswith("accepted: none")
    assert client.get("/jobs", params={"from": "a mail"}).status_code == 200  # a page


def test_a_second_value_of_a_parameter_that_has_one_is_refused(client: httpx.Client) -> None:
    answer = client.get("/api/v1/jobs", params={"status": ["RUNNING", "PENDING"], "limit": 2})
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "query parameter 'status' was given 2 times; give it once",
    )
    assert client.get("/api/v1/queue-states", params={"queue": ["gpu", "default"]}).status_code == 200
    assert client.get("/jobs", params={"status": ["RUNNING", "PENDING"]}).status_code == 200  # a page


def test_a_job_has_a_budget_for_models(client: httpx.Client) -> None:
    body = {"name": "ask", "task": "m:f", "max_cost": 0.25, "max_tokens": 5000}
    config = client.post("/api/v1/jobs", json=body).json()["job_config"]
    assert (config["max_cost"], config["max_tokens"]) == (0.25, 5000)
    for member, wrong in (("max_cost", -1), ("max_tokens", 0.5), ("max_tokens", -1)):
        assert client.post("/api/v1/jobs", json={**body, member: wrong}).status_code == 422


def test_a_job_without_a_task_is_refused_unless_it_is_a_group(client: httpx.Client) -> None:
    for path, body in (("jobs", {"name": "idle"}), ("job-batches", [{"task": "m:f", "name": "a"}, {"name": "idle"}])):
        refused = client.post(f"/api/v1/{path}", json=body)
        assert refused.status_code == 400, path
        assert "job 'idle' has no task" in refused.json()["detail"]
    assert client.post("/api/v1/job-groups", json={"name": "idle"}).json()["status"] == "RUNNING"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1E999"])
def test_a_number_that_is_not_finite_is_refused_wherever_it_stands(client: httpx.Client, number: str) -> None:
    for path, body in (
        ("jobs", '{"name": "x", "params": {"a": [%s]}}'),
        ("job-batches", '[{"name": "x", "config": {"a": %s}}]'),
        ("store/GetItem", '{"TableName": "jobtable", "Key": %s}'),
    ):
        answer = client.post(f"/api/v1/{path}", content=body % number, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422, path
        assert answer.json()["detail"] == f"{number} is not a finite number"


@pytest.mark.parametrize("levels", [256, 900])
def test_what_is_nested_too_deeply_is_refused(client: httpx.Client, levels: int) -> None:
    body = f'{{"name": "x", "params": {{"a": {"[" * levels}{"]" * levels}}}}}'
    answer = client.post("/api/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "the request is nested deeper than 100 levels")


def test_a_lone_surrogate_is_refused(client: httpx.Client) -> None:
    body = b'{"name": "x", "params": {"a": "\\ud800", "\\ud801": 1}}'
    answer = client.post("/api/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500


class Inner(BaseModel):
    b: bool = False


class Outer(BaseModel):
    n: int | None = None
    l: list[int] = []  # noqa: E741 - as short as the others
    o: Inner = Inner()
    t: datetime | None = None


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"n": True}, ("body", "n")),
        ({"n": "5"}, ("body", "n")),
        ({"n": 5.5}, ("body", "n")),
        ({"l": [1, "2"]}, ("body", "l", 1)),
        ({"o": {"b": 1}}, ("body", "o", "b")),
        ({"t": 1730000000}, ("body", "t")),
        ({"n": 5, "l": [1.0], "o": {"b": False}, "other": 1, "t": "2025-11-01T00:00:00Z"}, None),
        ({"n": None}, None),
    ],
)
def test_types_are_taken_at_their_word(value: Any, where: tuple[str | int, ...] | None) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(value).encode()}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    found = None
    try:
        asyncio.run(check_body(request, TypeAdapter(Outer)))
    except RequestValidationError as error:
        found = error.errors()[0]["loc"]
    assert found == where


# --- idempotency ----------------------------------------------------------------------------------------------------


def test_a_repeated_creation_happens_once_and_is_answered_the_same(client: httpx.Client) -> None:
    key = {"Idempotency-Key": "once"}
    first = client.post("/api/v1/jobs", json={"task": "m:f", "name": "once"}, headers=key)
    again = client.post("/api/v1/jobs", json={"task": "m:f", "name": "once"}, headers=key)
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert again.headers["idempotency-replayed"] == "true"
    other = client.post("/api/v1/jobs", json={"task": "m:f", "name": "other"}, headers=key)
    assert other.status_code == 409
    assert client.post("/api/v1/jobs", json={"task": "m:f", "name": "once"}).json()["job_id"] != first.json()["job_id"]


def test_a_creation_that_failed_may_be_tried_again_with_its_key(client: httpx.Client) -> None:
    key = {"Idempotency-Key": "again"}
    assert client.post("/api/v1/queues", json={}, headers=key).status_code == 422
    assert client.post("/api/v1/queues", json={"queue_name": "again"}, headers=key).status_code == 201


def test_of_many_at_once_one_is_carried_out(open_server: Served) -> None:
    statuses: list[int] = []

    def create() -> None:
        client = open_server.client()
        answer = client.post(
            "/api/v1/jobs", json={"task": "m:f", "name": "crowd"}, headers={"Idempotency-Key": "crowd"}
        )
        statuses.append(answer.status_code)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert len(open_server.client().get("/api/v1/jobs", params={"text": "crowd"}).json()["items"]) == 1


def _ask_for_queue(client: httpx.Client, name: str) -> httpx.Response:
    return client.post("/api/v1/queues", json={"queue_name": name}, headers={"Idempotency-Key": name})


def _unanswered(served: Served, client: httpx.Client, name: str) -> AnsweredRequest:
    """A request that has made a queue, as it is stored before it is answered."""
    _ask_for_queue(client, name)
    kept = served.services.store.get(AnsweredRequest.key(caller="local", request_key=name))
    begun = kept.replace(status_code=None, body=None)
    served.services.store.put(begun)
    return begun


def test_a_request_that_is_carried_out_is_not_taken_over_by_a_server_whose_clock_was_ahead(
    open_server: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    _unanswered(open_server, client, "ahead")
    monkeypatch.setattr(open_server.services.store, "clock", clock_that_was_ahead())
    answer = _ask_for_queue(client, "ahead")
    assert (answer.status_code, answer.headers.get("retry-after")) == (409, "1")


def test_a_request_whose_server_died_is_taken_over(open_server: Served, client: httpx.Client) -> None:
    begun = _unanswered(open_server, client, "died")
    answer = _ask_for_queue(client, "died")
    assert (answer.status_code, answer.headers["retry-after"]) == (409, "1")
    open_server.services.store.put(begun.replace(begun_at=begun.begun_at.replace(year=2000)))
    taken = _ask_for_queue(client, "died")
    assert taken.json()["type"] == "AlreadyExistsError"  # it is carried out, and finds what the first one made


@pytest.mark.parametrize("key", ["", "a b", "x" * 201])
def test_a_bad_key_is_refused(client: httpx.Client, key: str) -> None:
    answer = client.post("/api/v1/queues", json={"queue_name": "k"}, headers={"Idempotency-Key": key})
    assert answer.status_code == 422


# --- lists ----------------------------------------------------------------------------------------------------------


def test_jobs_are_listed_page_by_page_whatever_the_filter(serve: Any) -> None:
    client = serve().client()
    new = [{"task": "m:f", "name": f"j{n}", "tags": [f"t{n % 2}"]} for n in range(25)]
    made = client.post("/api/v1/job-batches", json=new).json()
    client.post(f"/api/v1/jobs/{made[3]['job_id']}/cancel")
    expected = [job["job_id"] for job in reversed(made)]
    for parameters, wanted in (
        ({}, expected),
        ({"tag": "t1"}, [job["job_id"] for job in reversed(made) if job["tags"] == ["t1"]]),
        ({"user": "local"}, expected),
        ({"status": "CANCELLED"}, [made[3]["job_id"]]),
        ({"text": "J1"}, [job["job_id"] for job in reversed(made) if "j1" in job["name"]]),
    ):
        assert list(_listed(client, parameters)) == wanted, parameters


def _listed(client: httpx.Client, parameters: dict[str, str]) -> Iterator[str]:
    """The ids of jobs, read four at a time."""
    asked = {**parameters, "limit": "4"}
    while True:
        page = client.get("/api/v1/jobs", params=asked).json()
        yield from (job["job_id"] for job in page["items"])
        if page["cursor"] is None:
            return
        asked["cursor"] = page["cursor"]


def test_the_children_of_a_job_are_listed_page_by_page_with_any_other_filter(serve: Any) -> None:
    client = serve().client()
    client.post("/api/v1/job-groups", json={"name": "night", "job_id": "night"})
    new = [{"task": "m:f", "name": f"j{n}", "job_id": f"j{n}", "parent_job_id": "night"} for n in range(10)]
    client.post("/api/v1/job-batches", json=new)
    client.post("/api/v1/jobs", json={"task": "m:f", "name": "under", "job_id": "under", "parent_job_id": "j3"})
    client.post("/api/v1/jobs", json={"task": "m:f", "name": "beside", "job_id": "beside"})
    for number in (2, 5, 7, 8, 9):
        client.post(f"/api/v1/jobs/j{number}/cancel")
    for parameters, wanted in (
        ({"parent": "night"}, [f"j{number}" for number in range(9, -1, -1)]),
        ({"parent": "night", "status": "CANCELLED"}, ["j9", "j8", "j7", "j5", "j2"]),
        ({"parent": "night", "user": "local", "text": "j4"}, ["j4"]),
        ({"parent": "night", "user": "ada"}, []),
        ({"parent": "j3"}, ["under"]),
        ({"parent": "beside"}, []),
    ):
        assert list(_listed(client, parameters)) == wanted, parameters
    assert client.get("/api/v1/jobs", params={"parent": ""}).status_code == 422


@pytest.mark.parametrize("cursor", ["x", "W10", "bnVsbA", "WyJ4IiwgMV0", "a" * 7000])
def test_a_cursor_of_another_list_is_refused(client: httpx.Client, cursor: str) -> None:
    for path in ("/api/v1/jobs", "/api/v1/queues"):
        answer = client.get(path, params={"cursor": cursor})
        assert (answer.status_code, answer.json()["type"]) == (400, "CursorError")


_LISTS_UNDER = [
    *(f"jobs/ID/{name}" for name in ("statuses", "logs", "log-texts", "metrics", "metrics/m", "checkpoints")),
    *(f"jobs/ID/{name}" for name in ("artifacts", "resources", "everything", "children", "descendants")),
    *(
        f"jobs/ID/{name}"
        for name in ("dependencies", "dependents", "unfinished-children", "best/m", "metrics/m/epochs/1")
    ),
    *(f"jobs/ID/{name}" for name in ("queues", "instances")),
    "jobs?parent=ID",
    "queues/ID/jobs",
    "queues/ID/ready",
    "queues/ID/jobs?group_id=s",
    "instances/ID/jobs",
]


@pytest.mark.parametrize("path", _LISTS_UNDER)
def test_a_list_under_what_is_not_there_is_not_found(client: httpx.Client, path: str) -> None:
    answer = client.get(f"/api/v1/{path.replace('ID', 'nosuch')}")
    assert (answer.status_code, answer.json()["type"]) == (404, "NotFoundError")


def test_an_empty_list_under_what_is_there_is_empty(client: httpx.Client) -> None:
    client.post("/api/v1/jobs", json={"task": "m:f", "name": "x", "job_id": "bare", "queue": "bare"})
    client.post("/api/v1/queues", json={"queue_name": "bare-too"})
    client.put("/api/v1/instances/bare", json={"instance_type": "m"})
    for path in ("jobs/bare/logs", "jobs/bare/descendants", "queues/bare-too/jobs", "instances/bare/jobs"):
        assert client.get(f"/api/v1/{path}").json() == {"items": [], "cursor": None}, path


def test_unfinished_children_come_page_by_page(open_server: Served, client: httpx.Client) -> None:
    store = open_server.services.store
    for number in range(5):
        status = Status.COMPLETED if number < 3 else Status.FAILED
        child = f"child-{number}"
        store.put(Job(job_id=child, name=child, created_at=store.clock.now(), created_by="ada", status=status))
        store.put(JobDependency(job_id=child, dependency_job_id="old", type="sweep", created_at=store.clock.now()))
    found, cursor = list[list[str]](), None
    while not found or cursor:
        asked = {"limit": 2, "cursor": cursor} if cursor else {"limit": 2}
        page = client.get("/api/v1/jobs/old/unfinished-children", params=asked).json()
        found.append([each["job_id"] for each in page["items"]])
        cursor = page["cursor"]
    assert found == [[], ["child-3"], ["child-4"]]


def test_a_log_is_searched_page_by_page(client: httpx.Client) -> None:
    job = client.post("/api/v1/jobs", json={"task": "m:f", "name": "a", "queue": "searched"}).json()
    (lease,) = client.post("/api/v1/queues/searched/claim", json={"instance_id": "w"}).json()
    lines = [{"message": f"Line {number}", "level": "INFO"} for number in range(3)]
    at = f"/api/v1/jobs/{job['job_id']}/logs"
    client.post(at, json={"instance_id": "w", "epoch": lease["epoch"], "lines": lines})
    first = client.get(f"{at}/search", params={"text": "line", "ignore_case": True, "limit": 2}).json()
    assert [(each["text"], each["log_level"]) for each in first["items"]] == [("Line 0", "INFO"), ("Line 1", "INFO")]
    asked = {"text": "line", "ignore_case": True, "cursor": first["cursor"]}
    rest = client.get(f"{at}/search", params=asked).json()
    assert ([each["text"] for each in rest["items"]], rest["cursor"]) == (["Line 2"], None)
    assert client.get(f"{at}/search", params={**asked, "text": "other"}).status_code == 400
    assert client.get(f"{at}/search", params={"text": "line"}).json() == {"items": [], "cursor": None}
    assert client.get(f"{at}/search", params={"text": ""}).status_code == 422
    assert client.get("/api/v1/jobs/none/logs/search", params={"text": "x"}).status_code == 404


def test_rare_lines_are_looked_for_page_by_page(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injection, "_MOST_EXAMINED", 100)
    job = client.post("/api/v1/jobs", json={"task": "m:f", "name": "a", "queue": "rare"}).json()
    (lease,) = client.post("/api/v1/queues/rare/claim", json={"instance_id": "w"}).json()
    lines = [{"message": f"{number}", "level": "ERROR" if number == 250 else "INFO"} for number in range(300)]
    at = f"/api/v1/jobs/{job['job_id']}/logs"
    client.post(at, json={"instance_id": "w", "epoch": lease["epoch"], "lines": lines})
    first = client.get(at, params={"level": "ERROR"}).json()
    assert first["items"] == []
    second = client.get(at, params={"level": "ERROR", "cursor": first["cursor"]}).json()
    third = client.get(at, params={"level": "ERROR", "cursor": second["cursor"]}).json()
    assert [each["message"] for each in second["items"] + third["items"]] == ["250"]


def test_why_a_job_waits_is_told(client: httpx.Client) -> None:
    job = client.post("/api/v1/jobs", json={"task": "m:f", "name": "a", "queue": "unserved"}).json()
    path = f"/api/v1/jobs/{job['job_id']}/waiting"
    assert client.get(path).json() == {
        "reasons": [{"kind": "no_worker", "text": "No live worker serves the queue unserved."}],
        "dependencies": [],
        "dependency_count": 0,
        "until": None,
        "ahead": 0,
    }
    client.post("/api/v1/queues/unserved/claim", json={"instance_id": "w"})
    assert client.get(path).json() is None
    assert client.get("/api/v1/jobs/none/waiting").status_code == 404


def test_a_queue_is_deleted_only_if_it_is_empty(client: httpx.Client) -> None:
    job = client.post("/api/v1/jobs", json={"task": "m:f", "name": "a", "queue": "short/lived"}).json()
    refused = client.delete("/api/v1/queues/short%2Flived")
    assert (refused.status_code, refused.json()["type"]) == (409, "ConflictError")
    assert refused.json()["detail"].startswith("queue short/lived cannot be deleted: 1 job waits or runs in it")
    client.post(f"/api/v1/jobs/{job['job_id']}/cancel")
    assert client.delete("/api/v1/queues/short%2Flived").status_code == 204
    assert client.delete("/api/v1/queues/short%2Flived").status_code == 404


# --- work from afar -------------------------------------------------------------------------------------------------


def test_a_worker_elsewhere_runs_a_job(client: httpx.Client) -> None:
    job = client.post("/api/v1/jobs", json={"task": "m:f", "name": "afar", "queue": "afar", "max_attempts": 2}).json()
    at = f"/api/v1/jobs/{job['job_id']}"
    (lease,) = client.post("/api/v1/queues/afar/claim", json={"instance_id": "w1"}).json()
    held = {"instance_id": "w1", "epoch": lease["epoch"]}
    assert client.post(f"{at}/heartbeat", json=held).json()["job"]["heartbeat"] == 1
    assert client.post(f"{at}/report", json={**held, "progress": 50}).status_code == 204
    lines = [{"message": f"line {n}", "level": "ERROR"} for n in range(150)]
    assert client.post(f"{at}/logs", json={**held, "lines": lines}).json() == {"count": 150}
    client.post(f"{at}/metrics", json={**held, "metrics": [{"metric_name": "m", "value": 0.5, "step": 1}]})
    logged = client.get(f"{at}/logs", params={"limit": 500, "level": "ERROR"}).json()["items"]
    assert [line["message"] for line in logged] == [f"line {n}" for n in range(150)]
    client.post(f"{at}/stop", json={"message": "enough"})
    assert client.post(f"{at}/heartbeat", json=held).json()["job"]["requested"] == "stop"
    done = client.post(f"{at}/finish", json={**held, "kind": "stopped", "result": {"kept": 1}}).json()
    assert (done["status"], done["result"]) == ("STOPPED", {"kept": 1})


def test_a_worker_that_lost_its_job_writes_nothing(client: httpx.Client) -> None:
    job = client.post("/api/v1/jobs", json={"task": "m:f", "name": "lost", "queue": "lost"}).json()
    at = f"/api/v1/jobs/{job['job_id']}"
    (lease,) = client.post("/api/v1/queues/lost/claim", json={"instance_id": "w1"}).json()
    for wrong in ({"instance_id": "w1", "epoch": lease["epoch"] + 1}, {"instance_id": "w2", "epoch": lease["epoch"]}):
        for verb, more in (("heartbeat", {}), ("report", {"progress": 1}), ("finish", {"kind": "completed"})):
            answer = client.post(f"{at}/{verb}", json={**wrong, **more})
            assert (answer.status_code, answer.json()["type"]) == (409, "LeaseLostError")
        assert client.post(f"{at}/logs", json={**wrong, "lines": []}).status_code == 409
    assert client.get(at).json()["status"] == "RUNNING"


# --- tables ---------------------------------------------------------------------------------------------------------


def test_items_are_explored_by_index_partition_and_prefix(client: httpx.Client) -> None:
    job = client.post("/api/v1/jobs", json={"task": "m:f", "name": "seen", "queue": "explored"}).json()
    at = "/api/v1/tables/jobtable/items"
    found = client.get(at, params={"partition": f"JOB#{job['job_id']}", "sort": "STATUS#"}).json()["items"]
    assert [each["entity"] for each in found] == ["JobStatus"]
    assert found[0]["item"]["PK"] == {"S": f"JOB#{job['job_id']}"}
    page = client.get(at, params={"index": "GSITYPE", "partition": "QUEUE", "limit": 1}).json()
    second = client.get(at, params={"index": "GSITYPE", "partition": "QUEUE", "limit": 1, "cursor": page["cursor"]})
    assert second.json()["items"] != page["items"]
    assert client.get("/api/v1/tables/none/items", params={"partition": "x"}).status_code == 404
    assert client.get(at, params={"partition": "x", "index": "none"}).status_code == 404
    assert client.get(at, params={"partition": ["x", "y"]}).status_code == 400


def test_an_item_that_is_no_entity_is_shown_as_it_is(open_server: Served, client: httpx.Client) -> None:
    request = {"TableName": "jobtable", "Item": {"PK": {"S": "ODD"}, "SK": {"S": "1"}, "TYPE": {"S": "JOB"}}}
    open_server.services.store.backend.execute("PutItem", request)
    (found,) = client.get("/api/v1/tables/jobtable/items", params={"partition": "ODD"}).json()["items"]
    assert found["values"] is None
    assert found["problem"]
    assert found["item"]["SK"] == {"S": "1"}


def test_capacity_and_metrics_are_told(client: httpx.Client) -> None:
    client.get("/api/v1/queues")
    client.get("/api/v1/jobs/none")
    patterns = {each["pattern"]: each for each in client.get("/api/v1/capacity").json()}
    assert patterns["Queue.by_name"]["read_units"] > 0
    metrics = client.get("/metrics").text
    assert 'jobtable_http_requests_total{method="GET",route="api.queues.list_queues",status="200"}' in metrics
    assert 'route="api.jobs.get_job",status="404"' in metrics
    assert "jobtable_http_request_duration_seconds_bucket" in metrics


def test_metrics_are_read_from_a_time_on(client: httpx.Client) -> None:
    job = client.post("/api/v1/jobs", json={"task": "m:f", "name": "timed", "queue": "timed"}).json()
    (lease,) = client.post("/api/v1/queues/timed/claim", json={"instance_id": "w"}).json()
    address, held = f"/api/v1/jobs/{job['job_id']}", {"instance_id": "w", "epoch": lease["epoch"]}
    for name in ("a-of-timed", "b-of-timed"):
        for value in (1, 2):
            told = {**held, "metrics": [{"metric_name": name, "value": value}]}
            assert client.post(f"{address}/metrics", json=told).is_success
    first, *_ = client.get(f"{address}/metrics/b-of-timed").json()["items"]
    since = {"since": first["timestamp"]}
    assert [each["value"] for each in client.get(f"{address}/metrics", params=since).json()["items"]] == [2]
    assert [each["value"] for each in client.get("/api/v1/metrics/b-of-timed", params=since).json()["items"]] == [2]
