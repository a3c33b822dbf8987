"""What Prometheus is told of queues, workers and jobs."""

from __future__ import annotations

import re

import httpx
import pytest
from tests.web.conftest import Served, clock_that_was_ahead

from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.submit.definition import NewJob
from jobtable.web.pages.overview import read_overview
from jobtable.web.pages.queues import read_pace

TYPES = re.compile(r"# (?:HELP|TYPE) ([a-z_]+) .+")
SAMPLE = re.compile(r'([a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? (\S+)')


def samples(client: httpx.Client) -> dict[str, float]:
    """Every sample by its name and labels; each has a type, as the format demands it."""
    found: dict[str, float] = {}
    typed: set[str] = set()
    for line in client.get("/metrics").text.splitlines():
        if described := TYPES.fullmatch(line):
            typed.add(described[1])
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        assert re.sub("_(bucket|sum|count)$", "", sample[1]) in typed, line
        found[sample[1] + (sample[2] or "")] = float(sample[3])
    return found


@pytest.fixture
def served() -> Served:
    return Served()


def test_queues_workers_and_ends_are_told(served: Served) -> None:
    jobs = served.services.engine
    jobs.create_queue('q"1', max_concurrent_jobs=2)
    jobs.submit_many(NewJob(name="n", task="a:b", queue='q"1') for _ in range(5))
    for lease in jobs.claim('q"1', limit=2, instance_id="here", lease_seconds=30):
        jobs.finish(lease, Outcome("completed"))
    jobs.claim('q"1', limit=1, instance_id="here", lease_seconds=30)
    jobs.pause_queue('q"1')
    told = samples(served.client())
    measures = [f'jobtable_queue_{what}{{queue="q\\"1"}}' for what in ("waiting", "running", "limit", "paused")]
    assert [told[measure] for measure in measures] == [2, 1, 2, 1]
    assert told['jobtable_jobs_ended_per_second{status="COMPLETED"}'] == pytest.approx(2 / 60, rel=1e-3)
    assert told['jobtable_jobs_ended_per_second{status="FAILED"}'] == 0
    assert told['jobtable_workers{health="HEALTHY"}'] == 0
    assert told["jobtable_worker_slots"] == 0
    served.stop()


def test_a_server_whose_clock_was_ahead_tells_what_ended_last(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = served.services.engine
    jobs.create_queue("q")
    jobs.submit_many(NewJob(name="n", task="a:b", queue="q") for _ in range(2))
    for lease in jobs.claim("q", limit=2, instance_id="here", lease_seconds=30):
        jobs.finish(lease, Outcome("completed"))
    monkeypatch.setattr(served.services.store, "clock", clock_that_was_ahead())
    told = samples(served.client())
    assert told['jobtable_jobs_ended_per_second{status="COMPLETED"}'] == pytest.approx(2 / 60, rel=1e-3)
    assert sum(read_overview(served.services).throughput.completed) == 2
    pace = read_pace(jobs.store, jobs.queries.get_queue("q"))
    assert pace is not None
    assert pace.ended == 2
    assert "1 d ago" not in served.client(Accept="text/html").get("/jobs").text
    served.stop()


def test_what_is_read_does_not_grow_with_the_jobs(served: Served) -> None:
    jobs, client = served.services.engine, served.client()
    samples(client)

    def read_units() -> float:
        before = served.services.store.capacity.total().read
        client.get("/metrics")
        return served.services.store.capacity.total().read - before

    jobs.submit_many(NewJob(name="n", task="a:b") for _ in range(10))
    few = read_units()
    jobs.submit_many(NewJob(name="n", task="a:b") for _ in range(500))
    assert read_units() == few
    served.stop()
