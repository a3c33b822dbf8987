"""Journeys: created as a whole, read cheaply, with executions that are numbered without a query."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.systems.journeys.access_patterns import START, execution, journey, log, rule

from jobtable.errors import AlreadyExistsError, ConflictError, NotFoundError, ValueRefusedError
from jobtable.store import Store
from jobtable.systems.journeys import creation
from jobtable.systems.journeys.default_stages import default_stages
from jobtable.systems.journeys.entities import JobExecution, Journey, SecondBrainRule, StageDefinition, journeys
from jobtable.systems.journeys.parts import JobExecutionStatus, JourneyStatus, Priority
from jobtable.systems.journeys.service import Journeys

GOLDEN = Path(__file__).parent / "golden" / "journeys"


def golden_values(entity: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((GOLDEN / f"{entity}.json").read_text())["values"]
    return values


@pytest.fixture
def verbs(each_store: Store) -> Journeys:
    each_store.tables.create(journeys)
    return Journeys(each_store)


def rules(journey_id: str, count: int) -> list[SecondBrainRule]:
    return [rule(journey_id, "raw_analysis", index, Priority.LOW) for index in range(count)]


def test_a_journey_gets_the_six_default_stages_and_its_counters(verbs: Journeys) -> None:
    verbs.create_journey(journey("J1"), rules=rules("J1", 3))
    found = verbs.get_complete_journey("J1", consistent=True)
    assert [stage.order for stage in found.stages] == [1, 2, 3, 4, 5, 6]
    assert all(stage.steps for stage in found.stages)
    assert found.journey.aggregates.total_rules == 3
    assert found.journey.execution_counts == {stage.stage_id: 0 for stage in found.stages}
    assert found.journey.creation is None


def test_journeys_are_listed_by_status_also_those_that_an_older_program_says_are_in_progress(
    verbs: Journeys, each_store: Store
) -> None:
    for number, status in enumerate([JourneyStatus.PENDING, JourneyStatus.RUNNING, JourneyStatus.RUNNING]):
        made = journey(f"J{number}").replace(status=status, created_at=START + timedelta(seconds=number))
        item = Journey.__schema__.codec.encode(made)
        if number == 1:
            item["Data"]["M"]["status"] = {"S": "in_progress"}
        name = f"{each_store.prefix}{journeys.name}"
        each_store.backend.execute("PutItem", {"TableName": name, "Item": item})
    assert [each.journey_id for each in verbs.list_journeys(JourneyStatus.RUNNING, newest_first=True)] == ["J2", "J1"]
    assert [each.journey_id for each in verbs.list_journeys(JourneyStatus.PENDING)] == ["J0"]
    assert verbs.list_journeys(JourneyStatus.FAILED).first() is None


def test_loading_a_journey_of_the_documents_size_costs_three_read_units(verbs: Journeys, each_store: Store) -> None:
    stages = [
        StageDefinition(**{**golden_values("StageDefinition"), "order": stage.order, "stage_id": stage.stage_id})
        for stage in default_stages("JRN-ABC123456789", START)
    ]
    fifteen = [SecondBrainRule(**{**golden_values("SecondBrainRule"), "index": index}) for index in range(15)]
    verbs.create_journey(Journey(**golden_values("Journey")), stages, fifteen)
    with each_store.capacity.measure() as spent:
        found = verbs.get_complete_journey("JRN-ABC123456789", recent_executions=0)
    assert (len(found.stages), len(found.rules)) == (6, 15)
    assert sum(units.read for units in spent.values()) <= 3


def test_nothing_is_created_where_a_part_is_there_already(verbs: Journeys, each_store: Store) -> None:
    each_store.add(rule("J1", "raw_analysis", 2, Priority.LOW))
    with pytest.raises(AlreadyExistsError, match="raw_analysis#002"):
        verbs.create_journey(journey("J1"), rules=rules("J1", 3))
    assert each_store.find(Journey.key(journey_id="J1")) is None
    assert verbs.list_stages("J1").first() is None


def test_what_belongs_to_another_journey_is_refused(verbs: Journeys) -> None:
    with pytest.raises(ValueRefusedError, match="belongs to journey J2"):
        verbs.create_journey(journey("J1"), rules=rules("J2", 1))


def test_two_stages_of_one_id_are_refused(verbs: Journeys) -> None:
    first, second, *_ = default_stages("J1", START)
    with pytest.raises(ValueRefusedError, match="two stages with the same id"):
        verbs.create_journey(journey("J1"), [first, second.replace(stage_id=first.stage_id)])


class Interrupted(Exception):
    """The process died here."""


def test_a_large_creation_goes_on_where_it_was_interrupted(
    verbs: Journeys, each_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = creation._go_on, []

    def dies_at_the_second(*arguments: Any) -> int:
        calls.append(arguments)
        if len(calls) == 2:
            raise Interrupted
        return real(*arguments)

    monkeypatch.setattr(creation, "_go_on", dies_at_the_second)
    with pytest.raises(Interrupted):
        verbs.create_journey(journey("J1"), rules=rules("J1", 300))
    marker = verbs.get_journey("J1").creation
    assert marker is not None
    assert (marker.done, marker.total) == (198, 306)
    with pytest.raises(AlreadyExistsError):
        verbs.create_journey(journey("J1"), rules=rules("J1", 299))

    verbs.create_journey(journey("J1"), rules=rules("J1", 300))
    assert verbs.get_journey("J1").creation is None
    assert len(verbs.list_stage_rules("J1", "raw_analysis")) == 300
    assert each_store.count(StageDefinition.key(journey_id="J1")) == 6
    with pytest.raises(AlreadyExistsError):
        verbs.create_journey(journey("J1"), rules=rules("J1", 300))


def test_a_stage_runs_no_more_often_than_its_key_can_count(verbs: Journeys, each_store: Store) -> None:
    verbs.create_journey(journey("J1"))
    stage = verbs.get_stage("J1", "tmf_mapping")
    each_store.update(Journey.key(journey_id="J1"), Journey.execution_counts[stage.stage_id].set(998))
    assert verbs.create_execution(stage, "JOB-1").execution_number == 999
    with pytest.raises(ConflictError, match="stage tmf_mapping of journey J1 ran 999 times, the maximum"):
        verbs.create_execution(stage, "JOB-2")


@pytest.mark.parametrize("count", [90, 120])
def test_rules_that_are_large_together_are_created_in_parts(verbs: Journeys, count: int) -> None:
    large = [each.replace(content="x" * 60_000) for each in rules("J1", count)]
    verbs.create_journey(journey("J1"), rules=large)
    assert verbs.get_journey("J1").creation is None
    assert len(verbs.list_rules("J1")) == count
    with pytest.raises(AlreadyExistsError):
        verbs.create_journey(journey("J1"), rules=large)


def test_executions_are_numbered_by_the_journeys_counter(verbs: Journeys) -> None:
    verbs.create_journey(journey("J1"))
    stage = verbs.get_stage("J1", "tmf_mapping")
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda n: verbs.create_execution(stage, f"JOB-{n}"), range(12)))
    assert sorted(each.execution_number for each in made) == list(range(1, 13))
    assert [each.execution_number for each in verbs.list_stage_executions(stage)] == list(range(1, 13))


def test_the_counter_of_a_journey_without_one_begins_behind_what_is_there(verbs: Journeys, each_store: Store) -> None:
    each_store.add(journey("J1"))
    each_store.add(execution("J1", 1, "raw_analysis", 7, "JOB-7"))
    stage = default_stages("J1", START)[0]
    assert verbs.create_execution(stage, "JOB-8").execution_number == 8
    assert verbs.create_execution(stage, "JOB-9").execution_number == 9


def test_logs_of_a_job_come_without_the_job_and_pages_are_full(verbs: Journeys, each_store: Store) -> None:
    each_store.add(execution("J1", 1, "raw_analysis", 1, "JOB-1"))
    verbs.add_logs(log("J1", "JOB-1", "step", second, f"L{second:03d}") for second in range(250))
    first = verbs.list_job_logs("JOB-1").page(size=100)
    second = verbs.list_job_logs("JOB-1").page(first.cursor, size=100)
    assert [len(first.items), len(second.items)] == [100, 100]
    assert [entry.log_id for entry in verbs.list_recent_job_logs("JOB-1", limit=2)] == ["L249", "L248"]
    assert verbs.get_execution("JOB-1").stage_id == "raw_analysis", "found although logs stand before it"


def test_finding_an_execution_does_not_read_its_logs(verbs: Journeys, each_store: Store) -> None:
    each_store.add(execution("J1", 1, "raw_analysis", 1, "JOB-1"))
    verbs.add_logs(log("J1", "JOB-1", "step", second, f"L{second}") for second in range(60, 160))
    with each_store.capacity.measure() as spent:
        assert verbs.get_execution("JOB-1").job_id == "JOB-1"
    assert sum(units.read for units in spent.values()) == 0.5


def test_a_stage_or_a_job_that_is_not_there_is_named(verbs: Journeys) -> None:
    verbs.create_journey(journey("J1"))
    with pytest.raises(NotFoundError, match="journey J1 has no stage nothing"):
        verbs.get_stage("J1", "nothing")
    with pytest.raises(NotFoundError, match="JOB-0"):
        verbs.get_execution("JOB-0")


def test_in_progress_is_understood_and_running_is_written() -> None:
    item = JobExecution.__schema__.codec.encode(execution("J1", 1, "raw_analysis", 1, "JOB-1"))
    item["Data"]["M"]["status"] = {"S": "in_progress"}
    read = JobExecution.__schema__.codec.decode(item)
    assert read.status is JobExecutionStatus.RUNNING
    assert JobExecution.__schema__.codec.encode(read)["Data"]["M"]["status"] == {"S": "running"}
    assert JourneyStatus("in_progress") is JourneyStatus.RUNNING
    with pytest.raises(ValueError, match="unheard of"):
        JourneyStatus("unheard of")
