"""Values as people read them: times, durations, sizes, numbers. The pages use them as filters."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup

NOTHING = "\N{EN DASH}"
_STEPS = ((60, "s", 1), (3600, "min", 60), (86400, "h", 3600), (float("inf"), "d", 86400))


def duration_text(seconds: float | None) -> str:
    """Return a duration in at most two units."""
    if seconds is None:
        return NOTHING
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s".replace(".0 ", " ")
    parts, left = [], int(seconds)
    for _, unit, size in reversed(_STEPS):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


@pass_context
def ago(context: Context, moment: datetime | None) -> str:
    """Return how long ago a time was, with the exact time as a tooltip; the browser keeps it current."""
    if moment is None:
        return NOTHING
    seconds = (context["now"] - moment).total_seconds()
    return _time(moment, "now" if seconds < 1 else f"{_in_one_unit(seconds)} ago", " data-ago")


@pass_context
def ahead(context: Context, moment: datetime) -> str:
    """Return how far in the future a time is; the browser keeps it current."""
    seconds = (moment - context["now"]).total_seconds()
    return _time(moment, "now" if seconds < 1 else f"in {_in_one_unit(seconds)}", " data-ahead")


def clock_time(moment: datetime | None) -> str:
    """Return a time of day to the millisecond, for lists in which order matters."""
    return NOTHING if moment is None else _time(moment, _exact(moment)[11:23])


def minute(moment: datetime) -> str:
    """Return a date and time to the minute."""
    exact = _exact(moment)
    return _time(moment, f"{exact[:10]} {exact[11:16]} UTC")


def _time(moment: datetime, text: str, attribute: str = "") -> str:
    exact = _exact(moment)
    return Markup('<time datetime="{}" title="{}"{}>{}</time>').format(exact, exact, attribute, text)


def _in_one_unit(seconds: float) -> str:
    _, unit, size = next(step for step in _STEPS if seconds < step[0])
    return f"{int(seconds // size)} {unit}"


def _exact(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def bytes_text(size: int | None) -> str:
    """Return a size in decimal units."""
    if size is None:
        return NOTHING
    if size < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 1000:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def number(value: float | None) -> str:
    """Return a number with separators, and a fraction to six digits."""
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def rough(value: int) -> str:
    """Return a count in few digits, in millions or billions if it is large."""
    for size, name in ((10**9, "bn"), (10**6, "M")):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:,}"


def setting_text(value: Any) -> str:
    """Return a parameter or a result: a text or a whole number as it is, a fraction to six digits, the rest as JSON."""
    if isinstance(value, str):
        return value
    return f"{value:.6g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False, default=str)


def money(amount: Decimal | None) -> str:
    """Return an amount with its cents, or with all its digits if it is finer."""
    if amount is None:
        return NOTHING
    return f"{amount:.2f}" if amount == round(amount, 2) else str(amount)


def pretty(value: Any) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def segment(text: object) -> str:
    """Return a text as one segment of a path."""
    return quote(str(text), safe="")


def object_address(key: str) -> str:
    """Return the address of an object. Its key is partly encoded already, so that part is encoded twice."""
    return f"/api/v1/objects/{quote(key, safe='/')}"


def query(**parameters: Any) -> str:
    """Return the parameters that are not empty as the query of an address."""
    given = {name: value for name, value in parameters.items() if value not in (None, "", [])}
    return f"?{urlencode(given, doseq=True)}" if given else ""
