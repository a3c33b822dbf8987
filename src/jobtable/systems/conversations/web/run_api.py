"""Runs of conversation analyses: start, rerun, comparison and deletion."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.systems.conversations.conversation_runs import ConversationRuns, Run, RunSettings
from jobtable.systems.conversations.entities import ConversationRun
from jobtable.systems.conversations.pipeline import PipelineStage
from jobtable.systems.conversations.run_comparison import compare_runs
from jobtable.systems.conversations.web.api import ConversationId
from jobtable.web.api.route_parts import Body, Id, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import CallerName, CallerOf, path_id, service
from jobtable.web.limits import takes_file

router = api_router("conversations as they run")
creation = api_router("conversations as they run", CreationRoute)

EXAMPLES: dict[str, Any] = {
    "start_run": {
        "conversation_id": "town",
        "comments_csv": (
            "timestamp,datetime,comment-id,author-id,agrees,disagrees,moderated,comment-body\n"
            "1417396472000,2014-12-01,0,0,1,0,1,The library should open on Sundays.\n"
        ),
        "votes_csv": "timestamp,datetime,comment-id,voter-id,vote\n1417396473000,2014-12-01,0,1,1\n",
        "seed": 7,
    },
    "rerun": {"first": "LAYOUT", "seed": 8},
}

RunId = Annotated[str, path_id("5e0c-run")]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]


TheRuns = Annotated[ConversationRuns, service(ConversationRuns)]


class NewRun(Body):
    """The export of a conversation, and how to analyse it."""

    conversation_id: Id = Field(examples=["bg2018"])
    comments_csv: str = Field(min_length=1, description="Text of comments.csv of a Polis export.")
    votes_csv: str = Field(min_length=1, description="Text of votes.csv of a Polis export.")
    seed: Seed = 0
    embed: str | None = Field(None, max_length=500, description="Embedding function, as module:function.")
    includes_moderated: bool = False
    strict_moderation: bool = Field(False, description="Leave out comments that no moderator accepted, too.")
    run_id: Id | None = None


class AnotherRun(Body):
    """The first stage to run again."""

    first: PipelineStage
    seed: Seed | None = None
    new_run_id: Id | None = None


class RunView(BaseModel):
    """A run and its progress."""

    record: ConversationRun
    status: Status
    progress: float
    stages: dict[PipelineStage, Job]


def _view(run: Run) -> RunView:
    return RunView(record=run.record, status=run.status, progress=run.progress, stages=dict(run.stages))


@creation.post("/conversation-runs", status_code=201)
@allow(WRITE)
@takes_file(whole=True)
def start_run(body: NewRun, runs: TheRuns, caller: CallerOf) -> RunView:
    """Store an export and submit the jobs of all stages; workers run them."""
    settings = RunSettings(body.seed, body.embed, body.includes_moderated, body.strict_moderation)
    files = body.comments_csv.encode(), body.votes_csv.encode()
    return _view(runs.start(body.conversation_id, *files, settings, run_id=body.run_id, user=caller.name))


@router.get("/conversation-runs/{run_id}")
@allow(READ)
def get_run(run_id: RunId, runs: TheRuns) -> RunView:
    """Return a run with the jobs of its stages."""
    return _view(runs.get(run_id))


@creation.post("/conversation-runs/{run_id}/rerun", status_code=201)
@allow(WRITE)
def rerun(run_id: RunId, body: AnotherRun, runs: TheRuns, caller: CallerOf) -> RunView:
    """Run a stage and its dependents again, as a new run with copies of the other results."""
    return _view(runs.rerun(run_id, body.first, seed=body.seed, new_run_id=body.new_run_id, user=caller.name))


@router.get("/conversation-runs/{run_id}/comparison/{other_id}")
@allow(READ)
def compare(run_id: RunId, other_id: RunId, runs: TheRuns) -> dict[str, Any]:
    """Compare two runs: what is equal, and where they differ."""
    return dict(vars(compare_runs(runs, run_id, other_id)))


add_verbs(
    router,
    TheRuns,
    {
        "run_id": RunId,
        "conversation_id": ConversationId,
        "stop": Annotated[bool, Query(description="Cancel a running run first, and wait for its workers.")],
        "by": CallerName,
    },
    ("delete_run", "DELETE /conversation-runs/{run_id}", ConversationRuns.delete),
    ("list_runs", "GET /conversations/{conversation_id}/runs", ConversationRuns.list_runs),
)
