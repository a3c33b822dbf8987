"""How long the jobs of a queue that wait may take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.web.conftest import Served

from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.stored.entities import Instance
from jobtable.jobs.stored.field_types import InstanceStatus
from jobtable.jobs.submit.definition import NewJob
from jobtable.web.pages import queues
from jobtable.web.pages.queues import Pace, read_pace


def end_jobs(served: Served, queue: str, *outcomes: Outcome) -> None:
    jobs = served.services.engine
    for outcome in outcomes:
        jobs.submit(NewJob(name="n", task="a:b", queue=queue))
        (lease,) = jobs.claim(queue, limit=1, instance_id="w", lease_seconds=60)
        jobs.finish(lease, outcome)


def test_a_queue_tells_how_long_what_waits_may_take(serve: Callable[..., Served]) -> None:
    served = serve()
    jobs, client = served.services.engine, served.client(Accept="text/html")
    jobs.create_queue("q")
    assert read_pace(jobs.store, jobs.queries.get_queue("q")) is None
    end_jobs(served, "other", Outcome.completed(), Outcome.completed())
    end_jobs(served, "q", Outcome.completed(), Outcome.failed("no"))
    assert "may take" not in client.get("/queues/q").text, "nothing waits"
    jobs.submit_many(NewJob(name="n", task="a:b", queue="q") for _ in range(3))
    assert read_pace(jobs.store, jobs.queries.get_queue("q")) == Pace(ended=2, seconds=3600)
    page = client.get("/queues/q").text
    assert "2 in 1 h" in page
    assert "may take" not in page, "no worker is there"
    worker: dict[str, Any] = {
        "instance_type": "m",
        "launched_at": jobs.store.clock.now(),
        "status": InstanceStatus.RUNNING,
    }
    jobs.store.put(Instance(instance_id="w", queues=["q"], **worker))
    page = client.get("/queues/q").text
    assert "<dt>Estimated time left</dt><dd>about 1 h 30 min</dd>" in page


def test_where_much_ends_the_pace_is_that_of_a_shorter_time(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve()
    monkeypatch.setattr(queues, "_MOST_ENDS", 3)
    end_jobs(served, "q", *[Outcome.failed("no")] * 2, *[Outcome.completed()] * 5)
    pace = read_pace(served.services.store, served.services.engine.queries.get_queue("q"))
    assert pace is not None
    assert pace.ended == 3, "those that failed did so before"
    assert 1 <= pace.seconds < 3600
