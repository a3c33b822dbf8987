"""A process that asks models for a job, and that kills itself with SIGKILL at a chosen point of its calls."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from jobtable.app import open_jobs
from jobtable.assist.assist_settings import AssistSettings, ProviderSettings
from jobtable.assist.job_assistant import JobAssistant
from jobtable.assist.openai_provider import OpenAiProvider
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.context import JobContext
from jobtable.store.backend import Request, Response

_WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
_PROVIDER = {"kind": "openai", "model": "gpt-4.1-mini", "embedding_model": "text-embedding-3-small"}


class Label(BaseModel):
    label: str


def settings_for(openai_url: str) -> AssistSettings:
    provider = ProviderSettings.model_validate({**_PROVIDER, "base_url": openai_url})
    return AssistSettings(provider="main", providers={"main": provider})


def ask_everything(job: JobContext, settings: AssistSettings) -> dict[str, Any]:
    """Ask three questions: for a text, for an object, and for vectors."""
    assistant = JobAssistant(job, settings)
    return {
        "text": assistant.ask("say", f"why, {job.job_id}?").value,
        "label": assistant.ask("label", "what is it?", output=Label).value.label,
        "vectors": assistant.embed([f"{job.job_id} {name}" for name in ("one", "two")]).vectors,
    }


class Countdown:
    """Kills this process when so many points were passed."""

    def __init__(self, points: int) -> None:
        self._left = points

    def pass_point(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def before(self, act: Callable[..., Any]) -> Callable[..., Any]:
        """Return the same act with a point before it, which is one after the last act too."""

        def acting(*given: Any, **named: Any) -> Any:
            self.pass_point()
            return act(*given, **named)

        return acting


class WatchedBackend:
    def __init__(self, backend: Any, countdown: Countdown) -> None:
        self._backend = backend
        self._writing = countdown.before(backend.execute)

    def execute(self, operation: str, request: Request) -> Response:
        answer: Response = (self._writing if operation in _WRITES else self._backend.execute)(operation, request)
        return answer

    def close(self) -> None:
        self._backend.close()


def ask_until_killed(urls: tuple[str, str], openai_url: str, lease: Lease, points: int, answers: Path) -> None:
    """Ask everything, and write the answers to a file unless this process dies after so many points."""
    countdown = Countdown(points)
    OpenAiProvider.chat = countdown.before(OpenAiProvider.chat)  # type: ignore[method-assign]  # in this process alone
    OpenAiProvider.embed = countdown.before(OpenAiProvider.embed)  # type: ignore[method-assign]
    with open_jobs(*urls) as jobs:
        jobs.store.backend = WatchedBackend(jobs.store.backend, countdown)
        jobs.objects.put = countdown.before(jobs.objects.put)  # type: ignore[method-assign]
        answers.write_text(
            json.dumps(ask_everything(JobContext(jobs, lease, flush_seconds=3600), settings_for(openai_url)))
        )
