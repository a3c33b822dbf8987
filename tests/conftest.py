"""Fixtures that every test may use, and the rule that nothing is skipped in CI."""

from __future__ import annotations

import gc
import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager

import hypothesis
import pytest

from jobtable.dynamodb.backend import DynamoDBBackend
from jobtable.embedded import EmbeddedBackend
from jobtable.store import Store
from jobtable.testing import servers

REQUIRE_ALL = os.environ.get("JOBTABLE_REQUIRE_ALL") == "1"

# No example is judged by the time that it, or drawing it, takes: machines are busy. In CI the same examples every
# time, so that a change is judged by itself; elsewhere new ones, to find what is new.
hypothesis.settings.register_profile(
    "jobtable",
    deadline=None,
    derandomize=REQUIRE_ALL or bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("jobtable")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and all programs that they start too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _served(name: str, server: AbstractContextManager[str]) -> Iterator[str]:
    """A server's address while it runs; where it cannot, the tests that need it are skipped, or fail in CI."""
    try:
        url = server.__enter__()
    except servers.ServerUnavailable as error:
        if REQUIRE_ALL:
            pytest.fail(f"{name} is required (JOBTABLE_REQUIRE_ALL=1) but cannot run: {error}")
        pytest.skip(f"{name} cannot run here: {error}")
    yield url
    server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def dynamodb_local_url() -> Iterator[str]:
    """The endpoint of a genuine DynamoDB Local, which all tests of this process share."""
    yield from _served("DynamoDB Local", servers.dynamodb_local())


@pytest.fixture(scope="session")
def dynamodb_local(dynamodb_local_url: str) -> Iterator[DynamoDBBackend]:
    """A backend on it, for all tests of this process: it takes longer to make one than most of them run."""
    backend = DynamoDBBackend(
        None, endpoint_url=dynamodb_local_url, access_key="a", secret_key="b", max_attempts=1, read_timeout=240
    )
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def own_dynamodb_local_url() -> Iterator[str]:
    """The endpoint of a DynamoDB Local for tests that empty it."""
    yield from _served("DynamoDB Local", servers.dynamodb_local())


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """The endpoint of a real S3 server."""
    yield from _served("the S3 server", servers.s3_server())


@pytest.fixture(params=["embedded", "DynamoDB Local"])
def each_store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store without tables, on each kind of backend in turn."""
    if request.param == "embedded":
        with Store(EmbeddedBackend(None)) as store:
            yield store
        return
    backend = request.getfixturevalue("dynamodb_local")
    store = Store(backend, prefix=f"t{uuid.uuid4().hex[:12]}-")
    yield store
    for name in backend.execute("ListTables", {})["TableNames"]:
        if name.startswith(store.prefix):
            backend.execute("DeleteTable", {"TableName": name})


def pytest_collection() -> None:
    """What is loaded from here on stays: looking for garbage in it took half of the time of collecting tests."""
    gc.disable()


def pytest_collection_finish() -> None:
    """All modules are loaded now, and stay: no collection of garbage looks through them again.

    So little is left to look through that it would be looked through after every few tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line each what was not run, and why."""
    reasons = {str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []) if report.longrepr}
    for reason in sorted(reasons):
        terminalreporter.write_line(f"NOT RUN: {reason.removeprefix('Skipped: ')}")
