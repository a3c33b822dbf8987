"""`jobtable assist try`, against the scripted service: one question, recorded as a job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import JOBTABLE, CommandLine

from jobtable.cli.output import ExitCode
from jobtable.testing.assist import AssistServer, Reply, failing

SECRET = "sk-this-is-a-secret"
_SETTINGS = """
[assist]
provider = "test"
prices = "prices.toml"
[assist.providers.test]
kind = "openai"
base_url = "{url}"
api_key_env = "TEST_KEY"
model = "gpt-5-mini"
embedding_model = "text-embedding-3-small"
"""
_PRICES = "date = 2025-11-01\n[models.openai.gpt-5-mini]\ninput = 1\noutput = 10\n"
_SCHEMA = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
_PATIENCE_SECONDS = 120


@pytest.fixture
def service(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Iterator[AssistServer]:
    """The scripted service, which the settings in the current folder name."""
    with AssistServer(keys=(SECRET,)) as server:
        Path("jobtable.toml").write_text(_SETTINGS.format(url=server.openai_url))
        Path("prices.toml").write_text(_PRICES)
        Path("schema.json").write_text(json.dumps(_SCHEMA))
        monkeypatch.setenv("TEST_KEY", SECRET)
        yield server


def start(cli: CommandLine, *arguments: str) -> subprocess.Popen[str]:
    """Start the command as a process of its own, as people do."""
    environment = os.environ | {"JOBTABLE_STORE": cli.store, "TERM": "dumb"}
    command = [str(JOBTABLE), "assist", "try", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def run(cli: CommandLine, *arguments: str, code: int = 0) -> tuple[str, str]:
    """Return what the command prints, on stdout and on stderr."""
    with start(cli, *arguments) as process:
        printed, told = process.communicate(timeout=_PATIENCE_SECONDS)
    assert process.returncode == code, f"{process.returncode}: {printed}{told}"
    assert SECRET not in printed + told
    return printed, told


def test_an_answer_is_printed_with_its_cost_and_its_job(cli: CommandLine, service: AssistServer) -> None:
    service.script(Reply("Lima", tokens_in=100, tokens_out=10))
    printed, told = run(cli, "Which city is the capital of Peru?", "--max-cost", "1")
    assert printed == "Lima\n"
    cost, job = told.splitlines()
    assert cost.endswith("of test: 100 tokens in, 10 out, $0.0002")
    job_id = job.removeprefix("The job is ")
    shown = cli.json("jobs", "show", job_id)["job"]
    assert (shown["job_type"], shown["status"], shown["result"]) == ("assist-try", "COMPLETED", "Lima")
    assert "Every total" in cli.run("assist", "recount", job_id).stderr
    assert cli.json("queues", "list") == []


def test_an_answer_by_a_schema_is_asked_for_again_until_it_follows_it(cli: CommandLine, service: AssistServer) -> None:
    service.script(Reply('{"total": "twelve"}'), Reply('{"total": 12.5}'))
    tried = json.loads(run(cli, "What is the total?", "--output-schema", "schema.json", "--json")[0])
    assert tried["answer"] == {"total": 12.5}
    refused, answered = tried["calls"]
    assert (refused["status"], refused["error"]) == ("REFUSED", 'total: "twelve" is not of type "number"')
    assert answered["follows"] == refused["call_id"]
    shown = cli.json("assist", "show", tried["job_id"], refused["call_id"])
    assert shown["request"]["schema"] == _SCHEMA
    assert shown["next_call_id"] == answered["call_id"]


def test_a_text_is_embedded(cli: CommandLine, service: AssistServer) -> None:
    tried = json.loads(run(cli, "good coffee", "--embed", "--json")[0])
    assert len(tried["answer"]) == 8
    assert [each["kind"] for each in tried["calls"]] == ["embed"]


def test_a_failure_is_told_in_one_line_with_the_job(cli: CommandLine, service: AssistServer) -> None:
    service.script(failing("unauthorized"))
    printed, told = run(cli, "hello", code=ExitCode.NOT_COMPLETED)
    assert printed == ""
    assert told.startswith("FAILED: ProviderError: provider test answered 401")
    assert len(told.splitlines()) == 3
    assert service.charges == []


def test_what_would_cost_too_much_is_not_sent(cli: CommandLine, service: AssistServer) -> None:
    _, told = run(cli, "hello", "--max-cost", "0.000001", code=ExitCode.NOT_COMPLETED)
    assert "BudgetExceededError" in told
    assert service.questions == []


def test_ctrl_c_cancels_the_job(cli: CommandLine, service: AssistServer) -> None:
    service.script(Reply("too late", held="answer"))
    with start(cli, "hello") as process:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not service.questions:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=_PATIENCE_SECONDS)
    assert process.returncode == ExitCode.INTERRUPTED
    (job,) = cli.json("jobs", "list")
    assert job["status"] == "CANCELLED"
    assert "Every total" in cli.run("assist", "recount", job["job_id"]).stderr
    assert cli.json("queues", "list") == []


def test_without_a_provider_nothing_is_made(cli: CommandLine) -> None:
    result = cli.run("assist", "try", "hello", code=ExitCode.FAILED)
    assert "no provider of models is set; set [assist] provider in jobtable.toml" in result.stderr
    missing = cli.run("assist", "try", "hello", "--provider", "gone", code=ExitCode.NOT_FOUND)
    assert "`jobtable assist providers` lists them" in missing.stderr
    assert cli.json("jobs", "list") == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "cannot read a JSON schema"),
        ("[]", "is not a JSON schema; write an object"),
        ('{"type": "objekt"}', "is not a JSON schema"),
        ('{"$ref": "http://127.0.0.1:9/schema"}', "write everything into one file"),
    ],
)
def test_a_schema_that_is_none_is_refused_before_anything_is_asked(
    cli: CommandLine, service: AssistServer, text: str, told: str
) -> None:
    Path("schema.json").write_text(text)
    assert told in cli.run("assist", "try", "hello", "--output-schema", "schema.json", code=ExitCode.FAILED).stderr
    cli.run("assist", "try", "hello", "--output-schema", "schema.json", "--embed", code=ExitCode.USAGE)
    assert service.questions == []
    assert cli.json("jobs", "list") == []
