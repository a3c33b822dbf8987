"""Sweeps on the command line: what is printed, and what becomes of one whose processes are killed."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console
from tests.cli.conftest import JOBTABLE, CommandLine
from tests.systems.sweeps.driving import Driver, finish
from tests.systems.sweeps.sweep_tasks import HELD_FROM

from jobtable.app import open_jobs
from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.lifecycle.leases import has_lease
from jobtable.jobs.stored.entities import Job, JobGates
from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.store import Store
from jobtable.systems.sweeps.cli.trial_table import drawn, params_text
from jobtable.systems.sweeps.service import Sweeps, TrialResult
from jobtable.systems.sweeps.sweep_file import parse_sweep

ROOT = Path(__file__).parents[3]

SMALL = """
task: tests.systems.sweeps.sweep_tasks:bowl
objective: loss
trials: 6
space:
  x: {type: float, low: -5, high: 5}
  y: {type: float, low: -5, high: 5}
"""

KILLED = """
name: killed
task: tests.systems.sweeps.sweep_tasks:train
objective: loss
trials: 12
generation_size: 4
seed: 5
sampler: {name: tpe, options: {n_startup_trials: 4}}
stopper: {name: asha, last_epoch: 9, factor: 2}
params: {seconds: 0.03}
space:
  x: {type: float, low: -5, high: 5}
  y: {type: float, low: -5, high: 5}
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    (tmp_path / "small.yaml").write_text(SMALL)
    return "small.yaml"


def test_a_sweep_from_its_file_to_its_best(cli: CommandLine, small: str) -> None:
    sweep_id = cli.run("sweep", "run", small).stdout.strip()
    waiting = cli.json("sweeps", "show", sweep_id)
    assert (waiting["status"], waiting["made"], waiting["total"], waiting["best"]) == ("RUNNING", 0, 6, None)
    cli.run("sweeps", "best", sweep_id, code=3)
    cli.work()
    done = cli.json("sweeps", "show", sweep_id, "--trials")
    assert (done["status"], done["completed"], done["open"]) == ("COMPLETED", 6, 0)
    assert [trial["number"] for trial in done["trials"]] == list(range(6))
    by_value = sorted(done["trials"], key=lambda trial: trial["value"])
    assert cli.json("sweeps", "best", sweep_id, "-n", "3") == by_value[:3]
    assert done["best"] == by_value[0]
    assert f"(trial {by_value[0]['number']})" in cli.run("sweeps", "show", sweep_id).stdout
    (entry,) = cli.json("sweeps", "list")
    assert (entry["job_id"], entry["name"], entry["trial_count"]) == (sweep_id, "small", 6)


@pytest.mark.parametrize(
    ("target", "made", "told"), [(-1, 6, "not reached"), (1000, 3, "reached; no more trials are planned")]
)
def test_a_sweep_says_whether_it_has_reached_its_target(
    cli: CommandLine, tmp_path: Path, target: int, made: int, told: str
) -> None:
    (tmp_path / "aimed.yaml").write_text(f"{SMALL}generation_size: 3\ntarget: {target}\n")
    cli.run("sweeps", "run", "aimed.yaml", "--id", "s")
    cli.work()
    assert f"loss = {target} {told}" in cli.run("sweeps", "show", "s").stdout
    done = cli.json("sweeps", "show", "s")
    assert (done["status"], done["made"], done["has_reached_target"]) == ("COMPLETED", made, made < 6)


def test_a_sweep_is_stopped_and_resumed(cli: CommandLine, small: str) -> None:
    cli.run("sweeps", "run", small, "--id", "s")
    assert cli.json("sweeps", "stop", "s")["status"] == "STOPPED"
    cli.work()
    assert cli.json("sweeps", "show", "s")["completed"] == 0
    assert cli.json("sweeps", "resume", "s")["status"] == "RUNNING"
    cli.work()
    assert cli.json("sweeps", "show", "s", "--follow")["completed"] == 6


