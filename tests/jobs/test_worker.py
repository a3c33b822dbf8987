"""Workers as programs: what they run, how they stop, what becomes of their jobs when they die."""

from __future__ import annotations

import io
import logging
import math
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jobtable.app import open_jobs
from jobtable.errors import ObjectStoreUnavailable, StorageLocked, TaskError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle import runs
from jobtable.jobs.lifecycle.claims import Claims
from jobtable.jobs.lifecycle.instances import Instances
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.read.logs import JobLogs
from jobtable.jobs.report import log_text
from jobtable.jobs.stored.entities import Job, main
from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.jobs.submit.definition import DependsOn, NewJob, RetryPolicy
from jobtable.jobs.worker import process_slots, processes, worker
from jobtable.jobs.worker.worker import Worker
from jobtable.objects import ObjectInfo, Source
from jobtable.objects.filesystem import FilesystemObjectStore
from jobtable.remote.work import open_work
from jobtable.store import retries

REPOSITORY = Path(__file__).parents[2]


class Bench:
    """A store in a file, and workers on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"file:{folder}/jobs.db"
        self.opener = partial(open_jobs, self.url)
        self.jobs: Jobs = self.opener()
        self.started: list[subprocess.Popen[str]] = []

    def submit(self, name: str, params: dict[str, Any] | None = None, **options: Any) -> str:
        """Submit a job; gives its id."""
        new = NewJob(name=name, task=f"tests.jobs.worker_tasks:{name}", params=params or {}, **options)
        return self.jobs.submit(new).job_id

    def job(self, job_id: str) -> Job:
        """The job as it is."""
        return self.jobs.queries.get_job(job_id)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a worker as a program."""
        command = [sys.executable, "-m", "tests.jobs.worker_process", self.url, *arguments]
        process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.started.append(process)
        return process

    def wait_for(self, is_so: Callable[[], bool], seconds: float = 120.0) -> None:
        """Wait until something is so, or fail."""
        until = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < until, "it did not become so in time"
            time.sleep(0.02)

    def wait_for_status(self, job_id: str, status: Status) -> None:
        """Wait until a job has a status."""
        self.wait_for(lambda: self.job(job_id).status is status)

    def close(self) -> None:
        """End everything."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()
        self.jobs.store.close()
        self.jobs.objects.close()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.syspath_prepend(str(REPOSITORY))
    monkeypatch.setattr(processes, "TERMINATION_SECONDS", 0.2)
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def is_running(pid: int) -> bool:
    """Whether a process is there and not only waiting to be buried."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_everything_that_a_job_says_is_in_its_log(bench: Bench) -> None:
    job_id = bench.submit("say", {"text": "hello"})
    report = Worker(bench.opener, ["default"], until_empty=True).run()
    assert (report.completed, report.runs) == (1, 1)
    job = bench.job(job_id)
    assert job.status is Status.COMPLETED
    assert job.result["text"] == "hello"
    assert job.result["pid"] != os.getpid()
    said = {(line.source, line.message) for line in bench.jobs.queries.list_logs(job_id)}
    assert said == {
        ("stdout", "printed hello"),
        ("stdout", "complained hello"),
        ("stdout", "child hello"),
        ("some.library", "logged hello"),
        (None, "told hello"),
    }


def test_everything_that_a_job_says_stays_in_its_order_however_it_ends(bench: Bench) -> None:
    job_id = bench.submit("say_in_turns", {"rounds": 120})
    worker = threading.Thread(target=Worker(bench.opener, ["default"], until_empty=True).run)
    worker.start()
    logs = JobLogs(bench.jobs.store, bench.jobs.objects)
    followed = [line.message for line in logs.follow(job_id)]
    worker.join()
    said = [f"{number} {how}" for number in range(120) for how in ("printed", "logged", "complained", "heard")]
    assert followed == said
    assert [line.message for line in logs.lines(job_id)] == said
    lines = b"".join(logs.full_text(job_id)).decode().splitlines()
    assert [" ".join(line.split()[-2:]) for line in lines] == said


