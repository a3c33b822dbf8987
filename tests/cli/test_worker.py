"""The command line as real processes: workers that run jobs, and people who follow, wait for and stop them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import JOBTABLE, CommandLine

from jobtable import connect
from jobtable.jobs.stored.entities import JobLog

TASKS = """
import time
from jobtable.jobs.tasks import task

@task
def speak(job, times: int):
    for number in range(times):
        print("spoken", number, flush=True)
    return times

@task
def wait(job):
    job.info("waits")
    job.flush()
    while not job.should_stop():
        time.sleep(0.02)
"""


class Shell:
    """Runs the command as a shell would, in a folder with tasks and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "mine.py").write_text(TASKS)
        self.environment = os.environ | {"TERM": "dumb", "NO_COLOR": "1", "JOBTABLE_STORE": ""}
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(JOBTABLE), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )
        self.started.append(process)
        return process

    def run(self, *arguments: str, code: int = 0) -> str:
        process = self.start(*arguments)
        printed, said = process.communicate(timeout=240)
        assert process.returncode == code, printed + said
        return printed


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_worker_runs_what_a_shell_submits(shell: Shell) -> None:
    """With the store that is there without any setting."""
    job_id = shell.run("jobs", "submit", "--task", "mine:speak", "--param", "times=3").strip()
    machine = ("--instance-type", "p3.2xlarge", "--gpus", "1", "--zone", "eu-central-1a", "--spot")
    report = json.loads(shell.run("worker", "--until-empty", "--json", *machine))
    assert (report["completed"], report["failed"]) == (1, 0)
    assert (shell.folder / ".jobtable" / "jobtable.db").exists()
    assert shell.run("jobs", "logs", job_id, "--full").splitlines() == ["spoken 0", "spoken 1", "spoken 2"]
    found = shell.run("jobs", "logs", job_id, "--search", "spoken 1", "--json").splitlines()
    assert [json.loads(line)["text"] for line in found] == ["spoken 1"]
    (worker,) = json.loads(shell.run("workers", "list", "--all", "--json"))
    assert worker["status"] == "STOPPED"
    told = worker["instance_type"], worker["gpu_count"], worker["availability_zone"], worker["is_spot"]
    assert told == ("p3.2xlarge", 1, "eu-central-1a", True)
    held = json.loads(shell.run("workers", "show", worker["instance_id"], "--json"))["jobs"]
    assert [each["job_id"] for each in held] == [job_id]


def test_a_log_is_followed_and_a_job_waited_for_while_it_runs(shell: Shell) -> None:
    worker = shell.start("worker", "--slots", "2")
    job_id = shell.run("jobs", "submit", "--task", "mine:wait").strip()
    follower = shell.start("jobs", "logs", job_id, "--follow", "--json")
    assert follower.stdout is not None
    assert json.loads(follower.stdout.readline())["message"] == "waits"
    waiter = shell.start("jobs", "wait", job_id, "--json")
    shell.run("jobs", "stop", job_id)
    printed, _ = waiter.communicate(timeout=240)
    assert (waiter.returncode, json.loads(printed)[0]["status"]) == (5, "STOPPED")
    follower.communicate(timeout=240)
    assert follower.returncode == 0
    worker.send_signal(signal.SIGTERM)
    _, said = worker.communicate(timeout=240)
    assert (worker.returncode, said.splitlines()) == (0, [said.splitlines()[0]])


def test_a_worker_that_is_stopped_says_what_it_waits_for(shell: Shell) -> None:
    worker = shell.start("worker", "--drain-seconds", "45")
    job_id = shell.run("jobs", "submit", "--task", "mine:wait").strip()
    follower = shell.start("jobs", "logs", job_id, "--follow")
    assert follower.stdout is not None
    assert "waits" in follower.stdout.readline()
    worker.send_signal(signal.SIGINT)
    _, said = worker.communicate(timeout=240)
    assert worker.returncode == 0
    assert "stopping: running jobs have 45 s to end before they are released; send a second signal" in said


def test_ctrl_c_ends_a_follower_at_once_and_quietly(shell: Shell) -> None:
    job_id = shell.run("jobs", "submit", "--task", "mine:wait").strip()
    with connect(f"file:{shell.folder}/.jobtable/jobtable.db") as store:
        store.add(JobLog(job_id=job_id, timestamp=store.clock.now(), message="waits"))
    follower = shell.start("jobs", "logs", job_id, "--follow")
    assert follower.stdout is not None
    assert "waits" in follower.stdout.readline()
    follower.send_signal(signal.SIGINT)
    printed, said = follower.communicate(timeout=240)
    assert (follower.returncode, printed, said) == (130, "", "")


def test_a_reader_that_goes_away_is_no_error_with_a_traceback(shell: Shell) -> None:
    job_id = shell.run("jobs", "submit", "--task", "mine:speak", "--param", "times=20000").strip()
    shell.run("worker", "--until-empty")
    reader = shell.start("jobs", "logs", job_id, "--full")
    assert reader.stdout is not None
    assert reader.stdout.readline() == "spoken 0\n"
    reader.stdout.close()
    assert reader.stderr is not None
    assert reader.stderr.read() == ""
    reader.wait(timeout=240)


def test_a_worker_needs_a_store_that_others_see(cli: CommandLine) -> None:
    refused = cli.run("worker", "--store", "memory:", code=2)
    assert "a store in memory" in refused.stderr


def test_a_wrong_setting_is_told_before_anything_starts(cli: CommandLine) -> None:
    Path("jobtable.toml").write_text("slots = 0")
    refused = cli.run("worker", code=2)
    assert refused.stderr.startswith("Error: ")
    assert "jobtable.toml, slots: invalid value 0" in refused.stderr