def test_trials_are_exported_with_a_column_for_each_parameter(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "task: tests.cli.tasks:pick\nsampler: grid\n"
        "space: {kind: ['a,\"b\"', null], sizes: [[1, 2], true], rate: {type: choice, values: [1], when: {kind: null}}}"
    )
    cli.run("sweeps", "run", "mine.yaml", "--id", "s")
    cli.work()
    rows = list(csv.DictReader(io.StringIO(cli.run("sweeps", "export", "s").stdout)))
    assert list(rows[0]) == [
        "number",
        "job_id",
        "status",
        "value",
        "params.kind",
        "params.sizes",
        "params.rate",
        "message",
    ]
    told = [(row["number"], row["params.kind"], row["params.sizes"], row["params.rate"]) for row in rows]
    assert told == [
        ("0", 'a,"b"', "[1, 2]", ""),
        ("1", 'a,"b"', "true", ""),
        ("2", "null", "[1, 2]", "1"),
        ("3", "null", "true", "1"),
    ]
    assert [(row["status"], row["value"]) for row in rows[:2]] == [("COMPLETED", "0.25")] * 2
    assert (rows[2]["status"], rows[2]["value"], rows[2]["message"]) == ("FAILED", "", "ValueError: no kind")
    assert cli.json("sweeps", "export", "s") == cli.json("sweeps", "show", "s", "--trials")["trials"]


def test_a_sweep_is_extended(cli: CommandLine, small: str) -> None:
    cli.run("sweeps", "run", small, "--id", "s")
    assert cli.json("sweeps", "extend", "s", "--trials", "2")["total"] == 8
    cli.work()
    assert cli.json("sweeps", "show", "s")["completed"] == 8
    assert cli.run("sweeps", "extend", "s", "--total", "9").stdout.strip() == "s"
    assert cli.json("sweeps", "extend", "s", "--total", "9")["status"] == "RUNNING"
    cli.work()
    assert cli.json("sweeps", "list")[0]["trial_count"] == cli.json("sweeps", "show", "s")["completed"] == 9
    assert "already has 9 trials" in cli.run("sweeps", "extend", "s", "--total", "3", code=1).stderr
    for wrong in ([], ["--trials", "1", "--total", "10"]):
        assert "--trials" in cli.run("sweeps", "extend", "s", *wrong, code=2).stderr


