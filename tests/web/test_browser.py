"""The pages in a real browser: nothing breaks, nothing leaves the machine, everyone can use them, and they act."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # published without types
from playwright.sync_api import Browser, Route, expect
from tests.web.browsing import Watched, check_without_scripts, open_live, wait_until_told, watch
from tests.web.conftest import Served
from tests.web.world import World, make_world, parts, paths

from jobtable.access.entities import Role
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import DependsOn, NewJob

HIDDEN = "[...document.querySelectorAll('.scroll')].map(each => each.scrollWidth - each.clientWidth)"
"""How much of each table has to be scrolled to."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def served(world: World) -> Iterator[Served]:
    server = Served(store=world.url)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the pages are kept: the folder that JOBTABLE_SCREENSHOTS names, or one of pytest's."""
    named = os.environ.get("JOBTABLE_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def watched(browser: Browser, served: Served) -> Iterator[Watched]:
    yield from watch(browser, served)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1920])
def test_every_page_is_clean_and_has_its_picture_taken(
    browser: Browser, served: Served, world: World, width: int, scheme: str, pictures: Path
) -> None:
    shown = Watched(browser, served, width, scheme)
    axe = Axe()
    for path in paths(world):
        shown.page.goto(path)
        shown.page.wait_for_load_state("load")
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width, path
        if (width, scheme) in ((1920, "light"), (360, "dark")):  # each width and each theme once
            found = axe.run(shown.page, options={"resultTypes": ["violations"]})
            assert found.violations_count == 0, f"{path}: {found.generate_report()}"
        assert shown.complaints == [], path
        name = path.partition("?")[0].strip("/").replace("/", "-") or "overview"
        shown.page.screenshot(path=pictures / f"{name}-{width}-{scheme}.png", full_page=True)
    shown.close()


@pytest.mark.parametrize("width", [390, 600, 720, 900, 1024, 1280])
def test_tables_are_not_cut(browser: Browser, served: Served, world: World, width: int) -> None:
    shown = Watched(browser, served, width)
    for path in (
        "/",
        "/jobs",
        f"/jobs/{world.completed_job}",
        f"/jobs/{world.group}",
        "/queues",
        "/tables",
        "/tokens",
        *(path for part in parts() for path in part.tables(world.made)),
    ):
        shown.page.goto(path)
        assert max(shown.page.evaluate(HIDDEN), default=0) <= 0, path
    shown.close()


def test_names_of_any_length_keep_the_pages_in_shape(browser: Browser, served: Served, world: World) -> None:
    new = {"task": "m:f", "name": "long " * 40, "queue": "shape" * 15, "tags": ["a-very-long-tag-" * 4]}
    job = served.client().post("/api/v1/jobs", json=new).json()
    small, usual = Watched(browser, served, 390), Watched(browser, served)
    small.page.goto(f"/jobs/{job['job_id']}")
    assert small.page.evaluate("document.documentElement.scrollWidth") <= 390
    usual.page.goto(f"/jobs?queue={new['queue']}")
    assert usual.page.locator("tbody tr").evaluate("row => row.clientHeight") < 100
    usual.page.goto("/")
    assert usual.page.locator(".queue-name", has_text="shapeshape").count() == 1
    assert max(usual.page.evaluate(HIDDEN)) <= 0
    for shown in (small, usual):
        shown.close()


def test_without_scripts_nothing_is_offered_that_needs_them(browser: Browser, served: Served, world: World) -> None:
    check_without_scripts(browser, served, "/jobs", f"/jobs/{world.completed_job}", "/queues")


def test_jobs_are_filtered(watched: Watched, world: World) -> None:
    page = watched.page
    page.goto("/jobs")
    page.get_by_label("Status").select_option("FAILED")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**status=FAILED**")
    assert page.locator(f'tr[data-job="{world.failed_job}"]').count() == 1
    assert page.locator(f'tr[data-job="{world.completed_job}"]').count() == 0


def test_the_filters_say_what_is_listed_when_one_goes_back(watched: Watched) -> None:
    page = watched.page
    page.goto("/jobs")
    page.get_by_label("Status").select_option("FAILED")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**status=FAILED**")
    page.go_back()
    page.wait_for_url("**/jobs")
    assert page.get_by_label("Status").input_value() == ""
    page.go_forward()
    page.wait_for_url("**status=FAILED**")
    assert page.get_by_label("Status").input_value() == "FAILED"


