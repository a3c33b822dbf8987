"""The jobs that a worker holds: keeps their leases alive, and writes how their runs ended."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

from jobtable.errors import JobtableError, LeaseLostError, NotFoundError, RequestRefused, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.verbs import WorkVerbs
from jobtable.store.retries import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, is_passing, patiently

_LOG = logging.getLogger("jobtable.worker")
_LOOK_SECONDS = 1.0
_SAME_WORDS_SECONDS = 60.0
"""How often the same problem is logged: a store may be away for hours, and is asked every second."""
MOST_AT_ONCE = 16
"""How many leases are renewed at once."""

Wish = Literal["cancel", "stop"]


class Held:
    """A lease that a worker holds, as far as the worker knows."""

    def __init__(self, lease: Lease, until: float, on_wish: Callable[[Wish], None] | None) -> None:
        self.lease = lease
        self.is_lost = False
        self.until = until
        """On the worker's monotonic clock; after it another worker may have the job."""
        self.on_wish = on_wish
        self.wish: Wish | None = None
        """What someone asked of the job, as far as the worker knows."""

    def lose(self) -> None:
        """Give up the lease: nothing more may be written with it."""
        self.is_lost = True


class Heartbeats:
    """Keeps all leases of a worker alive, in one thread with helpers for many leases.

    A lease that could not be renewed in its time counts as lost, whatever the reason: others may take this worker for
    dead. The time is measured from before the request that renewed it.
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
        self._thread.start()

    def close(self) -> None:
        """Stop; leases that are still held expire."""
        self._is_over.set()
        self._thread.join()

    def hold(self, lease: Lease, claimed_at: float, on_wish: Callable[[Wish], None] | None = None) -> Held:
        """Keep a lease alive; call `on_wish` when someone asks its job to end."""
        held = Held(lease, claimed_at + self._lease_seconds, on_wish)
        with self._lock:
            self._held[lease.job.job_id, lease.epoch] = held
        return held

    def drop(self, held: Held) -> None:
        with self._lock:
            self._held.pop((held.lease.job.job_id, held.lease.epoch), None)

    def is_held(self, held: Held) -> bool:
        """Whether no other worker can have the job."""
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
                    next_beat = now + self._interval  # retry at the next look
                else:
                    self.look()
            except Exception as error:  # without heartbeats the leases expire
                if not (isinstance(error, JobtableError) and is_passing(error)):
                    self._on_failure(error)
                self._tell(str(error))

    def _tell(self, problem: str) -> None:
        now = self._clock.monotonic()
        if problem != self._told or now - self._told_at >= _SAME_WORDS_SECONDS:
            self._told, self._told_at = problem, now
            _LOG.warning("could not renew the leases of this worker; will retry: %s", problem)

    def beat(self) -> None:
        """Renew every lease that was not just renewed; if some fail, raise after the others are renewed."""
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
        """Renew one lease, or note its loss; return the problem if neither was possible."""
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
        """Find out whether someone asked a job to end: one read for all of them, between heartbeats."""
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


T = TypeVar("T")

_NOT_ENDED_BY_US = (Status.RUNNING, Status.INTERRUPTED)


@dataclass(frozen=True)
class WorkerReport:
    """What a worker has done."""

    completed: int = 0
    failed: int = 0
    """Runs that failed, including those to retry."""
    stopped: int = 0
    cancelled: int = 0
    suspended: int = 0
    """Runs that ended because their task waits for something."""
    released: int = 0
    """Runs that the worker released unfinished."""
    lost: int = 0
    """Runs whose lease was lost; nothing was written for them."""
    recovered: int = 0
    """Jobs recovered from dead workers."""

    @property
    def runs(self) -> int:
        ended = self.completed + self.failed + self.stopped + self.cancelled
        return ended + self.suspended + self.released + self.lost


class Conclusions:
    """Writes how runs ended; retries while the store is away, for as long as their leases hold."""

    def __init__(self, jobs: WorkVerbs, heartbeats: Heartbeats) -> None:
        self._jobs = jobs
        self._heartbeats = heartbeats
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def report(self) -> WorkerReport:
        with self._lock:
            return WorkerReport(**self._counts)

    def count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self._counts[what] += number

    def finish(self, held: Held, outcome: Outcome) -> None:
        """End a run; a result that cannot be stored fails it."""
        try:
            self._write(held, lambda: self._jobs.finish(held.lease, outcome))
        except (ValueRefusedError, RequestRefused) as error:
            if outcome.kind == "failed":  # its item, made by another program, has no room for the message
                self.lose(held, str(error))
            else:
                self.finish(held, Outcome.failed(f"could not store its result: {error}", retryable=False))
        except LeaseLostError as error:
            self._end_lost(held, outcome, str(error))
        except NotFoundError:
            self._end(held, outcome)  # it was deleted right after its end
        else:
            self._end(held, outcome)

    def finish_many(self, ended: Sequence[tuple[Held, Outcome]]) -> None:
        """End many runs in few transactions."""
        pause = FIRST_PAUSE_SECONDS
        while ended:
            try:
                lost = {lease.job.job_id for lease in self._jobs.finish_many([(held.lease, o) for held, o in ended])}
            except (ValueRefusedError, RequestRefused):  # one result spoils the transaction of the others
                for held, outcome in ended:
                    self.finish(held, outcome)
                return
            except JobtableError as error:
                if not is_passing(error):
                    raise
                _LOG.warning("could not store how %d jobs ended; will retry: %s", len(ended), error)
                self._jobs.clock.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
                ended = [(held, outcome) for held, outcome in ended if not self._is_over(held, outcome)]
            else:
                for held, outcome in ended:
                    if held.lease.job.job_id in lost:
                        self._end_lost(held, outcome, "its lease was taken over")
                    else:
                        self._end(held, outcome)
                return

    def release(self, held: Held, reason: str, *, is_unopened: bool = False) -> None:
        """Release a run unfinished or not started; a job to which that happens too often fails."""
        try:
            job = self._write(held, lambda: self._jobs.release(held.lease, reason, is_unopened=is_unopened))
        except LeaseLostError as error:
            self.lose(held, str(error))
            return
        self._heartbeats.drop(held)
        self.count("failed" if job.status is Status.FAILED else "released")

    def lose(self, held: Held, why: str) -> None:
        """Record that a run no longer belongs to this worker."""
        self._heartbeats.drop(held)
        self.count("lost")
        _LOG.warning("gave up job %s: %s", held.lease.job.job_id, why)

    def _end(self, held: Held, outcome: Outcome) -> None:
        self._heartbeats.drop(held)
        self.count(outcome.kind)

    def _end_lost(self, held: Held, outcome: Outcome, why: str) -> None:
        """Find out whether another worker has the job, or this one ended it but got no answer."""
        if self._was_ended(held):
            self._end(held, outcome)
        else:
            self.lose(held, why)

    def _was_ended(self, held: Held) -> bool:
        """Whether the run has certainly ended in the store; only the report depends on it."""
        try:
            (job,) = self._jobs.look_at([held.lease])
        except JobtableError as error:
            if not is_passing(error):
                raise
            return False
        if job is None or job.lease_epoch != held.lease.epoch:
            return False
        return job.is_awaiting or job.status not in _NOT_ENDED_BY_US

    def _is_over(self, held: Held, outcome: Outcome) -> bool:
        """Whether nothing is left to write for a run, after an error with an unknown outcome."""
        if not self._heartbeats.is_held(held):
            self.lose(held, "its end could not be stored while its lease held")
            return True
        try:
            self._jobs.refresh(held.lease)
        except LeaseLostError as error:
            self._end_lost(held, outcome, str(error))
            return True
        except JobtableError as error:
            if not is_passing(error):
                raise
        return False

    def _write(self, held: Held, write: Callable[[], T]) -> T:
        what = f"store how job {held.lease.job.job_id} ended"
        try:
            return patiently(write, what, clock=self._jobs.clock, goes_on=partial(self._heartbeats.is_held, held))
        except JobtableError as error:
            if is_passing(error):
                raise held.lease.lost() from error  # its holder is unknown now
            raise


@dataclass(frozen=True)
class SlotSetup:
    """How many jobs run at once, and what a worker shares with them."""

    count: int
    jobs: WorkVerbs
    heartbeats: Heartbeats
    conclusions: Conclusions
    on_free: Callable[[BaseException | None], None]
    """Called when a slot is free, with its failure or None."""


class Slots:
    """Threads in which a worker runs jobs."""

    def __init__(self, setup: SlotSetup) -> None:
        self._count = setup.count
        self._jobs = setup.jobs
        self._heartbeats = setup.heartbeats
        self._conclusions = setup.conclusions
        self._on_free = setup.on_free
        self._lock = threading.Lock()
        self._running: set[threading.Thread] = set()

    def is_idle(self) -> bool:
        """Return whether no job runs."""
        return not self._running

    def _start_thread(self, work: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=self._run_thread, args=(work,), name=name)
        with self._lock:
            self._running.add(thread)
        thread.start()

    def _run_thread(self, work: Callable[[], None]) -> None:
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:  # the worker raises it where its caller sees it
            failure = error
        with self._lock:
            self._running.discard(threading.current_thread())
        self._on_free(failure)
