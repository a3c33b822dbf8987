"""Functions that the tests publish by their module."""

from __future__ import annotations

from typing import Any

from aws_durable_execution_sdk_python import DurableContext, durable_execution

from jobtable.workflows.functions import function


@function(name="cli-double", inline=True)
def double(event: dict[str, Any]) -> Any:
    """Return twice a number."""
    return 2 * event["number"]


@function(name="cli-settle", inline=True)
@durable_execution
def settle(event: dict[str, Any], context: DurableContext) -> Any:
    """Return the answer of a person."""
    return context.wait_for_callback(lambda callback_id, _: None, name=event["question"])
