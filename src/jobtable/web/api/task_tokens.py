"""Take the tasks of activities, and answer task tokens."""

from __future__ import annotations

import asyncio

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field

from jobtable.web.api.activities import ActivityName
from jobtable.web.api.route_parts import Body, api_router
from jobtable.web.guard import WORK, allow
from jobtable.web.injection import TheActivities, TheExecutions
from jobtable.workflows.asl.entities import ActivityTask

router = api_router("task tokens")

LONGEST_POLL_SECONDS = 20.0
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 1.0


class Poll(Body):
    """Who asks for a task of an activity, and how long the answer may take."""

    worker: str = Field("", max_length=80, examples=["packer-1"])
    wait_seconds: float = Field(0, ge=0, le=LONGEST_POLL_SECONDS)


class TokenBody(Body):
    """The token of a task."""

    token: str = Field(min_length=1, max_length=2048)


class Success(TokenBody):
    """The output of a task."""

    output: str = Field(max_length=262_144, description="JSON as text.", examples=['{"packed": true}'])


class Failure(TokenBody):
    """The error of a task."""

    error: str | None = Field(None, max_length=256)
    cause: str | None = Field(None, max_length=32_768)


@router.post("/activities/{name}/poll")
@allow(WORK)
async def poll_activity(
    name: ActivityName, body: Poll, activities: TheActivities, executions: TheExecutions, request: Request
) -> ActivityTask | None:
    """Take the oldest task of an activity, with its token; null if there is none in time."""
    await run_in_threadpool(activities.get, name)
    until = asyncio.get_running_loop().time() + body.wait_seconds
    pause = _PAUSE_SECONDS
    while True:  # no thread is held meanwhile: many may wait
        task = await run_in_threadpool(executions.poll, name, body.worker, wait_seconds=0)
        left = until - asyncio.get_running_loop().time()
        if task is not None or left <= 0:
            return task
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        if await request.is_disconnected():  # nobody would get the task
            return None


@router.post("/task-tokens/success", status_code=204)
@allow(WORK)
def send_task_success(body: Success, executions: TheExecutions) -> Response:
    """Answer a task token with the output of its task. A token is answered once."""
    executions.succeed(body.token, body.output)
    return Response(status_code=204)


@router.post("/task-tokens/failure", status_code=204)
@allow(WORK)
def send_task_failure(body: Failure, executions: TheExecutions) -> Response:
    """Answer a task token with an error. A token is answered once."""
    executions.fail(body.token, body.error, body.cause)
    return Response(status_code=204)


@router.post("/task-tokens/heartbeat", status_code=204)
@allow(WORK)
def send_task_heartbeat(body: TokenBody, executions: TheExecutions) -> Response:
    """Report that the worker with a task token lives."""
    executions.beat(body.token)
    return Response(status_code=204)
