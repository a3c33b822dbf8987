"""Logs and reports: whole in object storage, in bounded memory, with what is worth a quick look in the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.systems.journeys.access_patterns import START
from tests.systems.journeys.stages import die, script
from tests.systems.journeys.worlds import World, world_on

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import NotFoundError, ValueRefusedError
from jobtable.objects import sweep
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.systems.journeys.entities import JobReport, LogEntry
from jobtable.systems.journeys.execution_records import ExecutionRecords
from jobtable.systems.journeys.object_keys import ExecutionFolder, key_of, parse_key
from jobtable.systems.journeys.parts import LogEntryLevel, ReportType
from jobtable.systems.journeys.running.step_log import NOTED_LINES, RECENT_LINES, StepLog, read_lines
from jobtable.systems.journeys.service import Journeys
from jobtable.systems.journeys.stage import Stage

REPOSITORY = Path(__file__).parents[3]


def run(world: World, **acts: Any) -> str:
    """Run the journey; gives the id of the first stage's job."""
    script(**acts)
    world.runner.run("J1")
    world.work()
    return world.executions("one")[0].job_id


def test_logs_lie_where_the_document_says(world: World) -> None:
    job_id = run(world, one__first=lambda step: step.log_info("read", database="legacy", tables=45))
    key = f"journeys/J1/stages/one/executions/{job_id}/logs/first.json"
    (line,) = json.loads(world.jobs.objects.get(key))
    assert line["level"] == "INFO"
    assert {name: line[name] for name in ("jobId", "step_id", "message", "details")} == {
        "jobId": job_id,
        "step_id": "first",
        "message": "read",
        "details": {"database": "legacy", "tables": 45},
    }
    (entry,) = world.verbs.list_job_logs(job_id)
    assert entry.s3_location == f"s3://transformation-journey-logs/{key}"
    assert (entry.level, entry.source, entry.details["tables"]) == (LogEntryLevel.INFO, "Scripted", 45)


def test_reports_lie_where_the_document_says(world: World) -> None:
    def report(step: Stage) -> None:
        step.metrics["tablesPerSecond"] = 0.5
        step.report("Schema", summary="45 tables", results={"tables": 45}, recommendations=["More"], charts=[1])
        step.report("Second", report_type=ReportType.METRICS)

    job_id = run(world, one__first=report)
    prefix = f"journeys/J1/stages/one/executions/{job_id}/reports"
    first = json.loads(world.jobs.objects.get(f"{prefix}/first.json"))
    assert first["reportId"] == f"{job_id}_first"
    assert first["detailedResults"] == {"tables": 45}
    assert first["performanceMetrics"] == {"tablesPerSecond": 0.5}
    assert first["charts"] == [1]
    assert first["executionSummary"]["stepId"] == "first"
    record = next(iter(world.verbs.list_job_reports(job_id)))
    assert record.s3_location == f"s3://transformation-journey-reports/{prefix}/first.json"
    assert record.metrics is not None
    assert record.metrics.content_size == len(world.jobs.objects.get(f"{prefix}/first.json"))
    names = [key_of(found.s3_location).rpartition("/")[2] for found in world.verbs.list_job_reports(job_id)]
    assert names[:2] == ["first.json", "first-2.json"]
    assert world.executions("one")[0].measurements == {"tablesPerSecond": 0.5}


def test_the_engine_reports_from_the_records_of_steps(world: World) -> None:
    job_id = run(world, one__second=lambda step: step.results.update(found=3))
    reports = {each["reportType"]: each for each in world.records.get_job_reports("J1", job_id, "one")}
    assert sorted(reports) == ["performance", "summary", "timeline"]
    assert [line["stepId"] for line in reports["timeline"]["timeline"]] == ["first", "second", "third"]
    assert reports["summary"]["results"] == {"found": 3}
    (one,) = world.executions("one")
    total = sum(run.duration or 0 for run in one.steps)
    assert reports["performance"]["performanceMetrics"]["totalSeconds"] == pytest.approx(total)
    assert reports["performance"]["executionSummary"]["stepsCompleted"] == 3


def test_a_report_can_be_added_by_hand(world: World) -> None:
    job_id = run(world)
    record = world.records.create_job_report(
        "J1", job_id, ReportType.CUSTOM, "Notes", {"notes": ["a"]}, summary="by hand"
    )
    assert record in list(world.verbs.list_job_reports(job_id))
    (found,) = world.records.get_job_reports("J1", job_id, "one", ReportType.CUSTOM)
    assert (found["title"], found["notes"]) == ("Notes", ["a"])
    with pytest.raises(ValueRefusedError, match="belongs to journey J1"):
        world.records.create_job_report("J2", job_id, ReportType.CUSTOM, "x", {})
    with pytest.raises(ValueRefusedError, match="cannot have a section generatedAt, title"):
        world.records.create_job_report("J1", job_id, ReportType.CUSTOM, "x", {"title": 1, "generatedAt": 2})


