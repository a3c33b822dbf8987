"""Changes as they happen, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.responses import StreamingResponse

from jobtable.web.api.route_parts import api_router
from jobtable.web.events import all_topics
from jobtable.web.guard import READ, Guard, allow
from jobtable.web.live import LiveFeed, Viewer

router = api_router("live")

_KEEP_ALIVE_SECONDS = 15.0
_CHECK_SECONDS = 2.0
"""A stream may go on for this long after its token was revoked or expired."""
_NAMES = [name for topics in all_topics() for name in topics.names]
_KINDS = [kind for topics in all_topics() for kind in topics.with_id]
_TOPIC = f"^({'|'.join([*_NAMES, *(f'{kind}:.{{1,1000}}' for kind in _KINDS)])})$"
Topic = Annotated[str, Query(pattern=_TOPIC)]


async def look_on(
    request: Request,
    topic: Annotated[
        list[Topic],
        Query(
            min_length=1,
            max_length=20,
            description=", ".join(f"`{topic}`" for topic in [*_NAMES, *(f"{kind}:ID" for kind in _KINDS)]),
            examples=[["jobs"]],
        ),
    ],
) -> AsyncIterator[Viewer]:
    """Yield a viewer until the response ends. If there are too many, the request is refused before it starts."""
    feed: LiveFeed = request.app.state.feed
    async with feed.viewer(frozenset(_in_keys(each) for each in topic)) as viewer:
        yield viewer


@router.get(
    "/live",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
@allow(READ)
async def watch(request: Request, viewer: Annotated[Viewer, Depends(look_on)]) -> StreamingResponse:
    """Stream events: `ready` when every later change will be sent, `changes`, and `reload` when some were missed.

    Read the data after `ready`, and again after each `reload`. The stream closes soon after its token expires.
    """
    guard: Guard = request.app.state.guard
    clock = request.app.state.services.store.clock

    async def events() -> AsyncIterator[bytes]:
        checked_at = clock.monotonic()
        while (event := await viewer.next(_KEEP_ALIVE_SECONDS)) is not None:
            if clock.monotonic() - checked_at >= _CHECK_SECONDS:
                if not await guard.still_admits(request, READ):
                    return
                checked_at = clock.monotonic()
            yield event

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(), media_type="text/event-stream", headers=headers)


def _in_keys(topic: str) -> str:
    """Return a topic with its id as in keys."""
    kind = topic.partition(":")[0]
    return next((topics.in_keys(topic) for topics in all_topics() if kind in topics.with_id), topic)
