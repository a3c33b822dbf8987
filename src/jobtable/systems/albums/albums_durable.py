"""The album workflow as a durable function, in AWS's SDK: the same steps as `albums.asl.json`.

A retry of a failed execution is a new durable execution that starts at the step that failed: its event names the step,
and the albums of the steps before it are in the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python.concurrency.models import BatchResult
from aws_durable_execution_sdk_python.config import Duration, MapConfig, StepConfig, WaitForCallbackConfig
from aws_durable_execution_sdk_python.exceptions import CallbackTimeoutError, StepError
from aws_durable_execution_sdk_python.retries import RetryDecision

from jobtable.systems.albums import album_functions as steps
from jobtable.systems.albums.album_functions import Event
from jobtable.systems.albums.entities import Step
from jobtable.systems.albums.record_catalogues import CatalogueUnavailable
from jobtable.systems.albums.usage import MEMORY_MB
from jobtable.workflows.functions import function

_FINAL = (
    "ValueRefusedError",
    "ConflictError",
    "NotFoundError",
    "SettingsError",
    "MissingExtraError",
    "NobodyAnsweredError",
)
_MOST_ATTEMPTS = 3
_CONCURRENCY = 4


def _retry(error: Exception, attempt: int) -> RetryDecision:
    """Retry what may pass, after 2 and 4 seconds, as the state machine does."""
    if type(error).__name__ in _FINAL or attempt >= _MOST_ATTEMPTS:
        return RetryDecision.no_retry()
    return RetryDecision.retry(Duration.from_seconds(2**attempt))


_STEP = StepConfig(retry_strategy=_retry)


@function(name="albums-durable", timeout_seconds=900, memory_mb=MEMORY_MB)
@durable_execution
def albums_durable(event: Event, context: DurableContext) -> Event:
    """Find the albums of an image, check their years, ask a person, and price what is right."""
    first = Step(event.get("first_step", Step.READ_IMAGE))
    if first is Step.READ_IMAGE:
        found = _call(context, steps.read_image, event, Step.READ_IMAGE)
    else:
        found = _call(context, steps.list_albums, {**event, "step": first}, "list-albums")
    if first.number <= Step.CHECK_YEARS.number:
        _for_each(context, found, Step.CHECK_YEARS, _check_years)
    if first.number <= Step.VALIDATE.number:
        answer = _ask(event, context)
        is_answered = answer["status"] == "completed"
    else:
        is_answered = first is Step.APPLY_ANSWER
    if is_answered:
        found = _call(context, steps.apply_answer, event, Step.APPLY_ANSWER)
    _for_each(context, found, Step.PRICE, _price)
    return _call(context, steps.finish, event, "finish")


def _call(context: DurableContext, handler: Callable[[Event, Any], Event], event: Event, name: str) -> Event:
    answer: Event = context.step(lambda _: handler(event, _lambda_context(context)), name=str(name), config=_STEP)
    return answer


def _lambda_context(context: DurableContext) -> Any:
    return context.lambda_context


def _for_each(context: DurableContext, found: Event, name: Step, run: Callable[[DurableContext, Event], None]) -> None:
    """Run a step for each album, some at once; the first that fails for good fails the execution."""
    albums: list[Event] = found["albums"]
    if albums:
        config: MapConfig[None] = MapConfig(max_concurrency=_CONCURRENCY)
        result: BatchResult[None] = context.map(
            albums, lambda child, album, *_: run(child, album), name=name.value, config=config
        )
        result.throw_if_error()


def _check_years(context: DurableContext, album: Event) -> None:
    try:
        _call(context, steps.check_years, album, Step.CHECK_YEARS)
    except StepError as error:
        if not _is_unavailable(error):  # a person checks the year in any case
            raise


def _price(context: DurableContext, album: Event) -> None:
    try:
        _call(context, steps.price, album, Step.PRICE)
    except StepError as error:
        if not _is_unavailable(error):
            raise
        _call(context, steps.price, {**album, "problem": str(error.message)}, "leave-unpriced")


def _is_unavailable(error: StepError) -> bool:
    return str(error.error_type).rpartition(".")[2] == CatalogueUnavailable.__name__


def _ask(event: Event, context: DurableContext) -> Event:
    """Ask a person, and again if a retry finds that nobody answered; return what became of the question."""
    config = WaitForCallbackConfig(timeout=Duration.from_seconds(event["answer_within_seconds"]), retry_strategy=_retry)
    answer: Event = {"status": "ask-again"}
    while answer["status"] == "ask-again":
        try:
            text = context.wait_for_callback(
                lambda token, _: _submit(event, context, token), name=Step.VALIDATE.value, config=config
            )
            answer = json.loads(text)
        except CallbackTimeoutError:
            answer = _call(context, steps.close_question, event, "close-question")
    return answer


def _submit(event: Event, context: DurableContext, token: str) -> None:
    steps.ask({**event, "token": token}, _lambda_context(context))