def test_a_report_with_a_call_id_is_told_from_others(world: World) -> None:
    job_id = run(world)

    def create(title: str, call_id: str | None, report_type: ReportType = ReportType.CUSTOM) -> str:
        record = world.records.create_job_report("J1", job_id, report_type, title, {"notes": ["a"]}, call_id=call_id)
        return record.report_id

    first = create("Notes", "call")
    assert create("Notes", "call") == first
    others = [create("Notes", None), create("Notes", None), create("Notes", "other"), create("Other", "call")]
    assert len({first, *others, create("Notes", "call", ReportType.METRICS)}) == 6
    found = list(world.records.get_job_reports("J1", job_id, "one", ReportType.CUSTOM))
    assert sorted(each["reportId"] for each in found) == sorted([first, *others])


def test_what_is_not_there_is_named(world: World) -> None:
    job_id = run(world)
    with pytest.raises(NotFoundError, match="no step ninth"):
        world.records.get_job_logs("J1", "one", job_id, "ninth")
    with pytest.raises(NotFoundError, match="no execution"):
        world.records.get_job_logs("J1", "two", job_id)
    assert list(world.records.get_job_logs("J1", "one", job_id)) == []


def test_debug_lines_are_left_out_where_details_are_not_wanted(world: World) -> None:
    journey = world.journey()
    configuration = journey.configuration.replace(enable_detailed_logging=False)
    world.jobs.store.put(journey.replace(configuration=configuration))
    job_id = run(world, one__first=lambda step: (step.log_debug("d"), step.log_error("e")))
    assert [line["message"] for line in world.records.get_job_logs("J1", "one", job_id)] == ["e"]
    assert world.journey().aggregates.total_errors == 1


class CountingObjects(MemoryObjectStore):
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = 0

    def get(self, key: str) -> bytes:
        self.opened += 1
        return super().get(key)

    def open(self, key: str) -> Any:
        self.opened += 1
        return super().open(key)


def test_recent_lines_come_without_reading_the_log() -> None:
    objects = CountingObjects()
    with Store(EmbeddedBackend(None)) as store:
        world = world_on(store, objects)
        job_id = run(world, one__first=lambda step: [step.log_info("x" * 5_000, n=n) for n in range(2_000)])
        objects.opened = 0
        recent = list(world.verbs.list_recent_job_logs(job_id))
        assert [entry.details["n"] for entry in recent] == list(range(1999, 1899, -1))
        assert "see the full log" in recent[0].message
        assert objects.opened == 0
        assert sum(1 for _ in world.records.get_job_logs("J1", "one", job_id)) == 2_000


_LARGE = """
import resource, sys
from tests.systems.journeys.stages import script
from tests.systems.journeys.worlds import world_on
from jobtable.embedded import EmbeddedBackend
from jobtable.objects import open_objects
from jobtable.store import Store

def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def act(step):
    for n in range(10_000):
        step.log_info("y" * 5_000, n=n)
    rows = "z" * (10 << 20)
    step.report("Large", results=rows)

with Store(EmbeddedBackend(None)) as store:
    world = world_on(store, open_objects("file:" + sys.argv[1]))
    world.runner.run("J1")
    script(one__first=lambda step: (step.log_info("warm"), step.report("small")))
    world.work(1)
    before = peak()
    script(two__first=act)
    world.work()
    (two,) = world.executions("two")
    log = two.steps[0].log
    read = sum(1 for _ in world.records.get_job_logs("J1", "two", two.job_id, "first"))
    print(two.status.value, log.lines, log.size, read, peak() - before)
"""


