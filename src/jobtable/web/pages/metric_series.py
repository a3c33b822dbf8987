"""The metrics of a job as lines to draw, with as many points as the eye can distinguish."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from heapq import heapify, heappop, heappush
from itertools import groupby, islice, pairwise
from typing import Any

from jobtable.jobs.stored.entities import JobMetric
from jobtable.store import Store

_MOST_VALUES = 5000
"""Maximum number of values to read, for all metrics together; longer metrics are sampled."""
_MOST_SAMPLES = 600
"""For all metrics together, because each sample is a request."""
_MOST_SAMPLES_OF_ONE = 200
_MOST_METRICS = 50
_MOST_POINTS = 500


def metric_series(store: Store, job_id: str) -> list[dict[str, Any]]:
    """Return each metric of a job as a line from its first value to its last."""
    return [_line(values) for values in _read(store, job_id)]


def last_values(store: Store, job_id: str) -> dict[str, float]:
    """Return the last value of each metric of a job, up to a limit of metrics."""
    found = (
        store.query(JobMetric.key(job_id=job_id, metric_name=name), newest_first=True).first()
        for name in islice(_names(store, job_id), _MOST_METRICS)
    )
    return {last.metric_name: last.value for last in found if last is not None}


def _read(store: Store, job_id: str) -> Iterator[list[JobMetric]]:
    first = list(store.query(JobMetric.key(job_id=job_id)).take(_MOST_VALUES + 1))
    if len(first) <= _MOST_VALUES:
        for _, of_name in groupby(first, key=lambda value: value.metric_name):
            yield list(of_name)
        return
    names = list(islice(_names(store, job_id), _MOST_METRICS))
    fair = _MOST_VALUES // len(names)
    found = [_take(store, job_id, name, fair + 1) for name in names]
    lengths = [len(values) for values in found if len(values) <= fair]
    long_count = max(1, len(found) - len(lengths))
    most = (_MOST_VALUES - sum(lengths)) // long_count  # long metrics share what short ones leave
    most_samples = min(_MOST_SAMPLES // long_count, _MOST_SAMPLES_OF_ONE)
    for values in found:
        if len(values) > fair:
            whole = _take(store, job_id, values[0].metric_name, most + 1)
            yield whole if len(whole) <= most else _samples(store, values[0], most_samples)
        else:
            yield values


def _take(store: Store, job_id: str, name: str, count: int) -> list[JobMetric]:
    return list(store.query(JobMetric.key(job_id=job_id, metric_name=name)).take(count))


def _names(store: Store, job_id: str) -> Iterator[str]:
    """Yield the names of a job's metrics, one request each."""
    name = None
    while (found := store.query(JobMetric.key(job_id=job_id), after=name).first()) is not None:
        name = found.metric_name
        yield name


def _samples(store: Store, first: JobMetric, count: int) -> list[JobMetric]:
    """Return values of a metric at even distances in time, its last one, and more in the widest gaps."""
    of_metric = JobMetric.key(job_id=first.job_id, metric_name=first.metric_name)
    last = store.query(of_metric, newest_first=True).first() or first
    distance = (last.timestamp - first.timestamp) / max(count - 1, 1)
    found = [first]
    while (value := store.query(of_metric, after=found[-1].timestamp + distance).first()) is not None:
        found.append(value)
    if found[-1] != last:
        found.append(last)
    return _filled(store, found, count - len(found))


def _filled(store: Store, found: list[JobMetric], count: int) -> list[JobMetric]:
    """Add up to `count` values in the widest gaps as drawn, because values that came in bursts are close in time."""
    by = _counted_by(found[0])
    values = list(found)
    gaps = [_gap(one, other, by) for one, other in pairwise(found)]
    heapify(gaps)
    for _ in range(count):
        if not gaps or gaps[0][0] == 0:
            break
        _, _, one, other = heappop(gaps)
        if (value := _find_between(store, one, other)) is not None:
            values.append(value)
            heappush(gaps, _gap(one, value, by))
            heappush(gaps, _gap(value, other, by))
    return sorted(values, key=lambda value: value.timestamp)


def _gap(one: JobMetric, other: JobMetric, by: str) -> tuple[float, datetime, JobMetric, JobMetric]:
    """Return a gap for a heap, widest first. No two gaps start at the same time, so values are never compared."""
    if by == "time":
        width = (other.timestamp - one.timestamp).total_seconds()
    else:
        width = abs((getattr(other, by) or 0) - (getattr(one, by) or 0))
    return -width, one.timestamp, one, other


def _find_between(store: Store, one: JobMetric, other: JobMetric) -> JobMetric | None:
    """Return the value closest to the middle between two, if any."""
    of_metric = JobMetric.key(job_id=one.job_id, metric_name=one.metric_name)
    middle = one.timestamp + (other.timestamp - one.timestamp) / 2
    later = store.query(of_metric, after=middle).first()
    if later is not None and later != other:
        return later
    earlier = store.query(of_metric, between=(one.timestamp, middle), newest_first=True).first()
    return None if earlier == one else earlier


def _line(values: list[JobMetric]) -> dict[str, Any]:
    by = _counted_by(values[0])
    points = [(each.timestamp.isoformat() if by == "time" else getattr(each, by), each.value) for each in values]
    shown = _thinned(points)
    return {"name": values[0].metric_name, "by": by, "x": [at for at, _ in shown], "y": [value for _, value in shown]}


def _counted_by(metric: JobMetric) -> str:
    """Return the x axis of a metric: its steps, else its epochs, else time."""
    if metric.step is not None:
        return "step"
    return "time" if metric.epoch is None else "epoch"


def _thinned(points: list[Any]) -> list[Any]:
    step = max(1, len(points) // _MOST_POINTS)
    return points[::step] if step == 1 or (len(points) - 1) % step == 0 else [*points[::step], points[-1]]
