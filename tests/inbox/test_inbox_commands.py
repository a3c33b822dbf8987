"""`jobtable inbox`, on a store and through a server: the same commands with the same results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.inbox.labels import HERE, renaming
from tests.web.conftest import Served
from typer.testing import CliRunner

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.cli.main import app
from jobtable.cli.output import ExitCode
from jobtable.inbox import Question

Run = Callable[..., Any]


@pytest.fixture(params=["store", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Services, list[str]]]:
    """The services where the tasks are, and the options that lead a command there."""
    url = f"file:{tmp_path}/jobs.db"
    if request.param == "store":
        with Services.open(url) as services:
            _ = services.inbox
            yield services, ["--store", url]
        return
    served = Served(store=url, require_token=True)
    yield served.services, ["--server", served.url, "--token", served.token(Role.FULL)]
    served.stop()


@pytest.fixture
def services(place: tuple[Services, list[str]]) -> Services:
    place[0].engine.create_queue("q", description="A", priority=0)
    return place[0]


@pytest.fixture
def run(place: tuple[Services, list[str]]) -> Run:
    """Run `jobtable inbox` with some arguments; gives what it prints, as JSON if it was asked for."""

    def run(*arguments: str, code: int = 0, text: str | None = None) -> Any:
        result = CliRunner().invoke(app, [*place[1], "inbox", *arguments], input=text, env={"JOBTABLE_STORE": ""})
        assert result.exit_code == code, f"{result.exit_code}: {result.output}"
        return json.loads(result.stdout) if "--json" in arguments and code == 0 else result.output

    return run


def test_a_proposal_is_listed_shown_and_accepted(services: Services, run: Run) -> None:
    made = services.inbox.propose(renaming("q", reason="B is clearer", subject="label", cost_nanodollars=1_500_000))
    (listed,) = run("list", "--json")
    assert (listed["task_id"], listed["status"], listed["kind"]) == (made.task_id, "PENDING", "proposal")
    assert not {"token_sha256", "workflow", "due_at"} & listed.keys()
    assert run("list", "--system", "other") == "No tasks match.\n"
    assert made.task_id in run("list", "--system", "jobs", "--kind", "proposal")
    assert run("list", "--kind", "question") == "No tasks match.\n"
    assert "Describe q" in run("waiting")
    shown = run("show", made.task_id)
    assert all(each in shown for each in ("B is clearer", "$0.0015", "description", "label"))
    accepted = run("accept", made.task_id, "--user", "ada", "--json")
    assert [each["status"] for each in accepted] == ["ACCEPTED"]
    assert services.engine.queries.get_queue("q").description == "B"
    assert "already accepted" in run("accept", made.task_id, code=ExitCode.CONFLICT)
    assert "`jobtable inbox list` lists them" in run("show", "nobody", code=ExitCode.NOT_FOUND)


def test_of_many_each_is_closed_by_itself(services: Services, run: Run) -> None:
    good, stale = (services.inbox.propose(renaming("q", before=before)) for before in ("A", "Z"))
    said = run("accept", stale.task_id, good.task_id, code=ExitCode.CONFLICT)
    assert 'description was "Z" when it was proposed and is "A" now' in said
    assert services.engine.queries.get_queue("q").description == "B"
    rejected = run("reject", stale.task_id, "--remark", "too late", "--json")
    assert rejected[0]["remark"] == "too late"


@pytest.mark.parametrize(
    ("schema", "typed", "answer"),
    [
        (None, "here", "here"),
        (None, "5", "5"),
        ({"type": "integer"}, "5", 5),
        ({"enum": [True, False]}, "true", True),
        ({"type": "object", "required": ["n"]}, '{"n": 1}', {"n": 1}),
    ],
)
def test_an_answer_is_read_as_the_question_asks(
    services: Services, run: Run, schema: Any, typed: str, answer: Any
) -> None:
    task_id = services.inbox.ask(Question("Where?", schema=schema)).task.task_id
    answered = run("answer", task_id, typed, "--json")
    assert (answered["status"], answered["answer"]) == ("ANSWERED", answer)


def test_an_answer_comes_from_a_file_with_a_token(services: Services, run: Run, tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    task_id = services.inbox.ask(Question("Where?", schema=schema)).task.task_id
    token = run("token", task_id).strip()
    file = tmp_path / "answer.json"
    file.write_text('{"n": "x"}')
    assert "n: " in run("answer", task_id, "--file", str(file), code=ExitCode.FAILED)
    assert "does not belong" in run("answer", task_id, "5", "--token", "wrong", code=ExitCode.FAILED)
    assert "give either" in run("answer", task_id, code=ExitCode.USAGE)
    assert "is not JSON" in run("answer", task_id, "--file", "-", code=ExitCode.USAGE, text="{")
    run("answer", task_id, "--file", "-", "--token", token, text='{"n": 1}')
    assert services.inbox.get(task_id).answer == {"n": 1}


def test_a_task_is_withdrawn(services: Services, run: Run) -> None:
    task_id = services.inbox.ask(Question("Where?")).task.task_id
    assert run("withdraw", task_id, "--yes") == f"{task_id} withdrawn\n"
    assert "already withdrawn" in run("withdraw", task_id, "--yes", code=ExitCode.CONFLICT)


def test_rules_are_added_listed_and_removed(services: Services, run: Run) -> None:
    assert "every proposal waits for a person" in run("rules")
    assert "at least one condition" in run("add-rule", code=ExitCode.FAILED)
    assert "amount in dollars" in run("add-rule", "--cost", "a lot", code=ExitCode.USAGE)
    rule = run(
        "add-rule", "--subject", "label", "--field", "description", "--cost", "0.01", "--confidence", "0.9", "--json"
    )
    assert (rule["most_cost_nanodollars"], rule["fields"]) == (10_000_000, ["description"])
    said = "about a label, changes only description, cost at most $0.01, confidence at least 90%"
    assert said in run("rules")
    made = services.inbox.propose(renaming("q", subject="label", confidence=0.95))
    assert (made.status, made.closed_by) == ("ACCEPTED", f"rule {rule['rule_id']}")
    run("remove-rule", rule["rule_id"], "--yes")
    assert run("rules", "--json") == []
    assert "not marked with @accepts" in run("add-rule", "--predicate", f"{HERE}:unmarked", code=ExitCode.FAILED)
