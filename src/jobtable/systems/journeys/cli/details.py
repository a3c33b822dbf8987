"""What journeys leave behind and are guided by: `jobtable journeys logs`, `reports`, `report`, `rules`, `rule`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from jobtable.cli.framework import MOST_LINES, new_group
from jobtable.cli.options import AsJson, on_services
from jobtable.cli.output import columns, first_of, print_json, print_json_line, print_list, print_text, say
from jobtable.errors import NotFoundError
from jobtable.systems.journeys.entities import JobExecution, JobReport, SecondBrainRule
from jobtable.systems.journeys.execution_records import ExecutionRecords
from jobtable.systems.journeys.parts import LogEntryLevel, ReportType, RuleStatus
from jobtable.systems.journeys.rules import applicable
from jobtable.systems.journeys.service import Journeys

app = new_group()
_rule_row = columns(SecondBrainRule, "rule=rule_id stage=stage_id type priority scope status content")
JourneyId = Annotated[str, typer.Argument(metavar="ID", help="Id of the journey")]
Stage = Annotated[str | None, typer.Option("--stage", metavar="STAGE", help="Only this stage")]
_LINES = 100
_COLOURS = {LogEntryLevel.ERROR: "red", LogEntryLevel.WARNING: "yellow", LogEntryLevel.DEBUG: "dim"}


@app.command(example="jobtable journeys logs JRN-1 --stage raw_analysis --level warning")
@on_services
def logs(
    journeys: Journeys,
    records: ExecutionRecords,
    journey_id: JourneyId,
    stage: Stage = None,
    step: Annotated[str | None, typer.Option(metavar="STEP", help="Only this step")] = None,
    level: Annotated[LogEntryLevel | None, typer.Option(help="Only lines of this level")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Every line, from object storage, instead of the notable ones")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, max=MOST_LINES, help="Maximum number (default: 100, or all with --full)"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the latest log lines of the latest executions, or all of them with --full."""
    executions = list(_latest(journeys, journey_id, stage))
    _refuse_unknown(step, executions, journey_id)
    every = (
        line
        for execution in executions
        for line in (_full(records, execution, step) if full else _recent(journeys, execution, step))
    )
    lines = (line for line in every if level in (None, LogEntryLevel(line["level"].lower())))
    if full and limit is None:
        _print_all(lines, as_json=as_json)
    else:
        most = limit or _LINES
        with first_of(reversed(deque(lines, most + 1)), most) as latest:
            _print_all(reversed(latest), as_json=as_json)


def _refuse_unknown(step: str | None, executions: list[JobExecution], journey_id: str) -> None:
    known = dict.fromkeys(run.step_id for execution in executions for run in execution.steps)
    if step is not None and step not in known:
        raise NotFoundError(f"journey {journey_id} has no step {step}; it has {', '.join(known) or 'none'}")


def _latest(journeys: Journeys, journey_id: str, stage_id: str | None) -> Iterator[JobExecution]:
    complete = journeys.get_complete_journey(journey_id, recent_executions=0, consistent=True)
    if stage_id is not None:
        journeys.get_stage(journey_id, stage_id)
    for stage in complete.stages:
        if stage_id in (None, stage.stage_id):
            found = journeys.list_stage_executions(stage, newest_first=True).first()
            if found is not None:
                yield found


def _full(records: ExecutionRecords, execution: JobExecution, step: str | None) -> Iterator[dict[str, Any]]:
    if step is not None and step not in {run.step_id for run in execution.steps}:
        return iter(())
    return records.get_job_logs(execution.journey_id, execution.stage_id, execution.job_id, step)


def _recent(journeys: Journeys, execution: JobExecution, step: str | None) -> Iterator[dict[str, Any]]:
    job_id = execution.job_id
    of_step = journeys.list_step_logs(execution.journey_id, job_id, step) if step else journeys.list_job_logs(job_id)
    for entry in of_step:
        yield {
            "jobId": entry.job_id,
            "step_id": entry.step,
            "level": entry.level.name,
            "message": entry.message,
            "timestamp": entry.timestamp.isoformat(),
            "details": entry.details,
        }


def _print_all(lines: Iterable[dict[str, Any]], *, as_json: bool) -> None:
    for line in lines:
        if as_json:
            print_json_line(line)
            continue
        details = f"  {line['details']}" if line.get("details") else ""
        text = f"{line['timestamp']} {line['level']:7} {line['step_id']}: {line['message']}{details}"
        print_text(text, _COLOURS.get(LogEntryLevel(line["level"].lower()), ""))


@app.command(example="jobtable journeys reports JRN-1 --type performance")
@on_services
def reports(
    journeys: Journeys,
    journey_id: JourneyId,
    stage: Stage = None,
    report_type: Annotated[ReportType | None, typer.Option("--type", help="Only reports of this type")] = None,
    as_json: AsJson = False,
) -> None:
    """List the reports of the latest executions."""
    found = [
        record
        for execution in _latest(journeys, journey_id, stage)
        for record in journeys.list_job_reports(execution.job_id)
        if report_type in (None, record.report_type)
    ]
    print_list(found, _report_row, as_json=as_json, empty=f"Journey {journey_id} has no such reports.")


def _report_row(record: JobReport) -> dict[str, Any]:
    return {
        "report": record.report_id,
        "type": record.report_type.value,
        "title": record.title,
        "summary": record.summary,
        "bytes": None if record.metrics is None else record.metrics.content_size,
        "generated": record.generated_at,
    }


@app.command(example="jobtable journeys report JRN-1 JOB-0C6B1C1F6B112F63_job_summary")
@on_services
def report(
    journeys: Journeys,
    records: ExecutionRecords,
    journey_id: JourneyId,
    report_id: Annotated[
        str, typer.Argument(metavar="REPORT", help="Id of the report, as `journeys reports` lists it")
    ],
) -> None:
    """Print a whole report as JSON."""
    for execution in journeys.list_executions(journey_id):
        for record in journeys.list_job_reports(execution.job_id):
            if record.report_id == report_id:
                print_json(records.read_report(record))
                return
    raise NotFoundError(f"journey {journey_id} has no report {report_id}")


@app.command(example="jobtable journeys rules JRN-1 --stage tmf_mapping")
@on_services
def rules(
    journeys: Journeys,
    journey_id: JourneyId,
    stage: Annotated[
        str | None, typer.Option(metavar="STAGE", help="Only rules that apply to this stage, most urgent first")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the rules of a journey, or of one of its stages."""
    journeys.get_journey(journey_id)
    found = journeys.list_rules(journey_id)
    if stage is not None:
        found = applicable(found, journeys.get_stage(journey_id, stage))
    print_list(found, _rule_row, as_json=as_json, empty=f"Journey {journey_id} has no such rules.")


@app.command(example="jobtable journeys rule JRN-1 rule-tmf_mapping-field_mapping-001 inactive")
@on_services
def rule(
    journeys: Journeys,
    journey_id: JourneyId,
    rule_id: Annotated[str, typer.Argument(metavar="RULE", help="Id of the rule")],
    status: Annotated[RuleStatus, typer.Argument(metavar="STATUS", help="New status")],
) -> None:
    """Switch a rule on or off, for stages that start later."""
    found = next((each for each in journeys.list_rules(journey_id) if each.rule_id == rule_id), None)
    if found is None:
        raise NotFoundError(f"journey {journey_id} has no rule {rule_id}")
    journeys.change_rule_status(found, status)
    say(f"Rule {rule_id} is {status.value}.")
