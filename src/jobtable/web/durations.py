"""How long something took, as people read it."""

from __future__ import annotations

NOTHING = "\N{EN DASH}"


def duration_text(seconds: float | None) -> str:
    """How long something took, in at most two units."""
    if seconds is None:
        return NOTHING
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s".replace(".0 ", " ")
    parts = [(86400, "d"), (3600, "h"), (60, "min"), (1, "s")]
    left, told = int(seconds), []
    for size, unit in parts:
        count, left = divmod(left, size)
        if count:
            told.append(f"{count} {unit}")
    return " ".join(told[:2])
