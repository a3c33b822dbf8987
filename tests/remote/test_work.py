"""Workers elsewhere: jobs that are claimed, run, reported and ended through a server."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.cli.test_up import up
from tests.remote.conftest import REPOSITORY
from tests.running import jobs_in_memory
from tests.web.conftest import Served
from typer.testing import CliRunner

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.cli.main import app
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import (
    AccessDenied,
    LeaseLostError,
    ObjectNotFoundError,
    ObjectStoreError,
    RequestRefused,
    TaskError,
    ValueRefusedError,
)
from jobtable.jobs.lifecycle.instances import InstanceInfo
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.read.logs import JobLogs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.report.log_text import UPLOAD_SECONDS
from jobtable.jobs.report.run_files import Artifacts
from jobtable.jobs.stored.entities import Instance, InstanceJob, Job, JobCheckpoint, JobLog, JobMetric, main
from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.worker import Worker
from jobtable.remote.server_requests import Server
from jobtable.remote.work import LONGEST_REASON, ServerWork, open_work
from jobtable.store import Store
from jobtable.testing.clock import FakeClock
from jobtable.testing.servers import free_port
from jobtable.web.api.work import Recovery

TASKS = "tests.remote.tasks"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server that demands tokens, and takes no large files."""
    made = Served(require_token=True, most_upload_bytes=3_000_000)
    yield made
    made.stop()


def claimed(served: Served, work: ServerWork, *, instance_id: str = "far", **new: Any) -> Lease:
    """A job that a worker elsewhere holds."""
    job = served.services.engine.submit(NewJob(**{"name": "far", "task": f"{TASKS}:train", "queue": "one", **new}))
    (lease,) = work.claim(job.queue_name or "", limit=1, instance_id=instance_id, lease_seconds=60)
    assert lease.job.job_id == job.job_id
    return lease


def objects_of(served: Served, job_id: str) -> list[str]:
    return [found.key for found in served.services.objects.list(f"jobs/{job_id}")]


