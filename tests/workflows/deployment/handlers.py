"""Functions and a table that the machines of the tests use."""

from __future__ import annotations

from typing import Any

from aws_durable_execution_sdk_python import DurableContext, durable_execution

from jobtable.model import Index, Table
from jobtable.workflows.functions import DurableConfig, function

orders = Table("orders", pk="PK", sk="SK", indexes=[Index("GSI1", "GSI1PK", "GSI1SK")])
unused = Table("unused", pk="PK")


@function(name="deployed-charge", timeout_seconds=30, memory_mb=256)
def charge(event: dict[str, Any], context: Any) -> Any:
    """Charge a card."""
    return {**event, "by": context.function_name}


@function(name="deployed-settle", durable=DurableConfig(execution_timeout_seconds=86_400, retention_days=30))
@durable_execution
def settle(event: dict[str, Any], context: DurableContext) -> Any:
    """Settle a month."""
    return context.step(lambda _: event, name="sum")
