"""`jobtable assist` in this process: calls, costs and providers, from records as the ledger writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import CommandLine
from tests.web.assist_world import ANSWERED, EMBEDDED, JOB, LARGE, REFUSED, WITHOUT, fill_calls

from jobtable.app import Services
from jobtable.assist.entities import AssistTotal
from jobtable.cli.output import ExitCode

SECRET = "sk-this-is-a-secret"


@pytest.fixture
def world(cli: CommandLine) -> CommandLine:
    """The command line on a store with calls of every status."""
    with Services.open(cli.store) as services:
        fill_calls(services)
    return cli


def test_the_calls_of_a_job_are_listed_with_what_they_used(world: CommandLine) -> None:
    found = world.json("assist", "calls", JOB)
    assert [each["call_id"] for each in found["calls"]][:2] == [REFUSED, ANSWERED]
    assert found["used"]["job"]["calls"] == found["used"]["tree"]["calls"] == 5
    text = world.run("assist", "calls", JOB).stdout
    for told in ("read receipt", "REFUSED", "no price known", "reused", "$0.000283", "Used", "$0.000582", "tree"):
        assert told in text, told
    assert len(world.json("assist", "calls", JOB, "--limit", "2")["calls"]) == 2
    assert "There are more" in world.run("assist", "calls", JOB, "--limit", "2").stderr
    assert "NOT_ASKED" in world.run("assist", "calls", WITHOUT).stdout


def test_a_job_that_asked_nobody_says_so(world: CommandLine) -> None:
    plain = world.json("jobs", "submit", "--task", "m:f")["job_id"]
    assert "The job asked no model." in world.run("assist", "calls", plain).stderr
    assert world.json("assist", "calls", plain) == {"calls": [], "used": {"job": None, "tree": None}}
    world.run("assist", "calls", "none", code=ExitCode.NOT_FOUND)


def test_a_call_is_shown_with_prompt_and_answer(world: CommandLine) -> None:
    shown = world.json("assist", "show", JOB, REFUSED)
    assert shown["next_call_id"] == ANSWERED
    assert shown["request"]["messages"][1]["content"] == "TRADER JOE'S\nTOTAL 12.50"
    text = world.run("assist", "show", JOB, REFUSED).stdout
    for told in ("TOTAL 12.50", "twelve", "Input should be a valid number", ANSWERED, "merchant"):
        assert told in text, told
    assert "A long story." in world.run("assist", "show", JOB, LARGE).stdout
    assert "bad service" in world.run("assist", "show", JOB, EMBEDDED).stdout
    missing = world.run("assist", "show", JOB, "none", code=ExitCode.NOT_FOUND)
    assert "`jobtable assist calls JOB` lists them" in missing.stderr


def test_costs_are_summed_by_what_is_asked_for(world: CommandLine) -> None:
    (by_day,) = world.json("assist", "costs")
    assert (by_day["calls"], by_day["cost_nanodollars"], by_day["model"]) == (5, 582_240, None)
    models = world.json("assist", "costs", "--by", "model", "--by", "system")
    assert [(each["model"], each["system"]) for each in models] == [
        ("gpt-5-mini", "jobs"),
        ("text-embedding-3-small", "jobs"),
        ("own", "jobs"),
    ]
    text = world.run("assist", "costs", "--by", "purpose").stdout
    for told in ("read receipt", "$0.000566", "tell", "no price"):
        assert told in text, told
    assert "No model was asked" in world.run("assist", "costs", "--from", "2020-01-01", "--to", "2020-01-31").stderr
    wrong = world.run("assist", "costs", "--from", "yesterday", code=ExitCode.USAGE)
    assert "is not a day" in wrong.stderr
    world.run("assist", "costs", "--from", "2025-02-01", "--to", "2025-01-01", code=ExitCode.FAILED)


def test_a_total_that_differs_from_its_calls_is_told(world: CommandLine) -> None:
    assert "Every total is the sum of its calls." in world.run("assist", "recount", JOB).stderr
    with Services.open(world.store) as services:
        services.store.update(AssistTotal.key(job_id=JOB, scope="job"), AssistTotal.calls.set(9))
    (found,) = world.json("assist", "recount", JOB, code=ExitCode.FAILED)
    assert found == {"of": f"job {JOB}", "measure": "calls", "total": 9, "counted": 5}
    assert "calls" in world.run("assist", "recount", JOB, code=ExitCode.FAILED).stdout


def test_providers_are_listed_without_a_store_and_without_keys(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    none, local = cli.json("assist", "providers")
    assert (none["kind"], none["is_asked"], local["kind"], local["makes_vectors"]) == ("none", True, "local", True)
    assert "nothing is sent to anybody" in cli.run("assist", "providers").stderr
    Path("jobtable.toml").write_text(
        '[assist]\nprovider = "openai"\n[assist.providers.openai]\nkind = "openai"\nmodel = "gpt-5-mini"\n'
        '[assist.providers.own]\nkind = "openai"\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "OWN_KEY"\n'
    )
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OWN_KEY", SECRET)
    result = cli.run("assist", "providers")
    assert "the variable OPENAI_API_KEY is not set here" in result.stdout
    assert SECRET not in result.output
    problems = {each["name"]: each["problem"] for each in cli.json("assist", "providers")}
    assert list(problems) == ["openai", "local", "own"]  # vectors are made here, where no model of them is named
    assert problems["own"] is None
    assert not Path(cli.store.removeprefix("file:")).exists()
