"""Queues, workers and jobs as Prometheus reads them: by the same few reads however many jobs there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from jobtable.clock import wall_time
from jobtable.jobs.read.queries import JobQueries
from jobtable.jobs.stored.entities import Instance, JobStatus, Queue
from jobtable.jobs.stored.fields import FINAL, Health, InstanceStatus, Status
from jobtable.store import Store

_MOST_SERIES = 1000
_SPAN = timedelta(minutes=1)
_MOST_ENDS = 500
"""Of each status; what ends faster is counted over a shorter time than the span."""


def job_metric_lines(store: Store, queries: JobQueries) -> Iterator[str]:
    """Queues, workers, and how fast jobs end."""
    yield from _queue_lines(list(queries.list_queues().take(_MOST_SERIES)))
    yield from _worker_lines(queries.list_instances_by_status(InstanceStatus.RUNNING).take(_MOST_SERIES))
    name = "jobtable_jobs_ended_per_second"
    yield f"# HELP {name} Jobs that came to their end in the last minute, a second, by their final status."
    yield f"# TYPE {name} gauge"
    for status in sorted(FINAL):
        yield f'{name}{{status="{status.value}"}} {_ends_per_second(store, status):.6g}'


def _queue_lines(queues: list[Queue]) -> Iterator[str]:
    measures: dict[str, tuple[str, Callable[[Queue], int]]] = {
        "waiting": (
            "Jobs in a queue that no worker runs: those that wait, and groups whose jobs have not ended.",
            lambda queue: queue.waiting_count,
        ),
        "running": ("Jobs of a queue that run.", lambda queue: queue.running_count),
        "limit": ("How many jobs of a queue may run at once.", lambda queue: queue.max_concurrent_jobs),
        "paused": ("1 while a queue is paused.", lambda queue: int(queue.paused_at is not None)),
    }
    for measure, (text, value) in measures.items():
        name = f"jobtable_queue_{measure}"
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} gauge"
        for queue in queues:
            yield f'{name}{{queue="{escaped(queue.queue_name)}"}} {value(queue)}'


def _worker_lines(workers: Iterable[Instance]) -> Iterator[str]:
    counts: Counter[Health] = Counter()
    slots = 0
    for worker in workers:
        counts[worker.health_status] += 1
        slots += worker.slots
    yield "# HELP jobtable_workers Workers that are there, by their health."
    yield "# TYPE jobtable_workers gauge"
    for health in Health:
        yield f'jobtable_workers{{health="{health.value}"}} {counts[health]}'
    yield "# HELP jobtable_worker_slots How many jobs these workers can run at once."
    yield "# TYPE jobtable_worker_slots gauge"
    yield f"jobtable_worker_slots {slots}"


def _ends_per_second(store: Store, status: Status) -> float:
    now = wall_time(store.clock)
    changes = JobStatus.by_status(status=status)
    recent = list(store.query(changes, after=now - _SPAN, newest_first=True, limit=_MOST_ENDS))
    span = now - recent[-1].updated_at if len(recent) == _MOST_ENDS else _SPAN
    return len(recent) / max(span.total_seconds(), 1e-3)


def escaped(text: str) -> str:
    """A text as the value of a label."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
