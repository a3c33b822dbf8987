"""`jobtable assist`: what jobs asked of models, what it cost, and which models may be asked."""

from __future__ import annotations

import os
from datetime import date as Date  # noqa: N812 - a field is called date
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.assist.batch_submission import Batches, BatchReads
from jobtable.assist.costs import CostField, CostSum, WholeCall
from jobtable.assist.entities import AssistBatch, AssistCall, AssistTotal
from jobtable.assist.prices import rough_dollars
from jobtable.assist.provider_states import ProviderState, provider_states
from jobtable.assist.recount import Recount
from jobtable.cli import assist_try
from jobtable.cli.completion import complete_job
from jobtable.cli.framework import new_group
from jobtable.cli.opening import services_of
from jobtable.cli.options import AsJson, Limit, chosen_settings, on_services
from jobtable.cli.output import (
    ExitCode,
    columns,
    first_of,
    print_either,
    print_fields,
    print_json,
    print_list,
    print_part,
    print_table,
    print_text,
    say,
)

app = new_group()

JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job", autocompletion=complete_job)]
_EMPTY = "No model was asked; a task asks one with `job.assist(...)`."
_provider_row = columns(
    ProviderState,
    "provider=name kind asked=is_asked vectors=makes_vectors model embeddings=embedding_model base_url region problem",
)


class By(StrEnum):
    """What costs are summed by."""

    DAY = "day"
    SYSTEM = "system"
    PURPOSE = "purpose"
    MODEL = "model"


_FIELDS: dict[By, tuple[CostField, ...]] = {
    By.DAY: ("date",),
    By.SYSTEM: ("system",),
    By.PURPOSE: ("purpose",),
    By.MODEL: ("provider", "model"),
}


def day(text: str | Date) -> Date:
    """Parse a day."""
    if isinstance(text, datetime):
        return text.date()
    if isinstance(text, Date):
        return text
    try:
        return Date.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a day; write it as in 2025-11-01") from error