def test_ten_thousand_lines_and_a_report_of_ten_megabytes_take_bounded_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _LARGE, str(tmp_path / "objects")]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": "."}
    )
    assert done.returncode == 0, done.stderr
    status, lines, size, read, growth_mb = done.stdout.split()
    assert (status, lines, read) == ("completed", "10000", "10000")
    assert int(size) > 50_000_000
    # The report is held by its author and written as one text: some multiples of 10 MB, and nothing of the 50.
    assert int(growth_mb) < 60


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(LogEntryLevel)),
            st.text(max_size=30),
            st.dictionaries(st.text(max_size=5), st.none() | st.floats() | st.text() | st.integers(), max_size=3),
        ),
        max_size=30,
    )
)
@settings(max_examples=60)
def test_whatever_is_logged_is_read_again(lines: list[tuple[LogEntryLevel, str, dict[str, Any]]]) -> None:
    objects = MemoryObjectStore()
    with StepLog("JOB-1", "step") as log:
        for number, (level, message, details) in enumerate(lines):
            log.write(level, message, START + timedelta(seconds=number), details=details)
        key = ExecutionFolder("J1", "one", "JOB-1").log("step")
        log.store(objects, key)
        assert json.loads(objects.get(key)) == list(read_lines(objects, key))
        assert [line["level"] for line in read_lines(objects, key)] == [level.name for level, _, _ in lines]
        assert log.counts().total_logs == len(lines)
        for entry in log.catalogue():
            record = LogEntry(
                journey_id="J1",
                job_id="JOB-1",
                step="step",
                timestamp=entry.timestamp,
                log_id=str(entry.number),
                message=entry.message,
                details=entry.details,
                created_at=START,
            )
            assert LogEntry.__schema__.codec.decode(LogEntry.__schema__.codec.encode(record)).message == entry.message


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_a_log_of_another_program_is_read(indent: int | None) -> None:
    objects = MemoryObjectStore()
    objects.put("journeys/x.json", json.dumps([{"message": "a"}, {"message": "b"}], indent=indent).encode())
    assert [line["message"] for line in read_lines(objects, "journeys/x.json")] == ["a", "b"]


def test_the_catalogue_has_the_last_lines_and_the_first_problems() -> None:
    with StepLog("JOB-1", "step") as log:
        for number in range(1_000):
            level = LogEntryLevel.WARNING if number < 300 else LogEntryLevel.INFO
            log.write(level, str(number), START, details={})
        chosen = [line.number for line in log.catalogue()]
    assert chosen == [*range(NOTED_LINES), *range(1_000 - RECENT_LINES, 1_000)]


def test_the_sweep_leaves_what_records_name_and_removes_the_rest(world: World) -> None:
    def leave_things(step: Stage) -> None:
        step.log_info("kept")
        step.report("kept")
        step.write_file("kept.bin", source=b"x")

    def leave_and_die(step: Stage) -> None:
        step.write_file("unfinished.bin", source=b"x")
        die(step)

    script(one__first=leave_things, one__second=leave_and_die)
    world.runner.run("J1")
    world.work(1)
    objects, records = world.jobs.objects, world.records
    (one,) = world.executions("one")
    place = ExecutionFolder("J1", "one", one.job_id)
    objects.put(place.log("second"), b"[]")
    objects.put(place.report("second"), b"{}")
    objects.put(ExecutionFolder("J1", "one", "JOB-none").file("first", "x"), b"")
    unnamed = {place.log("second"), place.report("second"), ExecutionFolder("J1", "one", "JOB-none").file("first", "x")}
    everything = {found.key for found in objects.list("journeys")}
    assert place.file("second", "unfinished.bin") in everything, "it may still be needed when the step goes on"
    sweep(objects, records.is_referenced, prefix="journeys", grace=timedelta(0))
    assert {found.key for found in objects.list("journeys")} == everything - unnamed
    world.runner.cancel("J1")
    sweep(objects, records.is_referenced, prefix="journeys", grace=timedelta(0))
    left = {found.key for found in objects.list("journeys")}
    assert left == everything - unnamed - {place.file("second", "unfinished.bin")}


def test_the_sweep_of_reports_reads_the_records_of_an_execution_once(world: World) -> None:
    def report_often(step: Stage) -> None:
        for number in range(30):
            step.report(f"R{number}")

    script(one__first=report_often)
    world.runner.run("J1")
    world.work()
    (one,) = world.executions("one")
    reports = sorted(found.key for found in world.jobs.objects.list("journeys") if f"{one.job_id}/reports" in found.key)
    with world.jobs.store.capacity.measure() as spent:
        assert all(map(world.records.is_referenced, reports))
    assert len(reports) > 30
    assert spent["JobReport.key"].calls == 1
    for record in list(world.verbs.list_job_reports(one.job_id)):
        world.jobs.store.delete(record)
    assert not any(map(world.records.is_referenced, reports)), "what another sweep was told does not count"


def test_keys_are_read_back() -> None:
    place = ExecutionFolder("J/1", "a b", "JOB#1")
    for key in (place.log("s"), place.report("s"), place.file("s", "x", "y")):
        found = parse_key(key)
        assert found is not None
        assert found.folder == place
    assert parse_key("journeys/J1/other") is None
    assert parse_key("jobs/1/log/1.txt") is None


def test_reports_of_a_journey_are_found_by_their_job(world: World) -> None:
    job_id = run(world)
    stored = list(world.jobs.store.query(JobReport.key(journey_id="J1", job_id=job_id)))
    assert len(stored) == len(list(Journeys(world.jobs.store).list_job_reports(job_id))) == 3
    assert isinstance(world.records, ExecutionRecords)
