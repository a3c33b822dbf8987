"""`jobtable conversations`: analyse conversations, and look at what the runs have found."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.job_waiting import seconds_of
from jobtable.cli.local_workers import workers_for
from jobtable.cli.opening import services_of
from jobtable.cli.options import AsJson, Limit, ObjectsUrl, StoreUrl, User, chosen_settings, on_services
from jobtable.cli.output import (
    ExitCode,
    bar,
    first_line,
    first_of,
    print_either,
    print_fields,
    print_json,
    print_list,
    print_table,
    say,
)
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.settings import Settings
from jobtable.systems.conversations import entities
from jobtable.systems.conversations.analysis.polis_export import COMMENTS_FILE, VOTES_FILE, read_files, write_export
from jobtable.systems.conversations.conversation_runs import QUEUE, ConversationRuns, Run, RunSettings
from jobtable.systems.conversations.pipeline import PIPELINE, PipelineStage
from jobtable.systems.conversations.run_comparison import compare_runs

app = new_group()

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run")]
OnlySubmit = Annotated[
    bool, typer.Option("--submit-only", help="Submit only; workers of the queue `conversations` do the work")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed; the same export and seed give the same results")]


class ResultTable(StrEnum):
    """The kinds of results."""

    EMBEDDINGS = "embeddings"
    ASSIGNMENTS = "assignments"
    CLUSTERS = "clusters"
    EDGES = "edges"
    TOPICS = "topics"
    EXTREMITY = "extremity"
    OPINIONS = "opinions"
    GROUPS = "groups"
    PARTICIPANTS = "participants"


_KINDS: dict[ResultTable, type[entities.JobResult]] = {
    ResultTable.EMBEDDINGS: entities.CommentEmbedding,
    ResultTable.ASSIGNMENTS: entities.CommentClusterAssignment,
    ResultTable.CLUSTERS: entities.CommentCluster,
    ResultTable.EDGES: entities.GraphEdge,
    ResultTable.TOPICS: entities.TopicName,
    ResultTable.EXTREMITY: entities.CommentExtremity,
    ResultTable.OPINIONS: entities.CommentOpinion,
    ResultTable.GROUPS: entities.OpinionGroup,
    ResultTable.PARTICIPANTS: entities.ParticipantOpinion,
}


@app.command(example="jobtable conversations analyze ./biodiversity --seed 7")
def analyze(
    export: Annotated[
        Path, typer.Argument(metavar="EXPORT_DIR", help="Folder with comments.csv and votes.csv of Polis")
    ],
    conversation: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Id of the conversation (default: name of the folder)")
    ] = None,
    seed: Seed = 0,
    embed: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="Function from texts to an array, instead of TF-IDF")
    ] = None,
    include_moderated: Annotated[
        bool, typer.Option("--include-moderated", help="Include comments that were moderated out")
    ] = False,
    strict_moderation: Annotated[
        bool, typer.Option("--strict-moderation", help="Leave out comments that no moderator accepted, too")
    ] = False,
    submit_only: OnlySubmit = False,
    user: User = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Analyse an export: topics, opinion groups and what represents them, consensus, and what divides people."""
    settings = chosen_settings(store, objects, user=user, creates=True)
    _refuse_without_extra(settings, submit_only=submit_only)
    files = read_files(export)
    with services_of(settings) as services:
        run = services.get(ConversationRuns).start(
            conversation or export.resolve().name,
            *files,
            RunSettings(
                seed=seed, embed=embed, includes_moderated=include_moderated, strict_moderation=strict_moderation
            ),
            user=settings.user,
        )
        _finish(services, run, settings, submit_only=submit_only, as_json=as_json)


@app.command(example="jobtable conversations rerun 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --from layout --seed 8")
@on_services(user=User)
def rerun(
    services: Services,
    settings: Settings,
    run_id: RunId,
    first: Annotated[
        PipelineStage,
        typer.Option(
            "--from", case_sensitive=False, help="First stage to run again; the results of earlier ones are kept"
        ),
    ],
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed, instead of the run's")] = None,
    submit_only: OnlySubmit = False,
    as_json: AsJson = False,
) -> None:
    """Run a stage and all later ones again, as a new run that keeps the results of the earlier ones."""
    _refuse_without_extra(settings, submit_only=submit_only)
    run = services.get(ConversationRuns).rerun(run_id, first, seed=seed, user=settings.user)
    _finish(services, run, settings, submit_only=submit_only, as_json=as_json)


def _finish(services: Services, run: Run, settings: Settings, *, submit_only: bool, as_json: bool) -> None:
    """Wait for the workers with a progress bar, print the run, and exit with 5 unless it is COMPLETED."""
    runs, run_id = services.get(ConversationRuns), run.record.run_id
    if not submit_only:
        say(f"Run {run_id}: if you stop it, `jobtable worker --queue {QUEUE} --until-empty` continues it.")
        working = workers_for(services, settings, [QUEUE], slots=2, preload=["jobtable.systems.conversations.stages"])
        with working as workers, bar("Analysing", 100) as shown:
            run = workers.poll(
                lambda: runs.get(run_id), lambda seen: seen.root.is_final, lambda seen: shown.reach(seen.progress)
            )
    _print_run(runs, run, as_json=as_json)
    if not submit_only and run.status is not Status.COMPLETED:
        raise typer.Exit(ExitCode.NOT_COMPLETED)


def _refuse_without_extra(settings: Settings, *, submit_only: bool = False) -> None:
    """Refuse to store anything if a local worker would lack the extra."""
    if not submit_only and settings.server is None:
        _refuse_without_numbers()


