"""SIGKILL at every point of a call: no answer is lost, none is paid twice, and all totals equal a recount."""

from __future__ import annotations

import json
import multiprocessing
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtable.app import Services
from jobtable.assist.entities import CallStatus
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import main
from jobtable.objects import key_parts
from jobtable.testing.assist import AssistProcess, Charge, Reply
from tests.assist.killed_asking import ask_everything, ask_until_killed, settings_for
from tests.assist.ledgers import calls_of, check_totals, claim, held_job
from tests.running import NEVER

_STATUSES = [CallStatus.ANSWERED, CallStatus.ANSWERED, CallStatus.ANSWERED, CallStatus.REFUSED]


@pytest.fixture
def service() -> Iterator[AssistProcess]:
    with AssistProcess() as started:
        yield started


@pytest.fixture(params=["embedded", "DynamoDB Local"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A store and an object store that other processes can open."""
    url, objects_url = f"file:{tmp_path / 'store.db'}", f"file:{tmp_path / 'objects'}"
    if request.param == "DynamoDB Local":
        endpoint = request.getfixturevalue("dynamodb_local_url").replace("http://", "dynamodb+http://a:b@")
        url = f"{endpoint}?prefix=t{uuid.uuid4().hex[:12]}-"
    return url, objects_url


def test_a_process_that_is_killed_anywhere_pays_for_no_answer_twice(
    tmp_path: Path, urls: tuple[str, str], service: AssistProcess
) -> None:
    was_killed, points = True, 0
    with Services.open(*urls) as services:
        services.store.tables.create(main)
        jobs = services.engine
        while was_killed:
            before = len(service.charges)
            service.script(Reply(f"because {points}"), Reply("not JSON"), Reply('{"label": "spam"}'))
            lease = held_job(jobs, job_id=f"j-{points}", max_cost=1)
            was_killed = run(urls, service, lease, points, tmp_path / "answers") != 0
            lease = taken_over(jobs, lease) if was_killed else lease
            answers = ask_everything(JobContext(jobs, lease, flush_seconds=NEVER), settings_for(service.openai_url))
            assert was_killed or answers == json.loads((tmp_path / "answers").read_text())
            assert (answers["text"], answers["label"]) == (f"because {points}", "spam")
            check_calls(jobs, lease.job.job_id, service.charges[before:])
            check_totals(jobs)
            jobs.finish(lease, Outcome.completed())
            points += 1
        assert points > 20, "there are fewer points than a process passes"
        for found in services.objects.list("jobs"):
            if key_parts(found.key)[2] == "assist":
                assert services.is_referenced(found.key), found.key
        services.store.tables.delete(main)


def run(urls: tuple[str, str], service: AssistProcess, lease: Lease, points: int, answers: Path) -> int:
    """Ask in a process of its own; return how it ended."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.assist.killed_asking", "openai"])
    process = context.Process(target=ask_until_killed, args=(urls, service.openai_url, lease, points, answers))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode


def taken_over(jobs: Jobs, lease: Lease) -> Lease:
    """Return the lease of another worker on the job of a dead one."""
    assert jobs.interrupt_lost(jobs.queries.get_job(lease.job.job_id)) is not None
    return claim(jobs, lease.job.queue_name, instance_id="w-2")


def check_calls(jobs: Jobs, job_id: str, charges: list[Charge]) -> None:
    """Each call was charged once, and its record says what the service put on the bill."""
    calls = calls_of(jobs, job_id)
    assert sorted(call.status for call in calls) == _STATUSES
    assert len({charge.key for charge in charges}) == len(charges) == len(calls)
    charged = sorted((charge.kind, charge.tokens_in, charge.tokens_out) for charge in charges)
    assert sorted((call.kind, call.tokens_in, call.tokens_out) for call in calls) == charged
    assert all(call.cost_nanodollars > 0 and call.reserved_nanodollars == 0 for call in calls)
