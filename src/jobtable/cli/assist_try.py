"""`jobtable assist try`: one question to a model, run here as a job of its own."""

from __future__ import annotations

import json
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.assist import trial
from jobtable.assist.assist_settings import NO_PROVIDER, AssistSettings
from jobtable.assist.costs import Used, used_by
from jobtable.assist.entities import AssistCall
from jobtable.assist.no_provider import HINT
from jobtable.assist.prices import rough_dollars
from jobtable.cli.framework import new_group
from jobtable.cli.options import AsJson, User, on_services
from jobtable.cli.output import ExitCode, print_json, print_text, say
from jobtable.cli.worker import opener_of
from jobtable.errors import ConflictError, NoModelError, ValueRefusedError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.worker import Worker
from jobtable.settings import Settings

app = new_group()


@app.command("try", example="jobtable assist try 'Which city is the capital of Peru?' --max-cost 0.01")
@on_services(creates=True, user=User)
def try_model(
    services: Services,
    settings: Settings,
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What to ask, or the text to embed")],
    provider: Annotated[
        str | None, typer.Option(metavar="NAME", help="Provider to ask (default: that of the settings)")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model to ask (default: that of the provider)")
    ] = None,
    output_schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSON schema that the answer must follow")
    ] = None,
    embed: Annotated[bool, typer.Option("--embed", help="Make the vector of the text instead of asking")] = False,
    max_cost: Annotated[
        float | None, typer.Option(metavar="DOLLARS", min=0, help="Most that it may cost; it is not sent otherwise")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a model and print its answer; exit with 5 if it has none.

    It runs here and now, with the settings of this folder, as a job of the type assist-try, which keeps the prompt, the
    answer and the cost like any other. Delete it with `jobtable jobs delete`.
    """
    if embed and output_schema is not None:
        raise typer.BadParameter("--embed and --output-schema cannot be combined")
    _refuse_nobody(provider, embed=embed)
    params: dict[str, Any] = {"text": prompt} if embed else {"prompt": prompt, "schema": _schema_in(output_schema)}
    asked = {"provider": provider, "model": model}
    new = NewJob(
        name="try a model",
        task=trial.embed if embed else trial.ask,
        params={name: value for name, value in {**params, **asked}.items() if value is not None},
        queue=f"{trial.JOB_TYPE}-{uuid.uuid4()}",  # nobody else's worker takes the job
        job_type=trial.JOB_TYPE,
        user=settings.user,
        max_cost=max_cost,
    )
    job = _run(services, settings, new)
    calls = list(services.assist.list_calls(job.job_id))
    if as_json:
        ended = {"job_id": job.job_id, "status": job.status, "message": job.message}
        print_json({**ended, "answer": job.result, "calls": calls})
    else:
        _print_answer(job, calls)
    if job.status is not Status.COMPLETED:
        raise typer.Exit(ExitCode.NOT_COMPLETED)


def _refuse_nobody(provider: str | None, *, embed: bool) -> None:
    """Raise if the settings name no provider to ask; vectors can also come from the model on this machine."""
    found = AssistSettings.load(os.environ, Path.cwd()).find(provider)
    if found.kind == NO_PROVIDER and not embed:
        raise NoModelError("no provider of models is set", hint=HINT)


def _schema_in(file: Path | None) -> dict[str, Any] | None:
    if file is None:
        return None
    try:
        schema = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueRefusedError(f"cannot read a JSON schema from {file}: {error}") from error
    if not isinstance(schema, dict):
        raise ValueRefusedError(f"{file} is not a JSON schema; write an object")
    trial.answer_class(schema)
    return schema


def _run(services: Services, settings: Settings, new: NewJob) -> Job:
    """Submit a job, run it in a process of its own, which Ctrl-C can end, and return it as it ended."""
    job = services.jobs.submit(new)
    try:
        Worker(opener_of(settings), [new.queue], until_empty=True, drain_seconds=0).run()
        ended = services.jobs.queries.get_job(job.job_id)
        if not ended.is_final:  # Ctrl-C has stopped the worker
            services.jobs.cancel(job.job_id, by=settings.user)
            raise KeyboardInterrupt
    finally:
        with suppress(ConflictError):  # the worker was interrupted at once, and has the job still
            services.jobs.delete_queue(new.queue)
    return ended


def _print_answer(job: Job, calls: list[AssistCall]) -> None:
    if isinstance(job.result, str):
        print_text(job.result)
    elif job.result is not None:
        print_json(job.result)
    if job.message:
        reason, *_ = job.message.splitlines()
        say(f"{job.status}: {reason}")
    used = Used()
    for each in calls:
        used.add(used_by(each))
    asked = ", ".join(dict.fromkeys(f"{each.answered_by or each.model} of {each.provider}" for each in calls))
    cost = "no price known" if used.unpriced_calls else rough_dollars(used.cost_nanodollars)
    if calls:
        say(f"{asked}: {used.tokens_in:,} tokens in, {used.tokens_out:,} out, {cost}")
    say(f"The job is {job.job_id}")
