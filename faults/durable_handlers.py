"""The durable functions of the experiments: each step notes that it ran, and returns what nobody else knows."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Callable
from typing import Any

from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python.concurrency.models import BatchResult
from aws_durable_execution_sdk_python.config import Duration, MapConfig, StepConfig, StepSemantics
from aws_durable_execution_sdk_python.retries import RetryStrategyConfig, create_retry_strategy
from aws_durable_execution_sdk_python.types import StepContext

from jobtable.workflows.functions import function

ONCE = StepConfig(
    step_semantics=StepSemantics.AT_MOST_ONCE_PER_RETRY,
    retry_strategy=create_retry_strategy(RetryStrategyConfig(max_attempts=20, initial_delay=Duration.from_seconds(1))),
)
SECOND = Duration.from_seconds(1)


def step(event: dict[str, Any], name: str) -> Callable[[StepContext], str]:
    """Return a step that takes some time, notes its name and a new token, and returns the token."""

    def run(_: StepContext) -> str:
        token = str(uuid.uuid4())
        time.sleep(random.uniform(0, 0.05))
        note(event, f"{event['name']} {name} {token}")
        time.sleep(random.uniform(0, 0.05))
        return token

    return run


def note(event: dict[str, Any], line: str) -> None:
    """Append a line in one go."""
    descriptor = os.open(event["effects"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def work(event: dict[str, Any], context: DurableContext) -> dict[str, str]:
    """Have steps of every kind, and return what each returned."""
    tokens = {name: context.step(step(event, name), name) for name in ("first", "second")}
    tokens["once"] = context.step(step(event, "once"), "once", ONCE)
    context.wait(SECOND, name="pause")

    def item(child: DurableContext, number: int, index: int, items: Any) -> str:
        return str(child.step(step(event, f"item-{number}"), f"item-{number}"))

    mapped: BatchResult[str] = context.map(list(range(6)), item, name="items", config=MapConfig(max_concurrency=3))
    tokens |= {f"item-{number}": token for number, token in enumerate(mapped.get_results())}

    def branch(name: str) -> Callable[[DurableContext], str]:
        def run(child: DurableContext) -> str:
            child.wait(SECOND, name="rest")
            return str(child.step(step(event, name), name))

        return run

    names = ["left", "right"]
    tokens |= dict(
        zip(names, context.parallel([branch(name) for name in names], name="sides").get_results(), strict=True)
    )
    answer = context.wait_for_callback(lambda callback_id, _: note(event, f"callback {callback_id}"), name="person")
    tokens["child"] = context.invoke("durable_child", {**event, "answer": answer}, name="child")
    tokens["last"] = context.step(step(event, "last"), "last")
    return tokens


@function(name="durable_child")
@durable_execution
def durable_child(event: dict[str, Any], context: DurableContext) -> str:
    context.wait(SECOND, name="think")
    return str(context.step(step(event, "child"), "child"))


HANDLERS = ("durable_work", "durable_work_inline")
"""One has a process of its own for each call; the other runs in the process of its worker."""
durable_work = function(name=HANDLERS[0])(durable_execution(work))
durable_work_inline = function(name=HANDLERS[1], inline=True)(durable_execution(work))
