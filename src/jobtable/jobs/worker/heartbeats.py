"""Keeps the leases of one worker alive, and learns from the jobs when someone asks them to end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from jobtable.errors import JobtableError, LeaseLostError
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.verbs import WorkVerbs
from jobtable.jobs.worker.patience import is_passing

_LOG = logging.getLogger("jobtable.worker")
_LOOK_SECONDS = 1.0
_SAME_WORDS_SECONDS = 60.0
"""How often the same problem is told: a store may be away for hours, and is asked every second."""
MOST_AT_ONCE = 16
"""How many leases are renewed at once."""

Wish = Literal["cancel", "stop"]


class Held:
    """A lease that a worker holds, as far as the worker knows."""

    def __init__(self, lease: Lease, until: float, on_wish: Callable[[Wish], None] | None) -> None:
        self.lease = lease
        self.is_lost = False
        self.until = until
        """On the worker's monotonic clock; from then on another worker may have the job."""
        self.on_wish = on_wish
        self.wish: Wish | None = None
        """What someone has asked the job to do, as far as the worker has heard of it."""

    def lose(self) -> None:
        """Give the lease up: nothing may be written in its name."""
        self.is_lost = True


class Heartbeats:
    """All leases of a worker, kept alive by one thread, which lets others renew them where they are many.

    A lease that could not be renewed for its whole time counts as lost, whatever the reason: others may believe that
    this worker is dead. The time is measured from before the request that renewed it.
    """

    def __init__(
        self,
        jobs: WorkVerbs,
        lease_seconds: float,
        *,
        beat_instance: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._jobs = jobs
        self._lease_seconds = lease_seconds
        self._interval = lease_seconds / 3
        self._clock = jobs.clock
        self._beat_instance = beat_instance
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._held: dict[tuple[str, int], Held] = {}
        self._told, self._told_at = "", 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End; leases that are still held die after their time."""
        self._is_over.set()
        self._thread.join()

    def hold(self, lease: Lease, claimed_at: float, on_wish: Callable[[Wish], None] | None = None) -> Held:
        """Keep a lease alive from now on; `on_wish` is called when someone asks its job to end."""
        held = Held(lease, claimed_at + self._lease_seconds, on_wish)
        with self._lock:
            self._held[lease.job.job_id, lease.epoch] = held
        return held

    def drop(self, held: Held) -> None:
        """Do not keep a lease alive any more."""
        with self._lock:
            self._held.pop((held.lease.job.job_id, held.lease.epoch), None)

    def is_held(self, held: Held) -> bool:
        """Whether the job is certainly no one else's."""
        return not held.is_lost and self._clock.monotonic() < held.until

    # --- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        pause = min(_LOOK_SECONDS, self._interval)
        next_beat = self._clock.monotonic() + self._interval
        while not self._is_over.wait(pause):
            try:
                now = self._clock.monotonic()
                if now >= next_beat:
                    self.beat()
                    next_beat = now + self._interval  # what could not be renewed is tried again at the next look
                else:
                    self.look()
            except Exception as error:  # without heartbeats the leases end, and with them the jobs
                if not (isinstance(error, JobtableError) and is_passing(error)):
                    self._on_failure(error)
                self._tell(str(error))

    def _tell(self, problem: str) -> None:
        now = self._clock.monotonic()
        if problem != self._told or now - self._told_at >= _SAME_WORDS_SECONDS:
            self._told, self._told_at = problem, now
            _LOG.warning("this worker could not renew its leases or look after them: %s", problem)

    def beat(self) -> None:
        """Renew every lease that was not renewed just now; if some cannot be, raise after the others were."""
        due = [held for held in self._all() if self._is_due(held)]
        if len(due) > 1:
            # Over a network each takes some milliseconds, and a worker may have thousands.
            with ThreadPoolExecutor(min(len(due), MOST_AT_ONCE), "heartbeat") as threads:
                problems = list(threads.map(self._renew, due))
        else:
            problems = [self._renew(held) for held in due]
        self._beat_instance()
        for problem in problems:
            if problem is not None:
                raise problem

    def _is_due(self, held: Held) -> bool:
        left = held.until - self._clock.monotonic()
        return not held.is_lost and left <= self._lease_seconds - self._interval / 2

    def _renew(self, held: Held) -> JobtableError | None:
        """Renew one lease, or learn that it is lost; gives why neither was possible."""
        now = self._clock.monotonic()
        try:
            held.lease = self._jobs.heartbeat(held.lease)
        except LeaseLostError:
            held.lose()
        except JobtableError as error:
            return error
        else:
            held.until = now + self._lease_seconds
            _tell(held, held.lease.job)
        return None

    def look(self) -> None:
        """Learn whether someone asks a job to end: one read of all of them, between heartbeats."""
        listening = [held for held in self._all() if held.on_wish is not None]
        jobs = self._jobs.look_at([held.lease for held in listening])
        for held, job in zip(listening, jobs, strict=True):
            if job is None or not held.lease.is_held_in(job):
                held.lose()
            else:
                _tell(held, job)

    def _all(self) -> list[Held]:
        with self._lock:
            return list(self._held.values())


def _tell(held: Held, job: Job) -> None:
    held.wish = job.requested or held.wish
    if job.requested is not None and held.on_wish is not None:
        wish, held.on_wish = held.on_wish, None
        wish(job.requested)
