"""An analysed conversation, for the tests of pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.web.world import MARKUP

from jobtable.app import Services
from jobtable.systems.conversations.conversation_runs import ConversationRuns

MISSING: list[str] = []
"""Pages of what does not exist."""


def fill(services: Services, folder: Path) -> None:
    """Start what the worker of the world then runs."""
    services.get(ConversationRuns).start("bg2018", *_export(), user="grace")


def _export() -> tuple[bytes, bytes]:
    topics = ["the park needs more trees", "buses should run at night", "schools want new roofs"]
    comments = ["comment-id,comment-body,moderated"]
    comments += [f'{n},"{topics[n % 3]} {n} {MARKUP if n == 5 else ""}",1' for n in range(30)]
    votes = ["comment-id,voter-id,vote"]
    votes += [f"{n},{voter},{1 if (n + voter) % 3 else -1}" for n in range(30) for voter in range(20)]
    return "\n".join(comments).encode(), "\n".join(votes).encode()


def made(services: Services) -> dict[str, str]:
    """The ids of what was made, by name."""
    return {"conversation": "bg2018"}


def paths(made: Mapping[str, str]) -> list[str]:
    """Every page, with something on it."""
    return ["/conversations", f"/conversations/{made['conversation']}"]


def tables(made: Mapping[str, str]) -> list[str]:
    """Pages with tables that fit every width."""
    return ["/conversations"]


def owners(made: Mapping[str, str]) -> dict[str, set[str | None]]:
    """Where the pages of the jobs lead, by the type of the job."""
    return {"conversation": {f"/conversations/{made['conversation']}"}}
