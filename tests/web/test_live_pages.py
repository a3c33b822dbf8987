"""Pages that are looked at while things happen: they follow, lose nothing, and stay where the person is."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import APIResponse, Browser, Dialog, Page, Route, expect
from tests.running import run_jobs
from tests.web.browsing import (
    LIVE,
    LONGEST_MILLISECONDS,
    Run,
    Watched,
    open_live,
    told_on,
    wait_for_viewers,
    wait_until_told,
    watch,
)
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.testing.servers import free_port

NO_SHARED_WORKER = "delete window.SharedWorker"
LONG = "q" * 200


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    server = Served()
    yield server
    server.stop()


@pytest.fixture
def watched(browser: Browser, served: Served) -> Iterator[Watched]:
    yield from watch(browser, served)


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    """A page on which something goes wrong."""
    shown = Watched(browser, served)
    yield shown.page
    shown.close()


def wait_for_lines(page: Page, count: int) -> None:
    """Wait until the lines 0, 1, 2, ... are there, each once: what is read may come after what is told."""
    numbers = "[...document.querySelectorAll('.line-text')].map((line) => line.textContent.split(' ')[1]).join()"
    page.wait_for_function(f"told => {numbers} === told", arg=",".join(map(str, range(count))))


# --- one stream ------------------------------------------------------------------------------------------------------


def test_many_tabs_share_one_stream_and_each_is_told_what_it_shows(browser: Browser, served: Served) -> None:
    run = Run(served, "shared")
    context = browser.new_context(base_url=served.url)
    context.set_default_timeout(LONGEST_MILLISECONDS)
    shown = ["/", "/jobs", f"/jobs/{run.job_id}", "/queues", "/jobs?status=FAILED", "/jobs?user=ada", "/", "/queues"]
    tabs = [context.new_page() for _ in shown]
    for tab, path in zip(tabs, shown, strict=True):
        open_live(tab, path)
    wait_for_viewers(tabs[0], served, 1)
    tabs[0].close()  # who came first is not needed by the others
    run.log(1)
    tabs[2].get_by_text("line 1").wait_for()
    run.tell("report", progress=37)
    expect(tabs[1].locator(f'tr[data-job="{run.job_id}"] .progress-value')).to_have_text("37%")
    served.client().post("/api/v1/queues", json={"queue_name": "made meanwhile"})
    tabs[7].get_by_role("link", name="made meanwhile").wait_for()
    context.close()


def test_a_tab_that_is_not_looked_at_needs_no_stream(watched: Watched, served: Served) -> None:
    page = watched.page
    run = Run(served, "unseen")
    open_live(page, f"/jobs/{run.job_id}")
    hide = """isHidden => {
        Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    wait_for_viewers(page, served, 0)
    run.log(1)
    page.wait_for_timeout(1_500)
    assert page.locator(".line").count() == 0
    page.evaluate(hide, False)
    page.get_by_text("line 1").wait_for()


def test_the_list_says_what_jobs_say_and_why_they_failed(watched: Watched, served: Served) -> None:
    page = watched.page
    run = Run(served, "says")
    open_live(page, "/jobs")
    said = page.locator(f'tr[data-job="{run.job_id}"] [data-cell="message"]')
    expect(said).to_be_hidden()
    run.tell("report", progress=12, message="epoch 1\nof 8")
    expect(said).to_have_text("epoch 1")
    run.tell("finish", kind="failed", message="out of <b>memory</b>")
    expect(said).to_have_text("out of <b>memory</b>")


def test_a_browser_without_shared_workers_has_a_stream_for_each_tab(watched: Watched, served: Served) -> None:
    page = watched.page
    page.add_init_script(NO_SHARED_WORKER)
    run = Run(served, "alone")
    with page.expect_request("**/api/v1/live**"):
        open_live(page, f"/jobs/{run.job_id}")
    run.log(1)
    page.get_by_text("line 1").wait_for()


# --- nothing is lost -------------------------------------------------------------------------------------------------


def test_what_happens_while_the_server_is_away_is_read_when_it_is_back(browser: Browser, tmp_path: Path) -> None:
    store = f"file:{tmp_path / 'store.db'}"
    first = Served(store=store, port=free_port())  # which no outgoing connection gets while the server is away
    run, other = Run(first, "long"), Run(first, "other")
    run.log(0)
    run.measure(0, 1, 2)
    shown, listed = Watched(browser, first, width=390), Watched(browser, first)
    page = shown.page
    open_live(page, f"/jobs/{run.job_id}")
    open_live(listed.page, "/jobs")
    expect(page.locator("[data-chart] .point")).to_have_count(3)
    first.stop()
    page.get_by_text("Connection lost. This page may be out of date.").wait_for()
    page.get_by_role("button", name="Stop").click()
    wait_until_told(page, "The server does not respond")
    second = Served(store=store, port=int(first.url.rpartition(":")[2]))
    for each in (run, other):
        each._client = second.client()
    run.log(1, 2, 3)
    run.measure(3, 4)
    other.tell("finish", kind="completed")
    page.get_by_text("Connection lost").wait_for(state="hidden")
    page.get_by_text("line 3").wait_for()
    run.log(4)
    page.get_by_text("line 4").wait_for()
    wait_for_lines(page, 5)
    expect(page.locator("[data-chart] .point")).to_have_count(5)
    listed.page.locator(f'tr[data-job="{other.job_id}"] .badge-completed').wait_for()
    shown.close()
    listed.close()
    second.stop()


def test_a_fast_log_and_many_values_leave_no_gap(watched: Watched, served: Served) -> None:
    page = watched.page
    run = Run(served, "fast")
    open_live(page, f"/jobs/{run.job_id}")
    for start in range(0, 3000, 1000):
        run.log(*range(start, start + 1000))
    run.measure(*range(500))
    page.get_by_text("line 2999").wait_for()
    wait_for_lines(page, 3000)
    page.wait_for_function("() => document.querySelector('[data-chart]')?.data?.at(-1).x.at(-1) === 499")


def test_a_job_that_tells_much_is_not_fetched_each_time(watched: Watched, served: Served) -> None:
    page = watched.page
    run = Run(served, "talkative")
    open_live(page, f"/jobs/{run.job_id}")
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    begun = time.monotonic()
    for percent in range(1, 17):
        run.tell("report", progress=percent)
        page.wait_for_timeout(300)
    expect(page.locator('[data-region="summary"] .progress-value')).to_have_text("16%")
    assert len(fetched) <= 2 + (time.monotonic() - begun) / 0.7, "there is a pause of so many seconds, or more"
    run.tell("finish", kind="completed")
    expect(page.locator('[data-region="status"] .badge')).to_have_text("completed")


def test_lines_that_come_twice_are_passed_over_at_once(watched: Watched, served: Served) -> None:
    page = watched.page
    run = Run(served, "repeated")
    open_live(page, f"/jobs/{run.job_id}")
    told = [
        {"message": f"line {number}", "log_level": "INFO", "timestamp": f"2026-01-01T10:00:00.{number:06d}Z"}
        for number in range(4000)
    ]
    tell = """lines => {
        const changes = lines.map(values => ({ type: "JobLog", kind: "added", values }));
        const begin = performance.now();
        document.dispatchEvent(new CustomEvent("changes", { detail: { topic: "log", is_complete: true, changes } }));
        return performance.now() - begin;
    }"""
    page.evaluate(tell, told[::3])
    page.evaluate(tell, told)
    assert any(page.evaluate(tell, told) < 1_500 for _ in range(10)), "the machine may have stood still, not each time"
    wait_for_lines(page, 4000)


def test_what_happens_before_the_stream_is_ready_is_read(watched: Watched, served: Served) -> None:
    page = watched.page
    page.add_init_script(NO_SHARED_WORKER)
    run = Run(served, "early")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/v1/live**", hold)
    with page.expect_request("**/api/v1/live**"):
        page.goto(f"/jobs/{run.job_id}")
    run.log(1)
    run.measure(0, 1)
    run.tell("report", progress=12, message="has begun")
    page.wait_for_timeout(1_000)
    held[0].continue_()
    page.get_by_text("line 1").wait_for()
    page.get_by_text("has begun").first.wait_for()
    expect(page.locator("[data-chart] .point")).to_have_count(2)


def test_what_is_told_is_not_undone_by_a_page_that_was_made_before(watched: Watched, served: Served) -> None:
    page, run = watched.page, Run(served, "overtaken")
    progress = page.locator(f'tr[data-job="{run.job_id}"] .progress-value')
    late: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        if late or route.request.resource_type != "fetch":
            route.continue_()
        else:
            late.append((route, route.fetch()))

    page.route("**/jobs", hold)
    page.goto("/jobs")
    while not late:
        page.wait_for_timeout(50)
    run.tell("report", progress=61)
    expect(progress).to_have_text("61%")
    page.evaluate("document.addEventListener('regions', () => (window.wasUpdated = true))")
    route, answer = late[0]
    route.fulfill(response=answer)
    page.wait_for_function("() => window.wasUpdated")
    expect(progress).to_have_text("61%")


def test_what_the_server_refuses_to_tell_is_asked_for_again(page: Page, served: Served) -> None:
    run = Run(served, "refused")
    open_live(page, f"/jobs/{run.job_id}")
    page.route("**/jobs/**", lambda route: route.fulfill(status=503))
    run.tell("report", progress=12, message="nobody hears it")
    lost = page.get_by_text("may be out of date")
    lost.wait_for()
    page.unroute("**/jobs/**")
    page.get_by_text("nobody hears it").first.wait_for()
    expect(lost).to_be_hidden()


def test_lines_that_the_server_refuses_to_tell_are_asked_for_again(page: Page, served: Served) -> None:
    page.add_init_script(NO_SHARED_WORKER)
    run = Run(served, "refused lines")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/v1/live**", hold, times=1)
    page.route("**/logs?**", lambda route: route.fulfill(status=503), times=1)
    page.goto(f"/jobs/{run.job_id}")
    while not held:
        page.wait_for_timeout(50)
    run.log(1)
    held[0].continue_()
    page.get_by_text("line 1").wait_for()


def test_charts_of_metrics_grow_while_the_job_runs(watched: Watched, served: Served) -> None:
    page = watched.page
    run = Run(served, "measured")
    run.measure(0, 1, 2)
    open_live(page, f"/jobs/{run.job_id}")
    expect(page.locator("[data-chart] .point")).to_have_count(3)
    run.measure(3)
    expect(page.locator("[data-chart] .point")).to_have_count(4)
    run.measure(4, 5)
    expect(page.locator("[data-chart] .point")).to_have_count(6)


# --- the log ---------------------------------------------------------------------------------------------------------


def test_a_search_says_where_it_has_looked(watched: Watched, served: Served) -> None:
    page = watched.page
    run = Run(served, "searched")
    run.log(*range(350))
    open_live(page, f"/jobs/{run.job_id}")
    page.get_by_label("Search the log").fill("line 49")
    page.get_by_text("No match in the last 300 lines.").wait_for()
    page.get_by_label("Search the log").fill("line 349")
    page.get_by_text("No match").wait_for(state="hidden")


def test_who_looks_at_what_is_deleted_elsewhere_is_told(page: Page, served: Served) -> None:
    client = served.client()
    client.post("/api/v1/queues", json={"queue_name": "short-lived"})
    open_live(page, "/queues/short-lived")
    client.delete("/api/v1/queues/short-lived")
    page.get_by_text("This no longer exists").wait_for()
    client.post("/api/v1/queues", json={"queue_name": "short-lived"})
    page.get_by_text("This no longer exists").wait_for(state="hidden")


def test_who_scrolls_up_is_not_dragged_back(watched: Watched, served: Served) -> None:
    page = watched.page
    run = Run(served, "read")
    run.log(*range(200))
    open_live(page, f"/jobs/{run.job_id}")
    log, follows = page.locator("[data-log]"), page.get_by_label("follow")
    assert follows.is_checked()
    page.wait_for_function("() => document.querySelector('[data-log]').scrollTop > 1000")
    lowest = log.evaluate("log => log.scrollTop")
    log.hover()
    page.mouse.wheel(0, -800)
    expect(follows).not_to_be_checked()
    before = lowest - 800
    page.wait_for_function("([log, before]) => log.scrollTop === before", arg=[log.element_handle(), before])
    run.log(200)
    page.get_by_text("line 200").wait_for(state="attached")
    assert log.evaluate("log => log.scrollTop") == before
    follows.check()
    run.log(201)
    page.get_by_text("line 201").wait_for()
    page.wait_for_function("log => log.scrollTop + log.clientHeight >= log.scrollHeight - 1", arg=log.element_handle())
    assert follows.is_checked()


# --- where the person is ---------------------------------------------------------------------------------------------


def focus_of(page: Page) -> str:
    return str(page.evaluate("document.activeElement.getAttribute('href') ?? document.activeElement.tagName"))


def test_a_click_into_a_table_does_not_stop_it(watched: Watched, served: Served) -> None:
    page, client = watched.page, served.client()
    client.post("/api/v1/queues", json={"queue_name": "clicked"})
    open_live(page, "/queues")
    page.locator("[data-region=queues] td.number").first.click()
    client.post("/api/v1/queues/clicked/pause")
    page.locator("tr", has_text="clicked").locator(".badge-paused").wait_for()
    assert page.evaluate("document.activeElement.className") == "scroll"


def test_the_focus_stays_on_what_it_is_on(watched: Watched, served: Served) -> None:
    page, client = watched.page, served.client()
    Run(served, "on the overview")
    open_live(page, "/")
    link = page.get_by_role("link", name="on the overview", exact=True)
    link.focus()
    there = focus_of(page)
    Run(served, "above it")
    page.get_by_role("link", name="above it", exact=True).wait_for()
    assert focus_of(page) == there
    client.post("/api/v1/queues", json={"queue_name": "toggled"})
    open_live(page, "/queues")
    row = page.locator("tr", has_text="toggled")
    row.get_by_role("button", name="Pause").press("Enter")
    row.get_by_role("button", name="Resume").wait_for()
    assert page.evaluate("document.activeElement.closest('tr')?.textContent.includes('toggled')")
    page.keyboard.press("Tab")
    expect(row.get_by_role("button", name="Resume")).to_be_focused()


def test_the_focus_stays_near_a_button_that_is_gone(watched: Watched, served: Served) -> None:
    page = watched.page
    run = Run(served, "stopped")
    open_live(page, f"/jobs/{run.job_id}")
    page.get_by_role("button", name="Stop").press("Enter")
    page.locator(".head-status", has_text="asked to stop").wait_for()
    expect(page.get_by_role("button", name="Stop")).to_be_focused()
    run.tell("finish", kind="stopped")
    page.get_by_role("button", name="Retry").wait_for()
    assert page.evaluate("document.activeElement.dataset.region") == "actions"


def test_what_is_typed_and_opened_stays(watched: Watched, served: Served) -> None:
    page, client = watched.page, served.client()
    client.post("/api/v1/jobs", json={"task": "m:f", "name": "typed", "job_id": "typed", "queue": "typed"})
    open_live(page, "/jobs/typed")
    field = page.get_by_label("Priority")
    field.fill("77")
    page.keyboard.press("Tab")
    client.put("/api/v1/jobs/typed/priority", json={"priority": 3})
    page.locator("[data-region=summary] dd", has_text=re.compile("^3$")).wait_for()
    expect(field).to_have_value("77")
    field.press("Enter")
    page.locator("[data-region=summary] dd", has_text=re.compile("^77$")).wait_for()


# --- lists and actions -----------------------------------------------------------------------------------------------


def test_rows_of_the_list_are_live_in_all_their_cells(watched: Watched, served: Served) -> None:
    page = watched.page
    waiting = served.client().post("/api/v1/jobs", json={"task": "m:f", "name": "row", "queue": "queue of row"}).json()
    row = page.locator(f'tr[data-job="{waiting["job_id"]}"]')
    open_live(page, "/jobs")
    expect(row.locator('[data-cell="took"]')).to_have_text("\N{EN DASH}")
    expect(row.locator('[data-cell="attempt"]')).to_have_text(re.compile("^0/"))
    run_jobs(served.services.engine, "queue of row")
    row.locator(".badge-failed").wait_for()
    told = row.locator("[data-cell]").all_inner_texts()
    page.reload()
    assert row.locator("[data-cell]").all_inner_texts() == told
    why, _, _, attempt, took = told
    assert why
    assert attempt.startswith("1/")
    assert took.endswith("s")


def test_only_new_jobs_that_match_are_announced_and_the_link_leads_to_them(watched: Watched, served: Served) -> None:
    page, client = watched.page, served.client()
    for number in range(51):
        client.post(
            "/api/v1/jobs", json={"task": "m:f", "name": f"many {number}", "queue": "filtered", "tags": ["ada"]}
        )
    open_live(page, "/jobs?tag=ada&text=many")
    client.post("/api/v1/jobs", json={"task": "m:f", "name": "many of another", "queue": "filtered", "tags": ["grace"]})
    page.wait_for_timeout(3_000)
    expect(page.locator("[data-news]")).to_be_hidden()
    page.get_by_role("link", name="Next page").click()
    page.locator(LIVE).wait_for()
    news = page.get_by_role("link", name=re.compile(r"Show \d+ new"))
    number = 50
    while not news.is_visible():  # what comes before it knows what stands on the first page is not new to it
        number += 1
        new = {"task": "m:f", "name": f"many {number}", "queue": "filtered", "tags": ["ada"]}
        client.post("/api/v1/jobs", json=new)
        page.wait_for_timeout(5_000)
    news.click()
    page.get_by_role("link", name=f"many {number}").wait_for()
    assert "tag=ada" in page.url


def test_several_jobs_are_acted_on_with_one_word_about_it(page: Page, served: Served) -> None:
    client = served.client()
    for number in range(3):
        client.post(
            "/api/v1/jobs", json={"task": "m:f", "name": f"bulk {number}", "job_id": f"bulk{number}", "queue": "bulk"}
        )
    client.post("/api/v1/jobs/bulk0/cancel")
    open_live(page, "/jobs?text=bulk")
    page.on("dialog", lambda dialog: dialog.accept())
    everything = page.get_by_label("Select all jobs on this page")
    everything.check()
    page.get_by_role("button", name="Retry").click()
    wait_until_told(page, "1 done, 2 refused: ")
    assert len(told_on(page)) == 1
    assert not everything.is_checked()
    assert page.locator("[data-tick]:checked").count() == 0
    expect(page.locator("[data-selection]")).to_be_hidden()


def test_all_jobs_that_match_are_acted_on_and_not_only_those_of_the_page(page: Page, served: Served) -> None:
    jobs = served.services.engine
    made = jobs.submit_many(NewJob(name=f"flock {number}", task="m:f", queue="flock") for number in range(60))
    jobs.submit(NewJob(name="another", task="m:f", queue="flock"))
    page.goto("/jobs?status=pending&text=flock+")
    questions: list[str] = []

    def accept(dialog: Dialog) -> None:
        questions.append(dialog.message)
        dialog.accept()

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    page.on("dialog", accept)
    page.get_by_label("Select all jobs on this page").check()
    page.get_by_role("button", name="Select all matches").click()
    page.get_by_text("All 60 matches selected").wait_for()
    page.get_by_role("button", name="Cancel").click()
    wait_until_told(page, "60 done")
    assert asked == [f"{served.url}/api/v1/job-batches/cancel"] * 2
    assert questions == ["Cancel 60 jobs and all their descendants?"]
    assert {jobs.queries.get_job(job.job_id).status for job in made} == {"CANCELLED"}
    page.goto("/jobs?status=cancelled&text=flock+")
    page.get_by_label("Select flock 57").check()
    expect(page.get_by_role("button", name="Select all matches")).to_be_hidden()
    page.get_by_label("Select flock 58").check()
    page.get_by_role("button", name="Retry").click()
    wait_until_told(page, "2 done")
    page.get_by_label("Select flock 59").check()
    page.get_by_role("button", name="Delete").click()
    wait_until_told(page, "1 done")
    assert questions[1:] == ["Delete 1 job and all its descendants?"], "to retry a few harms nothing"
    assert served.client().get(f"/api/v1/jobs/{made[59].job_id}").status_code == 404


def test_who_acts_on_many_sees_how_far_it_is_and_what_was_left_when_the_server_is_lost(
    page: Page, served: Served
) -> None:
    jobs = served.services.engine
    made = jobs.submit_many(NewJob(name=f"herd {number}", task="m:f", queue="herd") for number in range(130))
    jobs.cancel(made[129].job_id)
    page.goto("/jobs?text=herd+")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_label("Select all jobs on this page").check()
    page.get_by_role("button", name="Select all matches").click()
    page.get_by_text("All 130 matches selected").wait_for()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)
        if len(held) == 1:
            route.continue_()

    page.route("**/job-batches/stop", hold)
    page.get_by_role("button", name="Stop").click()
    page.locator("[data-selected]", has_text="50 of 130 done").wait_for()
    while len(held) < 2:  # what the page shows may be told before what it asks for
        page.wait_for_timeout(50)
    held[1].abort()
    told = page.locator(".toast", has_text="49 done, 1 refused: ")
    told.wait_for()
    expect(told).to_contain_text("The server does not respond. Check the other 80.")
    assert len(held) == 2
    stopped = [jobs.queries.get_job(job.job_id).status for job in made]
    assert (stopped.count(Status.STOPPED), stopped.count(Status.PENDING)) == (49, 80)


