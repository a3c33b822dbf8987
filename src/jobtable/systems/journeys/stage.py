"""Stage: what the author of a stage inherits from, with one method for each step."""

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
    """Somebody wants the stage to stop; it ends here and goes on later. No `except Exception` is to catch it."""


class Stage:
    """One stage of a journey. A subclass has a method without parameters for each step, named as the step is.

        class RawAnalysis(Stage):
            def schema_extraction(self) -> None:
                self.log_info("reading the schema", database=self.parameters["source"])
                self.results["tablesAnalyzed"] = 45

    When a method returns, its step is durable: its results, its log and its reports are stored, and it never runs
    again in this execution. When the process dies in it, the step begins anew, behind the position that it saved.
    """

    def __init__(self, run: StageRun) -> None:
        self._run = run
        self.results: dict[str, Any] = dict(run.execution.results)
        """What the stage has found, as JSON: kept with each finished step, shown with the execution."""
        self.metrics: dict[str, float] = dict(run.execution.measurements or {})
        """What the stage has measured: kept as the results are, and part of its reports."""

    # --- what the stage works on --------------------------------------------------------------------------------------

    @property
    def journey(self) -> Journey:
        """The journey as it was when the stage began."""
        return self._run.journey

    @property
    def definition(self) -> StageDefinition:
        """The stage's record."""
        return self._run.definition

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The journey's parameters."""
        return self._run.journey.parameters or {}

    def earlier(self, stage_id: str) -> JobExecution:
        """The latest execution of an earlier stage, with its results; NotFoundError if it has not run."""
        return self._run.earlier(stage_id)

    def rules(self, rule_type: RuleType | None = None) -> list[SecondBrainRule]:
        """The active rules that apply to this stage, most urgent first."""
        return self._run.rules(rule_type)

    def now(self) -> datetime:
        """The time."""
        return self._run.clock.now()

    # --- what it tells ------------------------------------------------------------------------------------------------

    def log_debug(self, message: str, **details: Any) -> None:
        """Log a line for those who look for a fault."""
        self._run.log(LogEntryLevel.DEBUG, message, details)

    def log_info(self, message: str, **details: Any) -> None:
        """Log what happens."""
        self._run.log(LogEntryLevel.INFO, message, details)

    def log_warning(self, message: str, **details: Any) -> None:
        """Log what may be a problem."""
        self._run.log(LogEntryLevel.WARNING, message, details)

    def log_error(self, message: str, **details: Any) -> None:
        """Log what needs attention; the step goes on."""
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
        """Give a report of the step, of any size; it is stored when the step ends."""
        given = {"performanceMetrics": dict(self.metrics), "detailedResults": results}
        told = {**given, "recommendations": list(recommendations), **sections}
        self._run.report(ReportContent(report_type, title, summary, told))

    def progress(self, percent: float, message: str | None = None) -> None:
        """Say how far the step is, from 0 to 100; call it as often as you like."""
        self._run.progress(percent, message)

    # --- steps that take long -----------------------------------------------------------------------------------------

    @property
    def position(self) -> Any:
        """What the step saved last, in this run or in one that died; None at its beginning."""
        return self._run.position

    def save(self, position: Any, *, percent: float | None = None) -> None:
        """Make durable how far the step has come (a small JSON value); does not return if the stage is to stop."""
        self._run.save(position, percent)

    def should_stop(self) -> bool:
        """Whether somebody wants the stage to stop; `save` stops it by itself."""
        return self._run.should_stop()

    def stop(self) -> NoReturn:
        """End here; the step goes on behind its saved position when the journey is resumed."""
        raise StageStopped

    # --- files --------------------------------------------------------------------------------------------------------

    def write_file(self, *name: str, source: Source) -> ObjectInfo:
        """Put a file of this step into object storage; it stays as long as the execution does."""
        return self._run.write_file(name, source)

    def open_file(self, step_id: str, *name: str, stage_id: str | None = None) -> BinaryIO:
        """A file that a step has made: of this execution, or of the latest of another stage."""
        return self._run.open_file(stage_id, step_id, name)

    def list_files(self, step_id: str, *, stage_id: str | None = None) -> Iterator[tuple[str, ...]]:
        """The names of the files that a step has made, in order."""
        return self._run.list_files(stage_id, step_id)

    def local_path(self, parameter: str) -> Path:
        """A parameter of the journey that names a file."""
        value = self.parameters.get(parameter)
        if not isinstance(value, str):
            raise DefinitionError(
                f"journey {self.journey.journey_id} has no parameter {parameter!r}, which {type(self).__name__} needs"
            )
        return Path(value)

    # --- its class ----------------------------------------------------------------------------------------------------

    @classmethod
    def check(cls, definition: StageDefinition) -> None:
        """Refuse, with a DefinitionError, a definition that this class cannot run."""
        if not definition.steps:
            raise DefinitionError(f"stage {definition.stage_id} has no steps")
        names = [step.step_id for step in definition.steps]
        for name in names:
            method = getattr(cls, name, None)
            if name.startswith("_") or not callable(method) or name in _OWN_NAMES:
                raise DefinitionError(f"{cls.__name__} has no method for the step {name} of {definition.stage_id}")
            if name in ENGINE_REPORTS.values():
                raise DefinitionError(f"a step cannot have the name {name}: it is that of a report of the engine")
        if len(set(names)) < len(names):
            raise DefinitionError(f"stage {definition.stage_id} has two steps of one name: {', '.join(names)}")


_OWN_NAMES = {*vars(Stage), "results", "metrics"}
"""What a step cannot be called, because every stage has something else under that name."""
