"""Time to live in tests: items expire when a test says so."""

from __future__ import annotations

from jobtable.embedded import EmbeddedBackend
from jobtable.store import Store


def let_expire(store: Store) -> int:
    """Delete the items of an embedded store that have expired by its clock, and return their number.

    Otherwise the engine looks for them about twice a minute of real time.
    """
    if not isinstance(store.backend, EmbeddedBackend):
        raise TypeError(f"only the embedded engine can expire items on demand, not {store.backend!r}")
    return store.backend.keep_up()
