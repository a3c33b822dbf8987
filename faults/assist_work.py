"""What the experiment with models runs: the service's replies, and a task that asks it."""

from __future__ import annotations

import hashlib
import random

from tests.assist.killed_asking import ask_everything, settings_for

from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import task
from jobtable.testing.assist import Question, Reply, Trouble, failing

_CHANCE = random.Random(1)


def reply(question: Question) -> Reply:
    """Answer slowly, fail now and then, and answer some questions with what is not JSON."""
    chance = _CHANCE.random()
    if chance < 0.1:
        return failing(_CHANCE.choice([Trouble.RATE_LIMITED, Trouble.BROKEN, Trouble.OVERLOADED]), retry_after=0.05)
    delay = _CHANCE.uniform(0, 0.2)
    is_first = len(question.messages) == 1
    if question.schema is not None and is_first and hashlib.sha256(question.prompt.encode()).digest()[0] % 2:
        return Reply("not JSON", delay_seconds=delay)
    return Reply(delay_seconds=delay)


@task
def ask(job: JobContext, openai_url: str) -> dict[str, object]:
    """Ask for a text, an object and vectors."""
    return ask_everything(job, settings_for(openai_url))