def test_workers_of_the_command_run_it(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from jobtable.jobs.tasks import task\n\n@task\ndef f(x):\n    return 2 * x\n")
    (tmp_path / "mine.yaml").write_text("task: mine:f\nspace: {x: [3, 1, 2]}\nsampler: grid\n")
    printed = cli.run("sweeps", "run", "mine.yaml", "--workers", "1").stdout
    assert "3 completed of 3" in printed
    assert "objective = 2 (trial 1)" in printed


def test_why_a_sweep_fails_is_said(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("task: nowhere:train\ntrials: 1\nspace: {x: [1]}\n")
    printed = cli.run("sweeps", "run", "none.yaml", "--workers", "1", "--inline", code=5).stdout
    assert "nowhere cannot be imported" in printed


@pytest.mark.parametrize(
    ("text", "code", "complaint"),
    [
        ("task: a:b\nspace: {x: [1]}\n", 1, "does not end by itself"),
        ("task: nowhere:train\ntrials: 1\nspace: {x: [1]}\n", 1, "nowhere cannot be imported"),
    ],
)
def test_what_cannot_be_run_is_said(cli: CommandLine, tmp_path: Path, text: str, code: int, complaint: str) -> None:
    (tmp_path / "sweep.yaml").write_text(text)
    assert complaint in cli.run("sweeps", "run", "sweep.yaml", "--workers", "1", code=code).stderr


def test_an_unknown_sweep_is_not_found(cli: CommandLine) -> None:
    cli.make_store()
    for command in (["show"], ["best"], ["export"], ["stop"], ["resume"], ["extend", "--total", "9"]):
        said = cli.run("sweeps", *command, "nothing", code=3).stderr
        assert said == "Error: there is no sweep nothing; `jobtable sweeps list` lists them\n"


def test_the_live_table_shows_what_is_best_and_what_was_reported_last() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        quick = parse_sweep(KILLED.replace("0.03", "0").replace(":train", ":descend"), "text", name="[b]bold[/b]")
        finished = finish(driver, quick)
        sweeps = Sweeps(driver.jobs)
        console = Console(record=True, width=120, file=io.StringIO())
        console.print(drawn(sweeps, sweeps.get_progress("s")))
        shown = console.export_text()
        assert finished.best is not None
        assert "killed  COMPLETED" in shown
        assert [line.strip() for line in shown.splitlines() if line.strip() in ("best", "latest reports")] == [
            "best",
            "latest reports",
        ]
        assert f"{finished.best.value:.6g}" in shown
        assert params_text(finished.best.params) in shown
        assert "epoch 9" in shown
        assert shown.count("epoch") == len(set(re.findall(r"^ +(\d+) .* epoch", shown, re.MULTILINE)))


def test_ctrl_c_gives_trials_back_and_a_resumed_sweep_goes_on(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(KILLED.replace("trials: 12", "trials: 4"))
    url = f"file:{tmp_path / 'jobs.db'}"
    command = ("sweeps", "run", str(tmp_path / "long.yaml"), "--id", "s", "--workers", "2", "--store", url)
    process = start(*command, held_from=0)
    jobs = open_jobs(url)
    sweeps = Sweeps(jobs)
    wait_for(lambda: jobs.queries.list_metric("s", "loss").first() is not None, process)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=240)
    assert process.returncode == 130
    statuses = {job.status for job in jobs.queries.list_unfinished_children("s")}
    assert statuses <= {Status.PENDING, Status.INTERRUPTED}
    assert sweeps.get_progress("s").open > 0
    jobs.store.close()
    second = start("sweeps", "resume", "s", "--workers", "2", "--store", url)
    second.communicate(timeout=240)
    assert second.returncode == 0


def test_workers_end_with_a_command_that_is_killed_and_give_their_trials_back(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(KILLED.replace("trials: 12", "trials: 4"))
    url = f"file:{tmp_path / 'jobs.db'}"
    command = ("sweeps", "run", str(tmp_path / "long.yaml"), "--id", "s", "--workers", "2", "--store", url)
    process = start(*command, held_from=0)
    jobs = open_jobs(url)
    wait_for(lambda: jobs.queries.list_metric("s", "loss").first() is not None, process)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 240
    while len(list(jobs.queries.list_instances_by_status(InstanceStatus.STOPPED))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    statuses = {job.status for job in jobs.queries.list_unfinished_children("s")}
    assert statuses <= {Status.PENDING, Status.INTERRUPTED}
    jobs.store.close()


def decisions(trials: list[TrialResult]) -> list[Any]:
    return [(trial.number, trial.params, trial.status, trial.value) for trial in trials]


def test_a_sweep_that_was_killed_comes_to_the_same(tmp_path: Path) -> None:
    """All processes are killed in the middle; another command goes on. What comes of it is what comes undisturbed."""
    (tmp_path / "killed.yaml").write_text(KILLED)
    with Store(EmbeddedBackend(None)) as store:
        quick = parse_sweep(KILLED.replace("0.03", "0").replace(":train", ":descend"), "text", name="killed")
        expected = finish(Driver.on(store), quick, random=Random(1))
    url = f"file:{tmp_path / 'jobs.db'}"
    options = ["--workers", "2", "--store", url]
    first = start("sweep", "run", str(tmp_path / "killed.yaml"), "--id", "s", *options, held_from=6)
    jobs = open_jobs(url)
    sweeps = Sweeps(jobs)

    def is_under_way() -> bool:
        if jobs.store.find(JobGates.key(job_id="s")) is None:
            return False
        progress = sweeps.get_progress("s")
        return progress.completed + progress.stopped == 6

    wait_for(is_under_way, first)
    kill_with_workers(first)
    first.communicate()
    assert sweeps.get_progress("s").status is Status.RUNNING
    for job in list(jobs.queries.list_jobs_by_status(Status.RUNNING)):
        if has_lease(job):  # nobody needs to wait for the end of a lease that a busy machine would keep
            jobs.store.update(Job.key(job_id=job.job_id), Job.lease_seconds.set(1.0))
    second = start("sweeps", "resume", "s", "--json", *options)
    printed, said = second.communicate(timeout=240)
    assert second.returncode == 0, said
    assert json.loads(printed)["status"] == "COMPLETED"
    assert decisions(list(sweeps.list_trials("s"))) == decisions(expected.trials)
    jobs.store.close()


def start(*arguments: str, held_from: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(JOBTABLE), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | ({} if held_from is None else {HELD_FROM: str(held_from)}),
        start_new_session=True,
    )


def kill_with_workers(process: subprocess.Popen[str]) -> None:
    """Kill a command, and first its workers, which would otherwise see that it is gone and end in order."""
    workers = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True)
    for worker in workers.stdout.split():
        os.kill(int(worker), signal.SIGKILL)
    process.kill()


def wait_for(is_so: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 240
    while not is_so():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
