"""The guide about people in the loop: its code runs, its machine asks, and its commands exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.inbox.asking_workflows import create, work

from jobtable.app import Services
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.entities import ExecutionStatus

GUIDE = (Path(__file__).parents[2] / "docs/guides/people.md").read_text()
ENDING = """
from jobtable.jobs import NewJob
from jobtable.inbox.entities import TaskStatus
from tests.running import run_jobs
job = services.engine.submit(NewJob(name="name", task="topics:name_topic", params={"number": 3}))
services.store.put(Topic(number=3, name="Topic 3"))
run_jobs(services.engine, "default")
made = services.inbox.get(services.engine.queries.get_job(job.job_id).result)
print(made.status, made.changes[0].before, made.changes[0].after, made.job_id == job.job_id)
services.close()
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_the_code_runs(tmp_path: Path) -> None:
    tasks, *program, durable = blocks("python")
    (tmp_path / "topics.py").write_text(tasks)
    (tmp_path / "example.py").write_text("".join([*program, ENDING, durable]))
    command = [sys.executable, "-c", "import sys; sys.path[:0] = ['.', sys.argv[1]]; import example", str(Path.cwd())]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "PENDING Topic 3 Parking True\n"), done.stderr


def test_the_machine_asks_and_goes_on() -> None:
    (state,) = blocks("json")
    ends = {"Ship": {"Type": "Succeed"}, "Keep": {"Type": "Succeed"}}
    with Services.open("memory:") as services:
        services.prepare_all()
        create(services.engine, {"StartAt": "Ask", "States": {"Ask": json.loads(state), **ends}})
        services.executions.start(services.machines.runnable("asking"), '{"order": "seven"}', "run", arns=Arns())
        work(services.engine)
        (task,) = services.inbox.list()
        assert (task.title, task.text) == ("Ship it?", "seven")
        services.inbox.answer(task.task_id, "yes")
        work(services.engine)
        assert services.executions.get("asking", "run").status is ExecutionStatus.SUCCEEDED
