"""Executions of state machines through a server: every verb does what it does at the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.remote import machines
from tests.remote.functions import driving, wait_until
from tests.remote.test_workflows import ARNS, same_error
from tests.web.conftest import Served
from typer.testing import CliRunner

from jobtable.access.entities import Role
from jobtable.app import Services
from jobtable.cli.main import app
from jobtable.cli.output import ExitCode
from jobtable.errors import AlreadyExistsError, ConflictError, NotFoundError, TaskClosedError, TokenRefusedError
from jobtable.workflows.asl.catalogue.machine_verbs import AliasRoute, MachineChange, MachineDraft
from jobtable.workflows.asl.entities import Execution, ExecutionStatus, MachineType
from jobtable.workflows.asl.execution.execution_reads import read_input, read_output
from jobtable.workflows.asl.verbs import RunnableMachine
from jobtable.workflows.table_and_queues import QUEUES


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server with the machines of the tests."""
    made = Served(require_token=True)
    for name in ("ADD", "WAIT", "PASS", "PACK", "FAIL", "MAP"):
        made.services.machines.create(MachineDraft(name.lower(), getattr(machines, name)), arns=ARNS)
    fast = MachineDraft("fast", machines.PASS, type=MachineType.EXPRESS)
    made.services.machines.create(fast, arns=ARNS)
    yield made
    made.stop()


def machine(services: Services, name: str, qualifier: str | None = None) -> RunnableMachine:
    return services.machines.runnable(name, qualifier)


def ended(services: Services, execution: Execution) -> Execution:
    """The execution after its end."""
    wait_until(lambda: services.executions.get(execution.machine, execution.name).stopped_at is not None)
    return services.executions.get(execution.machine, execution.name)


def test_an_execution_lives_its_whole_life_through_a_server(served: Served, remote: Services) -> None:
    here, there = served.services.executions, remote.executions
    started = there.start(machine(remote, "add"), '{"a": 1, "b": 2}', "sum", arns=ARNS, trace="Root=1")
    assert started == here.get("add", "sum") == there.get("add", "sum")
    assert started == there.start(machine(remote, "add"), '{"a": 1, "b": 2}', "sum", arns=ARNS)
    taken = same_error(
        lambda services: services.executions.start(machine(services, "add"), "{}", "sum", arns=ARNS),
        *(served.services, remote),
    )
    assert type(taken) is AlreadyExistsError
    with driving(served.services):
        after = ended(remote, started)
    assert after == here.get("add", "sum")
    assert (after.status, after.trace_header) == (ExecutionStatus.SUCCEEDED, "Root=1")
    assert read_input(after, remote.objects) == '{"a": 1, "b": 2}'
    assert read_output(after, remote.objects) == read_output(after, served.services.objects) == "3"
    for newest_first in (False, True):
        events = list(there.history("add", "sum", newest_first=newest_first))
        assert events == list(here.history("add", "sum", newest_first=newest_first)) != []
    assert list(there.list("add")) == list(here.list("add")) == [after]
    assert list(there.list("add", status=ExecutionStatus.FAILED)) == []
    assert there.delete("add", "sum") > 0
    missing = same_error(lambda services: services.executions.get("add", "sum"), served.services, remote)
    assert type(missing) is NotFoundError


def test_data_too_large_for_an_item_come_through_the_server(served: Served, remote: Services) -> None:
    large = json.dumps({"text": "ä" * 30_000})
    with driving(served.services):
        after = ended(remote, remote.executions.start(machine(remote, "pass"), large, arns=ARNS))
    assert after.input_object is not None
    assert read_input(after, remote.objects) == large
    client = served.client(Role.READ)
    data = client.get(f"/api/v1/machines/pass/executions/{after.name}/data").json()
    assert data == {"input": large, "output": '{"done":true}'}


def test_an_execution_is_stopped_and_redriven_through_a_server(served: Served, remote: Services) -> None:
    started = remote.executions.start(machine(remote, "wait"), "{}", "long", arns=ARNS)
    with driving(served.services):
        refused = same_error(lambda services: services.executions.delete("wait", "long"), served.services, remote)
        assert isinstance(refused, ConflictError)
        stopped = remote.executions.stop("wait", "long", error="Enough", cause="it is late")
        assert stopped == served.services.executions.get("wait", "long")
        assert (stopped.status, stopped.error) == (ExecutionStatus.ABORTED, "Enough")
        wait_until(lambda: remote.jobs.queries.get_job(stopped.job_id).is_final)
        redriven = remote.executions.redrive("wait", "long")
        assert (redriven.status, redriven.redrive_count) == (ExecutionStatus.RUNNING, 1)
        remote.executions.stop("wait", started.name)
        failed = ended(remote, remote.executions.start(machine(remote, "fail"), "{}", arns=ARNS))
    assert (failed.status, failed.error, failed.cause) == (ExecutionStatus.FAILED, "Lost", "nobody knows")


