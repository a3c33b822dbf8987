"""`jobtable tokens`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from jobtable.access.entities import Role
from jobtable.access.tokens import Tokens
from jobtable.app import Services
from jobtable.cli.tokens import app


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"file:{tmp_path / 'jobs.db'}"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_a_token_is_made_listed_and_revoked(store_url: str) -> None:
    made = invoke("create", "--role", "read", "--expires", "30d", "--name", "dashboards", "--store", store_url)
    assert made.exit_code == 0, made.output
    text = made.stdout.strip()
    with Services.open(store_url) as services:
        record = Tokens(services.engine.store).find_valid(text)
        assert record is not None
        assert (record.role, record.name) == (Role.READ, "dashboards")
        assert record.expires_at is not None
        assert (record.expires_at - record.created_at).days == 30
    (listed,) = json.loads(invoke("list", "--json", "--store", store_url).stdout)
    assert (listed["token_id"], listed["role"]) == (record.token_id, "read")
    assert "secret_sha256" not in listed
    assert invoke("revoke", record.token_id, "--yes", "--store", store_url).exit_code == 0
    assert "revoked" in invoke("list", "--store", store_url).stdout
    with Services.open(store_url) as services:
        assert Tokens(services.engine.store).find_valid(text) is None


@pytest.mark.parametrize("expires", ["30", "d", "30x", "-1d", "1.5h", ""])
def test_a_time_that_is_none_is_refused(store_url: str, expires: str) -> None:
    refused = invoke("create", "--role", "read", "--expires", expires, "--store", store_url)
    assert refused.exit_code == 2
