"""The pages in a browser, and a server that answers late, each time as late as it happens: nothing is lost."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobtable.app import Services
from jobtable.settings import Settings
from jobtable.web.application import create_app

_LATEST_SECONDS = 1.0
_SHARE = 0.4
"""Of the requests that are late, and of the answers."""


def run(trials: int = 3) -> Iterator[dict[str, object]]:
    """Run the tests of the pages so many times."""
    for _ in range(trials):
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", __name__, "tests/web"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        passed = re.search(r"(\d+) passed", done.stdout)
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        if done.returncode:
            print(done.stdout, done.stderr, file=sys.stderr)
        violations = max(len(failed), int(done.returncode != 0))
        yield {"fault": "late_answers", "violations": violations, "passed": int(passed[1]) if passed else 0}


class LateAnswers:
    """A server before which some requests wait, and behind which some answers do."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, sooner or later."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_late(message: Message) -> None:
            if message["type"] == "http.response.start":
                await _wait()
            await send(message)

        await _wait()
        await self._app(scope, receive, send_late)


async def _wait() -> None:
    if random.random() < _SHARE:
        await asyncio.sleep(random.random() * _LATEST_SECONDS)


def pytest_configure() -> None:
    """Let the servers of the tests answer late."""

    def create_late(services: Services, settings: Settings) -> FastAPI:
        app = create_app(services, settings)
        app.add_middleware(LateAnswers)
        return app

    pytest.MonkeyPatch().setattr("tests.web.conftest.create_app", create_late)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the tests, leave those with a browser."""
    items[:] = [each for each in items if isinstance(each, pytest.Function) and "browser" in each.fixturenames]