def _refuse_without_numbers() -> None:
    if find_spec("sklearn") is None:
        raise typer.BadParameter("the analysis needs an extra: pip install 'jobtable[conversations]'")


def _print_run(runs: ConversationRuns, run: Run, *, as_json: bool) -> None:
    counts = runs.count_results(run.record.run_id)
    if as_json:
        stages = {stage.value: job for stage, job in run.stages.items()}
        print_json({"run": run.record, "root": run.root, "stages": stages, "results": counts})
        return
    record = run.record
    print_fields(
        {
            "run": record.run_id,
            "conversation": record.conversation_id,
            "status": run.status,
            "seed": record.seed,
            "created": record.created_at,
            "taken over from": record.source_run_id,
        }
    )
    print_table([_stage_row(stage, run.stages.get(stage)) for stage in PipelineStage])
    print_table([{"table": table, "results": count} for table, count in counts.items()])


def _stage_row(stage: PipelineStage, job: Job | None) -> dict[str, Any]:
    return {
        "stage": stage.value,
        "status": None if job is None else job.status,
        "seconds": None if job is None else seconds_of(job),
        "after": [before.value for before in PIPELINE[stage].after],
        "result": None if job is None else job.result or first_line(job.message),
    }


@app.command("runs", example="jobtable conversations runs biodiversity")
@on_services
def list_runs(
    runs: ConversationRuns,
    conversation: Annotated[str, typer.Argument(metavar="CONVERSATION", help="Id of the conversation")],
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the runs of a conversation, newest first."""
    with first_of(runs.list_runs(conversation), limit) as records:
        statuses = runs.statuses(records)
        found = [{**record.model_dump(), "status": statuses.get(record.run_id)} for record in records]
        print_list(found, _record_row, as_json=as_json, empty=f"Conversation {conversation} has no runs.")


def _record_row(record: dict[str, Any]) -> dict[str, Any]:
    names = {"run_id": "run", "created_at": "created", "first_stage": "from", "created_by": "user"}
    return {names.get(name, name): record[name] for name in (*names, "status", "seed", "embed")}


@app.command(example="jobtable conversations show 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --table topics")
@on_services
def show(
    runs: ConversationRuns,
    run_id: RunId,
    table: Annotated[ResultTable | None, typer.Option(help="Show the results of this kind")] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """Show a run with its stages, or its results."""
    run = runs.get(run_id)
    if table is None:
        _print_run(runs, run, as_json=as_json)
        return
    found = runs.list_results(run_id, _KINDS[table])
    print_list(found, _result_row, as_json=as_json, empty="No results match.", limit=limit)


def _result_row(result: entities.JobResult) -> dict[str, Any]:
    """Return a result without the fields that all results of a run share, short enough for a line."""
    values = result.model_dump(exclude=set(entities.JobResult.model_fields))
    return {name: _short(value) for name, value in values.items()}


def _short(value: Any) -> Any:
    if isinstance(value, dict) and "vector" in value:
        return f"{value['dimensions']} dimensions ({value['model']})"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [each.get("word", each.get("comment_id")) for each in value]
    return value


@app.command(
    example="jobtable conversations compare 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 0c6b1c1f-2f63-4d4f-9d5d-5f3c0d0e6b11"
)
@on_services
def compare(
    runs: ConversationRuns,
    one: RunId,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Id of the run to compare with")],
    as_json: AsJson = False,
) -> None:
    """Compare two runs: settings, tables, clusters, topics and divisive comments."""
    compared = compare_runs(runs, one, other)
    if as_json:
        print_json(compared)
        return
    say("The results are the same." if compared.is_same else "The results differ.")
    print_table([vars(table) for table in compared.tables])
    if compared.settings:
        print_table([{"setting": name, "one": a, "other": b} for name, (a, b) in compared.settings.items()])
    if compared.layers:
        print_table([vars(layer) for layer in compared.layers])
    topics = {"both": compared.topics_of_both, "one": compared.topics_of_one, "other": compared.topics_of_other}
    print_table([{"topics of": name, "count": len(names), "names": names[:5]} for name, names in topics.items()])
    if compared.extremity_changes:
        print_table([vars(change) for change in compared.extremity_changes])


@app.command(example="jobtable conversations delete 5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11 --yes")
@on_services(user=User)
def delete(
    runs: ConversationRuns,
    settings: Settings,
    run_id: RunId,
    stop: Annotated[
        bool, typer.Option("--stop", help="Cancel the run if it is active, and wait for its workers")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete a run with its results, jobs and export; if interrupted, run it again."""
    confirm(f"Delete run {run_id} with its results, jobs and export?", yes=yes)
    deleted = runs.delete(run_id, stop=stop, by=settings.user)
    counts = f"{deleted.results} results and {deleted.items} items of jobs"
    print_either(deleted, lambda: say(f"Deleted {counts}."), as_json=as_json)


@app.command(example="jobtable conversations example ./example --seed 7")
def example(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write comments.csv and votes.csv to")],
    seed: Seed = 0,
    comments: Annotated[int, typer.Option(min=1, help="Number of comments")] = 120,
    voters: Annotated[int, typer.Option(min=0, help="Number of participants")] = 60,
) -> None:
    """Write the export of an invented conversation, to try the analysis."""
    _refuse_without_numbers()
    from jobtable.systems.conversations.example import generate_export  # noqa: PLC0415 - only this needs numpy

    for path in (folder / COMMENTS_FILE, folder / VOTES_FILE):
        if path.exists():
            raise typer.BadParameter(f"{path} already exists; choose another folder")
    write_export(generate_export(seed, comments=comments, voters=voters), folder)
    say(f"Wrote {comments} comments of {voters} participants to {folder}.")