def test_a_log_is_followed_live_and_filtered(watched: Watched, served: Served) -> None:
    client = served.client()
    job = client.post("/api/v1/jobs", json={"task": "m:f", "name": "live", "queue": "live"}).json()
    (lease,) = client.post("/api/v1/queues/live/claim", json={"instance_id": "w"}).json()
    held = {"instance_id": "w", "epoch": lease["epoch"]}
    page = watched.page
    page.goto(f"/jobs/{job['job_id']}")
    page.locator('[data-live-state][data-state="live"]').wait_for()
    for number, level in enumerate(("INFO", "ERROR")):
        line = {"message": f"line {number} <b>x</b>", "level": level}
        client.post(f"/api/v1/jobs/{job['job_id']}/logs", json={**held, "lines": [line]})
    page.get_by_text("line 1 <b>x</b>").wait_for()
    assert page.locator(".line-text b").count() == 0
    page.get_by_label("Level").select_option(label="error and up")
    assert not page.get_by_text("line 0 <b>x</b>").is_visible()
    client.post(f"/api/v1/jobs/{job['job_id']}/metrics", json={**held, "metrics": [{"metric_name": "m", "value": 1}]})
    page.get_by_role("heading", name="Metrics").wait_for()
    client.post(f"/api/v1/jobs/{job['job_id']}/report", json={**held, "progress": 42, "message": "half way"})
    page.get_by_text("half way").first.wait_for()
    client.post(f"/api/v1/jobs/{job['job_id']}/finish", json={**held, "kind": "completed"})
    page.locator(".head-status .badge-completed").wait_for()


def test_a_job_tells_how_long_it_runs_and_when_it_may_end(watched: Watched, served: Served) -> None:
    page, jobs = watched.page, served.services.engine
    job = jobs.submit(NewJob(name="long", task="a:b", queue="long"))
    (lease,) = jobs.claim("long", limit=1, instance_id="w", lease_seconds=60)
    jobs.store.update(Job.key(job_id=job.job_id), Job.started_at.set(job.created_at - timedelta(minutes=65)))
    page.goto(f"/jobs/{job.job_id}")
    page.locator('[data-live-state][data-state="live"]').wait_for()
    elapsed, estimated = (
        page.locator("[data-elapsed]"),
        page.locator("[data-region=summary] div", has_text="Estimated end"),
    )
    elapsed.get_by_text(re.compile(r"^1 h \d+ min$")).wait_for()
    assert estimated.count() == 0
    jobs.report(lease, progress=25)
    estimated.get_by_text("in 3 h").wait_for()
    jobs.finish(lease, Outcome.completed())
    elapsed.wait_for(state="detached")
    assert estimated.count() == 0


def test_the_whole_log_is_searched_and_not_only_what_is_shown(watched: Watched, served: Served) -> None:
    page, jobs = watched.page, served.services.engine
    job = jobs.submit(NewJob(name="talks", task="a:b", queue="talks"))
    (lease,) = jobs.claim("talks", limit=1, instance_id="w", lease_seconds=60)
    with JobContext(jobs, lease) as context:
        for number in range(450):
            context.log(f"Needle <b>{number}</b>" if number < 120 else "hay", "ERROR" if number == 0 else "INFO")
    page.goto(f"/jobs/{job.job_id}")
    field, found = page.get_by_label("Search the log"), page.locator("[data-found] .line")
    field.fill("needle")
    page.get_by_text("No match in the last 300 lines. Press Enter to search the whole log.").wait_for()
    field.press("Enter")
    page.get_by_text("100 lines in the whole log so far.").wait_for()
    assert found.first.locator("mark").all_inner_texts() == ["Needle"]
    assert "Needle <b>0</b>" in found.first.inner_text()
    page.get_by_role("button", name="Show more").click()
    page.get_by_text("120 lines in the whole log.").wait_for()
    assert not page.get_by_role("button", name="Show more").is_visible()
    page.get_by_role("button", name="Back to the log").click()
    page.get_by_text("No match in the last 300 lines.").wait_for()
    with closing(jobs.recording.log_text(lease)) as text:
        text.append(b"\n" * 20_000 + b"printed, and left out of the table\n")
        text.finish()
    field.fill("LEFT OUT")
    page.get_by_role("button", name="Search whole log").click()
    page.get_by_text("1 line in the whole log.").wait_for()
    assert found.locator(".line-place, .line-level").all_inner_texts() == ["line 20001", "run 1"]
    field.fill("")
    assert not found.first.is_visible()


