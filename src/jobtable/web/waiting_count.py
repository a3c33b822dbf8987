"""The number beside the inbox in the navigation."""

from __future__ import annotations

from threading import Lock

from jobtable.app import Services
from jobtable.errors import JobtableError
from jobtable.inbox.waiting_tasks import list_waiting

MOST_COUNTED = 99
_SECONDS = 5.0
"""How long a number is good for where only reading can tell whether something has changed."""


class WaitingCount:
    """How many tasks wait for a person, counted again when something has changed. Any thread may ask."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lock = Lock()
        self._mark: object | None = None
        self._until = 0.0
        self._known = 0

    def read(self) -> str:
        """Return the number, as in `7` or `99+`; nothing if there is none, or the store does not answer."""
        store = self._services.store
        try:
            mark, now = store.change_mark(), store.clock.monotonic()
            is_known = now < self._until if mark is None else mark == self._mark
            if not is_known:
                counted = len(list_waiting(self._services.jobs, MOST_COUNTED + 1))
                with self._lock:
                    self._mark, self._until, self._known = mark, now + _SECONDS, counted
        except JobtableError:  # the page itself says what is wrong with the store
            return ""
        return f"{MOST_COUNTED}+" if self._known > MOST_COUNTED else str(self._known or "")
