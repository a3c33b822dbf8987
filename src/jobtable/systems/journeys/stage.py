"""Stage: the base class of every stage, with one method per step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from jobtable.errors import DefinitionError
from jobtable.objects import ObjectInfo, Source
from jobtable.systems.journeys.entities import JobExecution, Journey, SecondBrainRule, StageDefinition
from jobtable.systems.journeys.parts import LogEntryLevel, ReportType, RuleType
from jobtable.systems.journeys.running.step_reports import ENGINE_REPORTS, ReportContent

if TYPE_CHECKING:
    from jobtable.systems.journeys.running.stage_run import StageRun


class StageStopped(BaseException):
    """The stage must stop here, and continues later. No `except Exception` may catch it."""


class Stage:
    """One stage of a journey. A subclass has one method without parameters per step, with the step's name.
        class RawAnalysis(Stage):
            def schema_extraction(self) -> None:
                self.log_info("reading the schema", database=self.parameters["source"])
                self.results["tablesAnalyzed"] = 45

    When a method returns, its step is durable: its results, log and reports are stored, and it never runs again in this
    execution. If the process dies in it, the step restarts after the position that it saved.

    A journey names the class by its path: `DEFAULT_TEMPLATE.replacing("raw_analysis", RawAnalysis)`, or
    `jobtable journeys create FILE --stage raw_analysis=my_stages:RawAnalysis`. Workers must be able to import it.
    """

    def __init__(self, run: StageRun) -> None:
        self._run = run
        self.results: dict[str, Any] = dict(run.execution.results)
        """The results of the stage, as JSON: stored with each finished step, shown with the execution."""
        self.metrics: dict[str, float] = dict(run.execution.measurements or {})
        """The measurements of the stage: stored like the results, and part of its reports."""

    @property
    def journey(self) -> Journey:
        """The journey as it was when the stage started."""
        return self._run.journey

    @property
    def definition(self) -> StageDefinition:
        """The record of the stage."""
        return self._run.definition

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the journey."""
        return self._run.journey.parameters or {}

    def earlier(self, stage_id: str) -> JobExecution:
        """Return the latest execution of an earlier stage with its results, or raise NotFoundError."""
        return self._run.earlier(stage_id)

    def rules(self, rule_type: RuleType | None = None) -> list[SecondBrainRule]:
        """Return the active rules that apply to this stage, most urgent first."""
        return self._run.rules(rule_type)

    def now(self) -> datetime:
        """Return the current time."""
        return self._run.clock.now()

    def log_debug(self, message: str, **details: Any) -> None:
        """Log a line for debugging."""
        self._run.log(LogEntryLevel.DEBUG, message, details)

    def log_info(self, message: str, **details: Any) -> None:
        """Log what happened."""
        self._run.log(LogEntryLevel.INFO, message, details)

    def log_warning(self, message: str, **details: Any) -> None:
        """Log a possible problem."""
        self._run.log(LogEntryLevel.WARNING, message, details)

    def log_error(self, message: str, **details: Any) -> None:
        """Log a problem that needs attention; the step continues."""
        self._run.log(LogEntryLevel.ERROR, message, details)

    def report(
        self,
        title: str,
        *,
        summary: str = "",
        report_type: ReportType = ReportType.CUSTOM,
        results: Any = None,
        recommendations: Sequence[str] = (),
        **sections: Any,
    ) -> None:
        """Add a report of the step, of any size; it is stored when the step ends."""
        standard = {
            "performanceMetrics": dict(self.metrics),
            "detailedResults": results,
            "recommendations": list(recommendations),
        }
        self._run.report(ReportContent(report_type, title, summary, {**standard, **sections}))

    def progress(self, percent: float, message: str | None = None) -> None:
        """Report the progress of the step, from 0 to 100, as often as you like."""
        self._run.progress(percent, message)

    @property
    def position(self) -> Any:
        """The last saved position of the step, in this run or in one that died; None at its start."""
        return self._run.position

    def save(self, position: Any, *, percent: float | None = None) -> None:
        """Save the position of the step, a small JSON value; does not return if the stage must stop."""
        self._run.save(position, percent)

    def should_stop(self) -> bool:
        """Return whether the stage must stop; `save` then stops it by itself."""
        return self._run.should_stop()

    def stop(self) -> NoReturn:
        """Stop here; when the journey is resumed, the step continues after its saved position."""
        raise StageStopped

    def write_file(self, *name: str, source: Source) -> ObjectInfo:
        """Store a file of this step; it stays as long as the execution."""
        return self._run.write_file(name, source)

    def open_file(self, step_id: str, *name: str, stage_id: str | None = None) -> BinaryIO:
        """Open a file of a step, of this execution or of the latest execution of another stage."""
        return self._run.open_file(stage_id, step_id, name)

    def list_files(self, step_id: str, *, stage_id: str | None = None) -> Iterator[tuple[str, ...]]:
        """Yield the names of the files of a step, in order."""
        return self._run.list_files(stage_id, step_id)

    def local_path(self, parameter: str) -> Path:
        """Return the path in a parameter of the journey."""
        value = self.parameters.get(parameter)
        if not isinstance(value, str):
            raise DefinitionError(
                f"{type(self).__name__} needs a parameter {parameter!r}, which journey {self.journey.journey_id} lacks"
            )
        return Path(value)

    @classmethod
    def check(cls, definition: StageDefinition) -> None:
        """Raise DefinitionError if this class cannot run a stage."""
        if not definition.steps:
            raise DefinitionError(f"stage {definition.stage_id} has no steps")
        names = [step.step_id for step in definition.steps]
        for name in names:
            method = getattr(cls, name, None)
            if name.startswith("_") or not callable(method) or name in _OWN_NAMES:
                raise DefinitionError(f"{cls.__name__} has no method for step {name} of stage {definition.stage_id}")
            if name in ENGINE_REPORTS.values():
                raise DefinitionError(f"a step cannot be named {name}: the engine's report has that name")
        if len(set(names)) < len(names):
            raise DefinitionError(f"stage {definition.stage_id} has two steps with the same name: {', '.join(names)}")


_OWN_NAMES = {*vars(Stage), "results", "metrics"}
"""Names that a step cannot have, because every stage uses them for something else."""
