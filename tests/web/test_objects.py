"""Objects, handed out: found whatever they are called, as a whole or in parts."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import quote, unquote

import httpx
import pytest
from tests.web.conftest import Served


@pytest.mark.parametrize(
    "name", ["a b.txt", "grün.txt", "100%.txt", "a#b?c;d&e.txt", '"it\'s".txt', "%20.txt", "x/y z.txt"]
)
def test_links_to_what_jobs_keep_lead_there_whatever_its_name(open_server: Served, name: str) -> None:
    client = open_server.client(Accept="text/html")
    job = client.post(
        "/api/v1/jobs",
        json={"task": "m:f", "name": "keeps", "job_id": f"keeps {name.replace('/', '')}", "queue": "keeping"},
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


DATA = bytes(range(256)) * 10_000


@pytest.fixture(scope="module", params=["memory", "file"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server with an object `x/data.bin`, which nobody changes."""
    served = Served() if request.param == "memory" else Served(objects=f"file:{tmp_path_factory.mktemp('objects')}")
    served.services.objects.put("x/data.bin", DATA)
    yield served.client()
    served.stop()


def test_an_object_tells_its_size_and_its_version(client: httpx.Client) -> None:
    whole = client.get("/api/v1/objects/x/data.bin")
    assert whole.content == DATA
    assert whole.headers["content-length"] == str(len(DATA))
    assert whole.headers["accept-ranges"] == "bytes"
    head = client.head("/api/v1/objects/x/data.bin")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(DATA))
    assert head.headers["etag"] == whole.headers["etag"]
    etag = whole.headers["etag"]
    for known in (etag, f'"another", {etag}', f"W/{etag}"):
        again = client.get("/api/v1/objects/x/data.bin", headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b""), known
    assert client.get("/api/v1/objects/x/data.bin", headers={"If-None-Match": '"another"'}).status_code == 200
    assert client.head("/api/v1/objects/x/none").status_code == 404


@pytest.mark.parametrize(
    ("asked", "first", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=1000000-1999999", 1_000_000, 2_000_000),
        ("bytes=2559990-", 2_559_990, 2_560_000),
        ("bytes=2559990-9999999999", 2_559_990, 2_560_000),
        ("bytes=-5", 2_559_995, 2_560_000),
        ("bytes=-9999999", 0, 2_560_000),
    ],
)
def test_a_part_of_an_object_is_read(client: httpx.Client, asked: str, first: int, end: int) -> None:
    part = client.get("/api/v1/objects/x/data.bin", headers={"Range": asked})
    assert part.status_code == 206
    assert part.content == DATA[first:end]
    assert part.headers["content-range"] == f"bytes {first}-{end - 1}/{len(DATA)}"


@pytest.mark.parametrize("asked", ["bytes=2560000-", "bytes=9999999-9999999", "bytes=-0"])
def test_a_part_behind_the_end_is_refused(client: httpx.Client, asked: str) -> None:
    refused = client.get("/api/v1/objects/x/data.bin", headers={"Range": asked})
    assert (refused.status_code, refused.headers["content-range"]) == (416, f"bytes */{len(DATA)}")


@pytest.mark.parametrize(
    "headers",
    [
        {"Range": "bytes=-"},
        {"Range": "bytes=5-2"},
        {"Range": "bytes=0-1,4-5"},
        {"Range": "lines=0-1"},
        {"Range": "bytes=0-1", "If-Range": '"another"'},
    ],
)
def test_what_is_no_part_of_this_object_gets_the_whole(client: httpx.Client, headers: dict[str, str]) -> None:
    whole = client.get("/api/v1/objects/x/data.bin", headers=headers)
    assert (whole.status_code, len(whole.content)) == (200, len(DATA))
