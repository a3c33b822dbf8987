"""The inbox in a real browser: keys, forms, many at once, live, at any width, in both themes, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # published without types
from playwright.sync_api import Browser, Page, expect
from tests.inbox.labels import renaming
from tests.inbox.test_inbox_pages import ORDER
from tests.web.browsing import Watched, check_without_scripts, open_live, wait_until_told, watch
from tests.web.conftest import Served

from jobtable.inbox import Inbox, Question
from jobtable.inbox.entities import TaskStatus

LONG = "a name that is long " * 8 + "x" * 150


@pytest.fixture
def served() -> Iterator[Served]:
    server = Served()
    server.services.engine.create_queue("q", description="A", priority=0)
    yield server
    server.stop()


@pytest.fixture
def inbox(served: Served) -> Inbox:
    return served.services.inbox


@pytest.fixture
def watched(browser: Browser, served: Served) -> Iterator[Watched]:
    yield from watch(browser, served)


@contextmanager
def refused(watched: Watched, status: str) -> Iterator[None]:
    """The browser complains of one answer with this status, and of nothing else."""
    yield
    (complaint,) = watched.complaints
    assert complaint.startswith(f"Failed to load resource: the server responded with a status of {status}")
    watched.complaints.clear()


def described(served: Served) -> str:
    return served.services.engine.queries.get_queue("q").description


def row(page: Page, title: str) -> str:
    """The mark of the row with a title: whether the person is there."""
    return str(page.locator("[data-row]", has_text=title).get_attribute("data-at"))


def test_keys_move_accept_and_reject(served: Served, inbox: Inbox, watched: Watched) -> None:
    first = inbox.propose(renaming("q", title="First"))
    second = inbox.propose(renaming("q", title="Second", before="Z"))
    question = inbox.ask(Question("Third?")).task
    page = watched.page
    open_live(page, "/inbox")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert row(page, "Second") == ""
    page.keyboard.press("k")
    page.keyboard.press("a")
    wait_until_told(page, "Accepted")
    expect(page.get_by_text("First")).to_have_count(0)
    assert (described(served), inbox.get(first.task_id).closed_by) == ("B", "local")
    page.wait_for_function("document.activeElement.textContent === 'Second'")
    with refused(watched, "409"):
        page.keyboard.press("a")
        wait_until_told(page, "no longer fits")
    assert inbox.get(second.task_id).status is TaskStatus.PENDING
    page.keyboard.press("j")
    page.keyboard.press("a")  # a question is not accepted
    page.keyboard.press("r")
    wait_until_told(page, "Rejected")
    assert inbox.get(question.task_id).status is TaskStatus.REJECTED


def test_a_proposal_is_accepted_on_its_page(served: Served, inbox: Inbox, watched: Watched) -> None:
    made = inbox.propose(renaming("q", "a better B", reason="clearer"))
    page = watched.page
    page.goto("/inbox")
    page.get_by_role("link", name="Describe q").click()
    expect(page.locator("ins")).to_have_text(["a better B"])
    page.get_by_role("button", name="Accept").click()
    expect(page.locator('[data-region="status"]')).to_have_text("accepted")
    assert described(served) == "a better B"
    assert inbox.get(made.task_id).status is TaskStatus.ACCEPTED


def test_a_stale_proposal_says_what_has_changed(served: Served, inbox: Inbox, watched: Watched) -> None:
    made = inbox.propose(renaming("q"))
    page = watched.page
    open_live(page, f"/inbox/{made.task_id}")
    served.services.engine.change_queue("q", description="C")
    with refused(watched, "409"):
        page.keyboard.press("a")
        expect(page.get_by_role("alert").filter(has_text='description was "A"')).to_be_visible()
    page.keyboard.press("r")
    page.keyboard.type("too late")
    page.get_by_role("button", name="Reject").click()
    expect(page.locator('[data-region="status"]')).to_have_text("rejected")
    assert inbox.get(made.task_id).remark == "too late"


def test_a_question_is_answered(inbox: Inbox, watched: Watched) -> None:
    task_id = inbox.ask(Question("Where to?", schema=ORDER)).task.task_id
    page = watched.page
    page.goto(f"/inbox/{task_id}")
    page.get_by_label("street").fill("Elm")
    page.get_by_label("number").fill("many")
    page.get_by_label("name").fill("Ada")
    page.get_by_label("yes").check()
    with refused(watched, "400"):
        page.get_by_role("button", name="Answer").click()
        expect(page.get_by_role("alert").filter(has_text="number")).to_be_visible()
    page.get_by_label("number").fill("5")
    page.get_by_role("button", name="Answer").click()
    expect(page.locator('[data-region="status"]')).to_have_text("answered")
    assert inbox.get(task_id).answer == {"street": "Elm", "number": 5, "express": True, "sender": {"name": "Ada"}}


def test_many_are_rejected_at_once(inbox: Inbox, watched: Watched) -> None:
    made = [inbox.propose(renaming("q", key=str(number), title=f"Title {number}")) for number in range(4)]
    page = watched.page
    open_live(page, "/inbox")
    for number in (0, 2):
        page.get_by_label(f"Tick Title {number}").check()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Reject ticked").click()
    expect(page.get_by_text("2 of 2 done")).to_be_visible()
    assert [inbox.get(each.task_id).status for each in made] == ["REJECTED", "PENDING", "REJECTED", "PENDING"]


def test_the_list_and_the_count_are_live(inbox: Inbox, watched: Watched) -> None:
    page = watched.page
    open_live(page, "/inbox")
    made = inbox.propose(renaming("q", title="It came later"))
    expect(page.get_by_role("link", name="It came later")).to_be_visible()
    expect(page.locator('[data-region="inbox-count"]')).to_have_text("1")
    inbox.reject(made.task_id)
    expect(page.get_by_role("link", name="It came later")).to_have_count(0)
    page.goto(f"/inbox/{made.task_id}")
    expect(page.locator('[data-region="status"]')).to_have_text("rejected")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_and_everybody_can_use_them(
    served: Served, inbox: Inbox, browser: Browser, width: int, scheme: str
) -> None:
    made = inbox.propose(
        renaming("q", LONG, LONG[::-1], title=LONG[:200], reason=LONG, subject=LONG[:100], calls=("chat-" + "0" * 32,))
    )
    asked = inbox.ask(Question(LONG[:200], LONG, schema=ORDER)).task
    stale = inbox.propose(renaming("q", before="Z"))
    inbox.reject(stale.task_id, remark=LONG)
    inbox.add_rule(subject=LONG[:100], predicate=None)
    watched = Watched(browser, served, width, scheme)
    for path in ("/inbox", *(f"/inbox/{each.task_id}" for each in (made, asked, stale))):
        watched.page.goto(path)
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width, path
        found = Axe().run(watched.page)
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
    watched.page.context.close()
    assert watched.complaints == []


def test_without_scripts_everything_can_be_read_and_answered(served: Served, inbox: Inbox, browser: Browser) -> None:
    made = inbox.propose(renaming("q"))
    asked = inbox.ask(Question("Ship it?", choices=["yes", "no"])).task
    check_without_scripts(browser, served, "/inbox", f"/inbox/{made.task_id}")
    context = browser.new_context(base_url=served.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"/inbox/{asked.task_id}")
    page.get_by_label("yes").check()
    page.get_by_role("button", name="Answer").click()
    page.goto("/inbox")
    page.get_by_label("Tick Describe q").check()
    page.get_by_role("button", name="Accept ticked").click()
    expect(page.get_by_text("1 of 1 done")).to_be_visible()
    context.close()
    assert (inbox.get(asked.task_id).answer, described(served)) == ("yes", "B")
