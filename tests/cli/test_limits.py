"""Commands that list things say when there are more than they show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.conftest import CommandLine
from tests.cli.test_reference import ALL
from tests.contributions import contributions
from tests.golden import TIMES, golden

from jobtable.app import Services
from jobtable.cli.output import first_of
from jobtable.model import Entity

MORE = "There are more; use a larger --limit to see them.\n"
LISTS = [
    "jobs list --status running",
    "jobs list --parent sweep-1",
    "jobs list --queue gpu",
    "jobs list --user ada",
    "jobs list --status running --tag night",
    "jobs metrics sweep-1",
    "jobs metrics sweep-1 --name val_loss",
    "jobs checkpoints job-0",
    "jobs artifacts job-0",
    "queues list",
    "queues show gpu",
    "workers list",
    "workers list --all",
    "workers show i-0",
    "objects list",
    "machines list",
    "machines versions orders",
    "workflows list",
    "workflows list orders",
    "workflows map-runs orders/order-7",
    "activities list",
    "functions list",
    "functions executions charge",
    "functions show charge/order-0",
    "assist calls job-0",
    "inbox list",
    "inbox list --system jobs",
    "inbox rules",
    *(command for system in contributions("lists") for command in system.LISTS),
]
ASKED_FOR = {
    "jobtable inbox waiting": "what waits in all systems is merged in memory, and printed like the other lists",
    "jobtable jobs logs": "without --limit it prints all, and with it stops reading what may be gigabytes",
    **{command: why for system in contributions("lists") for command, why in system.ASKED_FOR.items()},
}
"""Commands whose limit nobody takes for the end of what there is."""
LAST_SHOWN = {command for system in contributions("lists") for command in system.LAST_SHOWN}
"""Commands that show the last of what they list."""


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A store with three of everything that is listed."""
    cli = CommandLine(tmp_path_factory.mktemp("full"))
    with Services.open(cli.store) as services:
        services.prepare_all()
        for system in contributions("lists"):
            for entity in system.listed():
                services.store.put(entity)
        for entity in _listed_by_the_core():
            services.store.put(entity)
        for number in range(3):
            services.objects.put(f"jobs/job-{number}/file", b"")
    return cli


def _listed_by_the_core() -> Iterator[Entity]:
    """The golden items, each three times with another identity, and what they are under."""
    yield golden(
        "jobs/Job", job_id="sweep-1", parent_job_id=None, root_job_id=None, status="COMPLETED", created_by="me"
    )
    for number, at in enumerate(TIMES):
        yield golden("jobs/Job", job_id=f"job-{number}", created_at=at, root_job_id="sweep-1", queue_name="gpu")
        yield golden("jobs/JobMetric", timestamp=at)
        yield golden("jobs/JobCheckpoint", job_id="job-0", timestamp=at)
        yield golden("jobs/JobArtifact", job_id="job-0", name=f"file-{number}")
        yield golden("jobs/Queue", queue_name=["gpu", "cpu", "tpu"][number])
        yield golden("jobs/QueueJob", job_id=f"job-{number}", enqueued_at=at)
        yield golden("jobs/Instance", instance_id=f"i-{number}")
        yield golden("jobs/InstanceJob", instance_id="i-0", job_id=f"job-{number}")
        yield golden("workflows/StateMachine", name=["orders", "returns", "prices"][number])
        yield golden("workflows/StateMachineVersion", number=number + 1)
        yield golden("workflows/Execution", name=f"order-{number + 7}", started_at=at)
        yield golden("workflows/MapRun", map_run_id=f"run-{number}", started_at=at)
        yield golden("workflows/Activity", name=f"pack-{number}")
        yield golden("workflows/FunctionRecord", name=f"charge-{number}")
        yield golden("workflows/DurableExecution", name=f"order-{number}", started_at=at)
        yield golden("assist/AssistCall", job_id="job-0", call_id=f"chat-{number}", started_at=at)
        yield golden("inbox/InboxTask", task_id=f"task-{number}", created_at=at)
        yield golden("inbox/InboxRule", rule_id=f"rule-{number}", created_at=at)
        yield golden("workflows/DurableOperation", execution="order-0", number=number + 1, operation_id=f"1ef{number}")


@pytest.mark.parametrize("command", LISTS)
def test_a_list_that_is_cut_says_so(full: CommandLine, command: str) -> None:
    words = command.split()
    every = full.run(*words, "--limit", "3")
    assert every.stderr == ""
    cut = full.run(*words, "--limit", "2")
    assert cut.stderr == MORE
    assert len(cut.stdout.splitlines()) == len(every.stdout.splitlines()) - 1


@pytest.mark.parametrize("command", LISTS)
def test_what_a_program_reads_of_a_list_that_is_cut_is_the_list_alone(full: CommandLine, command: str) -> None:
    words = [*command.split(), "--json", "--limit"]
    every = full.run(*words, "3")
    assert every.stderr == ""
    cut = full.run(*words, "2")
    assert cut.stderr == MORE
    if command in LAST_SHOWN:
        assert cut.stdout.splitlines() == every.stdout.splitlines()[1:]
    else:
        assert _listed(cut.stdout) == _listed(every.stdout)[:2]


def _listed(printed: str) -> list[Any]:
    """The list that was printed, alone or beside what it belongs to."""
    found = json.loads(printed)
    listed: list[Any] = (
        found if isinstance(found, list) else next(each for each in found.values() if type(each) is list)
    )
    return listed


def test_every_command_with_a_limit_says_so() -> None:
    limited = {path for path, command in ALL.items() if any("--limit" in each.opts for each in command.params)}
    tested = {path for path in limited for command in LISTS if f"jobtable {command} ".startswith(f"{path} ")}
    assert limited == tested | set(ASKED_FOR)


def test_no_more_than_one_is_read_beyond_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    read = iter(range(10))
    with first_of(read, 1) as shown:
        assert shown == [0]
        assert capsys.readouterr().err == "", "the line stands below the list, where people look"
    assert capsys.readouterr().err == "There are more; use a larger --limit to see them.\n"
    assert next(read) == 2
