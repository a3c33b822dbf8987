"""The pages of the inbox as a browser without scripts gets them: lists, diffs, and forms made from schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.inbox.labels import renaming
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.inbox import FieldChange, Inbox, Proposal, Question
from jobtable.inbox.entities import TaskStatus
from jobtable.web.form_fields import field_of, value_in
from jobtable.web.value_diffs import diff_of

ORDER = {
    "type": "object",
    "title": "Order",
    "properties": {
        "street": {"type": "string", "description": "As on the letter box"},
        "number": {"type": "integer", "minimum": 1},
        "weight": {"type": "number"},
        "express": {"type": "boolean"},
        "carrier": {"enum": ["a", "b", None]},
        "parts": {"type": "array", "items": {"type": "string"}},
        "sender": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
    "required": ["street", "number", "sender"],
}


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    made.services.engine.create_queue("q", description="A", priority=0)
    yield made
    made.stop()


@pytest.fixture
def inbox(served: Served) -> Inbox:
    return served.services.inbox


@pytest.fixture
def pages(served: Served) -> httpx.Client:
    return served.client(Accept="text/html", Origin=served.url)


def count_on(pages: httpx.Client) -> str:
    """The number beside the inbox in the navigation."""
    found = re.search(r'data-region="inbox-count">(.*?)<', pages.get("/jobs").text)
    assert found is not None
    return found[1]


def test_the_navigation_counts_what_waits(inbox: Inbox, pages: httpx.Client) -> None:
    assert count_on(pages) == ""
    made = [inbox.propose(renaming("q", key=str(number))) for number in range(101)]
    assert count_on(pages) == "99+"
    for each in made[:99]:
        inbox.reject(each.task_id)
    assert count_on(pages) == "2"


def test_the_list_shows_what_matches(inbox: Inbox, pages: httpx.Client) -> None:
    assert "Nothing waits for a person" in pages.get("/inbox").text
    inbox.propose(renaming("q", title="First <b>", reason="because", subject="label", cost_nanodollars=2_000_000))
    inbox.ask(Question("Second?"))
    inbox.reject(inbox.propose(renaming("q", title="Third")).task_id, by="ada")
    listed = pages.get("/inbox").text
    assert "First &lt;b&gt;" in listed
    assert all(each in listed for each in ("because", "label", "$0.002", "Second?"))
    assert "Third" not in listed
    assert "Second?" not in pages.get("/inbox?kind=proposal").text
    assert "First" not in pages.get("/inbox?system=workflows").text
    rejected = pages.get("/inbox?status=REJECTED").text
    assert "Third" in rejected
    assert "by ada" in rejected
    assert "No tasks match" in pages.get("/inbox?system=other").text
    inbox.add_rule(subject="label", least_confidence=0.9)
    assert "about a label, confidence at least 90%" in pages.get("/inbox").text


def test_a_long_list_has_pages(inbox: Inbox, pages: httpx.Client) -> None:
    for number in range(60):
        inbox.propose(renaming("q", key=str(number), title=f"Title {number:02d}"))
    first = pages.get("/inbox").text
    assert re.findall(r"Title (\d\d)</a>", first) == [f"{number:02d}" for number in range(50)]
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following is not None
    second = pages.get(following[1].replace("&amp;", "&")).text
    assert re.findall(r"Title (\d\d)</a>", second) == [f"{number:02d}" for number in range(50, 60)]


def test_a_proposal_shows_its_diff_and_is_accepted_by_a_form(served: Served, inbox: Inbox, pages: httpx.Client) -> None:
    made = inbox.propose(renaming("q", "a better B", "A", reason="clearer", confidence=0.93))
    page = pages.get(f"/inbox/{made.task_id}").text
    assert "<del>A</del>" in page
    assert "<ins>a better B</ins>" in page
    assert all(each in page for each in ("clearer", "93%", "tests.inbox.labels:rename"))
    answer = pages.post(f"/inbox/{made.task_id}", data={"verb": "accept"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/inbox/{made.task_id}")
    assert served.services.engine.queries.get_queue("q").description == "a better B"
    assert "by local" in pages.get(f"/inbox/{made.task_id}").text
    again = pages.post(f"/inbox/{made.task_id}", data={"verb": "accept"})
    assert again.status_code == 409
    assert "already accepted by local" in again.text


def test_a_stale_proposal_says_so_and_is_rejected_with_a_remark(inbox: Inbox, pages: httpx.Client) -> None:
    made = inbox.propose(renaming("q", before="Z"))
    refused = pages.post(f"/inbox/{made.task_id}", data={"verb": "accept"})
    assert refused.status_code == 409
    for page in (refused.text, pages.get(f"/inbox/{made.task_id}").text, pages.get("/inbox").text):
        assert "description was &#34;Z&#34; when it was proposed and is &#34;A&#34; now" in page
    pages.post(f"/inbox/{made.task_id}", data={"verb": "reject", "remark": " too late "})
    assert inbox.get(made.task_id).remark == "too late"


def test_a_question_is_answered_by_a_form_made_from_its_schema(inbox: Inbox, pages: httpx.Client) -> None:
    task_id = inbox.ask(Question("Where to?", text="Order 7", schema=ORDER)).task.task_id
    form = {
        "verb": "answer",
        "answer.street": "Elm",
        "answer.number": "x",
        "answer.weight": "2.5",
        "answer.express": "true",
        "answer.carrier": "null",
        "answer.parts": '["a", "b"]',
        "answer.sender.name": "Ada",
    }
    page = pages.get(f"/inbox/{task_id}").text
    assert set(re.findall(r'name="(answer[^"]*)"', page)) | {"verb"} == set(form)
    refused = pages.post(f"/inbox/{task_id}", data=form)
    assert refused.status_code == 400
    assert "number: &#34;x&#34; is not of type" in refused.text
    assert 'name="answer.street" value="Elm"' in refused.text
    assert "is not JSON" in pages.post(f"/inbox/{task_id}", data={**form, "answer.parts": "a, b"}).text
    assert inbox.get(task_id).status is TaskStatus.PENDING
    answer = pages.post(f"/inbox/{task_id}", data={**form, "answer.number": "5"})
    assert answer.status_code == 303
    assert inbox.get(task_id).answer == {
        "street": "Elm",
        "number": 5,
        "weight": 2.5,
        "express": True,
        "parts": ["a", "b"],
        "sender": {"name": "Ada"},
    }


def test_many_are_accepted_by_one_form(served: Served, inbox: Inbox, pages: httpx.Client) -> None:
    served.services.engine.create_queue("p", description="A", priority=0)
    good, other = inbox.propose(renaming("q")), inbox.propose(renaming("p"))
    stale = inbox.propose(renaming("q", before="Z", title="Stale one"))
    ids = [good.task_id, stale.task_id, other.task_id, "nobody"]
    page = pages.post("/inbox", data={"task": ids, "verb": "accept"})
    assert "2 of 4 done" in page.text
    assert re.search(r"Stale one.*?no longer fits.*?nobody.*?there is no inbox task nobody", page.text, re.DOTALL)
    assert inbox.get(other.task_id).status is TaskStatus.ACCEPTED
    assert "1 of 1 done" in pages.post("/inbox", data={"task": stale.task_id, "verb": "reject"}).text
    for path in ("/inbox", f"/inbox/{good.task_id}"):
        assert pages.post(path, data={"verb": "burn"}).status_code == 422
    assert "0 of 0 done" in pages.post("/inbox", data={"verb": "accept"}).text


def test_readers_see_no_forms_and_other_sites_send_none(served: Served, inbox: Inbox) -> None:
    made, asked = inbox.propose(renaming("q")), inbox.ask(Question("Where to?"))
    guarded = Served(require_token=True)
    try:
        there = guarded.services.inbox.ask(Question("Where to?"))
        reader = guarded.client(Role.READ, Accept="text/html", Origin=guarded.url)
        for path in ("/inbox", f"/inbox/{there.task.task_id}"):
            page = reader.get(path).text.partition("<main")[2]
            assert 'method="post"' not in page, path
        assert reader.post(f"/inbox/{there.task.task_id}", data={"verb": "answer", "answer": "here"}).status_code == 403
    finally:
        guarded.stop()
    elsewhere = served.client(Accept="text/html", Origin="https://elsewhere.example")
    for path in (f"/inbox/{made.task_id}", f"/inbox/{asked.task.task_id}", "/inbox"):
        assert elsewhere.post(path, data={"answer": "here", "task": made.task_id, "verb": "accept"}).status_code == 403
    assert inbox.get(made.task_id) == made


def test_what_is_hostile_is_shown_as_text(inbox: Inbox, pages: httpx.Client) -> None:
    bad = "<script>alert(1)</script>"
    changes = [FieldChange(field=bad, before=bad, after={bad: bad})]
    made = inbox.propose(
        Proposal(bad, changes, "tests.inbox.labels:rename", bad, bad, bad, subject=bad, about="javascript:alert(1)")
    )
    schema = {"type": "object", "properties": {bad: {"enum": [bad]}}, "title": bad, "description": bad}
    asked = inbox.ask(Question(bad, bad, schema=schema, about="//elsewhere.example/"))
    inbox.add_rule(subject=bad, predicate=None)
    for path in ("/inbox", f"/inbox/{made.task_id}", f"/inbox/{asked.task.task_id}", "/"):
        page = pages.get(path)
        assert page.status_code == 200
        assert bad not in page.text, path
        assert 'href="javascript:' not in page.text
        assert 'href="//elsewhere' not in page.text


@pytest.mark.parametrize(
    ("schema", "kind", "given", "value"),
    [
        ({"type": "string"}, "long", "a\r\nb", "a\nb"),
        ({"type": "string", "maxLength": 20}, "text", "", ""),
        ({"type": "string", "pattern": "^a"}, "text", "abc", "abc"),
        ({"type": "integer"}, "number", "7", 7),
        ({"type": "number"}, "number", "7.5", 7.5),
        ({"type": "number"}, "number", "seven", "seven"),
        ({"type": ["integer", "null"]}, "number", "7", 7),
        ({"enum": ["a", 1, None]}, "choice", "1", 1),
        ({"const": "a"}, "choice", '"a"', "a"),
        ({"type": "boolean"}, "choice", "false", False),
        ({"anyOf": [{"type": "string"}]}, "json", '{"a": 1}', {"a": 1}),
        ({"$ref": "#/$defs/x", "$defs": {"x": {}}}, "json", "[1]", [1]),
        ({"type": "array"}, "json", "[]", []),
        ({}, "json", "null", None),
        (True, "json", "1", 1),
    ],
)
def test_a_schema_becomes_a_field(schema: Any, kind: str, given: str, value: Any) -> None:
    asked = field_of(schema)
    assert asked.kind == kind
    assert value_in(asked, {"answer": [given]}) == value


def test_a_diff_marks_the_words_or_lines_that_differ() -> None:
    shown = diff_of("name", "the old town", "the new town")
    assert [(each.text, each.differs) for each in shown.before] == [("the ", False), ("old", True), (" town", False)]
    assert [(each.text, each.differs) for each in shown.after] == [("the ", False), ("new", True), (" town", False)]
    lines = diff_of("tags", ["a", "b"], ["a", "c"])
    assert [each.text for each in lines.before if each.differs] == ['  "b"\n']
    assert [each.text for each in lines.after if each.differs] == ['  "c"\n']
    assert diff_of("new", None, "x").after[0].differs
    long = diff_of("long", "a " * 3000, "b " * 3000)
    assert [each.differs for each in (*long.before, *long.after)] == [True, True]
    assert diff_of("same", 5, 5).before == diff_of("same", 5, 5).after
