"""Pages in a real browser, for the tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from playwright.sync_api import Browser, Page, Request, expect
from tests.web.conftest import Served

LIVE = '[data-live-state][data-state="live"]'
LONGEST_MILLISECONDS = 120_000
"""No page on a busy machine takes so long."""
expect.set_options(timeout=LONGEST_MILLISECONDS)
_KEEP_WHAT_IS_TOLD = """
    window.told = [];
    new MutationObserver((changes) => {
        const added = changes.flatMap((change) => [...change.addedNodes]);
        window.told.push(...added.filter((node) => node.classList?.contains("toast")).map((node) => node.textContent));
    }).observe(document, { childList: true, subtree: true });
"""


class Watched:
    """A page whose complaints are written down."""

    def __init__(self, browser: Browser, served: Served, width: int = 1280, scheme: str = "light") -> None:
        context = browser.new_context(
            base_url=served.url,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        context.set_default_timeout(LONGEST_MILLISECONDS)
        context.add_init_script(_KEEP_WHAT_IS_TOLD)
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._refuse_outside(request.url, served.url))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _refuse_outside(self, url: str, own: str) -> None:
        if not url.startswith((own, "data:", "blob:")):
            self.complaints.append(f"a request to {url}")

    def close(self) -> None:
        self.page.context.close()


def watch(browser: Browser, served: Served) -> Iterator[Watched]:
    """A page on which nothing may go wrong."""
    shown = Watched(browser, served)
    yield shown
    shown.close()
    assert not shown.complaints, shown.complaints


def open_live(page: Page, path: str) -> None:
    """Return when the page has read again what it shows, and nothing that it asked for is on its way."""
    under_way: set[Request] = set()

    def begin(request: Request) -> None:
        if request.resource_type == "fetch":
            under_way.add(request)

    def end(request: Request) -> None:
        under_way.discard(request)

    page.on("request", begin)
    page.on("requestfinished", end)
    page.on("requestfailed", end)
    with page.expect_response(lambda answer: answer.url == page.url and answer.request.resource_type == "fetch"):
        page.goto(path)
    page.locator(LIVE).wait_for(state="attached")
    _wait_until(page, lambda: not under_way, lambda: f"on their way are {[each.url for each in under_way]}")


def told_on(page: Page) -> list[str]:
    """What the page has told in passing since it was opened."""
    told: list[str] = page.evaluate("window.told")
    return told


def wait_until_told(page: Page, text: str) -> None:
    """Wait for what a page tells in passing: whoever looks late does not see it any more."""
    page.wait_for_function("text => window.told.some((each) => each.includes(text))", arg=text)


def wait_for_viewers(page: Page, served: Served, count: int) -> None:
    """Wait until so many streams are open; the server sees a moment later that one was closed."""
    feed = served.app.state.feed
    _wait_until(page, lambda: feed.viewers == count, lambda: f"{feed.viewers} streams are open")


def _wait_until(page: Page, is_so: Callable[[], bool], told: Callable[[], str]) -> None:
    deadline = time.monotonic() + LONGEST_MILLISECONDS / 1000
    while not is_so():
        assert time.monotonic() < deadline, told()
        page.wait_for_timeout(20)


class Run:
    """A job that runs, as its worker sees it."""

    def __init__(self, served: Served, name: str, **given: Any) -> None:
        self._client = served.client()
        self.job_id = f"the {name}"  # as people name them
        self._path = f"/api/v1/jobs/{self.job_id.replace(' ', '%20')}"
        queue = f"queue of {name}"
        self._client.post(
            "/api/v1/jobs", json={"task": "m:f", "name": name, "queue": queue, "job_id": self.job_id, **given}
        )
        (lease,) = self._client.post(f"/api/v1/queues/{queue}/claim", json={"instance_id": "w"}).json()
        self._held = {"instance_id": "w", "epoch": lease["epoch"]}

    def tell(self, what: str, **more: Any) -> None:
        answer = self._client.post(f"{self._path}/{what}", json={**self._held, **more})
        assert answer.is_success, answer.text

    def log(self, *numbers: int) -> None:
        self.tell("logs", lines=[{"message": f"line {number}"} for number in numbers])

    def measure(self, *steps: int) -> None:
        self.tell("metrics", metrics=[{"metric_name": "loss", "value": 1 / (1 + n), "step": n} for n in steps])


def check_without_scripts(browser: Browser, served: Served, *paths: str) -> None:
    """Without scripts pages offer links, nothing that needs scripts, and say so."""
    context = browser.new_context(base_url=served.url, java_script_enabled=False)
    page = context.new_page()
    for path in paths:
        page.goto(path)
        assert page.locator("main a:visible").count() > 0, path
        assert page.locator("main button[type=button]:visible, main form[data-send]:visible").count() == 0, path
        assert page.get_by_text("JavaScript is off").is_visible(), path
    context.close()
