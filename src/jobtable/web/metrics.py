"""What the server counts about itself, as Prometheus reads it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobtable.store import Store
from jobtable.web.job_metrics import escaped

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class ServerMetrics:
    """Counts of requests, and how long they took. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._within: Counter[float] = Counter()
        self._seconds = 0.0

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note one request."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._seconds += seconds
            for bucket in _BUCKETS:
                if seconds <= bucket:
                    self._within[bucket] += 1

    def lines(self, store: Store, viewers: int) -> list[str]:
        """Everything as lines of Prometheus text."""
        with self._lock:
            lines = [*self._request_lines(), *self._duration_lines()]
        lines += ["# HELP jobtable_live_viewers Pages that are open and live.", "# TYPE jobtable_live_viewers gauge"]
        return [*lines, f"jobtable_live_viewers {viewers}", *_unit_lines(store)]

    def _request_lines(self) -> Iterator[str]:
        yield "# HELP jobtable_http_requests_total Requests to this server, by route and status."
        yield "# TYPE jobtable_http_requests_total counter"
        for (method, route, status), count in sorted(self._requests.items()):
            labels = f'method="{method}",route="{escaped(route)}",status="{status}"'
            yield f"jobtable_http_requests_total{{{labels}}} {count}"

    def _duration_lines(self) -> Iterator[str]:
        name, total = "jobtable_http_request_duration_seconds", sum(self._requests.values())
        yield f"# HELP {name} How long requests took."
        yield f"# TYPE {name} histogram"
        for bucket in _BUCKETS:
            yield f'{name}_bucket{{le="{bucket}"}} {self._within[bucket]}'
        yield f'{name}_bucket{{le="+Inf"}} {total}'
        yield f"{name}_sum {self._seconds:.6f}"
        yield f"{name}_count {total}"


def _unit_lines(store: Store) -> Iterator[str]:
    patterns = sorted(store.capacity.by_pattern().items())
    for kind in ("read", "write"):
        name = f"jobtable_store_{kind}_units_total"
        yield f"# HELP {name} {kind.capitalize()} units that this server used, by access pattern."
        yield f"# TYPE {name} counter"
        for pattern, units in patterns:
            yield f'{name}{{pattern="{escaped(pattern)}"}} {getattr(units, kind)}'


class Measured:
    """Counts every request that passes, under the name of its route.

    Neither ids nor methods that a caller makes up make new series: what is counted is kept for good.
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
            self._metrics.count(method, _name_of(scope), status, time.perf_counter() - begin)


def _name_of(scope: Scope) -> str:
    """`api.jobs.get_job`; `none` for what no route takes."""
    route = scope.get("route")
    return "none" if route is None else f"{route.endpoint.__module__.removeprefix('jobtable.web.')}.{route.name}"