def test_what_a_forked_process_logs_is_stored_once_and_stands_in_the_full_text(bench: Bench) -> None:
    job_id = bench.submit("log_in_fork")
    assert Worker(bench.opener, ["default"], until_empty=True).run().completed == 1
    said = ["before", "behind", "from the fork"]
    messages = sorted(line.message for line in bench.jobs.queries.list_logs(job_id))
    assert messages[:3] == said
    assert [message[-25:] for message in messages[3:]] == ["... [cut here: 300,000 bytes]"[-25:]]
    lines = b"".join(JobLogs(bench.jobs.store, bench.jobs.objects).full_text(job_id)).decode().splitlines()
    assert [line.partition(" INFO     ")[2] for line in lines] == ["before", "from the fork", "x" * 300_000, "behind"]


def test_what_a_task_raises_stands_behind_all_that_it_has_printed(bench: Bench) -> None:
    job_id = bench.submit("print_and_fail", {"lines": 3})
    assert Worker(bench.opener, ["default"], until_empty=True).run().failed == 1
    *before, last = bench.jobs.queries.list_logs(job_id)
    assert [line.message for line in before if line.source] == ["0", "1", "2", "last words"]
    assert (last.log_level, last.message) == ("ERROR", "RuntimeError: no")
    assert last.exception is not None
    assert "in print_and_fail" in last.exception
    full_text = b"".join(JobLogs(bench.jobs.store, bench.jobs.objects).full_text(job_id)).decode().splitlines()
    assert next(line for line in full_text if "RuntimeError: no" in line).endswith("ERROR    RuntimeError: no")
    assert full_text.index("last words") < full_text.index("Traceback (most recent call last):")


def test_a_program_with_many_open_files_can_be_a_worker(bench: Bench) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2048), before[1]))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        job_id = bench.submit("say", {"text": "hello"})
        Worker(bench.opener, ["default"], until_empty=True).run()
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert bench.job(job_id).status is Status.COMPLETED


def test_a_worker_goes_on_until_retries_and_dependents_are_done(bench: Bench) -> None:
    again = RetryPolicy(first_delay_seconds=0.3)
    marks = bench.folder / "marks"
    first = bench.submit("mark", {"path": str(marks)})
    failing = bench.submit("fail", {"message": "no"}, max_attempts=2, retry=again)
    second = bench.submit("give", {"value": 2}, depends_on=(DependsOn(first),))
    never = bench.submit("give", {"value": 3}, depends_on=(DependsOn(failing),))
    report = Worker(bench.opener, ["default"], slots=2, until_empty=True).run()
    assert [bench.job(j).status for j in (first, second)] == [Status.COMPLETED] * 2
    assert [bench.job(j).status for j in (failing, never)] == [Status.FAILED, Status.CANCELLED]
    assert (report.completed, report.failed) == (2, 2)


def test_jobs_have_each_their_own_chance(bench: Bench) -> None:
    drawing = [bench.submit("draw") for _ in range(2)]
    Worker(bench.opener, ["default"], until_empty=True, preload=["tests.jobs.worker_tasks"]).run()
    one, other = (bench.job(job_id).result for job_id in drawing)
    assert one[0] != other[0]
    assert one[1] != other[1]


def test_a_worker_leaves_what_waits_for_others(bench: Bench) -> None:
    elsewhere = bench.submit("give", {"value": 1}, queue="elsewhere")
    waiting = bench.submit("give", {"value": 1}, depends_on=(DependsOn(elsewhere),))
    report = Worker(bench.opener, ["default"], until_empty=True).run()
    assert report.runs == 0
    assert bench.job(waiting).status is Status.PENDING


def test_the_most_urgent_queue_comes_first(bench: Bench) -> None:
    bench.jobs.create_queue("slow", priority=100)
    bench.jobs.create_queue("fast", priority=900)
    late = [bench.submit("give", {"value": 1}, queue="slow") for _ in range(2)]
    early = [bench.submit("give", {"value": 1}, queue="fast") for _ in range(2)]
    Worker(bench.opener, ["slow", "fast"], until_empty=True).run()
    starts = {job_id: bench.job(job_id).started_at for job_id in [*early, *late]}
    assert sorted(starts, key=lambda job_id: str(starts[job_id])) == [*early, *late]


