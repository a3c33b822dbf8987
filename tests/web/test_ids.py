"""Ids of all kinds: what can be made can be reached, by programs and by people."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import quote

import pytest
from tests.web.conftest import Served

IDS = ["a/b", "/", "a//b/", "../x", "%2F", "a%2Fb", "?x#y", "a b", "grün;&'\"", "\ufdd1"]


@pytest.mark.parametrize("given", IDS)
def test_a_job_and_its_queue_are_reached_whatever_they_are_called(open_server: Served, given: str) -> None:
    client = open_server.client(Accept="text/html")
    new = {"task": "m:f", "name": "odd", "job_id": given, "queue": given}
    assert client.post("/api/v1/jobs", json=new).json()["job_id"] == given
    at, queue = f"/jobs/{quote(given, safe='')}", f"/queues/{quote(given, safe='')}"
    assert client.get(f"/api/v1{at}").json()["job_id"] == given
    assert client.get(f"/api/v1{at}/statuses").json()["items"]
    assert client.get(f"/api/v1{queue}").json()["queue_name"] == given
    assert client.get(f"/api/v1{queue}/jobs").json()["items"]
    for page, links in (("/jobs", "jobs"), ("/queues", "queues"), (at, "queues")):
        found = re.findall(rf'href="(/{links}/[^"?]+)"', client.get(page).text)
        assert f"/{links}/{quote(given, safe='')}" in [html.unescape(link) for link in found], page
    assert client.get(at).status_code == client.get(queue).status_code == 200
    assert client.post(f"/api/v1{at}/cancel").json()["status"] == "CANCELLED"


def test_a_metric_with_a_slash_in_its_name_is_read(open_server: Served) -> None:
    client = open_server.client()
    client.post("/api/v1/jobs", json={"task": "m:f", "name": "measured", "job_id": "measured", "queue": "measured"})
    (lease,) = client.post("/api/v1/queues/measured/claim", json={"instance_id": "w"}).json()
    told = {"instance_id": "w", "epoch": lease["epoch"], "metrics": [{"metric_name": "val/loss", "value": 0.5}]}
    client.post("/api/v1/jobs/measured/metrics", json=told)
    assert client.get("/api/v1/jobs/measured/metrics/val%2Floss").json()["items"][0]["value"] == 0.5


@pytest.mark.parametrize("given", [".", ".."])
@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("/jobs", {"task": "m:f", "name": "x"}, "job_id"),
        ("/jobs", {"task": "m:f", "name": "x"}, "queue"),
        ("/queues", {}, "queue_name"),
        ("/sweeps", {"sweep": {"name": "s", "task": "a:b", "space": {"x": [1]}, "sampler": "grid"}}, "sweep_id"),
        ("/queues/q/claim", {}, "instance_id"),
    ],
)
def test_an_id_that_no_address_can_name_is_refused(
    open_server: Served, path: str, body: dict[str, Any], name: str, given: str
) -> None:
    answer = open_server.client().post(f"/api/v1{path}", json={**body, name: given})
    assert answer.status_code == 400
    assert "choose another id" in answer.text
