"""kill -9 of a journey's worker, or of the process of its stage, at random points; then the journey is resumed.

Every finished step ran once, no record points to a missing object, nothing is left over after a sweep, the sums
equal a recount, and the journey's deletion leaves nothing. `python -m faults.journeys STORE_URL` is the worker that
is killed.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

from faults.journey_stages import STAGES

from jobtable.app import Services, open_jobs
from jobtable.errors import ObjectNotFoundError
from jobtable.jobs.worker.worker import Worker
from jobtable.objects import sweep
from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.entities import JobExecution, Journey
from jobtable.systems.journeys.example.product_catalogue import create_catalogue
from jobtable.systems.journeys.example.rule_book import example_rules
from jobtable.systems.journeys.journey_template import DEFAULT_TEMPLATE
from jobtable.systems.journeys.object_keys import ExecutionFolder, key_of
from jobtable.systems.journeys.parts import JobExecutionStatus, JourneySource, JourneyStatus
from jobtable.systems.journeys.runner import QUEUE, JourneyRunner
from jobtable.systems.journeys.running import aggregates
from jobtable.systems.journeys.service import Journeys

_REPOSITORY = Path(__file__).parents[1]
_KILLS_A_JOURNEY = 8
_LEASE_SECONDS = 1.0
_LONGEST_WORK_SECONDS = 0.6
_LONGEST_JOURNEY_SECONDS = 240


def run(trials: int = 100, seed: int = 1) -> Iterator[dict[str, object]]:
    """Kill that many workers, some for each journey, and let each journey come to its end."""
    chance = random.Random(seed)
    problems: list[str] = []
    kills = journeys = resumed = 0
    while kills < trials:
        with tempfile.TemporaryDirectory(prefix="jobtable-journeys-") as folder:
            trial = _Trial(Path(folder), chance, min(_KILLS_A_JOURNEY, trials - kills))
            problems += trial.run()
        kills += trial.kills
        journeys += 1
        resumed += trial.repeated
    for problem in problems:
        print(problem, file=sys.stderr)
    yield {
        "fault": "journeys",
        "trials": kills,
        "violations": len(problems),
        "journeys": journeys,
        "steps_begun_again": resumed,
        "seed": seed,
    }


class _Trial:
    """One journey, killed some times."""

    def __init__(self, folder: Path, chance: random.Random, kills: int) -> None:
        self._chance = chance
        self._wanted = kills
        self._notes = folder / "notes"
        self._url = f"file:{folder / 'jobs.db'}"
        self._catalogue = folder / "catalogue.db"
        self.kills = 0
        self.repeated = 0

    def run(self) -> list[str]:
        create_catalogue(self._catalogue, products=150, seed=self._chance.randrange(1000))
        with Services.open(self._url) as services:
            self._create(services)
            services.get(JourneyRunner).run("J")
            problems = self._kill_and_go_on(services)
            return problems or self._problems(services) or self._left_after_deletion(services)

    def _create(self, services: Services) -> None:
        now = services.store.clock.now()
        template = DEFAULT_TEMPLATE
        for stage_id, stage_class in STAGES.items():
            template = template.replacing(stage_id, stage_class)
        journey = Journey(
            journey_id="J",
            name="Killed",
            created_by="faults",
            oda_component_type="PRODUCTCATALOG",
            source=JourneySource(schema_id="s", schema_name="s"),
            parameters={"source": str(self._catalogue), "notes": str(self._notes), "batchRows": 20},
            created_at=now,
            updated_at=now,
        )
        services.get(Journeys).create_journey(journey, template.stages("J", now), example_rules("J", "faults", now))

    def _kill_and_go_on(self, services: Services) -> list[str]:
        """Kill workers until that was done often enough, then let one finish; gives what ran though it was finished."""
        problems: list[str] = []
        deadline = time.monotonic() + _LONGEST_JOURNEY_SECONDS
        while services.get(Journeys).get_journey("J").status is JourneyStatus.RUNNING:
            finished, begun = _finished_steps(services), len(self._begun())
            if time.monotonic() > deadline:
                return [*problems, "the journey did not come to its end in time"]
            is_killed = self.kills < self._wanted
            with self._worker() as worker:
                if is_killed:
                    self._kill_at_work(worker, begun)
                else:
                    worker.wait(timeout=_LONGEST_JOURNEY_SECONDS)
            again = self._begun()[begun:]
            problems += [f"{step} ran again although it was finished" for step in again if step in finished]
            self.repeated += len(set(again) & set(self._begun()[:begun]))
        return problems

    @contextlib.contextmanager
    def _worker(self) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "faults.journeys", self._url]
        with subprocess.Popen(command, cwd=_REPOSITORY, start_new_session=True) as worker:
            try:
                yield worker
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(worker.pid, signal.SIGKILL)

    def _kill_at_work(self, worker: subprocess.Popen[bytes], begun: int) -> None:
        """Kill the worker some time after it has begun a step; the process of the stage ends with it, a bit later."""
        while len(self._begun()) == begun and worker.poll() is None:
            time.sleep(0.01)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(timeout=self._chance.uniform(0, _LONGEST_WORK_SECONDS))
        if worker.poll() is None:
            self.kills += 1
            worker.kill()
        worker.wait()

    def _begun(self) -> list[str]:
        """The steps that began, in order."""
        return self._notes.read_text().splitlines() if self._notes.exists() else []

    def _problems(self, services: Services) -> list[str]:
        journey = services.get(Journeys).get_journey("J")
        executions = list(services.store.query(JobExecution.key(journey_id="J")))
        problems = []
        if journey.status is not JourneyStatus.COMPLETED:
            problems.append(f"the journey is {journey.status}: {[e.error_message for e in executions]}")
        if journey.aggregates != aggregates.recount(executions, services.get(Journeys).list_rules("J")):
            problems.append(f"the sums differ from a recount: {journey.aggregates}")
        if journey.status is JourneyStatus.COMPLETED:
            compared = executions[-1].results["compared"]
            problems += [f"{name} is not complete" for name, entry in compared.items() if not entry["isSame"]]
        problems += self._dangling(services, executions)
        sweep(services.objects, services.is_referenced, prefix="journeys", grace=timedelta(0))
        problems += self._dangling(services, executions)
        left = sweep(services.objects, services.is_referenced, prefix="journeys", grace=timedelta(0))
        return [*problems, *(["orphans after a sweep"] if left.orphans else [])]

    def _left_after_deletion(self, services: Services) -> list[str]:
        """What is left of the journey and its jobs, once a worker has taken the last ones from dead workers."""
        with self._worker() as worker:
            worker.wait(timeout=_LONGEST_JOURNEY_SECONDS)
        services.get(JourneyBackups).delete_journey("J")
        left = [found.key for found in services.objects.list()]
        left += [job.job_id for job in services.engine.queries.list_jobs()]
        return [f"{each} is left after the deletion" for each in left]

    def _dangling(self, services: Services, executions: list[JobExecution]) -> list[str]:
        """Records whose object is not there, or is not what they say."""
        problems = []
        for execution in executions:
            place = ExecutionFolder("J", execution.stage_id, execution.job_id)
            expected = {place.log(run.step_id, run.log.run): run.log.sha256 for run in execution.steps if run.log}
            for record in services.get(Journeys).list_job_reports(execution.job_id):
                expected[key_of(record.s3_location)] = (record.metrics.sha256 if record.metrics else None) or ""
            for entry in services.get(Journeys).list_job_logs(execution.job_id):
                if key_of(entry.s3_location or "s3://b/none") not in expected:
                    problems.append(f"a log entry of {entry.step} names no log of a finished step")
            for key, sha256 in expected.items():
                try:
                    if services.objects.head(key).sha256 != sha256:
                        problems.append(f"{key} is not what its record says")
                except ObjectNotFoundError:
                    problems.append(f"{key} is missing")
        return problems


def _finished_steps(services: Services) -> set[str]:
    return {
        f"{execution.job_id} {run.step_id}"
        for execution in services.get(Journeys).list_executions("J")
        for run in execution.steps
        if run.status is JobExecutionStatus.COMPLETED
    }


if __name__ == "__main__":
    Worker(
        partial(open_jobs, sys.argv[1]), [QUEUE], lease_seconds=_LEASE_SECONDS, mode="inline", until_empty=True
    ).run()