def test_queues_with_one_priority_take_turns(bench: Bench) -> None:
    many = [bench.submit("give", {"value": 1}, queue="many") for _ in range(4)]
    few = [bench.submit("give", {"value": 1}, queue="few") for _ in range(2)]
    Worker(bench.opener, ["many", "few"], until_empty=True).run()
    starts = {job_id: bench.job(job_id).started_at for job_id in [*many, *few]}
    order = sorted(starts, key=lambda job_id: str(starts[job_id]))
    assert order == [many[0], few[0], many[1], few[1], many[2], many[3]]


def test_an_idle_worker_sleeps_until_something_is_written(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_LONGEST_IDLE_SECONDS", 600.0)
    tries: list[str] = []
    claim = Claims.claim

    def counted(claims: Claims, queue: str, **options: Any) -> list[Lease]:
        tries.append(queue)
        return claim(claims, queue, **options)

    monkeypatch.setattr(Claims, "claim", counted)
    is_unchanged = Worker._is_unchanged

    def noted(worker: Worker, mark: object | None) -> bool:
        tries.append("look")
        return is_unchanged(worker, mark)

    monkeypatch.setattr(Worker, "_is_unchanged", noted)
    idle = Worker(bench.opener, ["default"], mode="inline", lease_seconds=3000)
    thread = threading.Thread(target=idle.run)
    thread.start()
    try:
        bench.wait_for(lambda: "default" in tries)
        # What it writes itself, as that it is there, wakes it too; then it looks, and does not try.
        bench.wait_for(lambda: tries[-50:] == ["look"] * 50)
        bench.wait_for_status(bench.submit("say", {"text": "now"}), Status.COMPLETED)
    finally:
        idle.drain()
        thread.join()


class AwayObjects(FilesystemObjectStore):
    """Object storage that cannot be reached the next times."""

    times: ClassVar[float] = 0

    def put(self, key: str, source: Source) -> ObjectInfo:
        if AwayObjects.times > 0:
            AwayObjects.times -= 1
            raise ObjectStoreUnavailable("no connection")
        return super().put(key, source)


def open_away(folder: Path) -> Jobs:
    return Jobs(open_jobs(f"file:{folder}/jobs.db").store, AwayObjects(folder / "jobs.db.objects"))


@pytest.mark.parametrize(
    ("times", "seconds", "problem", "text"),
    [
        (2, 120.0, None, b"printed hello\n"),
        (math.inf, 1.0, "could not store all of its output: no connection", b""),
    ],
    ids=["for a moment", "for good"],
)
def test_output_is_stored_when_object_storage_is_back_or_the_job_says_that_it_is_not(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, times: float, seconds: float, problem: str | None, text: bytes
) -> None:
    monkeypatch.setattr(retries, "_PATIENCE_SECONDS", seconds)
    monkeypatch.setattr(AwayObjects, "times", times)
    job_id = bench.submit("say", {"text": "hello"})
    Worker(partial(open_away, bench.folder), ["default"], until_empty=True).run()
    job = bench.job(job_id)
    assert (job.status, job.message) == (Status.COMPLETED, problem)
    assert b"".join(JobLogs(bench.jobs.store, bench.jobs.objects).full_text(job_id)).startswith(text)
    assert "printed hello" in [line.message for line in bench.jobs.queries.list_logs(job_id)]


def test_a_job_counts_whose_output_has_no_room_on_its_way(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_text, "_temporary_file", partial(io.open, "/dev/full", "w+b"))
    job_id = bench.submit("say", {"text": "hello"})
    assert Worker(bench.opener, ["default"], until_empty=True).run().completed == 1
    job = bench.job(job_id)
    assert job.result["text"] == "hello"
    assert job.message == "could not store all of its output: [Errno 28] No space left on device"
    assert {"printed hello", "child hello"} <= {line.message for line in bench.jobs.queries.list_logs(job_id)}


def test_a_paused_queue_is_left_alone(bench: Bench) -> None:
    job_id = bench.submit("give", {"value": 1})
    bench.jobs.pause_queue("default")
    report = Worker(bench.opener, ["default"], until_empty=True).run()
    assert report.runs == 0
    assert bench.job(job_id).status is Status.PENDING


def test_a_drained_worker_lets_its_jobs_end(bench: Bench) -> None:
    may_end = bench.folder / "may end"
    running = bench.submit("wait_for_file", {"path": str(may_end)})
    waiting = bench.submit("give", {"value": 1})
    worker = bench.start("1", "600", "600")
    bench.wait_for_status(running, Status.RUNNING)
    worker.send_signal(signal.SIGTERM)
    assert worker.stdout is not None
    assert any("stopping: running jobs have 600 s to end" in line for line in worker.stdout)
    may_end.touch()
    said, _ = worker.communicate(timeout=120)
    assert worker.returncode == 0
    assert "completed=1" in said
    assert "released=0" in said
    assert [bench.job(job_id).status for job_id in (running, waiting)] == [Status.COMPLETED, Status.PENDING]


def test_a_drained_worker_gives_its_jobs_back(bench: Bench) -> None:
    polite = bench.submit("work_until_stopped")
    deaf = bench.submit("sleep", {"seconds": 600})
    waiting = bench.submit("give", {"value": 1})
    worker = bench.start("2", "600", "1")
    bench.wait_for(lambda: all(bench.job(j).status is Status.RUNNING for j in (polite, deaf)))
    worker.send_signal(signal.SIGTERM)
    said, _ = worker.communicate(timeout=120)
    assert worker.returncode == 0
    assert "completed=0" in said
    assert "released=2" in said
    for job_id in (polite, deaf):
        job = bench.job(job_id)
        assert (job.status, job.attempts, job.interruptions) == (Status.INTERRUPTED, 0, 0)
        assert [resource.status for resource in bench.jobs.queries.list_resources(job_id)] == ["RELEASED"]
    assert bench.job(waiting).status is Status.PENDING
    [instance] = bench.jobs.queries.list_instances_by_status(InstanceStatus.STOPPED)
    assert instance.queues == ["default"]
    ready = {place.job_id for place in bench.jobs.queries.list_ready("default")}
    assert ready == {polite, deaf, waiting}


def test_a_second_signal_ends_it_at_once(bench: Bench) -> None:
    job_id = bench.submit("sleep", {"seconds": 600})
    worker = bench.start("1", "600", "600")
    bench.wait_for_status(job_id, Status.RUNNING)
    until = time.monotonic() + 120
    while worker.poll() is None and time.monotonic() < until:
        # Of signals that come while it does not look there is one: it may need a third to see a second.
        worker.send_signal(signal.SIGINT)
        time.sleep(0.5)
    assert worker.poll() is not None
    worker.communicate()
    assert bench.job(job_id).status is Status.INTERRUPTED


def test_who_waits_for_its_end_is_told_why_it_takes_long(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jobtable.worker")
    monkeypatch.setattr(Instances, "stop", lambda *_: bench.wait_for(lambda: "another signal" in caplog.text))
    Worker(bench.opener, ["default"], until_empty=True).run()


def test_a_cancelled_job_ends_with_all_its_processes(bench: Bench) -> None:
    marks = bench.folder / "pids"
    job_id = bench.submit("hang", {"marks": str(marks)}, grace_seconds=0.1)
    worker = Worker(bench.opener, ["default"], until_empty=True)
    thread = threading.Thread(target=worker.run)
    thread.start()
    bench.wait_for(lambda: marks.exists() and len(marks.read_text().split()) == 2)
    bench.jobs.cancel(job_id)
    thread.join()
    assert bench.job(job_id).status is Status.CANCELLED
    bench.wait_for(lambda: not any(is_running(int(pid)) for pid in marks.read_text().split()))


def test_a_stopped_job_ends_by_itself(bench: Bench) -> None:
    job_id = bench.submit("work_until_stopped", grace_seconds=600)
    worker = Worker(bench.opener, ["default"], until_empty=True)
    thread = threading.Thread(target=worker.run)
    thread.start()
    bench.wait_for_status(job_id, Status.RUNNING)
    bench.jobs.stop(job_id)
    thread.join()
    job = bench.job(job_id)
    assert (job.status, job.result) == (Status.STOPPED, {"stopped": True})


def test_what_a_dead_worker_ran_ends_and_is_taken_over(bench: Bench) -> None:
    marks = bench.folder / "pids"
    job_id = bench.submit("hang_once", {"marks": str(marks)})
    worker = bench.start("1", "600")
    bench.wait_for(lambda: marks.exists() and len(marks.read_text().split()) == 2)
    worker.kill()
    worker.communicate()
    pids = [int(pid) for pid in marks.read_text().split()]
    bench.wait_for(lambda: not any(is_running(pid) for pid in pids))
    # A worker with so short a lease would lose it on a machine that stands still for a moment: it gets it now.
    [instance] = bench.jobs.queries.list_instances_by_status(InstanceStatus.RUNNING)
    bench.jobs.store.put(instance.replace(lease_seconds=1.0))
    bench.jobs.store.update(Job.key(job_id=job_id), Job.lease_seconds.set(1.0))
    report = Worker(bench.opener, ["default"], until_empty=True).run()
    assert report.recovered == 1
    job = bench.job(job_id)
    assert (job.status, job.result, job.interruptions, job.lease_epoch) == (Status.COMPLETED, "ran again", 1, 2)
    statuses = [line.status for line in bench.jobs.queries.list_statuses(job_id)]
    running = Status.RUNNING
    assert statuses == [Status.PENDING, running, Status.INTERRUPTED, running, Status.COMPLETED]
    [dead] = bench.jobs.queries.list_instances_by_status(InstanceStatus.TERMINATED)
    assert str(worker.pid) in dead.instance_id


def test_a_job_that_was_taken_away_is_killed_and_nothing_is_written(bench: Bench) -> None:
    marks = bench.folder / "pids"
    job_id = bench.submit("hang", {"marks": str(marks)})
    worker = Worker(bench.opener, ["default"])
    reports = []
    thread = threading.Thread(target=lambda: reports.append(worker.run()))
    thread.start()
    bench.wait_for(lambda: marks.exists() and len(marks.read_text().split()) == 2)
    bench.jobs.pause_queue("default")
    job = bench.job(job_id)
    bench.jobs.release(Lease(job, job.instance_id or "", is_recorded=True), "taken away")
    bench.wait_for(lambda: not any(is_running(int(pid)) for pid in marks.read_text().split()))
    worker.drain()
    thread.join()
    assert (reports[0].lost, reports[0].runs) == (1, 1)
    assert bench.job(job_id).message == "taken away"


def test_a_job_that_kills_what_started_it_counts_as_a_lost_worker(bench: Bench) -> None:
    murderer = bench.submit("kill_parent", most_interruptions=1)
    neighbours = [bench.submit("give", {"value": 1}) for _ in range(3)]
    Worker(bench.opener, ["default"], lease_seconds=2, until_empty=True).run()
    job = bench.job(murderer)
    assert (job.status, job.interruptions) == (Status.FAILED, 1)
    assert "it has lost 2 workers" in (job.message or "")
    assert [bench.job(job_id).status for job_id in neighbours] == [Status.COMPLETED] * 3


def test_a_preloaded_module_that_is_not_there_is_told_at_once(bench: Bench) -> None:
    with pytest.raises(TaskError, match="nowhere_at_all cannot be imported"):
        Worker(bench.opener, ["default"], preload=["nowhere_at_all"]).run()


def test_processes_of_jobs_load_what_their_store_needs_and_not_all_that_a_program_has_loaded() -> None:
    here = process_slots.own_modules(partial(open_jobs, "memory:"))
    assert {"jobtable.app", "jobtable.embedded.backend", "jobtable.jobs.engine"} <= set(here)
    elsewhere = process_slots.own_modules(partial(open_work, "http://127.0.0.1:1", None))
    assert set(elsewhere) - set(here) == {"jobtable.remote.work"}


def test_queues_and_modules_are_lists_and_jobs_are_opened_by_the_worker(bench: Bench) -> None:
    with pytest.raises(ValueRefusedError, match=r"queues must be a list of names: write \['default'\]"):
        Worker(bench.opener, "default")
    with pytest.raises(ValueRefusedError, match=r"preload must be a list of names: write \['json'\]"):
        Worker(bench.opener, ["default"], preload="json")
    opened: Any = bench.jobs
    with pytest.raises(TypeError, match=r"must be a function, such as functools\.partial\(open_jobs, URL\)"):
        Worker(opened, ["default"])


def test_what_a_job_could_not_open_is_told_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueRefusedError, match=r"to the process of a job: .*use functools.partial\(open_jobs, URL\)"):
        Worker(lambda: open_jobs(bench.url), ["default"]).run()
    monkeypatch.setattr(open_in_script, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "open_in_script", open_in_script, raising=False)
    with pytest.raises(ValueRefusedError, match="move it into a module"):
        Worker(partial(open_in_script, bench.url), ["default"]).run()


class Refused:
    """Opens the jobs, but for no process of a job, which has little patience."""

    def __init__(self, folder: Path) -> None:
        self._url, self._first, self._worker = f"file:{folder}/jobs.db", folder / "first", os.getpid()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        retries._PATIENCE_SECONDS = 0.5  # in the process of a job alone: only there it comes out of a pickle

    def __call__(self) -> Jobs:
        if os.getpid() != self._worker and self._is_refused():
            raise StorageLocked("another program keeps it locked")
        return open_jobs(self._url)

    def _is_refused(self) -> bool:
        return True


class RefusedToTheFirst(Refused):
    """Opens the jobs for all processes but the first."""

    def _is_refused(self) -> bool:
        with suppress(FileExistsError), self._first.open("x") as file:
            file.write(str(os.getpid()))
        return self._first.read_text() == str(os.getpid())


def test_a_job_whose_process_cannot_open_the_store_is_given_back(bench: Bench) -> None:
    job_id = bench.submit("add", {"a": 1, "b": 2})
    report = Worker(RefusedToTheFirst(bench.folder), ["default"], until_empty=True).run()
    job = bench.job(job_id)
    assert (job.status, job.result, job.attempts) == (Status.COMPLETED, 3, 1)
    assert (report.released, report.completed, report.failed) == (1, 1, 0)
    history = bench.jobs.queries.list_statuses(job_id)
    assert [entry.message for entry in history if entry.status is Status.INTERRUPTED] == [
        "could not open its store, so it was not started: another program keeps it locked"
    ]


def test_a_job_whose_processes_never_open_the_store_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_UNOPENED", 2)
    job_id = bench.submit("add", {"a": 1, "b": 2})
    report = Worker(Refused(bench.folder), ["default"], until_empty=True).run()
    assert (report.released, report.failed, report.runs) == (1, 1, 2)
    job = bench.job(job_id)
    assert (job.status, job.attempts) == (Status.FAILED, 1)
    assert "another program keeps it locked; this happened 2 times in a row" in str(job.message)


def open_in_script(url: str) -> Jobs:
    return open_jobs(url)


def test_a_worker_on_dynamodb(dynamodb_local_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY))
    host = dynamodb_local_url.removeprefix("http://")
    url = f"dynamodb+http://a:b@{host}?prefix=w{uuid.uuid4().hex[:12]}-"
    opener = partial(open_jobs, url, f"file:{tmp_path}/objects")
    jobs = opener()
    jobs.store.tables.create(main)
    new = [NewJob(name="say", task="tests.jobs.worker_tasks:say", params={"text": str(n)}) for n in range(3)]
    ids = [job.job_id for job in jobs.submit_many(new)]
    report = Worker(opener, ["default"], slots=2, until_empty=True).run()
    assert report.completed == 3
    assert [jobs.queries.get_job(job_id).result["text"] for job_id in ids] == ["0", "1", "2"]
    assert {line.message for line in jobs.queries.list_logs(ids[0])} >= {"printed 0", "logged 0", "told 0"}
    jobs.store.tables.delete(main)
    jobs.store.close()


def test_a_worker_without_a_queue_is_refused(bench: Bench) -> None:
    with pytest.raises(ValueRefusedError, match="a worker needs at least one queue"):
        Worker(bench.opener, [])
