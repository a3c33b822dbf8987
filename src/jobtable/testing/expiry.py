"""Time to live in tests: what has expired goes when a test says so."""

from __future__ import annotations

from jobtable.embedded import EmbeddedBackend
from jobtable.store import Store


def let_expire(store: Store) -> int:
    """Let the items go that have expired by the store's clock, and say how many; only an embedded store can be told.

    By itself the engine looks for them about twice a minute, of real time, whatever its clock says.
    """
    if not isinstance(store.backend, EmbeddedBackend):
        raise TypeError(f"only the embedded engine lets items expire when it is told to, not {store.backend!r}")
    return store.backend.keep_up()