class TestRun:
    """One run, told and kept through the server."""

    def test_everything_is_recorded_as_by_a_worker_at_the_store(self, served: Served, work: ServerWork) -> None:
        lease = claimed(served, work, config={"logs_ttl_seconds": 3600})
        store, job_id = served.services.store, lease.job.job_id
        with JobContext(work, lease, flush_seconds=60) as context:
            context.warning("careful")
            for step in range(150):
                context.metric("loss", 1 / (step + 1), step=step)
            context.progress(40, "nearly half")
        assert [(line.message, line.time_to_live is None) for line in store.query(JobLog.key(job_id=job_id))] == [
            ("careful", False)
        ]
        losses = [metric.value for metric in store.query(JobMetric.key(job_id=job_id, metric_name="loss"))]
        assert losses == [1 / (step + 1) for step in range(150)]
        job = served.services.engine.queries.get_job(job_id)
        assert (job.progress, job.message) == (40, "nearly half")
        assert work.refresh(lease).job == job
        ended = work.finish(work.heartbeat(lease), Outcome.completed({"a": 1}))
        assert (ended.status, ended.result) == (Status.COMPLETED, {"a": 1})
        with pytest.raises(LeaseLostError):
            work.refresh(lease)
        assert work.look_at([lease]) == [ended]

    def test_a_job_is_given_back_and_why_is_cut_to_what_is_kept(self, served: Served, work: ServerWork) -> None:
        lease = claimed(served, work, queue="given-back")
        given_back = work.release(lease, "locked" * 1000, is_unopened=True)
        assert (given_back.status, given_back.unopened) == (Status.INTERRUPTED, 1)
        assert str(given_back.message) == ("locked" * 1000)[:LONGEST_REASON]

    def test_checkpoints_are_kept_found_and_read(self, served: Served, work: ServerWork, tmp_path: Path) -> None:
        lease = claimed(served, work)
        context = JobContext(work, lease)
        assert context.resume() is None
        file = tmp_path / "state.pt"
        file.write_bytes(b"weights" * 200_000)
        context.checkpoint(file, step=1, epoch=7, metrics={"a=b": 0.25}, is_best=True, optimizer_state=False)
        for step in range(2, 5):
            context.checkpoint(b"later %d" % step, step=step, keep_last=2)
        stored = list(served.services.store.query(JobCheckpoint.key(job_id=lease.job.job_id)))
        assert [record.step for record in stored] == [1, 3, 4]
        assert (stored[0].metrics, stored[0].epoch, stored[0].optimizer_state) == ({"a=b": 0.25}, 7, False)
        assert stored[0].s3_key.endswith(".pt")
        latest, best = context.resume(), context.resume(best=True)
        assert latest is not None
        assert best is not None
        assert latest.read() == b"later 4"
        assert best.save_to(tmp_path / "copy").read_bytes() == file.read_bytes()
        assert len(objects_of(served, lease.job.job_id)) == 3
        served.services.objects.put(best.record.s3_key, b"altered")
        with pytest.raises(ObjectStoreError, match="is damaged"):
            best.read()
        served.services.objects.delete(best.record.s3_key)
        with pytest.raises(ObjectNotFoundError, match="there is no object"):
            best.read()

    def test_artifacts_are_kept_under_their_names(self, served: Served, work: ServerWork, tmp_path: Path) -> None:
        lease = claimed(served, work)
        context = JobContext(work, lease)
        context.artifact("out/a b%.txt", b"first")
        artifact = context.artifact("out/a b%.txt", b"second")
        assert (artifact.name, artifact.size_bytes, artifact.content_type) == ("out/a b%.txt", 6, "text/plain")
        kept = Artifacts(served.services.store, served.services.objects, served.services.store.clock, lease)
        assert served.services.objects.get(kept.get("out/a b%.txt").s3_key) == b"second"
        assert len(objects_of(served, lease.job.job_id)) == 1
        context.artifact("empty", b"")
        assert context.artifact("../../outside", b"x").s3_key.startswith(f"jobs/{lease.job.job_id}/artifacts/")
        with pytest.raises(ValueRefusedError, match="folder"):
            context.artifact("folder", tmp_path)

    def test_the_full_text_is_kept_in_parts_and_then_whole(self, served: Served, work: ServerWork) -> None:
        lease = claimed(served, work)
        text = work.recording.log_text(lease)
        text.append(b"line\n" * 300_000)
        text._last_upload -= UPLOAD_SECONDS
        text.upload()
        logs = JobLogs(served.services.store, served.services.objects)
        assert b"".join(logs.full_text(lease.job.job_id, lease.epoch)) == b"line\n" * 300_000
        text.append(b"last\n")
        record = text.finish()
        text.close()
        assert record is not None
        assert (record.line_count, record.size_bytes) == (300_001, 1_500_005)
        assert objects_of(served, lease.job.job_id) == [record.s3_key]

    def test_reports_are_rolled_up_by_the_server(self, served: Served, work: ServerWork) -> None:
        served.services.engine.open_group(NewJob(name="group", job_id="far-group"))
        lease = claimed(served, work, config={"roll_up": {"job_id": "far-group", "metrics": ["loss"]}})
        with JobContext(work, lease) as context:
            context.metric("loss", 0.5)
        (copy,) = served.services.store.query(JobMetric.key(job_id="far-group", metric_name="loss"))
        assert copy.child_job_id == lease.job.job_id


