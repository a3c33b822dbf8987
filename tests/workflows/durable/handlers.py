"""Handlers in the style of the SDK's documentation, which know nothing of this package.

Effects are lines of the file that the event names, so that a test counts how often each step ran, in any process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from aws_durable_execution_sdk_python import DurableContext, StepContext, durable_execution, durable_step
from aws_durable_execution_sdk_python.concurrency.models import BatchResult
from aws_durable_execution_sdk_python.config import (
    CallbackConfig,
    ChildConfig,
    CompletionConfig,
    Duration,
    MapConfig,
    NestingType,
    ParallelConfig,
    StepConfig,
    StepSemantics,
    WaitForCallbackConfig,
)
from aws_durable_execution_sdk_python.context import durable_with_child_context
from aws_durable_execution_sdk_python.exceptions import (
    CallbackError,
    CallbackTimeoutError,
    ChildContextError,
    InvokeError,
    StepError,
)
from aws_durable_execution_sdk_python.retries import RetryStrategyConfig, create_retry_strategy
from aws_durable_execution_sdk_python.types import WaitForConditionCheckContext
from aws_durable_execution_sdk_python.waits import WaitForConditionConfig, WaitForConditionDecision

Event = dict[str, Any]
SECOND = Duration.from_seconds(1)
AT_MOST_ONCE = StepConfig(step_semantics=StepSemantics.AT_MOST_ONCE_PER_RETRY)
RETRIES = create_retry_strategy(
    RetryStrategyConfig(max_attempts=4, initial_delay=SECOND, max_delay=Duration.from_seconds(2), backoff_rate=1)
)


def note(event: Event, line: str) -> None:
    """Have an effect: one line, written in one go."""
    descriptor = os.open(event["effects"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def noted(event: Event, line: str) -> int:
    """Return how often an effect happened."""
    path = Path(event["effects"])
    return path.read_text().splitlines().count(line) if path.exists() else 0


def effect(event: Event, line: str, result: Any = None) -> Callable[[StepContext], Any]:
    """Return a step that has an effect and returns a result."""

    def step(_: StepContext) -> Any:
        note(event, line)
        return result

    return step


@durable_step
def add_numbers(step_context: StepContext, a: int, b: int) -> int:
    step_context.logger.info("adding")
    return a + b


@durable_execution
def one_step(event: Event, context: DurableContext) -> int:
    return int(context.step(add_numbers(5, 3)))


@durable_execution
def steps_in_order(event: Event, context: DurableContext) -> list[int]:
    results: list[int] = []
    for number in range(5):
        results.append(context.step(effect(event, f"step {number}", number), name=f"step-{number}"))
    return results


@durable_execution
def at_most_once(event: Event, context: DurableContext) -> list[str]:
    outcomes = []
    for number in range(3):
        config = StepConfig(
            step_semantics=StepSemantics.AT_MOST_ONCE_PER_RETRY,
            retry_strategy=create_retry_strategy(RetryStrategyConfig(max_attempts=1)),
        )
        try:
            outcomes.append(context.step(effect(event, f"charge {number}", "charged"), f"charge-{number}", config))
        except StepError as error:
            outcomes.append(str(error.error_type).rpartition(".")[2])
    return outcomes


@durable_execution
def waits(event: Event, context: DurableContext) -> str:
    context.step(effect(event, "before"), name="before")
    context.wait(SECOND, name="pause")
    context.wait(Duration.from_seconds(2))
    context.step(effect(event, "after"), name="after")
    return "waited"


@durable_execution
def retried_step(event: Event, context: DurableContext) -> str:
    def flaky(step_context: StepContext) -> str:
        note(event, "flaky")
        if step_context.attempt < 3:
            raise ConnectionError(f"attempt {step_context.attempt} failed")
        return f"attempt {step_context.attempt}"

    return str(context.step(flaky, name="flaky", config=StepConfig(retry_strategy=RETRIES)))


@durable_execution
def failing_step(event: Event, context: DurableContext) -> str:
    def broken(_: StepContext) -> str:
        raise ValueError("never works")

    no_retry = StepConfig(retry_strategy=create_retry_strategy(RetryStrategyConfig(max_attempts=1)))
    try:
        context.step(broken, name="broken", config=no_retry)
    except StepError as error:
        return f"{error.error_type}: {error.message}"
    return "impossible"


@durable_execution
def failing_execution(event: Event, context: DurableContext) -> str:
    context.step(effect(event, "before"), name="before")
    raise RuntimeError("the handler gives up")


@durable_execution
def child_contexts(event: Event, context: DurableContext) -> dict[str, Any]:
    def inner(child: DurableContext) -> int:
        first = child.step(effect(event, "inner 1", 1), name="inner-1")
        child.wait(SECOND, name="inner-wait")
        return int(first + child.step(effect(event, "inner 2", 2), name="inner-2"))

    total = context.run_in_child_context(inner, name="sum")
    virtual = context.run_in_child_context(inner, name="flat", config=ChildConfig(is_virtual=True))
    return {"total": total, "virtual": virtual}


@durable_execution
def failing_child(event: Event, context: DurableContext) -> str:
    def inner(child: DurableContext) -> None:
        child.step(effect(event, "inner"), name="inner")
        raise KeyError("missing")

    try:
        context.run_in_child_context(inner, name="broken")
    except ChildContextError as error:
        return f"{error.error_type}"
    return "impossible"


@durable_execution
def parallel_branches(event: Event, context: DurableContext) -> list[str]:
    def branch(number: int) -> Callable[[DurableContext], str]:
        def run(child: DurableContext) -> str:
            child.step(effect(event, f"branch {number}"), name="work")
            child.wait(Duration.from_seconds(1 + number % 2), name="rest")
            return str(child.step(effect(event, f"end {number}", f"branch-{number}"), name="end"))

        return run

    return list(context.parallel([branch(number) for number in range(4)], name="branches").get_results())


@durable_execution
def mapped(event: Event, context: DurableContext) -> list[int]:
    def square(child: DurableContext, item: int, index: int, items: Any) -> int:
        return int(child.step(effect(event, f"square {index}", item * item), name=f"square-{index}"))

    result: BatchResult[int] = context.map(list(range(12)), square, name="squares", config=MapConfig(max_concurrency=4))
    return list(result.get_results())


@durable_execution
def tolerant_map(event: Event, context: DurableContext) -> dict[str, Any]:
    def halve(child: DurableContext, item: int, index: int, items: Any) -> float:
        if item % 3 == 0:
            raise ValueError(f"{item} is bad")
        return item / 2

    config: MapConfig[int] = MapConfig(
        completion_config=CompletionConfig(tolerated_failure_count=2), nesting_type=NestingType.FLAT
    )
    result: BatchResult[float] = context.map([1, 2, 3, 4, 5], halve, name="halves", config=config)
    return {"results": result.get_results(), "failed": result.failure_count, "why": result.completion_reason.value}


@durable_execution
def first_of_parallel(event: Event, context: DurableContext) -> int:
    def fast(child: DurableContext) -> str:
        return str(child.step(effect(event, "fast", "fast"), name="fast"))

    def slow(child: DurableContext) -> str:
        child.wait(Duration.from_hours(1), name="long")
        return str(child.step(effect(event, "slow", "slow"), name="slow"))

    config = ParallelConfig(completion_config=CompletionConfig(min_successful=1))
    return len(context.parallel([fast, slow], name="race", config=config).get_results())


@durable_execution
def callback(event: Event, context: DurableContext) -> dict[str, Any]:
    def submit(callback_id: str, _: Any) -> None:
        note(event, "submitted")
        note(event, f"callback {callback_id}")

    answer = context.wait_for_callback(submit, name="approval")
    context.step(effect(event, "approved"), name="approved")
    return {"answer": answer}


@durable_execution
def failed_callback(event: Event, context: DurableContext) -> str:
    awaited = context.create_callback(name="external")
    context.step(effect(event, f"callback {awaited.callback_id}"), name="send")
    try:
        return str(awaited.result())
    except CallbackError as error:
        return f"{type(error).__name__}: {error.message}"


@durable_execution
def timed_out_callback(event: Event, context: DurableContext) -> list[str]:
    outcomes = []
    timeouts = (
        CallbackConfig(timeout=Duration.from_seconds(2)),
        WaitForCallbackConfig(timeout=Duration.from_hours(1), heartbeat_timeout=Duration.from_seconds(1)),
    )
    for number, config in enumerate(timeouts):
        awaited = context.create_callback(name=f"never-{number}", config=config)
        try:
            awaited.result()
        except CallbackTimeoutError as error:
            outcomes.append(str(error.message))
    return outcomes


@durable_execution
def polling(event: Event, context: DurableContext) -> dict[str, int]:
    def check(state: dict[str, int], _: WaitForConditionCheckContext) -> dict[str, int]:
        return {"polls": state["polls"] + 1}

    def strategy(state: dict[str, int], attempt: int) -> WaitForConditionDecision:
        if state["polls"] >= 3:
            return WaitForConditionDecision.stop_polling()
        return WaitForConditionDecision.continue_waiting(SECOND)

    config = WaitForConditionConfig(wait_strategy=strategy, initial_state={"polls": 0})
    ready: dict[str, int] = context.wait_for_condition(check, config, name="ready")
    return ready


@durable_execution
def invoking(event: Event, context: DurableContext) -> dict[str, Any]:
    doubled: int = context.invoke("double", {"n": 21}, name="plain")
    child: int = context.invoke("child_order", {**event, "n": 4}, name="durable")
    try:
        context.invoke("broken_function", {}, name="broken")
        failed = "impossible"
    except InvokeError as error:
        failed = f"{error.error_type}: {error.message}"
    return {"doubled": doubled, "child": child, "failed": failed}


def double(event: Event) -> int:
    return int(event["n"]) * 2


def broken_function(event: Event) -> None:
    raise LookupError("nothing there")


@durable_execution
def child_order(event: Event, context: DurableContext) -> int:
    context.step(effect(event, "child"), name="note")
    context.wait(SECOND, name="think")
    return int(event["n"]) + 1


@durable_execution
def typed_results(event: Event, context: DurableContext) -> list[str]:
    def step(_: StepContext) -> dict[str, Any]:
        instant = datetime(2025, 1, 2, 3, 4, tzinfo=UTC) + timedelta(hours=1)
        return {"price": Decimal("9.90"), "at": instant, "pair": (1, 2)}

    result = context.step(step, name="typed")
    context.wait(SECOND)
    return [str(result["price"]), result["at"].isoformat(), str(result["pair"])]


@durable_with_child_context
def packed(child: DurableContext, event: Event, size: int) -> int:
    return len(child.step(effect(event, f"pack {size}", "x" * size), name=f"pack-{size}"))


@durable_execution
def large_results(event: Event, context: DurableContext) -> int:
    def many(child: DurableContext) -> list[str]:
        return [child.step(effect(event, f"large {n}", "y" * 100_000), name=f"large-{n}") for n in range(4)]

    total = context.run_in_child_context(packed(event, 200_000), name="packed")
    texts = context.run_in_child_context(many, name="many")  # too large to be recorded: it is replayed
    context.wait(SECOND)
    return total + sum(map(len, texts))


HANDLERS: dict[str, Any] = {
    each.__name__: each
    for each in (
        one_step,
        steps_in_order,
        at_most_once,
        waits,
        retried_step,
        failing_step,
        failing_execution,
        child_contexts,
        failing_child,
        parallel_branches,
        mapped,
        tolerant_map,
        first_of_parallel,
        callback,
        failed_callback,
        timed_out_callback,
        polling,
        invoking,
        typed_results,
        large_results,
    )
}
"""The handlers that a test runs, by name."""
TARGETS: dict[str, Any] = {each.__name__: each for each in (double, broken_function, child_order)}
"""The functions that they invoke."""
