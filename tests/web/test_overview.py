"""The overview and the page of queues and workers: whole sums, and first what matters most."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from tests.web.conftest import Served

from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.stored.entities import Instance, InstanceJob, Queue
from jobtable.jobs.stored.field_types import Health, InstanceStatus, Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.web.pages import queues
from jobtable.web.pages.overview import read_overview

NOON = datetime(2025, 3, 14, 12, tzinfo=UTC)


def test_the_overview_counts_all_queues_and_workers_and_shows_the_fullest(serve: Callable[..., Served]) -> None:
    served = serve()
    store, jobs = served.services.store, served.services.engine
    store.batch_put(Queue(queue_name=f"a{number:03d}", created_at=NOON) for number in range(120))
    store.batch_put(
        Instance(
            instance_id=f"w{number:03d}", instance_type="m", launched_at=NOON, slots=2, status=InstanceStatus.RUNNING
        )
        for number in range(60)
    )
    jobs.submit_many(NewJob(name="n", task="a:b", queue="zz-last") for _ in range(7))
    seen = read_overview(served.services)
    assert (len(seen.queues), seen.waiting_count) == (121, 7)
    assert (len(seen.workers), seen.slots) == (60, 120)
    assert seen.queues[0].queue_name == "zz-last"
    assert "/queues/zz-last" in served.client(Accept="text/html").get("/").text


def test_what_ended_last_is_shown_and_what_failed_last_comes_first(serve: Callable[..., Served]) -> None:
    served = serve()
    jobs = served.services.engine

    def begin(name: str) -> Lease:
        jobs.submit(NewJob(name=name, task="a:b", queue=name))
        (lease,) = jobs.claim(name, limit=1, instance_id="w", lease_seconds=60)
        return lease

    old = begin("fails late")
    for number in range(8):
        jobs.finish(begin(f"job {number}"), Outcome.failed("no"))
    again = begin("again")
    for lease in (old, again):
        jobs.finish(lease, Outcome.failed("no"))
    jobs.retry(again.job.job_id)
    seen = read_overview(served.services)
    assert [job.name for job in seen.failed] == ["fails late", *(f"job {number}" for number in range(7, 0, -1))]
    jobs.cancel(again.job.job_id)
    seen = read_overview(served.services)
    assert [(job.name, job.status) for job in seen.ended[:2]] == [("again", "CANCELLED"), ("fails late", "FAILED")]
    page = served.client(Accept="text/html").get("/").text
    assert f"/jobs/{again.job.job_id}" in page.partition("Recently ended")[2]


def test_the_throughput_says_how_high_its_bars_are(serve: Callable[..., Served]) -> None:
    served = serve()
    page = served.client(Accept="text/html")
    assert "highest:" not in page.get("/").text
    for number in range(3):
        client = served.client()
        job = client.post("/api/v1/jobs", json={"task": "m:f", "name": str(number), "queue": "q"}).json()["job_id"]
        (lease,) = client.post("/api/v1/queues/q/claim", json={"instance_id": "w"}).json()
        done = {"instance_id": "w", "epoch": lease["epoch"], "kind": "completed"}
        assert client.post(f"/api/v1/jobs/{job}/finish", json=done).status_code == 200
    assert re.search("highest: [123] in 2 min<", page.get("/").text)


def test_of_the_workers_that_are_gone_the_newest_are_shown(serve: Callable[..., Served]) -> None:
    served = serve()
    served.services.store.batch_put(
        Instance(
            instance_id=f"worker-{number:03d}",
            instance_type="m",
            launched_at=NOON + timedelta(minutes=number),
            status=InstanceStatus.STOPPED,
        )
        for number in range(50)
    )
    page = served.client(Accept="text/html").get("/queues").text
    shown = re.findall(r'href="/workers/worker-(\d+)"', page)
    assert shown == [f"{number:03d}" for number in range(49, 29, -1)]


def stuck(served: Served) -> list[str]:
    """What the overview says of jobs that do not get on."""
    page = served.client(Accept="text/html").get("/").text
    listed = page.partition('id="stuck"')[2].partition("</section>")[0]
    return [" ".join(re.sub("<[^>]+>", " ", each).split()) for each in re.findall("<li>(.*?)</li>", listed, re.DOTALL)]


def test_the_overview_says_which_jobs_do_not_get_on_and_why(serve: Callable[..., Served]) -> None:
    served = serve()
    store, jobs = served.services.store, served.services.engine
    worker = Instance(
        instance_id="w", instance_type="m", launched_at=NOON, status=InstanceStatus.RUNNING, queues=["served", "paused"]
    )
    store.put(worker)
    jobs.create_queue("empty")
    jobs.submit(NewJob(name="goes on", task="a:b", queue="served"))
    assert stuck(served) == []
    jobs.submit_many(NewJob(name="n", task="a:b", queue="no body") for _ in range(3))
    jobs.submit(NewJob(name="n", task="a:b", queue="paused"))
    jobs.pause_queue("paused")
    store.put(worker.replace(health_status=Health.UNHEALTHY))
    assert stuck(served) == [
        "3 jobs of no body wait: no live worker serves the queue. jobtable worker --queue &#39;no body&#39;",
        "1 job of paused waits: the queue is paused.",
        "Worker w is unhealthy.",
    ]


def test_the_state_of_a_queue_says_that_no_worker_serves_it(serve: Callable[..., Served]) -> None:
    served = serve()
    client, jobs = served.client(Accept="text/html"), served.services.engine
    jobs.submit(NewJob(name="n", task="a:b", queue="gpu"))
    for path in ("/", "/queues", "/queues/gpu"):
        assert "badge-no-worker" in client.get(path).text, path
    served.services.store.put(
        Instance(instance_id="w", instance_type="m", launched_at=NOON, status=InstanceStatus.RUNNING, queues=["gpu"])
    )
    for path in ("/", "/queues", "/queues/gpu"):
        assert "badge-no-worker" not in client.get(path).text, path


def test_of_each_worker_it_is_told_what_it_runs_now(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve()
    jobs, client = served.services.engine, served.client(Accept="text/html")
    served.services.store.batch_put(
        Instance(instance_id=name, instance_type="m", launched_at=NOON, slots=4, status=InstanceStatus.RUNNING)
        for name in ("busy", "idle")
    )
    for number in range(4):
        jobs.submit(NewJob(name=f"job {number}", job_id=f"id {9 - number}", task="a:b", queue="q"))
    leases = jobs.claim("q", limit=4, instance_id="busy", lease_seconds=60)
    served.services.store.batch_put(
        InstanceJob(
            instance_id="busy", job_id=lease.job.job_id, assigned_at=lease.job.created_at, status=Status.RUNNING
        )
        for lease in leases
    )
    jobs.finish(leases[0], Outcome.completed())
    page = client.get("/queues").text.partition('id="workers"')[2]
    busy, idle = (page.partition(f"/workers/{name}")[2].partition("</tr>")[0] for name in ("busy", "idle"))
    assert re.findall(">(job [0-9])</a>", busy) == ["job 3", "job 2"]
    assert "and 1 more" in busy
    assert "3 of 4" in busy
    assert "nothing" in idle
    assert "0 of 4" in idle
    shown = client.get("/workers/busy").text
    now, _, ran = shown.partition("<h2>Jobs")
    assert re.findall(">(job [0-9])</a>", now) == ["job 3", "job 2", "job 1"]
    assert re.findall(">(job [0-9])</a>", ran) == ["job 3", "job 2", "job 1", "job 0"], "the newest first"
    assert "No running jobs" in client.get("/workers/idle").text
    monkeypatch.setattr(queues, "_MOST_RUNNING", 1)
    idle = client.get("/queues").text.partition("/workers/idle")[2].partition("</tr>")[0]
    assert "nothing" not in idle, "what it runs may be among what was not looked at"
