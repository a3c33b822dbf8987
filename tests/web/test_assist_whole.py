"""From a task that asks the scripted service to pages, routes and commands: all tell the same, and a recount agrees."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from pydantic import BaseModel
from tests.cli.conftest import JOBTABLE, CommandLine
from tests.running import run_jobs
from tests.web.browsing import Watched, open_live, watch
from tests.web.conftest import Served

from jobtable.assist.recount import Recount
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob, ParentWaits
from jobtable.jobs.tasks import task
from jobtable.testing.assist import AssistServer, Reply, failing

SECRET = "sk-planted-and-never-told"
_SETTINGS = """
[assist]
provider = "test"
prices = "prices.toml"
[assist.providers.test]
kind = "openai"
base_url = "{url}"
api_key_env = "TEST_KEY"
model = "gpt-5-mini"
embedding_model = "own-vectors"
"""
_PRICES = """
date = 2025-11-01
[models.openai.gpt-5-mini]
input = 1
output = 10
"""


class Receipt(BaseModel):
    """What a receipt says."""

    merchant: str
    total: float


@task
def read_receipt(job: JobContext, text: str) -> dict[str, Any]:
    """Ask for a receipt's fields, and for the vector of its text."""
    receipt = job.assist("read receipt", f"Read this receipt:\n{text}", output=Receipt)
    job.embed([text])
    return receipt.model_dump()