def test_a_version_and_an_alias_are_what_is_started(served: Served, remote: Services) -> None:
    remote.machines.create(MachineDraft("chosen", machines.PASS), arns=ARNS, publish=True)
    remote.machines.update("chosen", MachineChange(machines.WAIT), publish=True)
    remote.machines.create_alias("chosen", "live", (AliasRoute(1, 50), AliasRoute(2, 50)))
    for _ in range(8):
        runnable = machine(remote, "chosen", "live")
        started = remote.executions.start(runnable, "{}", arns=ARNS)
        assert (started.qualifier, started.version) == ("live", runnable.version)
        version = served.services.machines.get_version("chosen", int(runnable.version or 0))
        assert started.definition_sha256 == version.definition_sha256
        remote.executions.stop("chosen", started.name)


def test_an_express_machine_is_run_while_its_caller_waits(served: Served, remote: Services) -> None:
    result = remote.executions.run_express(machine(remote, "fast"), '{"a": 1}', "now", arns=ARNS)
    assert (result.execution.status, result.execution.output) == (ExecutionStatus.SUCCEEDED, '{"done":true}')
    assert (result.execution.machine, result.execution.name, result.billed_mb) == ("fast", "now", 64)
    with pytest.raises(ConflictError, match="state machine pass is not express"):
        remote.executions.run_express(machine(remote, "pass"), "{}", arns=ARNS)


def test_a_worker_with_a_token_of_its_own_takes_and_answers_tasks(served: Served, remote: Services) -> None:
    remote.activities.create("pack-orders", arns=ARNS)
    started = [remote.executions.start(machine(remote, "pack"), '{"order":7}', arns=ARNS) for _ in range(2)]
    worker = served.client(Role.WORKER)

    def post(path: str, **body: object) -> Any:
        answer = worker.post(f"/api/v1/{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    with driving(served.services):
        first = remote.executions.poll("pack-orders", "packer", wait_seconds=60)
        assert first is not None
        assert json.loads(first.input) == {"order": 7}
        while (second := post("activities/pack-orders/poll", worker="other", wait_seconds=20)) is None:
            pass
        assert remote.executions.poll("pack-orders", "packer", wait_seconds=0) is None
        remote.executions.beat(first.token)
        remote.executions.succeed(first.token, '{"packed": true}')
        post("task-tokens/heartbeat", token=second["token"])
        post("task-tokens/failure", token=second["token"], error="Broken", cause="it fell")
        closed = same_error(lambda each: each.executions.succeed(first.token, "1"), served.services, remote)
        assert type(closed) is TaskClosedError
        after = [ended(remote, each) for each in started]
    assert {each.status for each in after} == {ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED}
    made_up = same_error(lambda services: services.executions.beat("made up"), served.services, remote)
    assert type(made_up) is TokenRefusedError
    missing = served.client(Role.WORKER).post("/api/v1/activities/none/poll", json={})
    assert missing.status_code == 404


@pytest.mark.parametrize("queue", QUEUES)
def test_a_worker_without_the_store_refuses_what_needs_it(served: Served, queue: str) -> None:
    started = served.services.executions.start(machine(served.services, "wait"), "{}", arns=ARNS)
    command = ["--server", served.url, "--token", served.token(Role.WORKER), "worker", "--queue", queue]
    refused = CliRunner().invoke(app, command, env={"JOBTABLE_STORE": ""})
    assert refused.exit_code == ExitCode.FAILED
    said = f"Error: jobs of the queue {queue} need the store itself; let workers at the store serve this queue\n"
    assert said in refused.stderr
    served.services.executions.stop("wait", started.name)


def test_runs_of_distributed_maps_are_read_through_a_server(served: Served, remote: Services) -> None:
    started = remote.executions.start(machine(remote, "map"), "[1, 2, 3]", "items", arns=ARNS)
    with driving(served.services):
        ended(remote, started)
    here, there = served.services.executions, remote.executions
    (run,) = there.list_map_runs("map", "items")
    assert run == there.get_map_run(run.map_run_id) == here.get_map_run(run.map_run_id)
    assert run.succeeded_count == 3
    children = list(there.children("map", run.map_run_id))
    assert children == list(here.children("map", run.map_run_id))
    listed = served.client(Role.READ).get(f"/api/v1/map-runs/{run.map_run_id}/executions", params={"limit": 2}).json()
    assert [each["name"] for each in listed["items"]] == [each.name for each in children][:2]
    assert listed["cursor"] is not None
    same_error(
        lambda services: services.executions.change_map_run(run.map_run_id, max_concurrency=3),
        *(served.services, remote),
    )
    child = children[0]
    assert there.get(child.machine, child.name) == child
