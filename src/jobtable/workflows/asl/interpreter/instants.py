"""Timestamps of the States Language: RFC 3339 with an upper-case T, and Z or an offset."""

from __future__ import annotations

import re
from datetime import datetime

_FORM = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)T(?P<time>\d\d:\d\d(?::\d\d)?)(?:\.(?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d\d:\d\d)"
)


def parse_instant(value: object) -> datetime | None:
    """Return the instant of a timestamp, or None if the value is not one."""
    found = _FORM.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    fraction = (found["fraction"] or "0")[:6].ljust(6, "0")
    time = found["time"] if len(found["time"]) > 5 else f"{found['time']}:00"
    try:
        return datetime.fromisoformat(f"{found['day']}T{time}.{fraction}{found['zone'].replace('Z', '+00:00')}")
    except ValueError:
        return None