def test_the_list_of_jobs_and_the_overview_are_live(watched: Watched, served: Served, world: World) -> None:
    page, client = watched.page, served.client()
    with page.expect_response(lambda answer: answer.request.resource_type == "fetch"):  # what is live is read again
        page.goto("/jobs")
    page.locator('[data-live-state][data-state="live"]').wait_for()
    client.post("/api/v1/jobs", json={"task": "m:f", "name": "one more", "queue": "quiet"})
    page.get_by_role("link", name="Show 1 new").click()
    page.locator("tr", has_text="one more").wait_for()
    client.post(f"/api/v1/jobs/{world.waiting_job}/cancel")
    page.locator(f'tr[data-job="{world.waiting_job}"] .badge-cancelled').wait_for()
    page.goto("/")
    page.locator('[data-live-state][data-state="live"]').wait_for()
    client.post("/api/v1/jobs", json={"task": "m:f", "name": "runs now", "queue": "busy"})
    client.post("/api/v1/queues/busy/claim", json={"instance_id": "w"})
    page.get_by_role("link", name="runs now").wait_for()


def test_a_job_is_retried_and_several_are_cancelled(watched: Watched, served: Served, world: World) -> None:
    page = watched.page
    page.goto(f"/jobs/{world.failed_job}")
    page.get_by_role("button", name="Retry").click()
    page.locator(".head-status .badge-pending").wait_for()
    made = [
        served.client().post("/api/v1/jobs", json={"task": "m:f", "name": f"many {n}", "queue": "quiet"}).json()
        for n in range(3)
    ]
    page.goto("/jobs?text=many")
    page.get_by_label("Select all jobs on this page").check()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel").click()
    wait_until_told(page, "3 done")
    assert {served.services.engine.queries.get_job(each["job_id"]).status for each in made} == {"CANCELLED"}


def test_jobs_are_chosen_and_compared(watched: Watched, served: Served, world: World) -> None:
    page, client = watched.page, served.client()
    for number in range(3):
        new = {"task": "m:f", "name": f"alike {number}", "queue": "quiet", "params": {"x": number, "y": 1}}
        client.post("/api/v1/jobs", json=new)
    page.goto("/jobs?text=alike")
    compare = page.get_by_role("link", name="Compare")
    page.get_by_label("Select alike 0").check()
    assert not compare.is_visible(), "there is nothing to compare it with"
    page.get_by_label("Select alike 2").check()
    compare.click()
    page.wait_for_url("**/compare?id=*")
    assert [row.split() for row in page.locator("tr.differs").all_inner_texts()] == [["x", "2", "0"]]


