"""The read units of each retrieval pattern of journeys, for a journey of the document's size, beside its figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from jobtable.embedded import EmbeddedBackend
from jobtable.model import Entity
from jobtable.store import Store
from jobtable.systems.journeys.default_stages import default_stages
from jobtable.systems.journeys.entities import (
    JobExecution,
    Journey,
    LogEntry,
    SecondBrainRule,
    StageDefinition,
    journeys,
)
from jobtable.systems.journeys.service import Journeys

_GOLDEN = Path(__file__).parents[1] / "tests" / "systems" / "journeys" / "golden" / "journeys"
_LOGS_OF_A_JOB = 145
_JOBS_OF_A_STAGE = 2
_RULES = 15
_JOURNEYS = 10


def run() -> None:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(journeys)
        stage = _fill(store)
        for pattern, (ask, figure) in _questions(Journeys(store), stage).items():
            with store.capacity.measure() as spent:
                ask()
            _print(pattern, sum(units.read for units in spent.values()), figure)


def _print(pattern: str, units: float, figure: float | None) -> None:
    """One line; where the document gives a figure, less than it is better."""
    line: dict[str, object] = {"bench": f"journey {pattern}", "ours": units, "peer": "the document"}
    if figure is not None:
        line |= {"peer_value": figure, "ratio": round(units / figure, 3)}
    print(json.dumps(line | {"unit": "read units"}), flush=True)


def _questions(verbs: Journeys, stage: StageDefinition) -> dict[str, tuple[Callable[[], Any], float | None]]:
    journey_id, job_id = stage.journey_id, "JOB-456"
    return {
        "metadata": (lambda: verbs.get_journey(journey_id), 1),
        "stages (6)": (lambda: list(verbs.list_stages(journey_id)), 1),
        "rules (15)": (lambda: verbs.list_rules(journey_id), 1),
        "pattern 1: complete": (lambda: verbs.get_complete_journey(journey_id, recent_executions=0), 3),
        "pattern 1: complete, with recent jobs": (lambda: verbs.get_complete_journey(journey_id), None),
        f"pattern 2: all journeys ({_JOURNEYS})": (lambda: list(verbs.list_journeys()), None),
        f"pattern 3: all logs of a job ({_LOGS_OF_A_JOB})": (lambda: list(verbs.list_job_logs(job_id)), None),
        "pattern 4: rules of a stage": (lambda: verbs.list_stage_rules(journey_id, stage.stage_id), None),
        "pattern 5: jobs of a stage": (lambda: list(verbs.list_stage_executions(stage)), None),
        "pattern 6: recent logs (100)": (lambda: list(verbs.list_recent_job_logs(job_id)), None),
        "a job by its id": (lambda: verbs.get_execution(job_id), None),
    }


def _fill(store: Store) -> StageDefinition:
    """Store journeys of the size that the document shows; gives the first stage of the first one."""
    first = Journey(**_values("Journey"))
    stages = [
        StageDefinition(**{**_values("StageDefinition"), "order": stage.order, "stage_id": stage.stage_id})
        for stage in default_stages(first.journey_id, first.created_at)
    ]
    ids = [stage.stage_id for stage in stages]
    rule, execution, log = (_values(name) for name in ("SecondBrainRule", "JobExecution", "LogEntry"))
    entities: list[Entity] = [first.replace(journey_id=f"JRN-{n:012d}") for n in range(_JOURNEYS - 1)]
    entities += [first, *stages]
    entities += [SecondBrainRule(**{**rule, "stage_id": ids[n % len(ids)], "index": n}) for n in range(_RULES)]
    for stage in stages:
        for number in range(1, _JOBS_OF_A_STAGE + 1):
            job_id = "JOB-456" if (stage.order, number) == (1, 1) else f"JOB-{stage.order}-{number}"
            place = {"order": stage.order, "stage_id": stage.stage_id, "execution_number": number, "job_id": job_id}
            entities.append(JobExecution(**{**execution, **place}))
    start = LogEntry(**log).timestamp
    for number in range(_LOGS_OF_A_JOB):
        at = start + timedelta(seconds=number)
        entities.append(LogEntry(**{**log, "timestamp": at, "log_id": f"LOG-{number}", "created_at": at}))
    store.batch_put(entities)
    return stages[0]


def _values(entity: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((_GOLDEN / f"{entity}.json").read_text())["values"]
    return values
