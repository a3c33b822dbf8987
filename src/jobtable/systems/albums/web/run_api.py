"""Running album executions: starts, retries and deletes them, and answers their tasks."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Base64Encoder, BaseModel, EncodedBytes, Field
from pydantic_core import PydanticCustomError

from jobtable.systems.albums.album_executions import ANSWER_WITHIN, LONGEST_WAIT, Executions
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import AlbumData, Comparison, Execution, WorkflowType
from jobtable.systems.albums.metrics import compute_and_compare
from jobtable.systems.albums.service import MetricsComparison
from jobtable.systems.albums.style_comparison import MOST_RUNS, Comparisons
from jobtable.systems.albums.web.api import MOST_ALBUMS, ExecutionId, TaskId
from jobtable.web.api.route_parts import Body, Id, Written, api_router
from jobtable.web.guard import WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import CallerName, CallerOf, Day, TheStore, path_id, service
from jobtable.web.limits import takes_file

router = api_router("albums as they run")
creation = api_router("albums as they run", CreationRoute)

EXAMPLES: dict[str, Any] = {
    "start_execution": {
        "workflow_type": "step-functions",
        "image": "VGhlIEJlYXRsZXMgLSBBYmJleSBSb2FkICgxOTY5KQo=",
        "name": "shelf.txt",
    },
    "complete_task": {
        "albums": [{"album_index": 1, "album_name": "Abbey Road", "artist": "The Beatles", "year": 1969}],
        "token": "the token that was shown once",
    },
    "start_comparison": {
        "images": [{"name": "shelf.txt", "image": "VGhlIEJlYXRsZXMgLSBBYmJleSBSb2FkICgxOTY5KQo="}],
        "runs": 3,
    },
}


TheExecutions = Annotated[Executions, service(Executions)]
TheAnswers = Annotated[Answers, service(Answers)]
TheComparisons = Annotated[Comparisons, service(Comparisons)]
ComparisonId = Annotated[str, path_id("comparison-5d")]


class _StrictBase64(Base64Encoder):
    """Strict base64: pydantic's own skips invalid characters, which would change the image."""

    @classmethod
    def decode(cls, data: bytes) -> bytes:
        try:
            return base64.b64decode(data, validate=True)
        except ValueError as error:
            raise PydanticCustomError("base64_decode", "invalid base64: {error}", {"error": str(error)}) from error


_Image = Annotated[bytes, EncodedBytes(encoder=_StrictBase64)]


class ImageBody(Body):
    """An image to find albums in."""

    image: _Image = Field(description="The picture or listing, in base64.", examples=["iVBORw0KGgo="])
    name: str = Field(min_length=1, max_length=200, examples=["shelf.jpg"])


class StartBody(ImageBody):
    """A workflow to run over an image."""

    workflow_type: WorkflowType
    execution_id: Id | None = None
    answer_within_seconds: float = Field(
        ANSWER_WITHIN.total_seconds(), ge=1, le=LONGEST_WAIT.total_seconds(), description="Time for a person to answer."
    )
    on_timeout: Literal["fail", "continue"] | None = Field(None, description="What follows if nobody answers in time.")
    deliver: str | None = Field(
        None,
        pattern=r"^[\w.]+:[\w.]+$",
        max_length=500,
        description="Function of the server, `module:NAME`, that sends the task and its token.",
    )


class ComparisonBody(Body):
    """Images that both styles get, as often as asked."""

    images: list[ImageBody] = Field(min_length=1, max_length=20)
    runs: int = Field(3, ge=1, le=MOST_RUNS)
    comparison_id: Id | None = None


class AnswerBody(Body):
    """The albums as a person checked them. Without a token, the caller's own access applies."""

    albums: list[AlbumData] = Field(max_length=MOST_ALBUMS)
    token: str | None = Field(None, min_length=1, max_length=500)


class NewTaskToken(BaseModel):
    """The token that answers a task. It is shown only this once."""

    token: str


@creation.post("/execution-runs", status_code=201)
@allow(WRITE)
@takes_file(whole=True)
def start_execution(body: StartBody, executions: TheExecutions, user: CallerName) -> Execution:
    """Store the image and start a workflow; workers do the rest."""
    return executions.start(
        body.workflow_type,
        body.image,
        body.name,
        execution_id=body.execution_id,
        user=user,
        answer_within=timedelta(seconds=body.answer_within_seconds),
        on_timeout=body.on_timeout,
        deliver=body.deliver,
    )


@creation.post("/comparisons", status_code=201)
@allow(WRITE)
@takes_file(whole=True)
def start_comparison(body: ComparisonBody, comparisons: TheComparisons, user: CallerName) -> Comparison:
    """Start executions of both styles with the same images."""
    images = [(each.name, each.image) for each in body.images]
    return comparisons.start(images, body.runs, comparison_id=body.comparison_id, user=user)


@router.post("/comparisons/{comparison_id}/confirm")
@allow(WRITE)
def confirm_comparison(comparison_id: ComparisonId, comparisons: TheComparisons) -> Written:
    """Answer every waiting task of a comparison: all its albums are right."""
    return Written(count=comparisons.confirm(comparison_id))


@router.post("/executions/{execution_id}/retry")
@allow(WRITE)
def retry_execution(execution_id: ExecutionId, executions: TheExecutions) -> Execution:
    """Continue a failed execution at the step that failed, as a new attempt."""
    return executions.retry(execution_id)


@router.delete("/executions/{execution_id}")
@allow(WRITE)
def delete_execution(
    execution_id: ExecutionId,
    executions: TheExecutions,
    caller: CallerOf,
    stop: Annotated[bool, Query(description="Stop an execution that has not ended, and wait for its worker.")] = False,
) -> Written:
    """Delete an execution with its albums, tasks, image and jobs, and return the number of items."""
    return Written(count=executions.delete(execution_id, stop=stop, by=caller.name))


@router.post("/tasks/{task_id}/complete")
@allow(WRITE)
def complete_task(task_id: TaskId, body: AnswerBody, answers: TheAnswers) -> Execution:
    """Answer a task and continue its execution. Of several answers one wins."""
    albums = [album.model_dump() for album in body.albums]
    if body.token is None:
        return answers.complete_by_right(task_id, albums)
    return answers.complete(task_id, body.token, albums)


@router.post("/tasks/{task_id}/token")
@allow(WRITE)
def renew_task_token(task_id: TaskId, answers: TheAnswers) -> NewTaskToken:
    """Return a new token for a pending task; the previous one becomes invalid."""
    return NewTaskToken(token=answers.renew_token(task_id))


@router.post("/workflow-metrics/{day}/compute")
@allow(WRITE)
def compute_metrics(day: Day, store: TheStore) -> MetricsComparison:
    """Compute and store the metrics of both workflow types for a day."""
    return compute_and_compare(store, day)
