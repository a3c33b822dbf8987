"""Whether the server lives, and what it counts."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from jobtable.jobs.stored.entities import Queue
from jobtable.web.dependencies import TheQueries, TheStore
from jobtable.web.guard import ANYONE, READ, PageRoute, allow
from jobtable.web.job_metrics import job_metric_lines
from jobtable.web.metrics import MEDIA_TYPE

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/healthz")
@allow(ANYONE)
def check_health(store: TheStore) -> Response:
    """200 where the store answers; 503 where it does not."""
    store.query(Queue.by_name(), limit=1).first()
    return PlainTextResponse("ok\n")


@router.get("/metrics")
@allow(READ)
def get_metrics(request: Request, store: TheStore, queries: TheQueries) -> Response:
    """Counts of the server, the queues, the workers and the store, for Prometheus."""
    state = request.app.state
    lines = [*state.metrics.lines(store, state.feed.viewers), *job_metric_lines(store, queries)]
    return Response("\n".join(lines) + "\n", media_type=MEDIA_TYPE)
