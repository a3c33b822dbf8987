"""`jobtable jobs submit`: from a file, parameters and options to a new job."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from jobtable.cli.framework import COMMON, new_group
from jobtable.cli.job_waiting import Timeout, wait_until_done
from jobtable.cli.options import AsJson, ObjectsUrl, StoreUrl, open_services, resolved
from jobtable.cli.output import print_json, print_text, say
from jobtable.errors import ValueRefusedError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import DependsOn, NewJob, refusing
from jobtable.jobs.submit.definition_files import read_definition
from jobtable.jobs.submit.submission import copy_of
from jobtable.jobs.tasks import is_path

app = new_group()
Definition = dict[str, Any]
_ADAPTER = TypeAdapter(NewJob)
_NAMES = {field.name for field in fields(NewJob)}


@app.command(example="jobtable jobs submit --task training:train --queue gpu --param learning_rate=0.01 --wait")
def submit(
    task: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="Function to run, marked with @task")
    ] = None,
    queue: Annotated[
        str | None, typer.Option(metavar="NAME", help="Queue of the job, created if it does not exist")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Parameter: a number, true, false or null, or else text; repeatable"),
    ] = None,
    param_json: Annotated[
        list[str] | None, typer.Option(metavar="NAME=JSON", help="Parameter as JSON; repeatable")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Definition in YAML or JSON; other options override it")
    ] = None,
    like: Annotated[
        str | None, typer.Option(metavar="ID", help="Job whose definition to submit again; other options override it")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the job (default: name of the task)")] = None,
    key: Annotated[
        str | None, typer.Option(help="Your own key; submitting with it again returns the first job")
    ] = None,
    depends_on: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Job that must be COMPLETED before this starts; repeatable")
    ] = None,
    priority: Annotated[int | None, typer.Option(min=0, max=999, help="Priority; higher goes first")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag of the job; repeatable")] = None,
    attempts: Annotated[int | None, typer.Option(min=1, help="Maximum number of attempts")] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Maximum duration of one attempt")] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(metavar="USD", help="Maximum cost of models asked by the job and all below it"),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Maximum tokens of their requests and answers")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the job ends; exit with 5 unless it is COMPLETED")
    ] = False,
    timeout: Timeout = None,
    user: Annotated[
        str | None, typer.Option(metavar="NAME", help="User recorded as the job's owner", rich_help_panel=COMMON)
    ] = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Submit a job and print its id."""
    given: Definition = {
        "task": task,
        "queue": queue,
        "name": name,
        "key": key,
        "priority": priority,
        "max_attempts": attempts,
        "timeout_seconds": time_limit,
        "max_cost": max_cost,
        "max_tokens": max_tokens,
        "tags": tag or None,
        "user": user,
    }
    if config is not None and like is not None:
        raise typer.BadParameter("--config and --like cannot be combined")
    changed_params = _params(param or (), param_json or ())
    definition = {} if config is None else definition_in(config)
    with open_services(store, objects, creates=True) as services:
        if like is not None:
            definition = definition_of(services.jobs.queries.get_job(like))
        definition.update({member: value for member, value in given.items() if value is not None})
        new = new_job(definition, depends_on or (), default_user=resolved().settings.user)
        job = services.jobs.submit(replace(new, params={**new.params, **changed_params}))
        if wait:
            try:
                wait_until_done(services.jobs, [job.job_id], timeout, as_json=as_json)
            except KeyboardInterrupt:
                say(f"The job continues; wait for it with `jobtable jobs wait {job.job_id}`")
                raise
        elif as_json:
            print_json(job)
        else:
            print_text(job.job_id)


def definition_in(file: Path) -> Definition:
    """Read a definition in YAML or JSON, without the members that have no value."""
    read = read_definition(file).value
    if not isinstance(read, dict):
        raise ValueRefusedError(f"{file} is not a definition; write members such as task and params")
    return {member: value for member, value in read.items() if value is not None}


def definition_of(job: Job) -> Definition:
    """Return the definition that a job was submitted with; JobStateError if it cannot be submitted again."""
    copy = copy_of(job)
    return {name: getattr(copy, name) for name in _NAMES - {"user", "depends_on"}}


def new_job(definition: Definition, depends_on: Iterable[str] = (), *, default_user: str = "local") -> NewJob:
    """Return the job that a definition describes, named after its task by default; or ValueRefusedError."""
    unknown = definition.keys() - _NAMES
    if unknown:
        raise ValueRefusedError(
            f"unknown member {', '.join(sorted(map(str, unknown)))}; a job has {', '.join(sorted(_NAMES))}"
        )
    task = definition.get("task")
    if not task:
        raise ValueRefusedError("a job needs a task; name it with --task MODULE:FUNCTION")
    if not isinstance(task, str) or not is_path(task):
        raise ValueRefusedError(f"invalid task {task!r}; write MODULE:FUNCTION")
    complete = {"name": task.partition(":")[2], "user": default_user, **definition}
    awaited = complete.pop("depends_on", [])
    if not isinstance(awaited, list):
        raise ValueRefusedError(f"invalid depends_on {awaited!r}; write a list of job ids")
    # A file may name a dependency by its id alone.
    complete["depends_on"] = tuple({"job_id": each} if isinstance(each, str) else each for each in awaited)
    with refusing("the job"):
        new = _ADAPTER.validate_python(complete)
    return replace(new, depends_on=(*new.depends_on, *(DependsOn(job_id) for job_id in depends_on)))


def _params(texts: Iterable[str], json_texts: Iterable[str]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for text in texts:
        name, value = _split(text, "--param")
        params[name] = _scalar(value)
    for text in json_texts:
        name, value = _split(text, "--param-json")
        try:
            params[name] = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise typer.BadParameter(f"--param-json {name}: {value!r:.200} is not JSON: {error}") from error
    return params


def _split(text: str, option: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise typer.BadParameter(f"invalid {option} {text!r}; write NAME=VALUE")
    return name, value


def _scalar(text: str) -> Any:
    """Read a bare value: a number, true, false, null, or the text itself."""
    try:
        value = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text
    return value if value is None or isinstance(value, bool | int | float) else text
