"""The pages, without a browser: what they show, and that texts stay texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from tests.web import workflow_world
from tests.web.conftest import Served
from tests.web.world import MARKUP, World, make_world, parts, paths

from jobtable.access.entities import Role
from jobtable.jobs.read.listing import JobFilter, list_jobs
from jobtable.jobs.submit.definition import NewJob
from jobtable.web.api.examples import BODIES
from jobtable.web.guard import READ, WRITE, rule_of
from jobtable.web.pages import jobs
from jobtable.web.pages.frame import navigation
from jobtable.web.static_files import static_files, static_url


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def served(world: World) -> Iterator[Served]:
    server = Served(store=world.url)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def browser(served: Served) -> httpx.Client:
    return served.client(Accept="text/html")


def test_every_page_is_in_the_list(world: World, served: Served) -> None:
    shown = [path.partition("?")[0] for path in paths(world)]
    for route in iter_route_contexts(served.app.routes):
        path = str(route.path)
        is_shown = "GET" in (route.methods or ()) and rule_of(route.endpoint) in (READ, WRITE)
        if is_shown and not path.startswith(("/api/", "/metrics", "/docs")):  # test_docs.py looks at the last
            assert any(route.path_regex.fullmatch(each) for each in shown), path
    assert {entry.path for entry in navigation()} <= set(shown)


def test_only_those_who_may_do_everything_see_tokens(tmp_path: Path) -> None:
    server = Served(store=f"file:{tmp_path / 'tokens.db'}", require_token=True)
    full = server.client(Role.FULL, Accept="text/html")
    assert 'href="/tokens"' in full.get("/").text
    shown = full.get("/tokens").text
    assert shown.count("data-act=") == 1
    assert "secret" not in re.sub(r"data-secret|class=.secret", "", shown)
    looking = server.client(Role.READ, Accept="text/html")
    assert 'href="/tokens"' not in looking.get("/").text
    assert looking.get("/tokens").status_code == 403
    server.stop()


@pytest.mark.parametrize(
    ("path", "entry"), [("/submit", "Jobs"), ("/queues", "Queues &amp; workers"), ("/", "Overview")]
)
def test_the_menu_says_where_a_page_is(browser: httpx.Client, path: str, entry: str) -> None:
    (here,) = re.findall(r'aria-current="page">.*?<span>(.*?)</span>', browser.get(path).text, re.DOTALL)
    assert here == entry


def test_only_those_who_may_submit_are_offered_to(world: World) -> None:
    server = Served(store=world.url, require_token=True)
    full, looking = (server.client(role, Accept="text/html") for role in (Role.FULL, Role.READ))
    for path in ("/jobs", f"/jobs/{world.completed_job}"):
        assert 'href="/submit' in full.get(path).text
        assert 'href="/submit' not in looking.get(path).text
    assert (full.get("/submit").status_code, looking.get("/submit").status_code) == (200, 403)
    server.stop()


def test_a_job_that_does_nothing_by_itself_is_not_submitted_again(world: World, browser: httpx.Client) -> None:
    assert 'href="/submit' not in browser.get(f"/jobs/{world.group}").text
    refused = browser.get("/submit", params={"like": world.group})
    assert refused.status_code == 409
    assert "it is a group" in refused.text
    assert browser.get("/submit", params={"like": "none"}).status_code == 404


def test_a_job_that_a_system_has_made_leads_to_what_it_is_part_of(
    world: World, served: Served, browser: httpx.Client
) -> None:
    found: dict[str, set[str | None]] = {}
    for job in list_jobs(served.services.store, JobFilter(), cursor=None, limit=1000).items:
        shown = browser.get(f"/jobs/{job.job_id}").text
        owner = re.search('Part of</dt><dd><a href="(.+?)">', shown)
        found.setdefault(job.job_type, set()).add(owner[1] if owner else None)
    owned = {kind: pages for part in parts() for kind, pages in part.owners(world.made).items()}
    durable = {f"/workflows/durable/{workflow_world.FUNCTION}/waits-for-an-answer"}
    expected = {"job": {None}, **owned, "durable execution": durable | owned.get("durable execution", set())}
    assert found == expected


def test_markup_in_data_is_shown_as_text_everywhere(world: World, browser: httpx.Client) -> None:
    seen = 0
    for path in paths(world):
        page = browser.get(path)
        assert page.status_code == 200, path
        assert MARKUP not in page.text, path
        assert "<img src=x" not in page.text, path
        seen += "&lt;img src=x" in page.text
        # All scripts are files of the package, or data that is not run.
        for script in re.findall(r"<script[^>]*>", page.text):
            assert 'src="/static/' in script or 'type="application/json"' in script, script
        assert " style=" not in page.text, path
        assert not re.search(r"\son\w+=[\"']", page.text), path
    assert seen >= 12


def test_every_page_has_a_head(world: World, browser: httpx.Client) -> None:
    for path in (*paths(world), "/login", "/healthz", "/metrics", static_url("app.js")):
        head = browser.head(path)
        assert (head.status_code, head.content) == (200, b""), path
    assert browser.head("/jobs/none").status_code == 404


def test_a_name_that_would_leave_its_place_does_not(served: Served, browser: httpx.Client) -> None:
    hostile = "</script><script>alert(1)</script>\"' onload=x"
    job = (
        served.client()
        .post("/api/v1/jobs", json={"task": "m:f", "name": hostile, "tags": [hostile], "queue": hostile})
        .json()
    )
    for path in ("/jobs", f"/jobs/{job['job_id']}", "/queues", "/"):
        page = browser.get(path)
        assert "<script>alert" not in page.text
        assert "&lt;/script&gt;" in page.text or path == "/", path


def test_the_list_of_jobs_filters_and_pages(world: World, served: Served, browser: httpx.Client) -> None:
    failed = browser.get("/jobs", params={"status": "FAILED"}).text
    assert world.failed_job in failed
    assert world.completed_job not in failed
    assert world.completed_job in browser.get("/jobs", params={"tag": "nightly", "queue": "gpu", "user": "ada"}).text
    assert "No jobs match" in browser.get("/jobs", params={"text": "there is none"}).text
    new = [{"task": "m:f", "name": f"many {number}", "queue": "paused"} for number in range(120)]
    served.client().post("/api/v1/job-batches", json=new)
    found: list[str] = []
    path: str | None = "/jobs?text=many"
    while path:
        page = browser.get(path).text
        found += re.findall(r">(many \d+)</a>", page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        path = following[1].replace("&amp;", "&") if following else None
    assert found == [f"many {number}" for number in reversed(range(120))]


def listed(browser: httpx.Client, **asked: str) -> list[str]:
    """The names of the jobs that the list finds."""
    return re.findall(r'<a class="job-link"[^>]*>([^<]+)</a>', browser.get("/jobs", params=asked).text)


def test_jobs_are_found_by_their_task_and_by_parts_of_their_parameters(served: Served, browser: httpx.Client) -> None:
    engine = served.services.engine
    params = [{"rate": 0.05, "source": "s3://Bucket/a"}, {"rate": 0.5, "layers": [64, 32]}, {}]
    for number, given in enumerate(params):
        engine.submit(NewJob(name=f"found {number}", task="looked.up:for", params=given, queue="found"))
    other = engine.submit(NewJob(name="found not", task="looked.up:for_not", queue="found"))
    assert listed(browser, task="looked.up:for") == ["found 2", "found 1", "found 0"]
    assert listed(browser, text="UP:FOR_NOT") == ["found not"]
    assert listed(browser, text="rate=0.05") == ["found 0"]
    assert listed(browser, text="rate=0.5") == ["found 1"]
    assert listed(browser, text="bucket/A", queue="found") == ["found 0"]
    assert listed(browser, text="layers=[64, 32]") == ["found 1"]
    assert listed(browser, text="rate=", task="looked.up:for_not") == []
    assert 'href="/jobs?task=looked.up%3Afor_not"' in browser.get(f"/jobs/{other.job_id}").text
    assert 'name="task" value="looked.up:for"' in browser.get("/jobs", params={"task": "looked.up:for"}).text


def test_the_list_says_why_jobs_failed(world: World, browser: httpx.Client) -> None:
    row = browser.get("/jobs", params={"status": "FAILED"}).text.partition(f'data-job="{world.failed_job}"')[2]
    said = re.search(r'data-cell="message"[^>]*>([^<]+)<', row.partition("</tr>")[0])
    assert said is not None
    assert said[1].startswith("RuntimeError: &lt;img")
    completed = browser.get("/jobs", params={"status": "COMPLETED"}).text
    assert not re.search(r'data-cell="message"[^>]*>[^<]', completed), "what a job said last is no result"


def test_a_status_in_an_address_is_understood_or_refused(world: World, browser: httpx.Client) -> None:
    failed = browser.get("/jobs", params={"status": "failed"}).text
    assert world.failed_job in failed
    assert world.completed_job not in failed
    assert re.search(r'<option[^>]*value="FAILED"[^>]* selected', failed)
    unknown = browser.get("/jobs", params={"status": "BOGUS"})
    assert unknown.status_code == 400
    assert "unknown status &#39;BOGUS&#39;; must be one of PENDING, RUNNING" in unknown.text


@pytest.mark.parametrize(
    "path",
    ["/jobs/none", "/nowhere", "/queues/none", "/tables/none", *(path for part in parts() for path in part.MISSING)],
)
def test_what_is_not_there_is_a_page_that_says_so(browser: httpx.Client, path: str) -> None:
    page = browser.get(path)
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert f'<a class="button" href="{path.rpartition("/")[0] or "/"}">' in page.text


@pytest.mark.parametrize(
    ("path", "nearest"),
    [("/jobs?status=BOGUS", "/jobs"), ("/workers/none", "/queues"), ("/submit?like=none", "/jobs"), ("/", "/")],
)
def test_an_error_leads_to_the_nearest_page(browser: httpx.Client, path: str, nearest: str) -> None:
    page = browser.get(path) if path != "/" else browser.post(path)
    assert page.status_code >= 400
    assert f'<a class="button" href="{nearest}">' in page.text


def test_of_very_many_dependencies_the_first_are_listed(
    world: World, browser: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_MOST_EDGES", 2)
    waits_for = browser.get(f"/jobs/{world.group}").text.partition("<h2>Dependencies")[2].partition("</section>")[0]
    assert waits_for.count("<li>") == 2
    assert "first 2" in waits_for


@pytest.mark.parametrize("path", ["/jobs?cursor=x", "/queues?cursor=x", "/tables/jobtable?partition=a&cursor=x"])
def test_a_foreign_cursor_is_no_server_error(browser: httpx.Client, path: str) -> None:
    assert browser.get(path).status_code == 400


def test_the_second_page_of_a_queue_leads_back_to_the_first_though_it_is_empty(
    served: Served, browser: httpx.Client
) -> None:
    engine = served.services.engine
    for number in range(51):
        engine.submit(NewJob(name=f"ready {number}", task="a:b", queue="ready"))
    following = re.search('rel="next" href="([^"]+)"', browser.get("/queues/ready").text)
    assert following is not None
    for left in (1, 0):
        page = browser.get(following[1]).text
        assert page.count("ready 50") == 2 * left, "as a text and as a title"
        assert '<a class="button" href="/queues/ready">First page</a>' in page
        engine.claim("ready", limit=51, instance_id="w", lease_seconds=60)


def test_all_jobs_under_a_job_can_be_seen(world: World, browser: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_MOST_CHILDREN", 2)
    address, seen, listed = f"/jobs/{world.group}", [], ""
    while address:
        listed = browser.get(address).text.partition('id="children"')[2].partition("</section>")[0]
        seen += re.findall("child [0-9]</a>", listed)
        following = re.search('rel="next" href="([^"]+)"', listed)
        address = following[1] if following else ""
    assert seen == [f"child {number}</a>" for number in range(3)]
    assert f'href="/jobs/{world.group}#children">First page' in listed


def test_a_worker_that_has_not_registered_is_named_and_not_linked(served: Served, browser: httpx.Client) -> None:
    engine = served.services.engine
    for number in range(2):
        engine.submit(NewJob(name="x", task="a:b", queue="afar", job_id=f"afar {number}"))
    engine.claim("afar", limit=2, instance_id="somebody else", lease_seconds=60)
    pages = ("/", "/jobs/afar%200", "/compare?id=afar%200&id=afar%201")
    for page in pages:
        shown = browser.get(page).text
        assert "somebody else" in shown
        assert "/workers/somebody" not in shown, page
    registered = served.client().put("/api/v1/instances/somebody%20else", json=BODIES["register_instance"])
    assert registered.is_success
    for page in pages:
        assert 'href="/workers/somebody%20else"' in browser.get(page).text, page


def test_empty_pages_say_what_to_do(tmp_path: Path) -> None:
    server = Served(store=f"file:{tmp_path / 'empty.db'}")
    client = server.client(Accept="text/html")
    for entry in navigation():
        page = client.get(entry.path)
        assert page.status_code == 200
        if entry.path != "/tables":
            assert 'class="empty"' in page.text, entry.path
    server.stop()


def test_static_files_are_kept_for_good_and_nothing_else_is_served(browser: httpx.Client) -> None:
    for name in static_files():
        answer = browser.get(static_url(name))
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["content-encoding"] == "gzip"
        again = browser.get(static_url(name), headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    assert browser.get("/static/old/style.css").headers["cache-control"] == "no-cache"
    for path in ("/static/x/..%2fserver.py", "/static/x/server.py", "/static/x/none"):
        assert browser.get(path).status_code == 404
