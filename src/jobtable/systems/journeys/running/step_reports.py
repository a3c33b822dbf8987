"""Reports: written to object storage in bounded memory, and those that the engine makes from the records of steps."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from pydantic_core import to_jsonable_python

from jobtable.clock import Clock
from jobtable.errors import ValueRefusedError, kind_and_text
from jobtable.objects import ObjectStore
from jobtable.systems.journeys.entities import JobExecution, JobReport
from jobtable.systems.journeys.locations import DEFAULT_BUCKETS, ExecutionFolder, location
from jobtable.systems.journeys.parts import JobExecutionStatus, ReportMetrics, ReportType, StepRun

ENGINE_REPORTS = {
    ReportType.SUMMARY: "job_summary",
    ReportType.PERFORMANCE: "performance_summary",
    ReportType.TIMELINE: "job_timeline",
    ReportType.ERROR_ANALYSIS: "error_analysis",
}
"""The names of the reports that the engine makes; no step may have one of them."""
OWN_MEMBERS = {"reportId", "reportType", "title", "summary", "executionSummary", "generatedAt"}
"""What every report says of itself, beside its sections."""
_IN_MEMORY = 1 << 20
_SLOW_SHARE = 0.5
_MUCH_LOGGING_PER_SECOND = 1_000


@dataclass(frozen=True)
class ReportContent:
    """What a report says, by section."""

    type: ReportType
    title: str
    summary: str
    sections: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Refuse sections whose names every report has for something else."""
        taken = sorted(OWN_MEMBERS & self.sections.keys())
        if taken:
            raise ValueRefusedError(
                f"the report {self.title!r} cannot have a section {', '.join(taken)}: choose another name"
            )

    def fingerprint(self, call_id: str) -> str:
        """Tells whether a call that stores a report is the same again."""
        told = _text_of([call_id, self.title, self.summary, self.sections])
        return hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()


class ReportDraft:
    """A report on its way to object storage: its content is on disk as soon as it is given."""

    def __init__(self, name: str, report_id: str, content: ReportContent, clock: Clock) -> None:
        self._name = name
        self._report_id = report_id
        self._content = content
        self._clock = clock
        self._begun = clock.monotonic()
        self._record: JobReport | None = None
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed when it is stored
        head = {"reportId": report_id, "reportType": content.type.value}
        self._write("{", {**head, "title": content.title, "summary": content.summary, **content.sections})

    def store(
        self, objects: ObjectStore, execution: JobExecution, about: Mapping[str, Any], run: int | None = None
    ) -> JobReport:
        """Put the report into object storage, and give the record that names it; what was stored stays so."""
        if self._record is not None:
            return self._record
        now = self._clock.now()
        self._write(", ", {"executionSummary": about, "generatedAt": now})
        self._file.write(b"}\n")
        self._file.seek(0)
        place = ExecutionFolder(execution.journey_id, execution.stage_id, execution.job_id)
        with self._file:
            info = objects.put(place.report(self._name, run), self._file)
        buckets = execution.s3_config or DEFAULT_BUCKETS
        self._record = JobReport(
            journey_id=execution.journey_id,
            report_id=self._report_id,
            job_id=execution.job_id,
            report_type=self._content.type,
            title=self._content.title,
            summary=self._content.summary,
            s3_location=location(buckets.reports_bucket, info.key),
            generated_at=now,
            metrics=ReportMetrics(
                content_size=info.size,
                generation_time=round(self._clock.monotonic() - self._begun, 6),
                report_sections=len(self._content.sections) + 1,
                sha256=info.sha256,
            ),
            created_at=now,
        )
        return self._record

    def discard(self) -> None:
        """Give up what was written."""
        self._file.close()

    def _write(self, opening: str, members: Mapping[str, Any]) -> None:
        for number, (name, value) in enumerate(members.items()):
            self._file.write(f"{', ' if number else opening}{json.dumps(name)}: ".encode())
            self._file.write(_text_of(value).encode("utf-8", "backslashreplace"))


def _text_of(value: Any) -> str:
    """A value as JSON; what JSON cannot say, as text."""
    return json.dumps(to_jsonable_python(value, fallback=repr, inf_nan_mode="strings"), ensure_ascii=False)


def step_summary(job_id: str, run: StepRun) -> dict[str, Any]:
    """What a step's report says about the step itself."""
    return {
        "stepId": run.step_id,
        "jobId": job_id,
        "status": run.status,
        "startTime": run.start_time,
        "endTime": run.end_time,
        "duration": run.duration,
    }


