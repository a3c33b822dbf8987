"""Fixtures that every test may use, and the rule that nothing is skipped in CI."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from jobtable.dynamodb.backend import DynamoDBBackend
from jobtable.embedded import EmbeddedBackend
from jobtable.store import Store
from jobtable.testing import servers

REQUIRE_ALL = os.environ.get("JOBTABLE_REQUIRE_ALL") == "1"


def _needs(name: str, reason: str) -> None:
    if REQUIRE_ALL:
        pytest.fail(f"{name} is required (JOBTABLE_REQUIRE_ALL=1) but cannot run: {reason}")
    pytest.skip(f"{name} cannot run here: {reason}")


@pytest.fixture(scope="session")
def dynamodb_local_url() -> Iterator[str]:
    """The endpoint of a genuine DynamoDB Local."""
    try:
        running = servers.dynamodb_local()
        url = running.__enter__()
    except servers.ServerUnavailable as error:
        _needs("DynamoDB Local", str(error))
        raise
    yield url
    running.__exit__(None, None, None)


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """The endpoint of a real S3 server."""
    try:
        running = servers.s3_server()
        url = running.__enter__()
    except servers.ServerUnavailable as error:
        _needs("the S3 server", str(error))
        raise
    yield url
    running.__exit__(None, None, None)


@pytest.fixture(params=["embedded", "DynamoDB Local"])
def each_store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store without tables, on each kind of backend in turn."""
    if request.param == "embedded":
        with Store(EmbeddedBackend(None)) as store:
            yield store
        return
    url = request.getfixturevalue("dynamodb_local_url")
    backend = DynamoDBBackend(None, endpoint_url=url, access_key="a", secret_key="b", max_attempts=1)
    with Store(backend, prefix=f"t{uuid.uuid4().hex[:12]}-") as store:
        yield store
        for name in backend.execute("ListTables", {})["TableNames"]:
            if name.startswith(store.prefix):
                backend.execute("DeleteTable", {"TableName": name})


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line each what was not run, and why."""
    reasons = {str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []) if report.longrepr}
    for reason in sorted(reasons):
        terminalreporter.write_line(f"NOT RUN: {reason.removeprefix('Skipped: ')}")
