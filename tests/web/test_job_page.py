"""The page of a job: what it was given, what came of it, and how its values went."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.web.browsing import Run, Watched, open_live, watch
from tests.web.conftest import Served

from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.submit.definition import NewJob

SETTINGS = "dl => [...dl.children].map(each => [...each.children].map(part => part.textContent))"
CHART = "document.querySelector('[data-chart]')"


@pytest.fixture
def watched(browser: Browser, open_server: Served) -> Iterator[Watched]:
    yield from watch(browser, open_server)


def claimed(open_server: Served, **given: Any) -> Lease:
    jobs = open_server.services.engine
    jobs.submit(NewJob(task="training:train", **given))
    (lease,) = jobs.claim(given["queue"], limit=1, instance_id="w", lease_seconds=60)
    return lease


def test_parameters_and_result_are_read_at_a_glance_and_copied_exactly(watched: Watched, open_server: Served) -> None:
    params = {"rate": 0.022855735068116945, "year": 2024, "name": "<b>", "deep": True, "layers": [64, 32]}
    lease = claimed(open_server, name="given", queue="given", params=params)
    open_server.services.engine.finish(lease, Outcome.completed({"accuracy": 0.9}))
    page = watched.page
    page.goto(f"/jobs/{lease.job.job_id}")
    result, given = page.locator(".settings").all()
    assert result.evaluate(SETTINGS) == [["accuracy", "0.9"]]
    assert sorted(given.evaluate(SETTINGS)) == [
        ["deep", "true"],
        ["layers", "[64, 32]"],
        ["name", "<b>"],
        ["rate", "0.0228557"],
        ["year", "2024"],
    ]
    copied = page.get_by_role("button", name="Copy the parameters").get_attribute("data-copy") or ""
    assert "0.022855735068116945" in copied
    assert not page.locator("pre.code").is_visible()
    page.get_by_text("Configuration").click()
    assert "training:train" in page.locator("pre.code").inner_text()


def test_what_a_job_has_not_come_to_is_not_told(serve: Callable[..., Served]) -> None:
    open_server = serve()
    job = open_server.services.engine.submit(NewJob(name="waits", task="a:b"))
    page = open_server.client(Accept="text/html").get(f"/jobs/{job.job_id}").text
    assert not [name for name in ("Started", "Ended", "Took", "<progress", "Result") if name in page]


def test_a_traceback_begins_on_a_line_of_its_own(watched: Watched, open_server: Served) -> None:
    lease = claimed(open_server, name="raises", queue="raises")
    with JobContext(open_server.services.engine, lease) as context:
        context.error("it broke", exception=ValueError("no such column"))
    watched.page.goto(f"/jobs/{lease.job.job_id}")
    first, *rest = watched.page.locator(".line-text").inner_text().split("\n")
    assert first == "it broke"
    assert "no such column" in rest[-1]


def test_lines_as_large_as_items_make_no_page_of_many_megabytes(watched: Watched, open_server: Served) -> None:
    lease = claimed(open_server, name="dumps", queue="dumps")
    with JobContext(open_server.services.engine, lease) as context:
        for number in range(30):
            context.log(f"{number} " + "x" * 200_000)
    path = f"/jobs/{lease.job.job_id}"
    assert len(open_server.client(Accept="text/html").get(path).content) < 200_000
    page = watched.page
    open_live(page, path)
    assert "Earlier lines are in the full log." in page.locator("[data-log]").inner_text()
    with JobContext(open_server.services.engine, lease) as context:
        context.log("30 " + "x" * 200_000)
    page.get_by_text(re.compile("^30 x")).wait_for()
    before, told = page.locator(".line-text").all_inner_texts()[-2:]
    assert before.endswith("x … 195,003 more characters")
    assert told == before.replace("29 ", "30 ")


def test_what_is_below_the_log_of_a_job_does_not_move_with_its_lines(watched: Watched, open_server: Served) -> None:
    run = Run(open_server, "grows")
    open_live(watched.page, f"/jobs/{run.job_id}")
    history = watched.page.get_by_role("heading", name="History")
    before = history.bounding_box()
    run.log(*range(10))
    watched.page.get_by_text("line 9").wait_for()
    assert history.bounding_box() == before


def test_a_status_is_told_once_while_it_lasts(serve: Callable[..., Served]) -> None:
    open_server = serve()
    lease = claimed(open_server, name="reports", queue="reports")
    for percent in (10, 20, 30):
        open_server.services.engine.report(lease, progress=percent, message=f"at {percent}")
    page = open_server.client(Accept="text/html").get(f"/jobs/{lease.job.job_id}").text
    history = page.partition("<h2>History</h2>")[2].partition("</ol>")[0]
    assert (history.count("badge-running"), history.count("badge-pending")) == (1, 1)
    assert all(f"at {percent}" in history for percent in (10, 20, 30))


def test_a_chart_tells_the_last_value_and_what_it_is_drawn_over(watched: Watched, open_server: Served) -> None:
    run = Run(open_server, "drawn")
    run.measure(0, 1, 3)
    open_live(watched.page, f"/jobs/{run.job_id}")
    title, axis = watched.page.locator(".gtitle"), watched.page.locator(".xtitle")
    expect(title).to_have_text("loss: 0.25 at step 3")
    expect(axis).to_have_text("step")
    run.measure(4)
    expect(title).to_have_text("loss: 0.2 at step 4")


def test_a_value_that_never_changes_is_drawn_where_it_is(watched: Watched, open_server: Served) -> None:
    run = Run(open_server, "constant")
    run.tell("metrics", metrics=[{"metric_name": "rate", "value": 0.02, "step": n} for n in range(3)])
    open_live(watched.page, f"/jobs/{run.job_id}")
    expect(watched.page.locator(".gtitle")).to_have_text("rate: 0.02 at step 2")
    low, high = watched.page.evaluate(f"{CHART}.layout.yaxis.range")
    assert 0 < low < 0.02 < high < 0.04


def test_what_was_told_before_a_job_began_anew_is_a_line_of_its_own(watched: Watched, open_server: Served) -> None:
    run = Run(open_server, "anew")
    for steps in ((0, 1, 2, 3), (1, 2), (0, 1)):
        run.measure(*steps)
    open_live(watched.page, f"/jobs/{run.job_id}")
    expect(watched.page.locator(".gtitle")).to_have_text("loss: 0.5 at step 1")
    earlier, last = watched.page.evaluate(f"{CHART}.data.map(({{ x, y }}) => ({{ x, y }}))")
    assert last["x"] == [0, 1]
    assert earlier["x"] == [0, 1, 2, 3, 1, 1, 2]
    assert earlier["y"].index(None) == 4, "a gap, where a line would lead back"


ENDS_INSIDE = """place => {
    const text = document.createRange();
    text.selectNodeContents(place);
    return text.getBoundingClientRect().bottom <= place.getBoundingClientRect().bottom;
}"""


def test_of_a_long_traceback_and_a_long_log_the_end_is_seen(watched: Watched, open_server: Served) -> None:
    lease = claimed(open_server, name="deep", queue="deep")
    with JobContext(open_server.services.engine, lease) as context:
        for number in range(200):
            context.log(f"line {number}")
    frames = "\n".join(f"  File 'a.py', line {number}" for number in range(100))
    open_server.services.engine.finish(lease, Outcome.failed(f"ValueError: no\n{frames}\nValueError: no"))
    page = watched.page
    page.goto(f"/jobs/{lease.job.job_id}")
    page.locator('[data-live-state][data-state="live"]').wait_for()
    traceback = page.locator("[data-region=summary] pre")
    assert traceback.evaluate("pre => pre.scrollHeight > pre.clientHeight")
    assert traceback.evaluate(ENDS_INSIDE), "where it was raised"
    log = page.locator("[data-log]")
    assert log.evaluate("log => log.scrollHeight - log.clientHeight - log.scrollTop") < 4
    assert not page.get_by_label("follow").is_checked()


def test_the_log_of_a_job_can_be_downloaded_as_soon_as_it_has_ended(watched: Watched, open_server: Served) -> None:
    jobs = open_server.services.engine
    lease = claimed(open_server, name="prints", queue="prints")
    open_live(watched.page, f"/jobs/{lease.job.job_id}")
    with closing(jobs.recording.log_text(lease)) as text:
        text.append(b"printed\n")
        text.finish()
    jobs.finish(lease, Outcome.completed())
    watched.page.get_by_role("link", name="Full log of run 1").wait_for()


def test_a_new_status_is_read_aloud(watched: Watched, open_server: Served) -> None:
    lease = claimed(open_server, name="heard", queue="heard")
    open_live(watched.page, f"/jobs/{lease.job.job_id}")
    told = watched.page.locator("header").get_by_role("status")
    expect(told).to_have_text("running")
    open_server.services.engine.finish(lease, Outcome.failed("no"))
    expect(told).to_have_text("failed")