@app.command(example="jobtable assist calls 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def calls(services: Services, job_id: JobId, limit: Limit = 100, as_json: AsJson = False) -> None:
    """List the calls of a job to models, oldest first, and what they and those of its tree have used."""
    services.jobs.queries.get_job(job_id)
    assist = services.assist
    used = {scope: assist.find_total(job_id, scope) for scope in ("job", "tree")}
    with first_of(assist.list_calls(job_id), limit) as listed:
        if as_json:
            print_json({"calls": listed, "used": used})
            return
        if not listed and used["tree"] is None:
            say("The job asked no model.")
            return
        if listed:
            print_table([_call_row(each) for each in listed])
        print_part("Used", [_total_row(scope, total) for scope, total in used.items() if total is not None])


@app.command(example="jobtable assist show 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 chat-9f86d081884c7d659a2feaa0c55ad015")
@on_services
def show(
    services: Services,
    job_id: JobId,
    call_id: Annotated[str, typer.Argument(metavar="CALL", help="Id of the call")],
    as_json: AsJson = False,
) -> None:
    """Show one call with its prompt and its answer."""
    whole = services.assist.read_call(job_id, call_id)
    print_either(vars(whole), lambda: _print_call(whole), as_json=as_json)


@app.command(example="jobtable assist batches 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def batches(services: Services, job_id: JobId, as_json: AsJson = False) -> None:
    """List the batches of a job at a provider, with how far each is."""
    reads = BatchReads(services.store, services.objects)
    lines, listed = reads.get_lines(job_id), list(reads.list_batches(job_id))
    if as_json:
        print_json({"lines": lines, "batches": listed})
        return
    print_fields(
        {"purpose": lines.purpose, "provider": lines.provider, "model": lines.model, "lines": lines.line_count}
    )
    print_table([_batch_row(each) for each in listed])


_batch_row = columns(
    AssistBatch, "number round status lines=line_count done=done_lines answered failed remote=remote_id error"
)


@app.command(example="jobtable assist results 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --json > results.json")
@on_services
def results(services: Services, job_id: JobId, as_json: AsJson = False) -> None:
    """Show what became of each line of a batch job."""
    found = (
        {"line": line.line_id, "about": line.about, "output": result.output, "error": result.error}
        for line, result in BatchReads(services.store, services.objects).read_results(job_id)
    )
    print_list(found, dict, as_json=as_json, empty="No line has a result yet.")


@app.command("end-batches", example="jobtable assist end-batches 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def end_batches(services: Services, job_id: JobId, as_json: AsJson = False) -> None:
    """Cancel the batches of a job at the provider; the job ends with what they have answered."""
    batches = Batches(services.engine)
    batches.end_early(job_id)
    follow = f"Job {job_id} cancels its batches and ends; `jobtable jobs wait {job_id}` waits for that."
    print_either(batches.get_lines(job_id), lambda: say(follow), as_json=as_json)


@app.command(example="jobtable assist costs --by system --by model --from 2025-11-01")
@on_services
def costs(
    services: Services,
    by: Annotated[
        list[By] | None, typer.Option(case_sensitive=False, help="What to sum by; repeatable (default: day)")
    ] = None,
    first: Annotated[
        Date | None,
        typer.Option("--from", parser=day, metavar="DAY", help="First day in UTC (default: 29 days before the last)"),
    ] = None,
    last: Annotated[
        Date | None, typer.Option("--to", parser=day, metavar="DAY", help="Last day in UTC (default: today)")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Sum what models cost, of all jobs, also of those that were deleted."""
    fields: list[CostField] = [field for each in dict.fromkeys(by or [By.DAY]) for field in _FIELDS[each]]
    sums = services.assist.sum_costs(fields, first=first, last=last)
    print_list(sums, lambda each: _cost_row(each, fields), as_json=as_json, empty=_EMPTY)


@app.command(example="jobtable assist recount 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11")
@on_services
def recount(services: Services, job_id: JobId, as_json: AsJson = False) -> None:
    """Compare what a job and its tree have used with their calls; exit with 1 if a total differs."""
    found = Recount(services.assist).of_job(job_id)
    print_list(found, vars, as_json=as_json, empty="Every total is the sum of its calls.")
    if found:
        raise typer.Exit(ExitCode.FAILED)


@app.command(example="jobtable assist providers")
def providers(as_json: AsJson = False) -> None:
    """List the providers that the settings name, and why one cannot be used.

    None of them is asked. Through a server, they are those of its settings.
    """
    listed = _providers()
    print_either(listed, lambda: print_table([_provider_row(each) for each in listed]), as_json=as_json)
    if not as_json and all(each.kind in ("none", "local") for each in listed):
        say("No provider is set, so nothing is sent to anybody; name one under [assist] in jobtable.toml.")


app.take_over(assist_try.app)


def _providers() -> list[ProviderState]:
    settings = chosen_settings(None, creates=True)
    if settings.server is None:  # no store is needed
        return provider_states(os.environ, Path.cwd())
    with services_of(settings) as services:
        return services.assist.list_providers()


def _call_row(call: AssistCall) -> dict[str, Any]:
    return {
        "call": call.call_id,
        "purpose": call.purpose,
        "status": call.status,
        "cost": _cost_of_call(call),
        "model": call.answered_by or call.model,
        "tokens in": call.tokens_in,
        "tokens out": call.tokens_out,
        "seconds": round(call.seconds, 2),
        "started": call.started_at,
    }


def _cost_of_call(call: AssistCall) -> str:
    if call.reused_from is not None:
        return "reused"
    is_unpriced = call.price_version is None and call.tokens_in + call.tokens_out > 0
    return "no price known" if is_unpriced else rough_dollars(call.cost_nanodollars)


def _total_row(scope: str, total: AssistTotal) -> dict[str, Any]:
    return {"by": scope, **_used_row(total), "reserved": rough_dollars(total.reserved_nanodollars)}


def _cost_row(used: CostSum, fields: list[CostField]) -> dict[str, Any]:
    return {**{field: getattr(used, field) for field in fields}, **_used_row(used)}


def _used_row(used: CostSum | AssistTotal) -> dict[str, Any]:
    is_unpriced = used.unpriced_calls > 0 and used.cost_nanodollars == 0
    return {
        "cost": "no price known" if is_unpriced else rough_dollars(used.cost_nanodollars),
        "calls": used.calls,
        "failed": used.failed_calls,
        "no price": used.unpriced_calls,
        "tokens in": used.tokens_in,
        "tokens out": used.tokens_out,
    }


def _print_call(whole: WholeCall) -> None:
    call = whole.call
    print_fields(
        {
            **_call_row(call),
            "provider": call.provider,
            "tries": call.tries,
            "prices": call.price_version,
            "error": call.error,
            "follows": call.follows,
            "next try": whole.next_call_id,
            "reused from": call.reused_from,
        }
    )
    request = whole.request
    if request is None:
        say("The object store no longer has the request.")
        request = {}
    for message in request.get("messages", ()):
        _print_text(str(message.get("role", "?")), message.get("content"))
    for number, text in enumerate(request.get("texts", ()), start=1):
        _print_text(f"text {number}", text)
    for number, line in enumerate(request.get("requests", ()), start=1):  # of a batch
        _print_text(f"line {number}", line.get("messages") or line.get("texts"))
    if request.get("schema"):
        _print_text("schema", request["schema"])
    if whole.answer is not None:
        _print_text("answer", whole.answer)


def _print_text(title: str, text: Any) -> None:
    print_text(f"\n{title}", "bold")
    if isinstance(text, str):
        print_text(text)
    else:
        print_json(text)
