"""The record of the benchmarks for PynamoDB."""

# mypy: disable-error-code="no-untyped-call"
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

from typing import Any

from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.models import Model


class PynamoSample(Model):
    """The same record for PynamoDB."""

    class Meta:
        table_name = "samples"

    run_id = UnicodeAttribute(hash_key=True)
    step = NumberAttribute(range_key=True)
    name = UnicodeAttribute()
    description = UnicodeAttribute()
    owner = UnicodeAttribute()
    project = UnicodeAttribute()
    region = UnicodeAttribute()
    status = UnicodeAttribute()
    commit = UnicodeAttribute()
    epoch = NumberAttribute()
    batch_size = NumberAttribute()
    seed = NumberAttribute()
    loss = NumberAttribute()
    accuracy = NumberAttribute()
    learning_rate = NumberAttribute()
    is_best = BooleanAttribute()
    is_public = BooleanAttribute()
    created_at = UTCDateTimeAttribute()
    tags: Any = ListAttribute(of=UnicodeAttribute)
    settings: Any = MapAttribute()