def test_a_job_is_submitted_and_submitted_again_with_changes(watched: Watched, served: Served) -> None:
    page, queries = watched.page, served.services.engine.queries
    page.goto("/jobs")
    page.get_by_role("link", name="Submit a job").click()
    page.get_by_label("Task").fill("training.tasks:train")
    page.get_by_label("Queue").fill("quiet")
    page.get_by_label("Attempts").fill("3")
    page.get_by_label("Timeout").fill("90.5")
    page.get_by_label("Parameters").fill('{"seed": 12345678901234567890, "rate": 1.0}')
    page.get_by_text("More options", exact=True).click()
    page.get_by_label("Tags").fill("nightly, late\n\nbig")
    page.get_by_label("First retry delay").fill("7")
    page.get_by_label("More configuration").fill('{"keep_checkpoints": 2}')
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/jobs/*")
    first = queries.get_job(page.url.rpartition("/")[2])
    assert (first.name, first.queue_name, first.priority, first.max_attempts) == ("train", "quiet", 500, 3)
    assert first.tags == {"nightly, late", "big"}
    assert first.job_config == {
        "task": "training.tasks:train",
        "params": {"seed": 12345678901234567890, "rate": 1.0},
        "timeout_seconds": 90.5,
        "retry": {"first_delay_seconds": 7.0},
        "keep_checkpoints": 2,
    }
    page.get_by_role("link", name="Submit again").click()
    page.get_by_label("Name").fill("once more")
    page.get_by_label("Priority").fill("900")
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("heading", name="once more").wait_for()
    second = queries.get_job(page.url.rpartition("/")[2])
    assert (second.job_config, second.tags, second.priority) == (first.job_config, first.tags, 900)


def test_what_is_wrong_with_a_new_job_is_told_beside_its_fields(watched: Watched, served: Served) -> None:
    page = watched.page
    page.goto("/submit")
    page.get_by_label("Task").fill("train")
    page.get_by_label("Priority").fill("1000")
    page.get_by_label("Parameters").fill('{"rate": 1,}')
    page.get_by_role("button", name="Submit").click()
    task, priority, params = (page.locator(f'[data-field="{name}"]') for name in ("task", "priority", "params"))
    task.get_by_text("Enter module:function").wait_for()
    assert page.evaluate("document.activeElement.name") == "task"
    assert "999" in priority.inner_text()
    assert "Invalid JSON:" in params.inner_text()
    page.get_by_label("Task").fill("a:b")
    assert task.locator(".problem").count() == 0
    page.get_by_label("Priority").fill("1")
    page.get_by_label("Parameters").fill("[1]")
    page.get_by_role("button", name="Submit").click()
    params.get_by_text("Enter an object").wait_for()
    page.get_by_label("Parameters").fill("{}")
    page.get_by_label("Queue").fill("..")
    page.get_by_role("button", name="Submit").click()
    page.locator('[data-field="queue"]').get_by_text("cannot be used in a URL").wait_for()
    assert watched.complaints == ["Failed to load resource: the server responded with a status of 400 (Bad Request)"]
    watched.complaints.clear()


def test_a_job_whose_answer_was_lost_is_submitted_once(watched: Watched, served: Served) -> None:
    page, queries = watched.page, served.services.engine.queries
    page.goto("/submit")
    page.get_by_label("Task").fill("a:b")
    page.get_by_label("Name").fill("only once")
    page.get_by_label("Queue").fill("quiet")

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/api/v1/jobs", lose, times=1)
    page.get_by_role("button", name="Submit").click()
    page.get_by_text("The server does not respond.").wait_for()
    watched.complaints.clear()
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("heading", name="only once").wait_for()
    assert [job.name for job in queries.list_jobs_by_user("local")].count("only once") == 1


def test_a_job_tells_why_it_waits_as_long_as_it_does(watched: Watched, served: Served) -> None:
    page, client, jobs = watched.page, served.client(), served.services.engine
    first = jobs.submit(NewJob(name="goes first", task="a:b", queue="waits"))
    job = jobs.submit(NewJob(name="waits", task="a:b", queue="waits", depends_on=(DependsOn(first.job_id),)))
    client.post("/api/v1/queues/waits/pause")
    page.goto(f"/jobs/{job.job_id}")
    page.locator('[data-live-state][data-state="live"]').wait_for()
    waits = page.locator("[data-waits]")
    assert waits.get_by_role("link", name="goes first").get_attribute("href") == f"/jobs/{first.job_id}"
    waits.get_by_text("The queue waits is paused").wait_for()
    client.post("/api/v1/queues/waits/resume")
    waits.get_by_text("The queue waits is paused").wait_for(state="detached")
    (lease,) = jobs.claim("waits", limit=1, instance_id="w", lease_seconds=60)
    jobs.finish(lease, Outcome.completed())
    waits.get_by_text("Its start waits for 1 job").wait_for(state="detached")
    client.post("/api/v1/queues/waits/claim", json={"instance_id": "w"})
    waits.wait_for(state="detached")


def test_a_time_is_told_by_the_own_clock_as_well(browser: Browser, served: Served, world: World) -> None:
    context = browser.new_context(base_url=served.url, timezone_id="Asia/Tokyo", locale="en-GB")
    page = context.new_page()
    page.goto(f"/jobs/{world.completed_job}")
    time = page.locator("[data-region=summary] time").first
    exact = datetime.fromisoformat(time.get_attribute("datetime") or "")
    assert time.get_attribute("title") == time.get_attribute("datetime")
    time.hover()
    here, utc = (time.get_attribute("title") or "").split("\n")
    assert f"{exact.astimezone(ZoneInfo('Asia/Tokyo')):%H:%M:%S} GMT+9" in here
    assert datetime.fromisoformat(utc) == exact
    context.close()


def test_an_ended_job_is_deleted(watched: Watched, served: Served) -> None:
    client, page = served.client(), watched.page
    job = client.post("/api/v1/jobs", json={"task": "m:f", "name": "not wanted", "queue": "quiet"}).json()
    client.post(f"/api/v1/jobs/{job['job_id']}/cancel")
    with page.expect_response("**/logs?**"):
        open_live(page, f"/jobs/{job['job_id']}")
    page.on("dialog", lambda dialog: dialog.accept())
    visits: list[Route] = []

    def hold(route: Route) -> None:
        """Until the answer to the button and the live event have both told that the job is gone."""
        visits.append(route)

    page.route("**/jobs", hold)
    page.get_by_role("button", name="Delete").click(no_wait_after=True)  # it would wait for the visit that is held
    while not visits:
        page.wait_for_timeout(50)
    page.wait_for_timeout(2_000)
    assert len(visits) == 1
    visits[0].continue_()
    page.wait_for_url("**/jobs")
    assert client.get(f"/api/v1/jobs/{job['job_id']}").status_code == 404


