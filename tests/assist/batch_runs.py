"""Batch jobs of tests: settings that name a scripted service, and a worker that waits by a fake clock."""

from __future__ import annotations

from pathlib import Path

from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.tasks import FailTask, StopTask, SuspendTask
from jobtable.testing import FakeClock
from jobtable.testing.assist import AssistProcess, AssistServer
from tests.running import run_task

SETTINGS = """
[assist]
provider = "there"
prices = "prices.toml"

[assist.providers.there]
kind = "openai"
base_url = "{url}"
model = "small"
embedding_model = "small"
"""
PRICES = """
date = 2026-11-01

[models.openai.small]
input = 1.0
output = 2.0
"""


def configure(server: AssistServer | AssistProcess, folder: Path) -> None:
    """Write the settings by which jobs of this folder ask a scripted service."""
    (folder / "jobtable.toml").write_text(SETTINGS.format(url=server.openai_url))
    (folder / "prices.toml").write_text(PRICES)


def run_once(jobs: Jobs) -> Job:
    """Run the job once, as a worker would, after its pause is over."""
    jobs.promote_due("default")
    (lease,) = jobs.claim("default", limit=1, instance_id="w", lease_seconds=30)
    try:
        outcome = Outcome.completed(run_task(jobs, lease))
    except SuspendTask as suspended:
        outcome = Outcome.suspended(suspended.until, suspended.message)
    except FailTask as failed:
        outcome = Outcome.failed(failed.message, retryable=False, result=failed.result)
    except StopTask as stopped:
        outcome = Outcome.stopped(stopped.message, stopped.result)
    return jobs.finish(lease, outcome)


def run_to_end(jobs: Jobs) -> Job:
    for _ in range(30):
        job = run_once(jobs)
        if job.is_final:
            return job
        if isinstance(jobs.clock, FakeClock):
            jobs.clock.advance(300)
    raise AssertionError("the batch job does not end")