def execution_summary(execution: JobExecution) -> dict[str, Any]:
    """What the engine's reports say about the execution as a whole."""
    return {
        "jobId": execution.job_id,
        "stageId": execution.stage_id,
        "executionNumber": execution.execution_number,
        "status": execution.status,
        "startTime": execution.start_time,
        "stepsCompleted": sum(step.status is JobExecutionStatus.COMPLETED for step in execution.steps),
        "stepsTotal": len(execution.steps),
    }


def engine_reports(execution: JobExecution) -> Iterator[ReportContent]:
    """The summary, the performance and the timeline of an execution, from the records of its steps."""
    seconds = sum(step.duration or 0.0 for step in execution.steps)
    done = f"{len(execution.steps)} steps in {seconds:.1f} seconds"
    errors = execution.metrics.error_count
    yield ReportContent(
        ReportType.SUMMARY,
        f"Summary of {execution.stage_id}",
        f"{done}, {errors} errors, {execution.metrics.warning_count} warnings",
        {
            "results": execution.results,
            "measurements": execution.measurements or {},
            "logs": execution.metrics.model_dump(by_alias=True),
        },
    )
    yield ReportContent(
        ReportType.PERFORMANCE,
        f"Performance of {execution.stage_id}",
        f"{done}; slowest: {_slowest(execution.steps)}",
        {
            "performanceMetrics": _performance(execution, seconds),
            "steps": [_step_performance(step, seconds) for step in execution.steps],
            "recommendations": _recommendations(execution, seconds),
        },
    )
    yield ReportContent(
        ReportType.TIMELINE, f"Timeline of {execution.stage_id}", done, {"timeline": _timeline(execution)}
    )


def error_analysis(execution: JobExecution, step_id: str, error: BaseException, trace: str) -> ReportContent:
    """What is known of a failure: the step, the error, and what was done before it."""
    return ReportContent(
        ReportType.ERROR_ANALYSIS,
        f"Failure of {execution.stage_id} in {step_id}",
        kind_and_text(error)[:500],
        {
            "error": {"type": type(error).__name__, "message": str(error), "trace": trace, "stepId": step_id},
            "timeline": _timeline(execution),
            "logs": execution.metrics.model_dump(by_alias=True),
            "recommendations": [f"Look into {step_id}, then run: jobtable journeys retry {execution.journey_id}"],
        },
    )


def _performance(execution: JobExecution, seconds: float) -> dict[str, Any]:
    logs = execution.metrics
    return {
        "totalSeconds": seconds,
        "averageStepSeconds": seconds / max(len(execution.steps), 1),
        "logsPerSecond": logs.total_logs / seconds if seconds else 0.0,
        "errorRate": logs.error_count / max(logs.total_logs, 1),
        **(execution.measurements or {}),
    }


def _step_performance(step: StepRun, seconds: float) -> dict[str, Any]:
    duration = step.duration or 0.0
    return {"stepId": step.step_id, "duration": duration, "share": round(duration / seconds, 4) if seconds else 0.0}


def _recommendations(execution: JobExecution, seconds: float) -> list[str]:
    found = []
    steps = execution.steps
    if len(steps) > 1 and seconds:
        slowest = max(steps, key=lambda step: step.duration or 0.0)
        share = (slowest.duration or 0.0) / seconds
        if share > _SLOW_SHARE:
            found.append(f"{slowest.step_id} takes {share:.0%} of the time: begin there to make the stage faster")
    if execution.metrics.error_count:
        found.append(f"{execution.metrics.error_count} errors were logged: look at them before the next run")
    if seconds and execution.metrics.total_logs / seconds > _MUCH_LOGGING_PER_SECOND:
        found.append("Much of the time may go into logging: log less for each record")
    return found


def _timeline(execution: JobExecution) -> list[dict[str, Any]]:
    return [
        {
            "stepId": step.step_id,
            "status": step.status,
            "startTime": step.start_time,
            "endTime": step.end_time,
            "duration": step.duration,
            "offset": _offset(execution.start_time, step.start_time),
        }
        for step in execution.steps
    ]


def _offset(start: datetime | None, moment: datetime | None) -> float | None:
    return None if start is None or moment is None else round((moment - start).total_seconds(), 6)


def _slowest(steps: Sequence[StepRun]) -> str:
    slowest = max(steps, key=lambda step: step.duration or 0.0, default=None)
    return "none" if slowest is None else f"{slowest.step_id} ({slowest.duration or 0.0:.1f} s)"