def test_a_queue_is_paused_and_resumed(watched: Watched) -> None:
    page = watched.page
    page.goto("/queues/gpu")
    page.get_by_role("button", name="Pause").click()
    page.locator(".head-status .badge-paused").wait_for()
    page.get_by_role("button", name="Resume").click()
    page.locator(".head-status :is(.badge-open, .badge-no-worker)").wait_for()  # other tests leave jobs that wait in it


def test_a_queue_is_deleted_only_if_it_is_empty(watched: Watched, served: Served) -> None:
    page, jobs = watched.page, served.services.engine
    job = jobs.submit(NewJob(name="stays", task="a:b", queue="short-lived"))
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/queues/short-lived")
    page.get_by_role("button", name="Delete").click()
    wait_until_told(page, "queue short-lived cannot be deleted: 1 job waits or runs in it")
    watched.complaints.clear()
    jobs.cancel(job.job_id)
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/queues")
    assert page.get_by_role("link", name="short-lived").count() == 0


def test_the_settings_of_a_queue_and_the_priority_of_a_job_are_changed(watched: Watched, served: Served) -> None:
    page = watched.page
    page.goto("/queues/gpu")
    page.get_by_text("Settings").click()
    page.get_by_label("Maximum running").fill("7")
    page.get_by_label("Description").fill("big machines")
    page.get_by_role("button", name="Save").click()
    page.locator("[data-region=numbers]", has_text="big machines").wait_for()
    queue = served.services.engine.queries.get_queue("gpu")
    assert (queue.max_concurrent_jobs, queue.priority) == (7, 500)
    job = served.services.engine.submit(NewJob(name="waits long", task="a:b", queue="paused"))
    page.goto(f"/jobs/{job.job_id}")
    page.get_by_label("Priority").fill("900")
    page.get_by_role("button", name="Change").click()
    page.locator("[data-region=summary] dd", has_text=re.compile("^900$")).wait_for()
    assert served.services.engine.queries.get_job(job.job_id).priority == 900


def test_a_token_is_made_shown_once_and_revoked(watched: Watched, served: Served) -> None:
    page = watched.page
    page.goto("/tokens")
    page.get_by_label("Name").fill("a dashboard")
    page.get_by_label("Expires").select_option("7")
    page.get_by_role("button", name="Create token").click()
    row = page.locator("tr", has_text="a dashboard")
    row.wait_for()
    text = page.locator("[data-secret-text]").inner_text()
    made = served.services.tokens.find_valid(text)
    assert made is not None
    assert made.role is Role.READ
    assert made.expires_at is not None
    assert (made.expires_at - made.created_at).days == 7
    page.reload()
    assert text not in page.content()
    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Revoke").click()
    row.locator(".badge-revoked").wait_for()
    assert served.services.tokens.find_valid(text) is None


def test_the_theme_is_switched_and_kept(watched: Watched) -> None:
    page = watched.page
    page.goto("/")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.locator("[data-theme-switch]").click()
    page.locator("[data-theme-switch]").click()
    assert page.evaluate(ground) != light
    page.goto("/jobs")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_what_scrolls_can_be_scrolled_by_the_keyboard(watched: Watched, served: Served) -> None:
    page, jobs = watched.page, served.services.engine
    params = {f"parameter {number}": number for number in range(60)}
    job = jobs.submit(NewJob(name="much to tell", task="m:f", queue="scrolled", params=params))
    (lease,) = jobs.claim("scrolled", limit=1, instance_id="w", lease_seconds=60)
    for percent in range(40):
        jobs.report(lease, progress=percent)
    page.goto(f"/jobs/{job.job_id}")
    for place in (".timeline", ".settings"):
        assert page.locator(place).evaluate("each => each.scrollHeight > each.clientHeight"), place
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()


def test_the_keyboard_is_enough(watched: Watched) -> None:
    page = watched.page
    page.goto("/jobs")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