def test_a_description_is_cleared(watched: Watched, served: Served) -> None:
    page, client = watched.page, served.client()
    client.post("/api/v1/queues", json={"queue_name": "described", "description": "old words"})
    page.goto("/queues/described")
    page.get_by_text("Settings").click()
    page.get_by_label("Description").fill("")
    page.get_by_role("button", name="Save").click()
    wait_until_told(page, "Saved")
    assert client.get("/api/v1/queues/described").json()["description"] == ""


def test_the_count_of_the_day_is_kept_with_a_word_about_it(watched: Watched) -> None:
    page = watched.page
    page.goto("/executions")
    page.get_by_role("button", name="Store today's metrics").click()
    wait_until_told(page, "Stored today's metrics")


def test_an_error_says_what_is_wrong(page: Page, served: Served) -> None:
    served.client().post("/api/v1/queues", json={"queue_name": "wrong"})
    page.goto("/queues/wrong")
    pause = page.get_by_role("button", name="Pause")
    page.route("**/pause", lambda route: route.fulfill(status=502, content_type="text/html", body="<h1>Bad</h1>"))
    pause.click()
    wait_until_told(page, "The server responded with status 502.")
    page.unroute("**/pause")
    page.route("**/pause", lambda route: route.abort())
    pause.click()
    wait_until_told(page, "The server does not respond.")
    page.unroute("**/pause")
    page.route("**/pause", lambda route: route.fulfill(status=401, json={"title": "Unauthorized"}))
    pause.click()
    page.wait_for_url("**/login?next=%2Fqueues%2Fwrong")


