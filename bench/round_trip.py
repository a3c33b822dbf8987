"""An entity to DynamoDB's wire form and back, without any I/O."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from bench.measure import Contender, compare
from bench.pynamodb_sample import PynamoSample
from bench.sample import Sample, sample, values


def run() -> None:
    compare(
        "entity round trip, 20 fields",
        Contender("jobtable", _ours()),
        Contender("pydynox Model", _pydynox()),
        Contender("PynamoDB Model", _pynamodb()),
        Contender("boto3 TypeSerializer, no class", _boto3()),
        targets={"pydynox Model": 4, "PynamoDB Model": 15},
    )


def _ours() -> Callable[[], object]:
    codec = Sample.__schema__.codec
    entity = sample("r1", 1)
    _check(codec.decode(codec.encode(entity)), entity)
    return lambda: codec.decode(codec.encode(entity))


def _pydynox() -> Callable[[], object]:
    # Imported here because only the environment of the benchmarks has it.
    from bench.pydynox_sample import PydynoxSample, decode, encode  # noqa: PLC0415

    record = PydynoxSample(**values("r1", 1))
    _check(PydynoxSample.from_dict(decode(encode(record.to_dict()))).to_dict(), record.to_dict())
    return lambda: PydynoxSample.from_dict(decode(encode(record.to_dict())))


def _pynamodb() -> Callable[[], object]:
    record = PynamoSample(**values("r1", 1))
    found = PynamoSample.from_raw_data(record.serialize())
    _check(found.serialize(), record.serialize())
    return lambda: PynamoSample.from_raw_data(record.serialize())


def _boto3() -> Callable[[], object]:
    serialize, deserialize = TypeSerializer().serialize, TypeDeserializer().deserialize
    record = values("r1", 1)
    record["created_at"] = record["created_at"].isoformat()
    record = {name: Decimal(str(value)) if isinstance(value, float) else value for name, value in record.items()}

    def round_trip() -> dict[str, Any]:
        item = {name: serialize(value) for name, value in record.items()}
        return {name: deserialize(value) for name, value in item.items()}

    _check(round_trip(), record)
    return round_trip


def _check(found: object, expected: object) -> None:
    if found != expected:
        raise SystemExit(f"a round trip gives something else: {found} instead of {expected}")
