"""Whether the server is healthy, and its metrics for Prometheus."""

from __future__ import annotations

import re
import time
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

import prometheus_client
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobtable.assist.costs import AssistReads
from jobtable.clock import wall_time
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.stored.entities import Instance, JobStatus, Queue
from jobtable.jobs.stored.field_types import FINAL, Health, InstanceStatus, Status
from jobtable.store import Store
from jobtable.web.assist_metrics import AssistMetrics
from jobtable.web.guard import ANYONE, READ, PageRoute, allow
from jobtable.web.injection import TheStore

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_MOST_SERIES = 1000
_IN_SYSTEM = re.compile(r"jobtable\.systems\.(\w+)\.(.*)")
_SPAN = timedelta(minutes=1)
_MOST_ENDS = 500
"""For each status; if more jobs end within the span, the rate covers a shorter time."""

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/healthz")
@allow(ANYONE)
def check_health(store: TheStore) -> Response:
    """Return 200 if the store answers, or 503."""
    store.query(Queue.by_name(), limit=1).first()
    return PlainTextResponse("ok\n")


@router.get("/metrics")
@allow(READ)
def get_metrics(request: Request) -> Response:
    """Return the metrics of the server, the queues, the workers, the models and the store."""
    text = generate_latest(request.app.state.metrics.registry)
    return Response(text, media_type=prometheus_client.CONTENT_TYPE_PLAIN_0_0_4)


class ServerMetrics:
    """The metrics of one server. Any thread may count requests."""

    def __init__(self, store: Store, queries: JobQueries, assist: AssistReads, viewers: Callable[[], int]) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no annotations
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "jobtable_http_requests_total",
            "Requests to this server, by route and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._durations = Histogram(
            "jobtable_http_request_duration_seconds",
            "Duration of requests in seconds.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        open_pages = Gauge("jobtable_live_viewers", "Pages with an open live stream.", registry=self.registry)
        open_pages.set_function(viewers)
        self.registry.register(_StoreUnits(store))
        self.registry.register(_JobMetrics(store, queries))
        self.registry.register(AssistMetrics(assist))

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._durations.observe(seconds)


class _StoreUnits(Collector):
    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        patterns = sorted(self._store.capacity.by_pattern().items())
        for kind in ("read", "write"):
            text = f"{kind.capitalize()} units consumed by this server, by access pattern."
            family = CounterMetricFamily(f"jobtable_store_{kind}_units", text, labels=["pattern"])
            for pattern, units in patterns:
                family.add_metric([pattern], getattr(units, kind))
            yield family


class _JobMetrics(Collector):
    """Queues, workers, and how fast jobs end. The number of reads does not grow with the number of jobs."""

    def __init__(self, store: Store, queries: JobQueries) -> None:
        self._store = store
        self._queries = queries

    def collect(self) -> Iterator[Metric]:
        yield from _of_queues(list(self._queries.list_queues().take(_MOST_SERIES)))
        yield from _of_workers(self._queries.list_instances_by_status(InstanceStatus.RUNNING).take(_MOST_SERIES))
        ends = {status.value: _ends_per_second(self._store, status) for status in sorted(FINAL)}
        text = "Jobs that ended in the last minute, per second, by final status."
        yield _gauge("jobtable_jobs_ended_per_second", text, "status", ends)


def _of_queues(queues: list[Queue]) -> Iterator[Metric]:
    measures: dict[str, tuple[str, Callable[[Queue], int]]] = {
        "waiting": (
            "Jobs of a queue that no worker runs: waiting jobs, and groups with unfinished children.",
            lambda queue: queue.waiting_count,
        ),
        "running": ("Running jobs of a queue.", lambda queue: queue.running_count),
        "limit": ("Maximum number of jobs of a queue that run at once.", lambda queue: queue.max_concurrent_jobs),
        "paused": ("1 while a queue is paused.", lambda queue: int(queue.paused_at is not None)),
    }
    for measure, (text, value) in measures.items():
        values = {queue.queue_name: value(queue) for queue in queues}
        yield _gauge(f"jobtable_queue_{measure}", text, "queue", values)


def _of_workers(workers: Iterable[Instance]) -> Iterator[Metric]:
    counts = Counts(dict.fromkeys((health.value for health in Health), 0))
    slots = 0
    for worker in workers:
        counts[worker.health_status.value] += 1
        slots += worker.slots
    yield _gauge("jobtable_workers", "Running workers, by health.", "health", counts)
    yield GaugeMetricFamily("jobtable_worker_slots", "Jobs that these workers can run at once.", slots)


def _gauge(name: str, text: str, label: str, values: dict[str, int] | dict[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value_of_label, value in values.items():
        family.add_metric([value_of_label], value)
    return family


def _ends_per_second(store: Store, status: Status) -> float:
    now = wall_time(store.clock)
    changes = JobStatus.by_status(status=status)
    recent = list(store.query(changes, after=now - _SPAN, newest_first=True, limit=_MOST_ENDS))
    span = now - recent[-1].updated_at if len(recent) == _MOST_ENDS else _SPAN
    return len(recent) / max(span.total_seconds(), 1e-3)


class Measured:
    """Middleware that counts every request under the name of its route.

    Ids and methods that a caller makes up create no new series, because series are kept forever.
    """

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.count(method, _route_name(scope), status, time.perf_counter() - begin)


def _route_name(scope: Scope) -> str:
    """`api.jobs.get_job`, or `api.NAME.get_thing` for a system's route; `none` if no route matches."""
    route = scope.get("route")
    if route is None:
        return "none"
    module = route.endpoint.__module__.removeprefix("jobtable.web.")
    if found := _IN_SYSTEM.fullmatch(module):
        module = f"{'pages' if found[2].endswith('pages') else 'api'}.{found[1]}"
    return f"{module}.{route.name}"
