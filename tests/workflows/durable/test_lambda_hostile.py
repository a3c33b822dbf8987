"""Whatever is sent to Lambda's operations, they answer or refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workflows.durable.driving import JumpingClock

from jobtable.app import Services
from jobtable.embedded.server import LambdaProtocol
from jobtable.embedded.server.http1 import HttpRequest
from jobtable.embedded.server.lambda_functions import ROUTES
from jobtable.errors import OperationRefused
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.workflows.durable.durable_service import DurableService
from jobtable.workflows.durable.function_tasks import service_of
from jobtable.workflows.durable.handler_calls import Call
from jobtable.workflows.durable.lambda_api import LambdaApi
from jobtable.workflows.durable.lambda_requests import REQUESTS
from jobtable.workflows.table_and_queues import FUNCTIONS_QUEUE

ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
TYPES = ["STEP", "WAIT", "CALLBACK", "CHAINED_INVOKE", "CONTEXT", "EXECUTION"]
ACTIONS = ["START", "SUCCEED", "FAIL", "RETRY", "CANCEL"]
WORDS = st.sampled_from([*TYPES, *ACTIONS, "id-0", "one_step", "double", "waits:live", "Event", "Tail", "RUNNING", "1"])


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with Services.open("memory:", clock=JumpingClock()) as services:  # its module registers the functions
        yield services


@pytest.fixture(scope="module")
def api(services: Services) -> LambdaApi:
    return services.lambda_functions


def begun(services: Services) -> Call:
    """Start an execution and the call of its handler."""
    service: DurableService = service_of(services.engine)
    _ = services.durable
    execution = service.start("one_step", {})
    for lease in services.engine.claim(FUNCTIONS_QUEUE, limit=1, instance_id="worker", lease_seconds=600):
        assert isinstance(lease, Lease)
        found = service.calls.begin(lease, "one_step", execution.name)
        assert isinstance(found, Call)
        return found
    raise AssertionError("there is no job")


@settings(deadline=None)
@given(data=st.data())
def test_a_request_is_answered_or_refused(api: LambdaApi, data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(sorted(REQUESTS)))
    members = [*REQUESTS[operation].required, *REQUESTS[operation].optional]
    request = data.draw(st.dictionaries(st.sampled_from(members), ANY | WORDS, max_size=6))
    request.pop("InvocationType", None)
    answer = outcome(api, operation, {**request, "InvocationType": "DryRun"})
    if isinstance(answer, OperationRefused):
        assert answer.status in range(400, 500)
    else:
        assert json.dumps(answer)


def outcome(api: LambdaApi, operation: str, request: dict[str, Any]) -> dict[str, Any] | OperationRefused:
    try:
        return api.execute(operation, request)
    except OperationRefused as refused:
        return refused


OPTIONS = ["ContextOptions", "StepOptions", "WaitOptions", "CallbackOptions", "ChainedInvokeOptions"]
INNER = ["WaitSeconds", "TimeoutSeconds", "FunctionName", "NextAttemptDelaySeconds"]
UPDATE = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(["Id", "ParentId", "Name", "SubType", "Payload", "Error"], WORDS | ANY),
        **dict.fromkeys(OPTIONS, st.dictionaries(st.sampled_from(INNER), WORDS | st.integers(0, 9)) | ANY),
        "Type": st.sampled_from(TYPES) | ANY,
        "Action": st.sampled_from(ACTIONS) | ANY,
    },
)


@settings(deadline=None, max_examples=200)
@given(updates=st.lists(UPDATE, min_size=1, max_size=4))
def test_updates_are_recorded_or_refused_as_a_whole(
    services: Services, api: LambdaApi, updates: list[dict[str, Any]]
) -> None:
    call = begun(services)
    arn = str(call.arn)
    whole = [{"Id": f"id-{n}", "Type": "STEP", "Action": "START", **update} for n, update in enumerate(updates)]
    call_itself = {"DurableExecutionArn": arn, "CheckpointToken": call.token}
    answer = outcome(api, "CheckpointDurableExecution", {**call_itself, "Updates": whole})
    if isinstance(answer, OperationRefused):
        assert answer.status == 400
        state = api.execute("GetDurableExecutionState", call_itself)
        assert [each["Type"] for each in state["Operations"]] == ["EXECUTION"]
    else:
        assert json.dumps(answer)
    api.execute("StopDurableExecution", {"DurableExecutionArn": arn})


@pytest.mark.parametrize("at", [1e300, -1e300, 253_402_300_800])
def test_an_instant_that_no_calendar_has_is_refused(api: LambdaApi, at: float) -> None:
    with pytest.raises(OperationRefused, match="StartedAfter"):
        api.execute("ListDurableExecutionsByFunction", {"FunctionName": "one_step", "StartedAfter": at})


SEGMENTS = st.text(max_size=12).map(lambda text: quote(text, safe="")) | st.sampled_from(["..", "%", "%zz", "%FF", ""])


@settings(deadline=None)
@given(data=st.data())
def test_any_request_over_http_has_an_answer_of_the_service(services: Services, data: st.DataObject) -> None:
    protocol = LambdaProtocol(services.lambda_functions)
    route = ROUTES[data.draw(st.sampled_from(sorted(ROUTES)))]
    path = "/".join(data.draw(SEGMENTS) if part.startswith("{") else part for part in route.path.split("/"))
    query = data.draw(st.text(alphabet="ABMark=&%0+[]", max_size=20))
    headers = {"x-amz-invocation-type": "DryRun"} | data.draw(
        st.dictionaries(st.sampled_from(["x-amz-log-type", "x-amz-client-context", "authorization"]), WORDS)
    )
    body = data.draw(st.binary(max_size=40) | ANY.filter(is_json).map(lambda value: json.dumps(value).encode()))
    response = protocol.respond(HttpRequest(route.method, f"{path}?{query}", headers, body, True))
    assert response.status < 500, response.body
    if response.status >= 400:
        about = json.loads(response.body)
        assert about["Type"] == "User"
        assert about.get("message") or about.get("Message")


def is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