class TestRefusals:
    """What is refused changes nothing."""

    def test_a_stale_worker_is_refused(self, served: Served, work: ServerWork) -> None:
        lease = claimed(served, work)
        context = JobContext(work, lease)
        context.checkpoint(b"mine", step=1)
        work.release(lease, "gone")
        (other,) = work.claim("one", limit=1, instance_id="other", lease_seconds=60)
        before = objects_of(served, lease.job.job_id)
        refused: list[Callable[[], object]] = [
            lambda: context.checkpoint(b"late" * 500_000, step=2),
            lambda: context.artifact("late", b"late"),
            context.resume,
            lambda: work.heartbeat(lease),
            lambda: work.report(lease, progress=1),
            lambda: work.finish(lease, Outcome.completed()),
            lambda: work.recording.run_text(lease).put_part(0, b"late", 1),
        ]
        for act in refused:
            with pytest.raises(LeaseLostError):
                act()
        context.info("late")
        context.close()
        assert objects_of(served, lease.job.job_id) == before
        assert served.services.store.query(JobLog.key(job_id=lease.job.job_id)).first() is None
        found = JobContext(work, other).resume()
        assert found is not None
        assert found.read() == b"mine"

    def test_what_is_too_large_is_refused_before_it_is_sent(
        self, served: Served, work: ServerWork, tmp_path: Path
    ) -> None:
        lease = claimed(served, work)
        large = tmp_path / "large"
        with large.open("wb") as file:
            file.truncate(3_000_001)
        for keep in (JobContext(work, lease).checkpoint, partial(JobContext(work, lease).artifact, "large")):
            with pytest.raises(RequestRefused, match="larger than 3,000,000 bytes"):
                keep(large)
        assert objects_of(served, lease.job.job_id) == []

    def test_what_grows_too_large_is_refused_as_well(self, served: Served, work: ServerWork) -> None:
        lease = claimed(served, work)
        answer = served.client(Role.WORKER).post(
            f"/api/v1/jobs/{lease.job.job_id}/checkpoints",
            params={"instance_id": "far", "epoch": lease.epoch},
            content=(bytes(100_000) for _ in range(40)),
        )
        assert answer.status_code == 413
        assert objects_of(served, lease.job.job_id) == []

    def test_what_was_altered_on_its_way_is_refused(self, served: Served, work: ServerWork) -> None:
        lease = claimed(served, work)
        told: Any = {"instance_id": "far", "epoch": lease.epoch, "sha256": hashlib.sha256(b"sent").hexdigest()}
        for path in ("artifacts/a", "log-text"):
            answer = served.client(Role.WORKER).put(f"/api/v1/jobs/{lease.job.job_id}/{path}", params=told, content=b"")
            assert answer.status_code == 400
            assert "send it again" in answer.json()["detail"]
        assert objects_of(served, lease.job.job_id) == []

    def test_what_was_cut_is_not_kept(self, served: Served, work: ServerWork) -> None:
        lease = claimed(served, work)
        place = urlsplit(served.url)
        path = f"/api/v1/jobs/{lease.job.job_id}/checkpoints?instance_id=far&epoch={lease.epoch}"
        with socket.create_connection((place.hostname or "", place.port or 0)) as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 1000\r\n"
            token = served.token(Role.WORKER)
            connection.sendall(f"{head}Authorization: Bearer {token}\r\n\r\nonly this".encode())
        work.heartbeat(lease)
        assert objects_of(served, lease.job.job_id) == []

    @pytest.mark.parametrize("metric", ["loss", "=1", "loss=much", "loss=nan", "loss=1e300"])
    def test_a_metric_that_is_none_is_refused(self, served: Served, work: ServerWork, metric: str) -> None:
        lease = claimed(served, work)
        told: Any = {"instance_id": "far", "epoch": lease.epoch, "metric": metric}
        path = f"/api/v1/jobs/{lease.job.job_id}/checkpoints"
        assert served.client(Role.WORKER).post(path, params=told, content=b"x").status_code == 400

    @pytest.mark.parametrize("role", [Role.READ, None])
    def test_other_roles_do_no_work(self, served: Served, work: ServerWork, role: Role | None) -> None:
        lease = claimed(served, work)
        stranger = open_work(served.url, served.token(role) if role else None)
        for act in (
            lambda: JobContext(stranger, lease).checkpoint(b"x" * 2_000_000),
            lambda: JobContext(stranger, lease).artifact("a", b"x"),
            JobContext(stranger, lease).resume,
            lambda: stranger.claim("one", limit=1, instance_id="i", lease_seconds=30),
        ):
            with pytest.raises(AccessDenied):
                act()
        stranger.store.close()

    def test_a_worker_reads_nothing_else(self, served: Served, work: ServerWork) -> None:
        with pytest.raises(TaskError, match="workers at the store"):
            work.store.get(Job.key(job_id="any"))
        with pytest.raises(TaskError, match="workers at the store"):
            _ = work.engine
        with pytest.raises(AccessDenied):
            work.objects.get("jobs/any/log/1.txt")
        lease = claimed(served, work)
        server = Server(served.url, served.token(Role.WORKER))
        with pytest.raises(LeaseLostError):
            server.read("GET", f"/jobs/{lease.job.job_id}/held", query={"instance_id": "another", "epoch": 1})
        unclaimed = served.services.engine.submit(NewJob(name="of another queue", task="m:f"))
        with pytest.raises(RequestRefused):
            server.read("GET", f"/jobs/{unclaimed.job_id}/held", query={"instance_id": "any", "epoch": 0})
        server.close()


