"""Workflows ask people: machines through boto3 by a queue or a topic, durable functions by their submitter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import pytest
from botocore.config import Config
from mypy_boto3_stepfunctions import SFNClient
from tests.inbox import labels
from tests.inbox.asking_workflows import ROLE, asking_machine, work

from jobtable.app import Services
from jobtable.embedded.server import Server, StepFunctionsProtocol
from jobtable.errors import TaskClosedError, ValueRefusedError
from jobtable.inbox.answer_tokens import token_digest
from jobtable.inbox.entities import InboxTask, TaskStatus
from jobtable.inbox.inbox_watch import InboxWatch
from jobtable.testing import FakeClock
from jobtable.workflows.durable.entities import DurableExecution, DurableStatus
from jobtable.workflows.durable.function_tasks import service_of


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def services(clock: FakeClock) -> Iterator[Services]:
    labels.DELIVERED.clear()
    with Services.open("memory:", clock=clock) as services:
        yield services


@pytest.fixture
def states(services: Services) -> Iterator[SFNClient]:
    with Server(StepFunctionsProtocol(services.step_functions).respond) as server:
        client: SFNClient = boto3.client(
            "stepfunctions",
            endpoint_url=server.url,
            region_name="eu-central-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=Config(retries={"total_max_attempts": 1}, inject_host_prefix=False),
        )
        with closing(client):
            yield client


def started(services: Services, states: SFNClient, definition: dict[str, Any]) -> str:
    """The ARN of an execution that has come as far as it can."""
    machine = states.create_state_machine(name="asking", definition=json.dumps(definition), roleArn=ROLE)
    arn = states.start_execution(stateMachineArn=machine["stateMachineArn"], input="{}")["executionArn"]
    work(services.engine)
    return arn


def asked(services: Services) -> InboxTask:
    """The only question that waits."""
    (task,) = services.inbox.list()
    return task


def outcome(services: Services, states: SFNClient, arn: str) -> Any:
    """What became of an execution: its output, or its status and error."""
    work(services.engine)
    found = states.describe_execution(executionArn=arn)
    return json.loads(found["output"]) if "output" in found else (found["status"], found.get("error"))


@pytest.mark.parametrize("service", ["sqs", "sns"])
@pytest.mark.parametrize(("answer", "output"), [("yes", "shipped"), ("no", "kept")])
def test_a_machine_goes_on_with_the_answer(
    services: Services, states: SFNClient, service: str, answer: str, output: str
) -> None:
    arn = started(services, states, asking_machine(service))
    task = asked(services)
    assert (task.title, task.answer_schema, task.system) == ("Ship it?", {"enum": ["yes", "no"]}, "workflows")
    assert outcome(services, states, arn) == ("RUNNING", None)
    with pytest.raises(ValueRefusedError, match="invalid"):
        services.inbox.answer(task.task_id, "perhaps")
    answered = services.inbox.answer(task.task_id, answer, by="ada")
    assert (answered.due_at, answered.problem) == (None, None)
    assert outcome(services, states, arn) == output


def test_a_question_is_delivered_and_its_token_is_not_that_of_the_workflow(
    services: Services, states: SFNClient
) -> None:
    arn = started(services, states, asking_machine())
    ((task, token),) = labels.DELIVERED
    assert task == asked(services)
    items = str(services.store.backend.execute("Scan", {"TableName": "jobtable"})["Items"])
    assert token not in items
    assert task.workflow == {"sha256": task.workflow["sha256"]}
    assert token_digest(token) != task.workflow["sha256"]
    services.inbox.answer(task.task_id, "yes", token=token)
    assert outcome(services, states, arn) == "shipped"


def test_a_rejection_fails_the_task_with_its_error(services: Services, states: SFNClient) -> None:
    arn = started(services, states, asking_machine(rejected_error="Declined"))
    services.inbox.reject(asked(services).task_id, by="ada", remark="too dear")
    assert outcome(services, states, arn) == {"declined": "too dear"}


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ({"on_expiry": "timeout"}, "late"),
        ({"expired_error": "Declined"}, {"declined": "nobody answered task ID in time"}),
        ({}, ("FAILED", "Expired")),
    ],
)
def test_a_question_that_expires_ends_as_the_message_says(
    services: Services, states: SFNClient, clock: FakeClock, body: dict[str, Any], output: Any
) -> None:
    arn = started(services, states, asking_machine(**body))
    task = asked(services)
    clock.advance(3601)
    assert InboxWatch(services.engine).look() == {}
    assert services.inbox.get(task.task_id).status is TaskStatus.EXPIRED
    expected = json.loads(json.dumps(output).replace("ID", task.task_id))
    assert outcome(services, states, arn) == (tuple(expected) if isinstance(output, tuple) else expected)


def test_a_question_of_a_stopped_execution_is_withdrawn(
    services: Services, states: SFNClient, clock: FakeClock
) -> None:
    arn = started(services, states, asking_machine())
    task, watch = asked(services), InboxWatch(services.engine)
    with pytest.raises(TaskClosedError, match="a workflow waits"):
        services.inbox.withdraw(task.task_id)
    clock.advance(31)
    watch.look()
    assert asked(services).due_at is not None
    states.stop_execution(executionArn=arn)
    work(services.engine)
    clock.advance(62)
    assert watch.look() == {}
    assert services.inbox.get(task.task_id).status is TaskStatus.WITHDRAWN
    assert list(services.inbox.list_due()) == []


def test_an_answer_that_its_workflow_no_longer_wants_says_so(services: Services, states: SFNClient) -> None:
    arn = started(services, states, asking_machine())
    task = asked(services)
    states.stop_execution(executionArn=arn)
    answered = services.inbox.answer(task.task_id, "yes")
    assert str(answered.problem).startswith("its workflow did not take it: ")
    assert answered.due_at is None


def test_the_longer_a_workflow_waits_the_less_often_it_is_looked_at(
    services: Services, states: SFNClient, clock: FakeClock
) -> None:
    started(services, states, asking_machine(answer_within_seconds=86_400))
    watch, looks = InboxWatch(services.engine), 0
    before = asked(services).due_at
    for _ in range(24 * 60):
        clock.advance(59)
        watch.look()
        looks += asked(services).due_at != before
        before = asked(services).due_at
    assert 8 <= looks <= 16


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ({"title": None}, "title: Field required"),
        ({"titel": "Ship?"}, "titel: Extra inputs are not permitted"),
        ({"answer_within_seconds": 0}, "answer_within_seconds"),
        ({"token.$": None, "token": "forged"}, "no workflow of this store waits with this token"),
        ({"choices": None, "schema": {"type": "nothing"}}, "the schema of the answer is invalid"),
        ({"deliver": "no.such:sender"}, "cannot load the function that sends tokens"),
    ],
)
def test_a_message_that_is_no_question_fails_its_state(
    services: Services, states: SFNClient, body: dict[str, Any], cause: str
) -> None:
    arn = started(services, states, asking_machine(**body))
    found = states.describe_execution(executionArn=arn)
    assert (found["status"], found["error"]) == ("FAILED", "SQS.AmazonSQSException")
    assert cause in found["cause"]
    assert list(services.inbox.list()) == []


def test_a_message_without_a_token_asks_and_nobody_waits(services: Services, states: SFNClient) -> None:
    without: dict[str, Any] = {"token.$": None}
    definition = asking_machine(**without)
    state = definition["States"]["Ask"]
    state["Resource"] = state["Resource"].removesuffix(".waitForTaskToken")
    arn = started(services, states, definition)
    task = asked(services)
    assert task.workflow is None
    assert outcome(services, states, arn) == "kept"
    assert services.inbox.answer(task.task_id, "yes").status is TaskStatus.ANSWERED


# --- durable functions -----------------------------------------------------------------------------------------------


def waiting(services: Services, **event: Any) -> InboxTask:
    """The question of a durable function that waits."""
    services.functions.publish()
    service_of(services.engine).start("inbox-asking", event, name="run")
    work(services.engine)
    return asked(services)


def ended(services: Services) -> DurableExecution:
    work(services.engine)
    return services.durable.get("inbox-asking", "run")


@pytest.mark.parametrize(("answer", "output"), [("yes", "shipped"), ("no", "kept")])
def test_a_durable_function_goes_on_with_the_answer(services: Services, answer: str, output: str) -> None:
    task = waiting(services)
    assert "signature" not in str(task.workflow)
    ((_, token),) = labels.DELIVERED
    services.inbox.answer(task.task_id, answer, token=token)
    execution = ended(services)
    assert execution.status is DurableStatus.SUCCEEDED, execution.error
    assert json.loads(str(services.durable.output_of(execution))) == output


def test_a_rejection_fails_the_callback_with_its_error(services: Services) -> None:
    services.inbox.reject(waiting(services).task_id, remark="too dear")
    execution = ended(services)
    assert execution.status is DurableStatus.FAILED
    assert "too dear" in str(execution.error)


def test_an_expired_question_fails_the_callback(services: Services, clock: FakeClock) -> None:
    task = waiting(services)
    clock.advance(3601)
    InboxWatch(services.engine).look()
    assert services.inbox.get(task.task_id).status is TaskStatus.EXPIRED
    execution = ended(services)
    assert execution.status is DurableStatus.FAILED
    assert "nobody answered" in str(execution.error)


def test_a_question_of_a_callback_that_timed_out_is_withdrawn(services: Services, clock: FakeClock) -> None:
    task = waiting(services, timeout=60)
    clock.advance(61)
    assert ended(services).status is DurableStatus.FAILED
    InboxWatch(services.engine).look()
    assert services.inbox.get(task.task_id).status is TaskStatus.WITHDRAWN
