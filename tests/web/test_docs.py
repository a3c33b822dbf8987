"""The documentation of the server is true and current."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.web.browsing import Watched, watch
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.web.reference import render_page

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_examples_run() -> None:
    namespace: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / "guides" / "api.md").read_text(), re.DOTALL):
        exec(compile(block, "documentation", "exec", dont_inherit=True), namespace)
    submitted = asyncio.run(namespace["submit"]())
    assert submitted["status"] == "PENDING"
    (refused,) = asyncio.run(namespace["cancel"](submitted["job_id"], "none"))
    assert refused == "there is no job none"
    namespace["services"].close()


def test_the_reference_is_current(open_server: Served) -> None:
    assert (DOCS / "reference" / "rest-api.md").read_text() == render_page(open_server.app), "run `make reference`"


def test_every_topic_is_documented(open_server: Served) -> None:
    page = (DOCS / "guides" / "api.md").read_text()
    for topic in ("jobs", "job:ID", "queues", "journeys", "journey:ID", "executions", "overview"):
        assert f"`{topic}`" in page


@pytest.fixture
def watched(browser: Browser, open_server: Served) -> Iterator[Watched]:
    """A page on which no request may leave the server, and no script or style be refused."""
    yield from watch(browser, open_server)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_interactive_description_shows_and_runs_an_operation(watched: Watched, theme: str) -> None:
    page = watched.page
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.goto("/docs")
    page.locator("#operations-tag-queues").click()
    operation = page.locator("#operations-queues-list_queues")
    operation.locator(".opblock-summary-control").click()
    expect(operation.locator(".opblock-description")).to_contain_text("queues")
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table td.response-col_status").last).to_contain_text("200")
    assert page.locator("html.dark-mode").count() == (theme == "dark")


def test_the_interactive_description_needs_a_login_where_pages_do(guarded: Served) -> None:
    refused = guarded.client(Accept="text/html").get("/docs")
    assert (refused.status_code, refused.headers["location"]) == (303, "/login?next=%2Fdocs")
    assert guarded.client(Role.READ, Accept="text/html").get("/docs").status_code == 200
    assert guarded.client(Role.WORKER, Accept="text/html").get("/docs").status_code == 403
