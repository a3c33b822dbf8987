"""The record of the benchmarks for pydynox, which only their own environment has."""

# mypy: disable-error-code="import-not-found, misc, no-untyped-call, unused-ignore"
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

from pydynox import Model, ModelConfig, pydynox_core
from pydynox.attributes import (
    BooleanAttribute,
    DatetimeAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    StringAttribute,
)


class PydynoxSample(Model):
    """The same record for pydynox."""

    model_config = ModelConfig(table="samples")

    run_id = StringAttribute(partition_key=True)
    step = NumberAttribute(sort_key=True)
    name = StringAttribute()
    description = StringAttribute()
    owner = StringAttribute()
    project = StringAttribute()
    region = StringAttribute()
    status = StringAttribute()
    commit = StringAttribute()
    epoch = NumberAttribute()
    batch_size = NumberAttribute()
    seed = NumberAttribute()
    loss = NumberAttribute()
    accuracy = NumberAttribute()
    learning_rate = NumberAttribute()
    is_best = BooleanAttribute()
    is_public = BooleanAttribute()
    created_at = DatetimeAttribute()
    tags = ListAttribute()
    settings: Any = MapAttribute()


encode = pydynox_core.item_to_dynamo
decode = pydynox_core.item_from_dynamo
