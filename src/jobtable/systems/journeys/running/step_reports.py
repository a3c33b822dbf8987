"""Reports: how they are stored in bounded memory, and those that the engine makes from the records of steps."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from pydantic_core import to_jsonable_python

from jobtable.clock import Clock
from jobtable.errors import ValueRefusedError, kind_and_text
from jobtable.objects import ObjectStore
from jobtable.systems.journeys.entities import JobExecution, JobReport
from jobtable.systems.journeys.object_keys import DEFAULT_BUCKETS, ExecutionFolder, location
from jobtable.systems.journeys.parts import JobExecutionStatus, ReportMetrics, ReportType, StepRun
from jobtable.systems.journeys.running.flow import seconds_between

ENGINE_REPORTS = {
    ReportType.SUMMARY: "job_summary",
    ReportType.PERFORMANCE: "performance_summary",
    ReportType.TIMELINE: "job_timeline",
    ReportType.ERROR_ANALYSIS: "error_analysis",
}
"""The names of the engine's reports; no step may have one of them."""
OWN_MEMBERS = {"reportId", "reportType", "title", "summary", "executionSummary", "generatedAt"}
"""The members that every report has in addition to its sections."""
_IN_MEMORY = 1 << 20
_SLOW_SHARE = 0.5
_MUCH_LOGGING_PER_SECOND = 1_000


@dataclass(frozen=True)
class ReportContent:
    """A report by section."""

    type: ReportType
    title: str
    summary: str
    sections: Mapping[str, Any]

    def __post_init__(self) -> None:
        if taken := ", ".join(sorted(OWN_MEMBERS & self.sections.keys())):
            raise ValueRefusedError(f"report {self.title!r} cannot have a section {taken}; choose another name")

    def fingerprint(self, call_id: str) -> str:
        """Identify a call that stores a report, to recognise its repetition."""
        text = _text_of([call_id, self.title, self.summary, self.sections])
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


class ReportDraft:
    """A report that is not stored yet; its content is on disk from the start."""

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
        """Store the report once; return the record that names it."""
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
        """Drop what was written."""
        self._file.close()

    def _write(self, opening: str, members: Mapping[str, Any]) -> None:
        for number, (name, value) in enumerate(members.items()):
            self._file.write(f"{', ' if number else opening}{json.dumps(name)}: ".encode())
            self._file.write(_text_of(value).encode("utf-8", "backslashreplace"))


def _text_of(value: Any) -> str:
    """Return a value as JSON; what JSON cannot express becomes text."""
    return json.dumps(to_jsonable_python(value, fallback=repr, inf_nan_mode="strings"), ensure_ascii=False)


def step_summary(job_id: str, run: StepRun) -> dict[str, Any]:
    """Return what the report of a step says about the step."""
    return {
        "stepId": run.step_id,
        "jobId": job_id,
        "status": run.status,
        "startTime": run.start_time,
        "endTime": run.end_time,
        "duration": run.duration,
    }


def execution_summary(execution: JobExecution) -> dict[str, Any]:
    """Return what the engine's reports say about the execution."""
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
    """Yield the summary, the performance and the timeline of an execution, from the records of its steps."""
    seconds = sum(step.duration or 0.0 for step in execution.steps)
    done = f"{len(execution.steps)} steps in {seconds:.1f} seconds"
    slowest = _slowest(execution.steps)
    yield ReportContent(
        ReportType.SUMMARY,
        f"Summary of {execution.stage_id}",
        f"{done}, {execution.metrics.error_count} errors, {execution.metrics.warning_count} warnings",
        {
            "results": execution.results,
            "measurements": execution.measurements or {},
            "logs": execution.metrics.model_dump(by_alias=True),
        },
    )
    yield ReportContent(
        ReportType.PERFORMANCE,
        f"Performance of {execution.stage_id}",
        f"{done}; slowest: " + ("none" if slowest is None else f"{slowest.step_id} ({slowest.duration or 0.0:.1f} s)"),
        {
            "performanceMetrics": _performance(execution, seconds),
            "steps": [
                {"stepId": step.step_id, "duration": step.duration or 0.0, "share": round(_share(step, seconds), 4)}
                for step in execution.steps
            ],
            "recommendations": _recommendations(execution, seconds),
        },
    )
    yield ReportContent(
        ReportType.TIMELINE, f"Timeline of {execution.stage_id}", done, {"timeline": _timeline(execution)}
    )


def error_analysis(execution: JobExecution, step_id: str, error: BaseException, trace: str) -> ReportContent:
    """Return the report of a failure: the step, the error, and the steps before it."""
    return ReportContent(
        ReportType.ERROR_ANALYSIS,
        f"Failure of {execution.stage_id} in {step_id}",
        kind_and_text(error)[:500],
        {
            "error": {"type": type(error).__name__, "message": str(error), "trace": trace, "stepId": step_id},
            "timeline": _timeline(execution),
            "logs": execution.metrics.model_dump(by_alias=True),
            "recommendations": [f"Fix {step_id}, then run: jobtable journeys retry {execution.journey_id}"],
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


def _share(step: StepRun, seconds: float) -> float:
    return (step.duration or 0.0) / seconds if seconds else 0.0


def _recommendations(execution: JobExecution, seconds: float) -> list[str]:
    found = []
    slowest = _slowest(execution.steps)
    if slowest is not None and len(execution.steps) > 1 and (share := _share(slowest, seconds)) > _SLOW_SHARE:
        found.append(f"{slowest.step_id} takes {share:.0%} of the time; start there to make the stage faster")
    if execution.metrics.error_count:
        found.append(f"{execution.metrics.error_count} errors were logged; review them before the next run")
    if seconds and execution.metrics.total_logs / seconds > _MUCH_LOGGING_PER_SECOND:
        found.append("Logging may take much of the time; log less for each record")
    return found


def _timeline(execution: JobExecution) -> list[dict[str, Any]]:
    start = execution.start_time
    return [
        {
            "stepId": step.step_id,
            "status": step.status,
            "startTime": step.start_time,
            "endTime": step.end_time,
            "duration": step.duration,
            "offset": seconds_between(start, step.start_time) if start and step.start_time else None,
        }
        for step in execution.steps
    ]


def _slowest(steps: Sequence[StepRun]) -> StepRun | None:
    return max(steps, key=lambda step: step.duration or 0.0, default=None)
