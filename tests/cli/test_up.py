"""`jobtable up`, as a person starts it: everything runs, Ctrl-C ends it, and a second start goes on."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandLine

from jobtable.app import Services
from jobtable.cli.local_workers import looks
from jobtable.cli.up import modules_of_demo
from jobtable.jobs.stored.entities import Instance
from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.system import declared
from jobtable.testing.servers import free_port

_JOBTABLE = [sys.executable, "-m", "jobtable"]
_START_SECONDS = 240
_DEMO_SECONDS = 600
_WAITING = """
import time
from jobtable.jobs.tasks import task

@task
def wait(job):
    while not job.should_stop():
        time.sleep(0.02)
"""


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "JOBTABLE_STORE": f"file:{folder / 'jobtable.db'}", "COLUMNS": "200"}


class Up:
    """A running `jobtable up`."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [*_JOBTABLE, "up", "--data", str(folder), "--port", "0", *arguments],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            cwd=folder,
        )

    def read_until(self, pattern: str, seconds: float) -> str:
        """The first line that matches."""
        deadline = time.monotonic() + seconds
        stream = self.process.stderr
        if stream is None:
            raise AssertionError("stderr is a pipe")
        while time.monotonic() < deadline:
            line = stream.readline()
            if not line:
                break
            self.lines.append(line)
            if re.search(pattern, line):
                return line
        raise AssertionError(f"no line matches {pattern!r} in {''.join(self.lines)}")

    def interrupt(self) -> int:
        """Ctrl-C, and how it ended."""
        self.process.send_signal(signal.SIGINT)
        _, rest = self.process.communicate(timeout=240)
        self.lines += rest.splitlines(keepends=True)
        return self.process.returncode


@contextlib.contextmanager
def up(folder: Path, *arguments: str) -> Iterator[Up]:
    running = Up(folder, *arguments)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.communicate()


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=120) as answer:
        return str(answer.read().decode())


def test_every_part_of_the_demonstration_comes_to_its_end_or_to_a_person(tmp_path: Path) -> None:
    with up(tmp_path, "--demo", "--slots", "2") as running:
        address = running.read_until("Jobtable is at", _START_SECONDS).split()[3]
        assert "Overview" in fetch(f"{address}/")
        running.read_until(r"^Sweep +COMPLETED", _DEMO_SECONDS)
        told = "".join(running.lines)
        for part in ("Assistant", "Receipts", "Conversation", "Journey", "Sweep"):
            assert re.search(rf"^{part} +COMPLETED +100 %", told, re.MULTILINE), told
        assert re.search("^Album executions +WAITING .*wait for a person", told, re.MULTILINE), told
        for _ in range(6):
            page = running.read_until(f"  {address}/", _START_SECONDS).strip()
            assert "<h1" in fetch(page), page
        assert running.interrupt() == 0
        assert running.lines[-1] == "Stopped.\n"
    jobs = _jobs(tmp_path)
    waiting = [job for job in jobs if job["status"] == "PENDING"]
    assert {job["name"].partition("/")[0] for job in waiting} == {"albums", "albums-durable"}, "for a person"
    assert {job["status"] for job in jobs if job not in waiting} == {"COMPLETED", "STOPPED"}
    tasks = {job["job_config"]["task"] for job in jobs if job["job_config"].get("task")}
    assert {task.partition(":")[0] for task in tasks} <= set(modules_of_demo())
    with up(tmp_path, "--demo") as again:
        again.read_until(r"^Sweep +COMPLETED", _START_SECONDS)
        assert again.interrupt() == 0


def _jobs(folder: Path) -> list[dict[str, Any]]:
    listed = subprocess.run(
        [*_JOBTABLE, "jobs", "list", "-n", "500", "--json"],
        env=environment(folder),
        capture_output=True,
        check=True,
        text=True,
    )
    found: list[dict[str, Any]] = json.loads(listed.stdout)
    return found


def test_the_folder_of_the_data_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "50%25 off? #1"
    folder.mkdir()
    with up(folder, "--no-worker", "--demo") as running:
        running.read_until("Jobtable is at", _START_SECONDS)
        running.interrupt()
    assert list(tmp_path.iterdir()) == [folder]
    assert {"jobtable.db", "jobtable.db.objects", "demo"} <= {found.name for found in folder.iterdir()}


_TOLD_TO_END_WHILE_IT_STARTS = """
import signal
from contextlib import nullcontext

from jobtable.cli import up
from jobtable.cli.main import run

up.kept_up = lambda services: nullcontext(signal.raise_signal(signal.SIGTERM))
run()
"""


