"""Objects, handed out: found whatever they are called."""

from __future__ import annotations

import html
import re
from urllib.parse import quote, unquote

import pytest
from tests.web.conftest import Served


@pytest.mark.parametrize(
    "name", ["a b.txt", "grün.txt", "100%.txt", "a#b?c;d&e.txt", '"it\'s".txt', "%20.txt", "x/y z.txt"]
)
def test_links_to_what_jobs_keep_lead_there_whatever_its_name(open_server: Served, name: str) -> None:
    client = open_server.client(Accept="text/html")
    job = client.post(
        "/api/v1/jobs", json={"name": "keeps", "job_id": f"keeps {name.replace('/', '')}", "queue": "keeping"}
    ).json()
    at = f"/jobs/{quote(job['job_id'], safe='')}"
    (lease,) = client.post("/api/v1/queues/keeping/claim", json={"instance_id": "w"}).json()
    held = {"instance_id": "w", "epoch": lease["epoch"]}
    kept = client.put(f"/api/v1{at}/artifacts/{quote(name)}", params=held, content=b"kept")
    assert kept.status_code == 200, kept.text
    assert client.post(f"/api/v1{at}/checkpoints", params={**held, "step": 1}, content=b"kept").status_code == 200
    assert client.put(f"/api/v1{at}/log-text", params=held, content=b"kept").status_code < 300
    links = [html.unescape(link) for link in re.findall(r'href="(/api/v1/objects/[^"]+)"', client.get(at).text)]
    assert len(links) == 3
    for link in links:
        answer = client.get(link)
        assert (answer.status_code, answer.content) == (200, b"kept"), link
    saved = client.get(links[-1]).headers["content-disposition"].partition("filename*=UTF-8''")[2]
    assert unquote(saved) == name.rpartition("/")[2]
