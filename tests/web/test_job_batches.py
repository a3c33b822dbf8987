"""Many jobs acted on by one request: each has its own outcome, and none stands in the way of the others."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.errors import BackendUnavailable
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import NewJob


@pytest.fixture
def client(open_server: Served) -> httpx.Client:
    return open_server.client()


def submit(served: Served, *names: str) -> list[str]:
    """The ids of new jobs, which wait in a queue that nobody works on."""
    made = served.services.engine.submit_many(NewJob(name=name, task="m:f", queue="batched") for name in names)
    return [job.job_id for job in made]


def act(client: httpx.Client, verb: str, ids: list[str], **more: Any) -> dict[str, Any]:
    answer = client.post(f"/api/v1/job-batches/{verb}", json={"job_ids": ids, **more})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_each_job_has_its_own_outcome_in_the_order_of_the_request(open_server: Served, client: httpx.Client) -> None:
    first, second = submit(open_server, "first", "second")
    open_server.services.engine.stop(second)
    told = act(client, "cancel", [first, "none", second], message="not wanted")
    assert (told["done"], told["refused"]) == (1, 2)
    done, missing, refused = told["outcomes"]
    assert [each["job_id"] for each in told["outcomes"]] == [first, "none", second]
    assert (done["job"]["status"], done["job"]["message"], done["problem"]) == ("CANCELLED", "not wanted", None)
    assert (missing["job"], missing["problem"]["status"], missing["problem"]["type"]) == (None, 404, "NotFoundError")
    assert (refused["job"], refused["problem"]["status"]) == (None, 409)
    assert "already STOPPED" in refused["problem"]["detail"]


def test_many_are_stopped_retried_and_deleted(open_server: Served, client: httpx.Client) -> None:
    ids = submit(open_server, *map(str, range(3)))
    stopped = act(client, "stop", ids)
    assert {each["job"]["status"] for each in stopped["outcomes"]} == {"STOPPED"}
    retried = act(client, "retry", ids[:1])
    assert retried["outcomes"][0]["job"]["status"] == "PENDING"
    deleted = act(client, "delete", ids)
    assert (deleted["done"], deleted["refused"]) == (2, 1)
    assert [each["problem"] is None for each in deleted["outcomes"]] == [False, True, True]
    assert deleted["outcomes"][0]["count"] is None
    assert deleted["outcomes"][1]["count"] > 1
    assert [client.get(f"/api/v1/jobs/{job_id}").status_code for job_id in ids] == [200, 404, 404]


def test_jobs_under_them_follow_where_they_do_for_one(open_server: Served, client: httpx.Client) -> None:
    jobs = open_server.services.engine
    group = jobs.open_group(NewJob(name="group"))
    child = jobs.submit(NewJob(name="child", task="m:f", queue="batched", parent_job_id=group.job_id))
    refused = act(client, "delete", [group.job_id])
    assert refused["refused"] == 1
    act(client, "cancel", [group.job_id])
    assert jobs.queries.get_job(child.job_id).status == "CANCELLED"
    assert act(client, "delete", [group.job_id])["refused"] == 1, "there is a job under it"
    assert act(client, "delete", [group.job_id], tree=True)["done"] == 1
    assert client.get(f"/api/v1/jobs/{child.job_id}").status_code == 404


def test_what_can_be_no_id_does_not_stop_the_others(open_server: Served, client: httpx.Client) -> None:
    (job_id,) = submit(open_server, "one")
    told = act(client, "cancel", ["", "x" * 3000, "../queues", job_id])
    assert [each["problem"] and each["problem"]["status"] for each in told["outcomes"]] == [400, 400, 404, None]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"job_ids": []},
        {"job_ids": ["x"] * 101},
        {"job_ids": "x"},
        {"job_ids": [1]},
        {"job_ids": ["x"], "reason": "a slip of the pen"},
    ],
)
def test_what_is_no_batch_is_refused_as_a_whole(client: httpx.Client, body: dict[str, Any]) -> None:
    for verb in ("cancel", "stop", "retry", "delete"):
        assert client.post(f"/api/v1/job-batches/{verb}", json=body).status_code == 422, verb


def test_who_may_not_write_acts_on_none(guarded: Served) -> None:
    (job_id,) = submit(guarded, "kept")
    for role in (Role.READ, Role.WORKER):
        answer = guarded.client(role).post("/api/v1/job-batches/cancel", json={"job_ids": [job_id]})
        assert answer.status_code == 403
    assert guarded.services.engine.queries.get_job(job_id).status == "PENDING"
    full = guarded.client(Role.FULL).post("/api/v1/job-batches/cancel", json={"job_ids": [job_id]})
    assert full.json()["outcomes"][0]["job"]["message"] == "cancelled by full"


def test_behind_a_store_that_does_not_answer_no_job_is_tried(
    open_server: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = submit(open_server, *map(str, range(3)))
    queries, tried = open_server.services.engine.queries, list[str]()
    get_job = queries.get_job

    def fail_at_second(job_id: str) -> Job:
        tried.append(job_id)
        if job_id == ids[1]:
            raise BackendUnavailable("no answer")
        return get_job(job_id)

    monkeypatch.setattr(queries, "get_job", fail_at_second)
    told = act(client, "cancel", ids)
    assert (told["done"], told["refused"]) == (1, 2)
    assert [each["problem"] and each["problem"]["status"] for each in told["outcomes"]] == [None, 503, 503]
    assert set(tried) == set(ids[:2])
