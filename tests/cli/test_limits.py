"""Commands that list things say when there are more than they show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandLine
from tests.cli.test_reference import ALL
from tests.every_entity import ENTITIES

from jobtable.app import Services
from jobtable.cli.output import first_of
from jobtable.model import Entity
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.conversations.pipeline import PipelineStage, stage_job_id
from jobtable.systems.conversations.runs import JOB_TYPE
from jobtable.systems.conversations.service import Conversations
from jobtable.systems.journeys.service import Journeys
from jobtable.systems.receipts.ocr import OcrService

GOLDEN = Path(__file__).parent.parent / "golden"
IMAGE, RUN = "3f52804b-2fad-4e00-92c8-b593da3a8ed3", "f84d63ed-3b42-448e-9a1d-3474137f4e80"
MORE = "There are more than these 2; a larger --limit shows them.\n"
TIMES = [f"2025-11-01T20:30:0{number}Z" for number in range(3)]
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
    "sweeps list",
    "journeys list",
    "journeys list --status running",
    "journeys logs JRN-0",
    "conversations runs 36324",
    f"conversations show {RUN} --table extremity",
    "executions list",
    "executions list --status running",
    "tasks list",
    "tasks list --workflow-type step-functions",
    "objects list",
    "receipts list",
    f"receipts list --image {IMAGE}",
    "receipts labels",
    "receipts labels --status PENDING",
    "receipts labels --label GRAND_TOTAL --status PENDING",
    "receipts validations",
]
ASKED_FOR = {
    "jobtable sweeps best": "the best is asked for, and not all",
    "jobtable jobs logs": "without --limit it prints all, and with it stops reading what may be gigabytes",
}
"""Commands whose limit nobody takes for the end of what there is."""


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A store with three of everything that is listed."""
    cli = CommandLine(tmp_path_factory.mktemp("full"))
    with Services.open(cli.store) as services:
        _ = (
            services.jobs,
            services.get(Journeys),
            services.get(Conversations),
            services.get(AlbumWorkflows),
            services.get(OcrService),
        )
        for entity in _golden():
            services.store.put(entity)
        for number in range(3):
            services.objects.put(f"jobs/job-{number}/file", b"")
    return cli


def _golden() -> list[Entity]:
    """The items of the specification, each three times with another identity, and what they stand under."""
    job = {"root_job_id": "sweep-1", "queue_name": "gpu"}
    top = {"parent_job_id": None, "root_job_id": None, "status": "COMPLETED", "created_by": "me"}
    once = [
        _one("000/Job", job_id="sweep-1", **top),
        _one("000/Job", job_id=RUN, job_type=JOB_TYPE, **top),
        _one("002/StageDefinition", journey_id="JRN-0"),
        _one("002/JobExecution", journey_id="JRN-0"),
    ]
    extremity = stage_job_id(RUN, PipelineStage.EXTREMITY)
    thrice = [
        each
        for number, at in enumerate(TIMES)
        for each in (
            _one("000/Job", job_id=f"job-{number}", created_at=at, **job),
            _one("000/JobMetric", timestamp=at),
            _one("000/JobCheckpoint", job_id="job-0", timestamp=at),
            _one("000/JobArtifact", job_id="job-0", name=f"file-{number}"),
            _one("000/Queue", queue_name=["gpu", "cpu", "tpu"][number]),
            _one("000/QueueJob", job_id=f"job-{number}", enqueued_at=at),
            _one("000/Instance", instance_id=f"i-{number}"),
            _one("000/InstanceJob", instance_id="i-0", job_id=f"job-{number}"),
            _one("000/SweepEntry", job_id=f"sweep-{number}", created_at=at),
            _one("000/ConversationRun", run_id=[RUN, "run-1", "run-2"][number], created_at=at),
            _one("000/Receipt", receipt_id=number),
            _one("000/ReceiptWordLabel", word_id=number),
            _one("000/ReceiptValidationSummary", receipt_id=number),
            _one("002/Journey", journey_id=f"JRN-{number}", created_at=at),
            _one("002/LogEntry", journey_id="JRN-0", log_id=f"LOG-{number}", timestamp=at),
            _one("003/CommentExtremity", job_id=extremity, comment_id=number),
            _one("004/Execution", execution_id=f"exec-{number}", created_at=at),
            _one("004/ValidationTask", task_id=f"task-{number}", created_at=at),
        )
    ]
    return once + thrice


_CLASSES = {(seed, cls.__name__): cls for seed, cls in ENTITIES}


def _one(name: str, /, **changes: Any) -> Entity:
    seed, entity = name.split("/")
    values = json.loads((GOLDEN / f"{name}.json").read_text())["values"]
    return _CLASSES[seed, entity](**{**values, **changes})


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
    if command.startswith("journeys logs"):  # of lines the last are shown
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
    assert capsys.readouterr().err == "There are more than this one; a larger --limit shows them.\n"
    assert next(read) == 2
