"""What tests of asking share: a job that a worker holds, and settings that name a scripted server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from jobtable.assist.assist_settings import AssistSettings, ProviderSettings
from jobtable.assist.entities import AssistCall, CallStatus
from jobtable.assist.job_assistant import JobAssistant
from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import main
from jobtable.jobs.submit.definition import NewJob
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.testing import FakeClock
from jobtable.testing.assist import AssistServer
from tests.running import NEVER

_NUMBERS = count(1)
NOBODY = AssistSettings()


@contextmanager
def open_jobs() -> Iterator[Jobs]:
    """An engine on the embedded database, whose pauses take no time."""
    clock = FakeClock()
    with Store(EmbeddedBackend(None, clock=clock), clock=clock) as store:
        store.tables.create(main)
        yield Jobs(store, MemoryObjectStore(clock))


def settings_for(server: AssistServer, **more: Any) -> AssistSettings:
    """Settings with one provider: the server, over OpenAI's protocol."""
    usual = {"kind": "openai", "base_url": server.openai_url, "model": "a-model", "embedding_model": "a-vector-model"}
    return AssistSettings(provider="main", providers={"main": ProviderSettings(**{**usual, **more})})


def claim_job(jobs: Jobs, **given: Any) -> Lease:
    """Submit a job and claim it."""
    queue = f"q-{next(_NUMBERS)}"
    jobs.submit(NewJob(**{"name": "asks", "task": "m:f", "max_attempts": 3, "queue": queue, **given}))
    return claim_again(jobs, queue)


def claim_again(jobs: Jobs, queue: str | None) -> Lease:
    """Claim the only job of a queue."""
    assert queue is not None
    (lease,) = jobs.claim(queue, limit=1, instance_id="w-1", lease_seconds=30)
    return lease


def context_of(jobs: Jobs, lease: Lease, should_stop: Callable[[], bool] = lambda: False) -> JobContext:
    return JobContext(jobs, lease, should_stop=should_stop, flush_seconds=NEVER)


def assistant(jobs: Jobs, settings: AssistSettings, lease: Lease | None = None, **given: Any) -> JobAssistant:
    """What a task asks, in a job of its own or under a lease."""
    return JobAssistant(context_of(jobs, lease or claim_job(jobs, **given)), settings)


def recorded_calls(jobs: Jobs) -> list[AssistCall]:
    """Every call of every job, in the order in which they began."""
    return sorted(jobs.store.scan(AssistCall), key=lambda call: call.started_at)


class Label(BaseModel):
    label: Literal["spam", "ham"]
    score: Annotated[float, Field(ge=0, le=1)]


VALID = '{"label": "spam", "score": 0.5}'
SPAM = Label(label="spam", score=0.5)


def statuses(jobs: Jobs) -> list[CallStatus]:
    """How far every call of every job is, in their order."""
    return [call.status for call in recorded_calls(jobs)]
