"""Jobs of dead workers, taken from them: workers elsewhere cannot see each other, so the server looks after them."""

from __future__ import annotations

import logging
import threading

from jobtable.errors import JobtableError
from jobtable.jobs.engine import Jobs

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 3.0


class Recovery:
    """A watch over all leases that is kept while workers elsewhere ask for jobs. Any thread may use it."""

    def __init__(self, jobs: Jobs) -> None:
        self._clock = jobs.clock
        self._observer = jobs.observer()
        self._lock = threading.Lock()
        self._next_at = self._clock.monotonic()

    def look(self) -> None:
        """Take jobs from workers whose heartbeats have stopped, unless somebody does so just now, or just did."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._clock.monotonic() >= self._next_at:
                self._next_at = self._clock.monotonic() + _LOOK_SECONDS
                self._observer.recover()
        except JobtableError as error:
            _LOG.warning("jobs of dead workers could not be looked after, which is tried again soon: %s", error)
        finally:
            self._lock.release()