def test_a_reader_of_what_is_said_may_go_away(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "quick.py").write_text("from jobtable.jobs.tasks import task\n\n@task\ndef run(): pass\n")
    cli.store = f"file:{tmp_path / 'jobtable.db'}"
    with up(tmp_path) as running:
        running.read_until("Jobtable is at", _START_SECONDS)
        assert running.process.stderr is not None
        running.process.stderr.close()
        running.process.stderr = None
        (ended,) = cli.json("jobs", "submit", "--task", "quick:run", "--wait", "--timeout", str(_START_SECONDS))
        assert ended["status"] == "COMPLETED"
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(timeout=240) == 0


def test_it_runs_where_every_stream_is_closed(tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{(port := free_port())}"
    command = [*_JOBTABLE, "up", "--no-worker", "--port", str(port), "--data", str(tmp_path)]
    with subprocess.Popen(["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command]) as running:
        try:
            deadline = time.monotonic() + _START_SECONDS
            while running.poll() is None and time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    assert fetch(f"{address}/healthz") == "ok\n"
                    running.terminate()
                    break
                time.sleep(0.05)
            assert running.wait(timeout=240) == 0
        finally:
            running.kill()


def test_a_signal_while_it_starts_ends_it(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _TOLD_TO_END_WHILE_IT_STARTS, "up", "--no-worker", "--port", "0", "--data", tmp_path],
        check=True,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ended.stderr.endswith("Stopped.\n")


def test_what_cannot_be_is_one_line_and_an_exit_code(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        file = tmp_path / "file"
        file.write_text("")
        for arguments, told in (
            (["--data", str(tmp_path), "--port", port], f"cannot listen on 127.0.0.1:{port}"),
            (["--data", str(file / "below")], "--data"),
            (["--data", str(tmp_path), "--store", "memory:"], "--data and --store cannot be combined"),
        ):
            ended = subprocess.run(
                [*_JOBTABLE, "up", *arguments], check=False, capture_output=True, text=True, timeout=240
            )
            assert ended.returncode == 2
            assert told in ended.stderr
            assert "Traceback" not in ended.stderr


EXTRAS = {
    "fastapi": "web",
    "grandalf": "web",
    "jinja2": "web",
    "plotly": "web",
    "sklearn": "conversations",
    "optuna": "sweeps",
}


@pytest.mark.parametrize("missing", EXTRAS)
def test_an_extra_of_which_a_part_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, cli: CommandLine, missing: str
) -> None:
    monkeypatch.setattr("jobtable.cli.up.find_spec", lambda module: None if module == missing else module)
    told = cli.run("up", "--demo", code=2).stderr
    assert f"pip install 'jobtable[{EXTRAS[missing]}]'" in told


_OF_SYSTEMS = ",".join(system.extra for system, _ in declared("demo") if system.extra)


@pytest.mark.parametrize(("arguments", "extras"), [([], "web"), (["--demo"], f"web,{_OF_SYSTEMS}".removesuffix(","))])
def test_extras_that_are_missing_are_named(
    monkeypatch: pytest.MonkeyPatch, cli: CommandLine, arguments: list[str], extras: str
) -> None:
    monkeypatch.setattr("jobtable.cli.up.find_spec", lambda module: None)
    told = cli.run("up", *arguments, code=2).stderr
    assert f"pip install 'jobtable[{extras}]'" in told


def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    with up(tmp_path) as running:
        running.read_until("Serving", _START_SECONDS)
        children = subprocess.run(
            ["pgrep", "-P", str(running.process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        running.read_until("The worker exited with code -9; restarting it", _START_SECONDS)
        running.read_until("Serving", _START_SECONDS)
        assert running.interrupt() == 0


def test_workers_that_die_again_and_again_are_started_ever_more_seldom() -> None:
    dead = iter([False, True, True, False, *[True] * 7])
    assert list(islice(looks(lambda: next(dead)), 12)) == [1, 1, 2, 4, 1, 2, 4, 8, 16, 32, 60, 60]


def test_the_worker_ends_with_a_server_that_is_killed_and_gives_its_job_back(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(_WAITING)
    url = f"file:{tmp_path / 'jobtable.db'}"
    with up(tmp_path) as running, Services.open(url) as services:
        jobs = services.engine
        job = jobs.submit(NewJob(name="waits", task="mine:wait"))
        _wait_until(lambda: jobs.queries.get_job(job.job_id).status is Status.RUNNING)
        running_workers = jobs.queries.list_instances_by_status(InstanceStatus.RUNNING)
        (worker,) = [each for each in running_workers if "default" in each.queues]
        running.process.kill()
        _wait_until(
            lambda: jobs.store.get(Instance.key(instance_id=worker.instance_id)).status is InstanceStatus.STOPPED
        )
        assert jobs.queries.get_job(job.job_id).status is Status.INTERRUPTED
        running.process.communicate(timeout=240)  # returns when nobody holds its stderr any more


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
