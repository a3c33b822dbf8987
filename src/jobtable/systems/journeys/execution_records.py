"""Full logs and reports of executions, which are in object storage, and the records that name them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Self

from jobtable.clock import Clock
from jobtable.errors import NotFoundError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.systems.journeys.entities import JobExecution, JobReport
from jobtable.systems.journeys.object_keys import ExecutionFolder, ObjectKind, key_of, parse_key
from jobtable.systems.journeys.parts import ReportType
from jobtable.systems.journeys.running.step_log import read_lines
from jobtable.systems.journeys.running.step_reports import ReportContent, ReportDraft, execution_summary
from jobtable.systems.journeys.service import Journeys


class ExecutionRecords:
    """The full logs and reports of executions."""

    def __init__(self, store: Store, objects: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._objects = objects
        self._clock = clock
        self._journeys = Journeys(store, clock=clock)
        self._reports_to_come: set[str] = set()

    @classmethod
    def of(cls, jobs: Jobs) -> Self:
        return cls(jobs.store, jobs.objects, jobs.clock)

    def get_job_logs(
        self, journey_id: str, stage_name: str, job_id: str, step_name: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield every line of an execution, or of one step, oldest first, in bounded memory.

        Only finished steps have a full log; for the latest lines use `Journeys.list_recent_job_logs`.
        """
        execution = self._execution(journey_id, stage_name, job_id)
        place = ExecutionFolder(journey_id, stage_name, job_id)
        runs = [run for run in execution.steps if step_name in (None, run.step_id)]
        if not runs and step_name is not None:
            raise NotFoundError(
                f"execution {job_id} of {stage_name} has no step {step_name}", kind="step", key=step_name
            )
        return (
            line
            for run in runs
            if run.log is not None
            for line in read_lines(self._objects, place.log(run.step_id, run.log.run))
        )

    def get_job_reports(
        self,
        journey_id: str,
        job_id: str,
        stage_name: str,
        report_type: ReportType | None = None,
        *,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the full reports of an execution by type and age, one at a time."""
        self._execution(journey_id, stage_name, job_id)
        chosen = {} if report_type is None else {"report_type": report_type}
        for record in self._store.query(JobReport.key(journey_id=journey_id, job_id=job_id, **chosen), limit=limit):
            yield self.read_report(record)

    def read_report(self, record: JobReport) -> dict[str, Any]:
        """Read the report that a record names."""
        report: dict[str, Any] = json.loads(self._objects.get(key_of(record.s3_location)))
        return report

    def create_job_report(
        self,
        journey_id: str,
        job_id: str,
        report_type: ReportType,
        title: str,
        content: Mapping[str, Any],
        summary: str = "",
        *,
        call_id: str | None = None,
    ) -> JobReport:
        """Store a report of an execution: the object first, then the record that names it.

        With a `call_id`, the same call again returns the report that the first one stored.
        """
        execution = self._journeys.get_execution(job_id)
        if execution.journey_id != journey_id:
            raise ValueRefusedError(f"job {job_id} belongs to journey {execution.journey_id}, not {journey_id}")
        report = ReportContent(report_type, title, summary, content)
        name = f"{report_type.value}-{self._clock.now():%Y%m%dT%H%M%S%f}"
        report_id = f"{job_id}_{name}"
        if call_id is not None:
            report_id = f"{job_id}_{report_type.value}-{report.fingerprint(call_id)}"
            of_type = JobReport.key(journey_id=journey_id, job_id=job_id, report_type=report_type)
            there = self._store.query(of_type, where=JobReport.report_id == report_id).first()
            if there is not None:
                return there
        draft = ReportDraft(name, report_id, report, self._clock)
        record = draft.store(self._objects, execution, execution_summary(execution))
        self._store.add(record)
        return record

    def is_referenced(self, key: str) -> bool:
        """Return whether a record names an object, for the sweep of orphans under `journeys/`.

        The record of a step names its log, and that of a report the report. Files belong to an execution if their step
        is finished or may still finish.
        """
        found = parse_key(key)
        if found is None:
            return False
        place = found.folder
        if found.kind is ObjectKind.REPORT:
            return self._is_report(place, key)
        try:
            execution = self._execution(place.journey_id, place.stage_id, place.job_id)
        except NotFoundError:
            return False
        if found.kind is ObjectKind.LOG:
            return any(run.log is not None and place.log(run.step_id, run.log.run) == key for run in execution.steps)
        unfinished = {run.step_id for run in execution.steps if run.end_time is None}
        return found.rest[0] not in unfinished or execution.end_time is None

    def _is_report(self, place: ExecutionFolder, key: str) -> bool:
        """Return whether the record of a report names an object.

        A sweep asks once for each report of an execution, one after the other, so the records that are read for the
        first one answer for the others, but never twice for the same.
        """
        named = self._reports_to_come  # another thread may sweep too, and replace it
        if key not in named:
            records = self._store.query(JobReport.key(journey_id=place.journey_id, job_id=place.job_id))
            named = self._reports_to_come = {key_of(record.s3_location) for record in records}
        is_named = key in named
        named.discard(key)
        return is_named

    def _execution(self, journey_id: str, stage_id: str, job_id: str) -> JobExecution:
        execution = self._journeys.get_execution(job_id)
        if (execution.journey_id, execution.stage_id) != (journey_id, stage_id):
            raise NotFoundError(f"journey {journey_id} has no execution {job_id} of stage {stage_id}")
        return execution