def test_who_must_log_in_again_is_led_there_though_nothing_is_clicked(browser: Browser, guarded: Served) -> None:
    shown = Watched(browser, guarded)
    page, lasting = shown.page, guarded.client(Role.FULL)
    page.goto("/login")
    page.get_by_label("Token").fill(guarded.token(Role.READ))
    page.get_by_role("button", name="Log in").click()
    page.locator(LIVE).wait_for(state="attached")
    (own,) = [each for each in lasting.get("/api/v1/tokens").json()["items"] if each["role"] == "read"]
    lasting.delete(f"/api/v1/tokens/{own['token_id']}")
    page.wait_for_timeout(2_000)  # so long a stream goes on without a look at its token
    lasting.post("/api/v1/queues", json={"queue_name": "told to nobody"})
    page.wait_for_url("**/login?next=%2F")
    shown.close()


def test_what_is_typed_stays_when_the_login_is_over(browser: Browser, guarded: Served) -> None:
    shown = Watched(browser, guarded)
    page, context = shown.page, shown.page.context

    def log_in(tab: Page) -> None:
        tab.get_by_label("Token").fill(guarded.token(Role.FULL))
        tab.get_by_role("button", name="Log in").click()

    page.goto("/login?next=/submit")
    log_in(page)
    page.get_by_label("Task").fill("a:b")
    page.get_by_label("Parameters").fill('{"typed": "for long"}')
    context.clear_cookies()
    page.get_by_role("button", name="Submit").click()
    with context.expect_page() as opened:
        page.get_by_role("link", name="Log in in another tab").click()
    log_in(opened.value)
    opened.value.get_by_role("heading", name="Overview").wait_for()
    page.get_by_role("button", name="Submit").click()
    page.locator(".settings", has_text="for long").wait_for()
    shown.close()


