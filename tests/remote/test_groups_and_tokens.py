"""Groups and tokens through a server, and who may not use it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.remote.conftest import json_far, run_far
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.app import ServerServices, Services
from jobtable.errors import (
    AccessDenied,
)
from jobtable.jobs.submit.definition import DependsOn, NewJob, ParentWaits


def test_groups_are_opened_and_sealed(remote: Services) -> None:
    jobs = remote.jobs
    group = jobs.open_group(NewJob(name="group"))
    child = jobs.submit(
        NewJob(name="child", task="m:f", parent_job_id=group.job_id, parent_waits=ParentWaits(), queue="group")
    )
    other = jobs.submit(NewJob(name="other", task="m:f", queue="group"))
    edge = jobs.add_dependency(child.job_id, DependsOn(other.job_id))
    assert edge.dependency_job_id == other.job_id
    assert jobs.seal(group.job_id).is_awaiting


def test_tokens_are_made_and_revoked(served: Served, remote: Services) -> None:
    made = remote.tokens.create(Role.READ, name="dashboards", expires_in=timedelta(days=1))
    assert (made.record.created_by, made.record.name) == ("full", "dashboards")
    with ServerServices(served.url, made.text) as reader:
        list(reader.jobs.queries.list_queues())
    assert remote.tokens.revoke(made.record.token_id).revoked_at is not None
    with pytest.raises(AccessDenied):
        ServerServices(served.url, made.text)


@pytest.mark.parametrize("role", [Role.READ, Role.WORKER])
def test_other_roles_start_nothing(served: Served, role: Role) -> None:
    client = served.client(role)
    for path in ("jobs", "job-groups", "job-batches", "queues", "jobs/J/retry"):
        answer = client.post(f"/api/v1/{path}", json={})
        assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")


def test_a_token_is_made_and_revoked(served: Served) -> None:
    made = json_far(served, "tokens", "create", "--role", "read", "--expires", "1d")
    assert made["expires_at"] is not None
    run_far(served, "tokens", "revoke", made["token_id"], "--yes")
