"""When an item expires, as its TTL attribute says."""

from __future__ import annotations

from jobtable.store.backend import Item

_LATEST = 2**53  # beyond every date; larger numbers would not fit into SQLite's integers


def expiry_time(attribute: str | None, item: Item | None) -> int | None:
    """The second in which an item expires; None when its attribute is missing, no number, or beyond every date."""
    if attribute is None or item is None:
        return None
    text = item.get(attribute, {}).get("N")
    if text is None:
        return None
    seconds = float(text)
    return int(seconds) if 0 < seconds < _LATEST else None
