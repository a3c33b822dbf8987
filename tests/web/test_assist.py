"""Calls of models over HTTP: routes with their roles, and pages without a browser and with one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # published without types
from playwright.sync_api import Browser, expect
from tests.web.assist_world import (
    ANSWERED,
    EMBEDDED,
    FAILED,
    JOB,
    LARGE,
    OPEN,
    REFUSED,
    REUSED,
    WITHOUT,
    fill_calls,
    paths,
)
from tests.web.browsing import Watched, open_live, watch
from tests.web.conftest import Served
from tests.web.world import MARKUP

from jobtable.access.entities import Role
from jobtable.assist.entities import AssistCall, AssistCost, CallStatus
from jobtable.clock import wall_time

API = "/api/v1"
SECRET = "sk-this-is-a-secret"
SETTINGS = """
[assist]
provider = "openai"
[assist.providers.openai]
kind = "openai"
model = "gpt-5-mini"
embedding_model = "text-embedding-3-small"
[assist.providers.other]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
api_key_env = "OTHER_KEY"
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    server = Served(require_token=True)
    fill_calls(server.services, MARKUP)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def open_served() -> Iterator[Served]:
    """A server that a browser can use without a token."""
    server = Served()
    fill_calls(server.services, MARKUP)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(served: Served) -> httpx.Client:
    return served.client(Role.READ)


@pytest.fixture(scope="module")
def pages(served: Served) -> httpx.Client:
    return served.client(Role.READ, Accept="text/html")


@pytest.fixture
def watched(browser: Browser, open_served: Served) -> Iterator[Watched]:
    yield from watch(browser, open_served)


