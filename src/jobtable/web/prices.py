"""What reading and writing costs at DynamoDB's on-demand prices, in us-east-1."""

from __future__ import annotations

from jobtable.store.capacity import Units

_READ_UNIT_DOLLARS = 0.125 / 1_000_000
_WRITE_UNIT_DOLLARS = 0.625 / 1_000_000


def dollars_for(units: Units) -> float:
    """What so many units cost."""
    return units.read * _READ_UNIT_DOLLARS + units.write * _WRITE_UNIT_DOLLARS
