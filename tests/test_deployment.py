"""The page about deployment is true: its settings work, its costs are what jobs cost, and its parts work together."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import httpx
import pytest

from jobtable import connect
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import main
from jobtable.jobs.submit.definition import NewJob
from jobtable.settings import Settings
from jobtable.store.capacity import Units
from jobtable.web.api.tables import dollars_for
from tests.running import jobs_in_memory

PAGE = (Path(__file__).parent.parent / "docs" / "guides" / "deploy.md").read_text()
COUNT = 100
JOBTABLE = [sys.executable, "-m", "jobtable"]
TASK = """
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import task


@task
def train(job: JobContext) -> int:
    job.artifact("model.txt", b"weights")
    return 42
"""


def test_the_settings_are_settings() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        assert Settings.model_validate(tomllib.loads(block)).store.startswith("dynamodb://")


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with connect("memory:") as store:
        store.tables.create(main)
        yield jobs_in_memory(store)


def submit(jobs: Jobs) -> None:
    for _ in range(COUNT):
        jobs.submit(NewJob(name="job", task="tasks:one"))


def run(jobs: Jobs) -> Lease:
    """Run all jobs, one at a time; gives the last one's lease."""
    leases: list[Lease] = []
    for number in range(COUNT):
        leases += jobs.claim("default", limit=1, instance_id="worker", lease_seconds=30)
        jobs.finish(leases[-1], Outcome.completed(number))
    return leases[-1]


def store_metrics(jobs: Jobs, lease: Lease) -> None:
    with JobContext(jobs, lease, flush_seconds=60) as context:
        for step in range(COUNT):
            context.metric("loss", 1 / (step + 1), step=step)


def store_lines(jobs: Jobs, lease: Lease) -> None:
    with JobContext(jobs, lease, flush_seconds=60) as context:
        for step in range(COUNT):
            context.log(f"line {step} of a log that says something")


def told(act: str) -> tuple[int, int, int]:
    """Read units, write units and dollars for a million, as the page has them."""
    found = re.search(rf"^\| {act}.*\| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert found, act
    return int(found[1]), int(found[2]), int(found[3])


def check(act: str, spent: dict[str, Units]) -> None:
    read, write, dollars = told(act)
    units = sum(spent.values(), Units())
    assert (units.read / COUNT, units.write / COUNT) == pytest.approx((read, write), abs=0.6), act
    assert 1e6 * dollars_for(Units(read=read, write=write)) == pytest.approx(dollars, abs=0.6), act


def test_the_costs_are_what_jobs_cost(jobs: Jobs) -> None:
    meter = jobs.store.capacity
    with meter.measure() as submitting:
        submit(jobs)
    with meter.measure() as running:
        lease = run(jobs)
    with meter.measure() as measuring:
        store_metrics(jobs, lease)
    with meter.measure() as logging:
        store_lines(jobs, lease)
    check("submit a job", submitting)
    check("run it", running)
    check("store a metric", measuring)
    check("store a log line", logging)


class Deployment:
    """What the page deploys, on DynamoDB Local and an S3 server: every process gets its settings by its environment."""

    def __init__(self, folder: Path, dynamodb_url: str, s3_url: str) -> None:
        self._folder = folder
        address = dynamodb_url.removeprefix("http://")
        bucket = f"deployed-{uuid.uuid4()}"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("JOBTABLE_", "AWS_"))},
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "JOBTABLE_STORE": f"dynamodb+http://{address}?prefix=p{uuid.uuid4().hex[:8]}-",
            "JOBTABLE_OBJECTS": f"s3://{bucket}?region=us-east-1&endpoint={s3_url}",
        }
        client = boto3.client(
            "s3", endpoint_url=s3_url, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        client.create_bucket(Bucket=bucket)
        client.close()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [*JOBTABLE, *arguments], cwd=self._folder, env=self.environment, capture_output=True, text=True, check=False
        )

    def command(self, *arguments: str) -> str:
        """Run a command that ends well; gives what it printed."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def server(self, *arguments: str) -> Iterator[str]:
        """The server while the block runs; gives its address."""
        process = subprocess.Popen(
            [*JOBTABLE, "up", "--no-worker", "--port", "0", *arguments],
            cwd=self._folder,
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            greeting = process.stderr.readline()
            assert "Jobtable is at" in greeting, greeting + process.stderr.read()
            yield greeting.split()[3]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=240)


def test_server_and_worker_share_nothing_but_tables_and_bucket(
    tmp_path: Path, dynamodb_local_url: str, s3_url: str
) -> None:
    deployed = Deployment(tmp_path, dynamodb_local_url, s3_url)
    systems = [f"--system={name}" for name in ("jobs", "journeys", "albums")]
    deployed.command("tables", "create", *systems)
    assert deployed.command("tables", "diff", *systems, "--json").strip() == "[]"
    token = deployed.command("tokens", "create", "--role", "full", "--name", "alice", "--expires", "1h").split()[-1]
    (tmp_path / "training.py").write_text(TASK)
    deployed.environment["JOBTABLE_REQUIRE_TOKEN"] = "true"
    with deployed.server() as address:
        through = ("--server", address, "--token", token)
        job_id = deployed.command(*through, "jobs", "submit", "--task", "training:train").strip()
        deployed.command("worker", "--until-empty")
        shown = json.loads(deployed.command(*through, "jobs", "show", job_id, "--json"))
        files = json.loads(deployed.command(*through, "jobs", "artifacts", job_id, "--json"))
        page = httpx.get(f"{address}/jobs/{job_id}", headers={"Authorization": f"Bearer {token}"}, timeout=120)
        assert httpx.get(f"{address}/api/v1/jobs", timeout=120).status_code == 401
    assert (shown["job"]["status"], shown["job"]["result"]) == ("COMPLETED", 42)
    assert [(file["name"], file["size_bytes"]) for file in files] == [("model.txt", 7)]
    assert (page.status_code, "model.txt" in page.text) == (200, True)


def test_a_worker_without_its_bucket_takes_no_jobs(tmp_path: Path, dynamodb_local_url: str, s3_url: str) -> None:
    deployed = Deployment(tmp_path, dynamodb_local_url, s3_url)
    deployed.command("tables", "create", "--system=jobs")
    (tmp_path / "training.py").write_text(TASK)
    job_id = deployed.command("jobs", "submit", "--task", "training:train").strip()
    deployed.environment["JOBTABLE_OBJECTS"] = f"s3://no-such-bucket?region=us-east-1&endpoint={s3_url}"
    ended = deployed.run("worker", "--until-empty")
    assert ended.returncode == 1
    assert "Error: cannot list jobs/ in s3://no-such-bucket/" in ended.stderr
    assert json.loads(deployed.command("jobs", "show", job_id, "--json"))["job"]["status"] == "PENDING"