def read(client: httpx.Client, path: str) -> Any:
    answer = client.get(f"{API}{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


# --- routes


def test_the_calls_of_a_job_come_in_pages_in_order_of_time(client: httpx.Client) -> None:
    every = [REFUSED, ANSWERED, LARGE, EMBEDDED, OPEN, FAILED, REUSED]
    first = read(client, f"/jobs/{JOB}/assist/calls?limit=4")
    rest = read(client, f"/jobs/{JOB}/assist/calls?limit=4&cursor={first['cursor']}")
    assert [each["call_id"] for each in (*first["items"], *rest["items"])] == every
    newest = read(client, f"/jobs/{JOB}/assist/calls?newest_first=true")["items"]
    assert [each["call_id"] for each in newest] == every[::-1]
    assert client.get(f"{API}/jobs/none/assist/calls").status_code == 404


def test_the_calls_of_a_day_are_those_of_all_jobs(served: Served, client: httpx.Client) -> None:
    day = served.services.assist.get_call(JOB, REFUSED).date
    found = read(client, f"/assist/days/{day}/calls")["items"]
    assert {each["job_id"] for each in found} == {JOB, WITHOUT}
    assert read(client, "/assist/days/2020-01-01/calls")["items"] == []


def test_a_call_has_its_request_and_its_answer(client: httpx.Client) -> None:
    refused = read(client, f"/assist/calls/{JOB}/{REFUSED}")
    assert refused["next_call_id"] == ANSWERED
    assert refused["request"]["messages"][1] == {"role": "user", "content": "TRADER JOE'S\nTOTAL 12.50"}
    assert refused["answer"] == f'{{"total": "twelve {MARKUP}"}}'
    assert read(client, f"/assist/calls/{JOB}/{LARGE}")["answer"].startswith("A long story.")
    assert read(client, f"/assist/calls/{JOB}/{EMBEDDED}")["answer"]["dimensions"] == 3
    assert client.get(f"{API}/assist/calls/{JOB}/none").status_code == 404


def test_what_a_job_used_is_told_without_its_calls(client: httpx.Client) -> None:
    found = read(client, f"/jobs/{JOB}/assist/usage")
    assert (found["job"]["calls"], found["job"]["cost_nanodollars"]) == (5, 582_240)
    assert found["tree"]["calls"] == 5
    assert read(client, f"/jobs/{WITHOUT}/assist/usage") == {"job": None, "tree": None}
    assert client.get(f"{API}/jobs/none/assist/usage").status_code == 404


def test_costs_are_summed_by_what_is_asked_for(served: Served, client: httpx.Client) -> None:
    (total,) = read(client, "/assist/costs")["sums"]
    assert (total["calls"], total["failed_calls"], total["unpriced_calls"]) == (5, 1, 1)
    assert total["cost_nanodollars"] == 582_240
    by_model = read(client, "/assist/costs?by=model&by=provider&by=model")["sums"]
    assert [each["model"] for each in by_model] == ["gpt-5-mini", "text-embedding-3-small", "own"]
    assert {each["provider"] for each in by_model} == {"openai"}
    day = str(served.services.assist.get_call(JOB, REFUSED).date)
    assert [each["date"] for each in read(client, f"/assist/costs?by=date&from={day}&to={day}")["sums"]] == [day]
    assert read(client, "/assist/costs?from=2020-01-01&to=2020-01-31")["sums"] == []
    for wrong in ("by=job", "from=today", "from=2025-02-01&to=2025-01-01", "from=2020-01-01&to=2025-01-01"):
        assert client.get(f"{API}/assist/costs?{wrong}").status_code in (400, 422), wrong


def test_workers_do_not_read_what_others_asked(served: Served) -> None:
    worker = served.client(Role.WORKER)
    of_job, of_all = f"/jobs/{JOB}/assist", "/assist"
    for path in (f"{of_job}/calls", f"{of_job}/usage", f"{of_all}/costs", f"{of_all}/days/2025-11-01/calls"):
        assert worker.get(f"{API}{path}").status_code == 403, path
    assert worker.get(f"{API}/assist/calls/{JOB}/{ANSWERED}").status_code == 403
    assert worker.get(f"/assist/calls/{JOB}/{ANSWERED}").status_code == 403


def test_prometheus_is_told_what_models_used_today(served: Served, client: httpx.Client) -> None:
    store = served.services.store
    today = wall_time(store.clock).date()
    day: dict[str, Any] = {"date": today, "system": "jobs", "provider": "measured", "model": "m"}
    for purpose, failed in (("one", 1), ("two", 0)):
        used: dict[str, Any] = {
            "calls": 2,
            "failed_calls": failed,
            "tokens_in": 30,
            "tokens_out": 4,
            "cost_nanodollars": 250_000_000,
        }
        store.add(AssistCost(**day, purpose=purpose, **used))
    store.add(AssistCost(**{**day, "date": today - timedelta(days=1)}, purpose="one", calls=99))
    told = dict(
        re.findall(r'jobtable_assist_(\w+)_total\{model="m",provider="measured"\} (\S+)', client.get("/metrics").text)
    )
    assert {name: float(value) for name, value in told.items()} == {
        "calls": 4,
        "failed_calls": 1,
        "unpriced_calls": 0,
        "tokens_in": 60,
        "tokens_out": 8,
        "cost_dollars": 0.5,
    }
    for each in store.query(AssistCost.key(), where=AssistCost.provider == "measured"):
        store.delete(each)


# --- pages


def test_the_page_of_a_job_lists_its_calls(pages: httpx.Client) -> None:
    page = pages.get(f"/jobs/{JOB}").text
    assert "Models asked" in page
    assert page.index(REUSED) < page.index(REFUSED)
    for told in (
        "5 calls",
        "$0.000582",
        "1 call of no known price",
        "no price known",
        "reused",
        "try 2",
        "$0.50",
        "$0.0025 reserved",
    ):
        assert told in page, told
    assert "Models asked" in pages.get(f"/jobs/{WITHOUT}").text


def test_the_page_of_a_job_that_asked_nobody_says_nothing_of_models(served: Served) -> None:
    writer = served.client(Role.FULL, Accept="text/html")
    job = writer.post(f"{API}/jobs", json={"task": "m:f", "name": "plain"}, headers={"Accept": "*/*"}).json()
    assert "Models asked" not in writer.get(f"/jobs/{job['job_id']}").text


def test_many_calls_of_a_job_come_in_pages(served: Served, pages: httpx.Client) -> None:
    assist, writer = served.services.assist, served.client(Role.FULL)
    writer.post(f"{API}/jobs", json={"task": "m:f", "name": "many", "job_id": "many"}).raise_for_status()
    one = assist.get_call(JOB, ANSWERED)
    for number in range(25):
        at = one.started_at - timedelta(days=400, seconds=number)
        assist.store.put(one.replace(job_id="many", call_id=f"chat-{number}", started_at=at, date=at.date()))
    first = pages.get("/jobs/many").text
    (following,) = re.findall(r'href="(/jobs/many\?calls=[^"#]+)#models"', first)
    second = pages.get(following).text
    found = [set(re.findall(r"/assist/calls/many/(chat-\d+)", page)) for page in (first, second)]
    assert [len(each) for each in found] == [20, 5]
    assert not found[0] & found[1]


def test_a_call_is_shown_with_all_that_was_said(pages: httpx.Client) -> None:
    refused = pages.get(f"/assist/calls/{JOB}/{REFUSED}").text
    assert f'href="/assist/calls/{JOB}/{ANSWERED}"' in refused
    for told in ("total: Input should be a valid number", "TRADER JOE&#39;S", "&#34;merchant&#34;", "sent back"):
        assert told in refused, told
    answered = pages.get(f"/assist/calls/{JOB}/{ANSWERED}").text
    assert "gpt-5-mini-2025-08-07" in answered
    assert "sent 3 times" in answered
    large = pages.get(f"/assist/calls/{JOB}/{LARGE}").text
    assert "68,000 more characters" in large
    assert f"{LARGE}.answer.json" in large
    assert "2 vectors of 3 numbers" in pages.get(f"/assist/calls/{JOB}/{EMBEDDED}").text
    assert "No model was asked" in pages.get(f"/assist/calls/{WITHOUT}/{ANSWERED}").text
    assert f'href="/assist/calls/{JOB}/{ANSWERED}"' in pages.get(f"/assist/calls/{JOB}/{REUSED}").text


def test_a_batch_is_shown_by_its_lines(served: Served, pages: httpx.Client) -> None:
    assist = served.services.assist
    lines = [
        {"messages": [{"role": "user", "content": f"comment {n}"}], "schema": {"type": "object"}} for n in range(250)
    ]
    key = "jobs/deleted-job/assist/chat-batch.request.json"
    served.services.objects.put(key, json.dumps({"batch": 1, "requests": lines}).encode())
    answers = [{"id": "line-1", "text": "spam", "finish": "stop"}]
    call = assist.get_call(JOB, ANSWERED).replace(job_id="deleted-job", call_id="chat-batch", request_key=key)
    assist.store.put(call.replace(answer=answers, date=call.date - timedelta(days=400)))
    page = pages.get("/assist/calls/deleted-job/chat-batch").text
    for told in ("the first 200 of 250", "Line 200", "comment 199", "Schema of the answer", "spam", "a deleted job"):
        assert told in page, told
    assert "comment 200" not in page


def test_a_call_whose_text_is_gone_says_so(served: Served, pages: httpx.Client) -> None:
    assist = served.services.assist
    key = f"jobs/{JOB}/assist/{LARGE}.answer.json"
    kept = served.services.objects.get(key)
    served.services.objects.delete(key)
    page = pages.get(f"/assist/calls/{JOB}/{LARGE}")
    served.services.objects.put(key, kept)
    assert page.status_code == 200
    assert "The object store no longer has it." in page.text
    assert assist.get_call(JOB, LARGE).status is CallStatus.ANSWERED


def test_the_page_of_costs_says_what_is_missing(pages: httpx.Client) -> None:
    page = pages.get("/assist").text
    for told in ("1 call has no known price", "no price known", "text-embedding-3-small", "1 failed"):
        assert told in page, told
    assert pages.get("/assist?from=&to=").status_code == 200
    assert "No model was asked in these days" in pages.get("/assist?from=2020-01-01&to=2020-01-31").text
    assert "is not a day" in pages.get("/assist?from=yesterday").text


def use_settings(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let the server read these settings, as it does from the folder in which it was started."""
    (folder / "jobtable.toml").write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OTHER_KEY", SECRET)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_providers_are_told_without_their_keys(
    client: httpx.Client, pages: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_settings(tmp_path, monkeypatch, SETTINGS)
    asked, other = read(client, "/assist/providers")
    assert (asked["name"], asked["is_asked"], asked["problem"]) == (
        "openai", True, "the variable OPENAI_API_KEY is not set here",
    )  # fmt: skip
    assert (other["name"], other["problem"], other["base_url"]) == ("other", None, "http://127.0.0.1:9/v1")
    page = pages.get("/assist").text
    for told in (
        "the variable OPENAI_API_KEY is not set here",
        "http://127.0.0.1:9/v1",
        "unusable",
        "asked by default",
    ):
        assert told in page, told
    assert SECRET not in page + str([asked, other])


def test_wrong_settings_are_told_and_the_costs_are_shown_all_the_same(
    client: httpx.Client, pages: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_settings(tmp_path, monkeypatch, "[assist]\nprovider = 'gone'\n")
    page = pages.get("/assist")
    assert page.status_code == 200
    assert "there is no provider &#39;gone&#39;" in page.text
    assert "By purpose" in page.text
    assert client.get(f"{API}/assist/providers").status_code == 500


def test_no_provider_is_an_empty_state(pages: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_settings(tmp_path, monkeypatch, "")
    assert "Nothing is sent to anybody" in pages.get("/assist").text


# --- in a browser


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light"), (390, "light"), (1280, "dark")])
def test_every_page_is_clean(
    browser: Browser, open_served: Served, width: int, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_settings(tmp_path, monkeypatch, SETTINGS)
    shown = Watched(browser, open_served, width, scheme)
    for path in paths():
        shown.page.goto(path)
        shown.page.wait_for_load_state("load")
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width, path
        hidden = "[0, ...[...document.querySelectorAll('.scroll')].map(each => each.scrollWidth - each.clientWidth)]"
        assert max(shown.page.evaluate(hidden)) <= 0, path
        found = Axe().run(shown.page, options={"resultTypes": ["violations"]})
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
        assert shown.complaints == [], path
    shown.close()


def test_calls_and_costs_appear_as_they_happen(watched: Watched, open_served: Served) -> None:
    page, assist = watched.page, open_served.services.assist
    one = assist.get_call(JOB, ANSWERED)
    now = wall_time(assist.store.clock)
    open_live(page, f"/jobs/{JOB}")
    call = one.replace(call_id="chat-new", purpose="greet", started_at=now, status=CallStatus.STARTED)
    assist.store.add(call)
    row = page.locator("#models tr", has_text="greet")
    expect(row.locator(".badge")).to_have_text("started")
    row.locator("a").first.click()
    open_live(page, page.url.removeprefix(open_served.url))
    assist.store.put(call.replace(status=CallStatus.ANSWERED, answer="hello"))
    page.get_by_text("hello").wait_for()
    open_live(page, "/assist")
    tile = page.locator(".tile", has_text="Calls").locator(".tile-value")
    before = int(tile.inner_text())
    cost = AssistCost.key(date=now.date(), system="jobs", purpose="greet", provider="openai", model="gpt-5-mini")
    assist.store.upsert(cost, AssistCost.calls.increment(3), AssistCost.cost_nanodollars.increment(10**9))
    expect(tile).to_have_text(str(before + 3))
    page.get_by_text("By purpose").wait_for()
    assert page.locator("td", has_text="greet").count() >= 1
    assert isinstance(assist.get_call(JOB, "chat-new"), AssistCall)