def test_copying_works_where_the_browser_keeps_the_clipboard_from_the_page(watched: Watched, served: Served) -> None:
    page = watched.page
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    served.client().post("/api/v1/jobs", json={"task": "m:f", "name": "copied", "job_id": "copied", "queue": "quiet"})
    page.goto("/jobs/copied")
    page.get_by_label("Copy the id").click()
    wait_until_told(page, "Copied")
    page.evaluate("document.execCommand = () => false")
    offered: list[str] = []

    def note(dialog: Dialog) -> None:
        offered.append(dialog.default_value)
        dialog.dismiss()

    page.on("dialog", note)
    page.get_by_label("Copy the id").click()
    while not offered:
        page.wait_for_timeout(50)
    assert offered == ["copied"]


# --- room ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_stay_in_their_place(browser: Browser, served: Served, width: int) -> None:
    client = served.client()
    job = {"task": "m:f", "name": "in a long queue", "queue": LONG, "job_id": f"long {width}", "description": LONG}
    assert client.post("/api/v1/jobs", json=job).is_success
    shown = Watched(browser, served, width)
    for path in ("/jobs", "/queues", f"/jobs/long {width}", "/submit?like=" + LONG):
        shown.page.goto(path)
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width, path
        hidden = "[0, ...[...document.querySelectorAll('.scroll')].map(each => each.scrollWidth - each.clientWidth)]"
        assert max(shown.page.evaluate(hidden)) <= 0, path
    shown.close()


def test_the_menu_is_closed_with_escape(browser: Browser, served: Served) -> None:
    shown = Watched(browser, served, width=390)
    page = shown.page
    page.goto("/jobs")
    page.locator("[data-menu] > summary").click()
    page.get_by_role("link", name="Tables").wait_for()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Tables")).to_be_hidden()
    expect(page.locator("[data-menu] > summary")).to_be_focused()
    shown.close()