@task
def label(job: JobContext) -> str:
    """Ask without a schema, as a child."""
    return str(job.assist("label", "Name a label."))


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line on a new store, in a new folder."""
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path)


@pytest.fixture
def service(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Iterator[AssistServer]:
    with AssistServer(keys=(SECRET,)) as server:
        Path("jobtable.toml").write_text(_SETTINGS.format(url=server.openai_url))
        Path("prices.toml").write_text(_PRICES)
        monkeypatch.setenv("TEST_KEY", SECRET)
        yield server


@pytest.fixture
def served(cli: CommandLine, service: AssistServer) -> Iterator[Served]:
    server = Served(store=cli.store)
    yield server
    server.stop()


@pytest.fixture
def watched(browser: Browser, served: Served) -> Iterator[Watched]:
    yield from watch(browser, served)


def submit(served: Served) -> tuple[Job, Job]:
    """Submit a group with one job that reads a receipt and one that labels it; return the group and the first."""
    jobs = served.services.engine
    group = jobs.open_group(NewJob(name="receipts"))
    under: dict[str, Any] = {"parent_job_id": group.job_id, "parent_waits": ParentWaits()}
    reading = jobs.submit(NewJob(name="read", task=read_receipt, params={"text": "TOTAL 12.50"}, **under))
    jobs.submit(NewJob(name="label", task=label, **under))
    jobs.seal(group.job_id)
    return group, reading


def test_pages_routes_and_commands_tell_the_same(
    watched: Watched, served: Served, service: AssistServer, cli: CommandLine
) -> None:
    page, services = watched.page, served.services
    group, reading = submit(served)
    open_live(page, f"/jobs/{reading.job_id}")
    service.script(
        failing("rate_limited", retry_after=0.01),
        Reply('{"merchant": "Trader Joe\'s", "total": "twelve"}', tokens_in=1000, tokens_out=20),
        Reply('{"merchant": "Trader Joe\'s", "total": 12.5}', tokens_in=2000, tokens_out=30),
    )
    assert run_jobs(services.engine, "default") == 2

    # the pages, live and by their links
    expect(page.locator("#models tbody tr")).to_have_count(3)
    expect(page.locator("#models")).to_contain_text("no price known")  # of the vectors
    page.locator("#models tr", has_text="refused").locator("a").first.click()
    expect(page.locator("main")).to_contain_text("total: input should be a valid number")
    expect(page.locator("main")).to_contain_text("Read this receipt")
    page.get_by_role("link", name="next try").click()
    expect(page.locator("main")).to_contain_text('"total": 12.5')
    expect(page.locator("main")).to_contain_text("Sends back the answer of try 1")
    page.goto("/assist")
    page.locator("td", has_text="read receipt").first.wait_for()
    page.goto(f"/jobs/{group.job_id}")
    expect(page.locator("#models")).to_contain_text("Its tree")

    # routes, commands and the recount
    client = served.client()
    calls = client.get(f"/api/v1/jobs/{reading.job_id}/assist/calls").json()["items"]
    told = cli.json("assist", "calls", reading.job_id)
    assert told["calls"] == calls
    asked = [(each["status"], each["tokens_in"], each["tokens_out"], each["cost_nanodollars"]) for each in calls]
    assert asked[:2] == [("REFUSED", 1000, 20, 1_200_000), ("ANSWERED", 2000, 30, 2_300_000)]
    assert asked[2][0] == "ANSWERED"
    usage = client.get(f"/api/v1/jobs/{group.job_id}/assist/usage").json()
    assert cli.json("assist", "calls", group.job_id)["used"] == usage
    assert (usage["tree"]["calls"], usage["tree"]["unpriced_calls"]) == (4, 1)
    sums = client.get("/api/v1/assist/costs", params={"by": ["provider", "model"]}).json()["sums"]
    assert cli.json("assist", "costs", "--by", "model") == sums
    assert sum(each["cost_nanodollars"] for each in sums) == usage["tree"]["cost_nanodollars"]
    assert cli.json("assist", "recount", group.job_id) == cli.json("assist", "recount", reading.job_id) == []
    day = services.assist.get_call(reading.job_id, calls[0]["call_id"]).date
    assert Recount(services.assist).of_days(day, day) == []
    assert sum(each.tokens_in for each in service.charges) == usage["tree"]["tokens_in"]


def test_the_key_is_nowhere(served: Served, service: AssistServer, cli: CommandLine, tmp_path: Path) -> None:
    group, reading = submit(served)
    service.script(failing("unauthorized"))
    run_jobs(served.services.engine, "default")
    client = served.client()
    calls = client.get(f"/api/v1/jobs/{reading.job_id}/assist/calls").json()["items"]
    paths = [f"/jobs/{reading.job_id}", f"/jobs/{group.job_id}", "/assist", "/api/v1/assist/providers", "/metrics"]
    of_calls = [f"/assist/calls/{reading.job_id}/{call['call_id']}" for call in calls]
    paths += [*of_calls, *(f"/api/v1{path}" for path in of_calls)]
    shown = [client.get(path).text for path in paths]
    shown += [cli.run("assist", *command).output for command in (["providers"], ["calls", reading.job_id], ["costs"])]
    assert SECRET not in json.dumps(shown)
    stored = [file for file in tmp_path.rglob("*") if file.is_file() and file.name != "jobtable.toml"]
    assert len(stored) > 3
    assert [file for file in stored if SECRET.encode() in file.read_bytes()] == []
    assert any(request.headers.get("authorization") == f"Bearer {SECRET}" for request in service.requests)


def test_a_deleted_job_leaves_its_costs_and_no_prompt(served: Served, service: AssistServer, cli: CommandLine) -> None:
    group, reading = submit(served)
    service.script(Reply('{"merchant": "Trader Joe\'s", "total": 12.5}', tokens_in=2000, tokens_out=30))
    run_jobs(served.services.engine, "default")
    (call, *_) = cli.json("assist", "calls", reading.job_id)["calls"]
    cli.run("jobs", "delete", group.job_id, "--tree", "--yes")
    client = served.client()
    assert client.get(f"/api/v1/assist/calls/{reading.job_id}/{call['call_id']}").status_code == 404
    assert client.get(f"/api/v1/objects/{call['request_key']}").status_code == 404
    assert client.get(f"/assist/calls/{reading.job_id}/{call['call_id']}").status_code == 404
    (by_purpose, *_) = cli.json("assist", "costs", "--by", "purpose")
    assert (by_purpose["purpose"], by_purpose["cost_nanodollars"]) == ("read receipt", 2_300_000)
    assert "By purpose" in client.get("/assist").text


def test_through_a_server_everything_is_told_and_tried(served: Served, service: AssistServer, cli: CommandLine) -> None:
    _, reading = submit(served)
    service.script(Reply('{"merchant": "Trader Joe\'s", "total": 12.5}', tokens_in=2000, tokens_out=30))
    run_jobs(served.services.engine, "default")
    through = f"--server={served.url}"
    for command in (["calls", reading.job_id], ["costs", "--by", "model"], ["providers"], ["recount", reading.job_id]):
        assert cli.json(through, "assist", *command) == cli.json("assist", *command)
    (call, *_) = cli.json("assist", "calls", reading.job_id)["calls"]
    shown = cli.json(through, "assist", "show", reading.job_id, call["call_id"])
    assert shown == cli.json("assist", "show", reading.job_id, call["call_id"])

    service.script(Reply("Lima", tokens_in=100, tokens_out=10))
    command = [str(JOBTABLE), through, "assist", "try", "Which city is the capital of Peru?", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    tried = json.loads(done.stdout)
    assert (tried["answer"], tried["calls"][0]["cost_nanodollars"]) == ("Lima", 200_000)
    assert cli.json("assist", "calls", tried["job_id"])["calls"] == tried["calls"]
    assert cli.json("assist", "recount", tried["job_id"]) == []
    assert served.services.jobs.queries.get_job(tried["job_id"]).status is Status.COMPLETED