class TestWorker:
    """The worker itself, which needs nothing but the address of a server and a token."""

    @pytest.fixture(autouse=True)
    def tasks_are_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The process that starts jobs looks for tasks where this one does."""
        monkeypatch.syspath_prepend(str(REPOSITORY))

    def worker(self, served: Served, queue: str, **options: Any) -> Worker:
        opener = partial(open_work, served.url, served.token(Role.WORKER))
        return Worker(opener, [queue], instance=InstanceInfo("far-machine"), lease_seconds=6, **options)

    def test_runs_jobs_and_goes_on_from_their_checkpoints(self, served: Served) -> None:
        jobs = served.services.engine
        job = jobs.submit(NewJob(name="train", task=f"{TASKS}:train", queue="work", max_attempts=2))
        bad = jobs.submit(NewJob(name="bad", task=f"{TASKS}:none", queue="work"))
        report = self.worker(served, "work", until_empty=True).run()
        assert (report.completed, report.failed) == (1, 1), jobs.queries.get_job(job.job_id).message
        jobs.retry(bad.job_id)
        jobs.cancel(bad.job_id)
        store = served.services.store
        assert jobs.queries.get_job(job.job_id).result == {"begin": 0}
        lines = [line.message for line in store.query(JobLog.key(job_id=job.job_id))]
        assert {"from step 0", "step 0", "step 1", "step 2"} <= set(lines)
        logs = JobLogs(store, served.services.objects)
        assert b"from step 0\n" in b"".join(logs.full_text(job.job_id))
        (held,) = jobs.queries.list_instances_of_job(job.job_id)
        assert held.status == "COMPLETED"
        instance = store.get(Instance.key(instance_id=held.instance_id))
        assert (instance.instance_type, instance.status, instance.queues) == (
            "far-machine",
            InstanceStatus.STOPPED,
            ["work"],
        )

    def test_is_asked_to_stop(self, served: Served) -> None:
        jobs = served.services.engine
        job = jobs.submit(NewJob(name="wait", task=f"{TASKS}:wait", queue="stop", grace_seconds=600))
        thread = threading.Thread(target=self.worker(served, "stop", until_empty=True).run)
        thread.start()
        while served.services.store.query(JobLog.key(job_id=job.job_id)).first() is None:
            time.sleep(0.05)
        jobs.stop(job.job_id)
        thread.join()
        assert jobs.queries.get_job(job.job_id).status is Status.STOPPED, jobs.queries.get_job(job.job_id).message
        assert jobs.queries.get_job(job.job_id).result == "asked to stop"

    def test_a_server_that_dies_and_comes_back_costs_no_attempt(self, tmp_path: Path) -> None:
        """The job does not even begin anew; only what the server was storing when it died may be there twice."""
        port = str(free_port())  # which no outgoing connection gets while the server is away
        with up(tmp_path, "--no-worker", "--port", port) as server:
            url = re.search(r"http://\S+?:\d+", server.read_until("http://", seconds=240))
            assert url is not None
            with Services.open(f"file:{tmp_path / 'jobtable.db'}") as services:
                job = services.engine.submit(NewJob(name="walk", task=f"{TASKS}:walk", params={"steps": 20}))
                # A lease that outlasts the start of a server on a busy machine.
                worker = Worker(partial(open_work, url[0], None), ["default"], lease_seconds=600, until_empty=True)
                thread = threading.Thread(target=worker.run)
                thread.start()
                while services.store.query(JobLog.key(job_id=job.job_id)).first() is None:
                    time.sleep(0.05)
                server.process.kill()
                server.process.communicate()
                with up(tmp_path, "--no-worker", "--port", port) as again:
                    again.read_until("http://", seconds=240)
                    thread.join()
                    assert again.interrupt() == 0
                ended = services.engine.queries.get_job(job.job_id)
                lines = [line.message for line in services.store.query(JobLog.key(job_id=job.job_id))]
                heights = services.store.query(JobMetric.key(job_id=job.job_id, metric_name="height"))
                kept = services.store.query(JobCheckpoint.key(job_id=job.job_id))
                assert (ended.status, ended.result, ended.lease_epoch) == (Status.COMPLETED, "there", 1), ended.message
                assert list(dict.fromkeys(line for line in lines if line.startswith("step"))) == [
                    f"step {n}" for n in range(20)
                ]
                assert list(dict.fromkeys(height.value for height in heights)) == list(range(20))
                assert sorted({checkpoint.step for checkpoint in kept}) == [4, 9, 14, 19]

    def test_small_jobs_run_in_its_own_process(self, served: Served) -> None:
        jobs = served.services.engine
        jobs.submit_many(
            NewJob(name=str(x), task=f"{TASKS}:square", params={"x": x}, queue="inline") for x in range(20)
        )
        assert self.worker(served, "inline", mode="inline", until_empty=True).run().completed == 20

    def test_on_the_command_line(self, served: Served) -> None:
        job = served.services.engine.submit(
            NewJob(name="a", task=f"{TASKS}:square", params={"x": 3}, queue="command line")
        )
        command = ["--server", served.url, "--token", served.token(Role.WORKER), "worker"]
        done = CliRunner().invoke(
            app, [*command, "-q", "command line", "--until-empty", "--json"], env={"JOBTABLE_STORE": ""}
        )
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["completed"] == 1
        assert served.services.engine.queries.get_job(job.job_id).result == 9
        assert f"on {served.url}; stop with Ctrl-C" in done.stderr


def test_the_server_takes_jobs_from_dead_workers() -> None:
    clock = FakeClock()
    store = Store(EmbeddedBackend(None, clock=clock), clock=clock)
    store.tables.create(main)
    jobs = jobs_in_memory(store)
    job = jobs.submit(NewJob(name="a", task="m:f"))
    recovery = Recovery(jobs)
    (lease,) = jobs.claim("default", limit=1, instance_id="dead", lease_seconds=10)
    for seconds in (0, 5, 5):
        clock.advance(seconds)
        recovery.look()
        assert jobs.queries.get_job(job.job_id).status is Status.RUNNING
    clock.advance(1)
    recovery.look()  # it was looked at just now
    assert lease.is_held_in(store.get(Job.key(job_id=job.job_id)))
    clock.advance(3)
    recovery.look()
    assert jobs.queries.get_job(job.job_id).status is Status.INTERRUPTED
    assert store.find(InstanceJob.key(instance_id="dead", job_id=job.job_id)) is None
    store.close()
