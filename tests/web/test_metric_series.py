"""What the charts of a job's page draw, however much it has measured."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from jobtable.app import Services
from jobtable.jobs.stored.entities import JobMetric
from jobtable.store import Store
from jobtable.web.pages import metric_series as series

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def store() -> Iterator[Store]:
    with Services.open("memory:") as services:
        yield services.engine.store


def measure(store: Store, name: str, count: int, *, has_steps: bool = True, pause_seconds: int = 0) -> None:
    """One value a second; after each hundred there is a pause."""
    store.batch_put(
        JobMetric(
            job_id="1",
            metric_name=name,
            timestamp=NOON + timedelta(seconds=number + number // 100 * pause_seconds),
            value=float(number),
            step=number if has_steps else None,
        )
        for number in range(count)
    )


def test_few_values_are_all_drawn(store: Store) -> None:
    measure(store, "loss", 3)
    measure(store, "rate", 2, has_steps=False)
    at = [NOON.isoformat(), (NOON + timedelta(seconds=1)).isoformat()]
    assert series.metric_series(store, "1") == [
        {"name": "loss", "by": "step", "x": [0, 1, 2], "y": [0.0, 1.0, 2.0]},
        {"name": "rate", "by": "time", "x": at, "y": [0.0, 1.0]},
    ]
    assert series.metric_series(store, "2") == []


def test_of_many_values_every_metric_is_drawn_from_its_first_to_its_last(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series, "_MOST_VALUES", 100)
    monkeypatch.setattr(series, "_MOST_SAMPLES", 40)
    for name, count in (("accuracy", 500), ("epochs", 30), ("loss", 300)):
        measure(store, name, count)
    accuracy, epochs, loss = series.metric_series(store, "1")
    assert epochs["x"] == list(range(30))
    for line, count in ((accuracy, 500), (loss, 300)):
        assert (line["x"][0], line["x"][-1]) == (0, count - 1)
        assert 10 <= len(line["x"]) <= 20
        assert max(after - before for before, after in zip(line["x"], line["x"][1:], strict=False)) < count / 10
        assert line["y"] == [float(step) for step in line["x"]]


def test_a_metric_is_drawn_as_finely_as_the_others_leave_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "_MOST_VALUES", 400)
    monkeypatch.setattr(series, "_MOST_SAMPLES", 100)
    for number in range(20):
        measure(store, f"last {number:02d}", 1)
    measure(store, "epochs", 150)
    measure(store, "steps", 600)
    drawn = {line["name"]: len(line["x"]) for line in series.metric_series(store, "1")}
    assert drawn["epochs"] == 150, "it is whole, though it has more than its share"
    assert drawn["steps"] >= 45


@pytest.mark.parametrize("has_steps", [True, False])
def test_values_that_came_in_bursts_are_drawn_too(
    store: Store, monkeypatch: pytest.MonkeyPatch, has_steps: bool
) -> None:
    monkeypatch.setattr(series, "_MOST_VALUES", 100)
    monkeypatch.setattr(series, "_MOST_SAMPLES", 40)
    measure(store, "loss", 300, has_steps=has_steps, pause_seconds=86400)
    (line,) = series.metric_series(store, "1")
    assert line["x"] == sorted(line["x"])
    assert (line["y"][0], line["y"][-1]) == (0.0, 299.0)
    assert len(line["x"]) <= 40
    if has_steps:
        assert max(after - before for before, after in pairwise(line["x"])) < 30
