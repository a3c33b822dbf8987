"""How the runs of a worker ended: written to the store, and counted."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from jobtable.errors import JobtableError, LeaseLostError, NotFoundError, RequestRefused, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.stored.fields import Status
from jobtable.jobs.verbs import WorkVerbs
from jobtable.jobs.worker.heartbeats import Heartbeats, Held
from jobtable.jobs.worker.patience import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, is_passing, patiently

T = TypeVar("T")

_LOG = logging.getLogger("jobtable.worker")
_NOT_ENDED_BY_US = (Status.RUNNING, Status.INTERRUPTED)


@dataclass(frozen=True)
class WorkerReport:
    """What a worker has done."""

    completed: int = 0
    failed: int = 0
    """Runs that failed, those included that are tried again."""
    stopped: int = 0
    cancelled: int = 0
    released: int = 0
    """Runs that the worker gave back unfinished."""
    lost: int = 0
    """Runs whose lease was lost; nothing was written of them."""
    recovered: int = 0
    """Jobs that were taken from workers that had died."""

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return self.completed + self.failed + self.stopped + self.cancelled + self.released + self.lost


class Conclusions:
    """Writes how runs ended, again and again while the store cannot be used, for as long as their leases hold."""

    def __init__(self, jobs: WorkVerbs, heartbeats: Heartbeats) -> None:
        self._jobs = jobs
        self._heartbeats = heartbeats
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def report(self) -> WorkerReport:
        """What was counted."""
        with self._lock:
            return WorkerReport(**self._counts)

    def count(self, what: str, number: int = 1) -> None:
        """Add to one of the report's numbers."""
        with self._lock:
            self._counts[what] += number

    def finish(self, held: Held, outcome: Outcome) -> None:
        """End a run; what cannot be stored as its result fails it."""
        try:
            self._write(held, lambda: self._jobs.finish(held.lease, outcome))
        except (ValueRefusedError, RequestRefused) as error:
            if outcome.kind == "failed":  # its item, which another program has made, has no room for that
                self.lose(held, str(error))
            else:
                self.finish(held, Outcome.failed(f"its result cannot be stored: {error}", retryable=False))
        except LeaseLostError as error:
            self._end_lost(held, outcome, str(error))
        except NotFoundError:
            self._end(held, outcome)  # it was deleted as soon as it had ended
        else:
            self._end(held, outcome)

    def finish_many(self, ended: Sequence[tuple[Held, Outcome]]) -> None:
        """End many runs in few transactions."""
        pause = FIRST_PAUSE_SECONDS
        while ended:
            try:
                lost = {lease.job.job_id for lease in self._jobs.finish_many([(held.lease, o) for held, o in ended])}
            except (ValueRefusedError, RequestRefused):  # somebody's result, which spoils the others' transaction
                for held, outcome in ended:
                    self.finish(held, outcome)
                return
            except JobtableError as error:
                if not is_passing(error):
                    raise
                _LOG.warning("how %d jobs ended could not be stored, trying again: %s", len(ended), error)
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
        """Give a run back unfinished, or not even begun; one to which that happens too often fails."""
        try:
            job = self._write(held, lambda: self._jobs.release(held.lease, reason, is_unopened=is_unopened))
        except LeaseLostError as error:
            self.lose(held, str(error))
            return
        self._heartbeats.drop(held)
        self.count("failed" if job.status is Status.FAILED else "released")

    def lose(self, held: Held, why: str) -> None:
        """Note that a run is not this worker's any more."""
        self._heartbeats.drop(held)
        self.count("lost")
        _LOG.warning("job %s was given up: %s", held.lease.job.job_id, why)

    def _end(self, held: Held, outcome: Outcome) -> None:
        self._heartbeats.drop(held)
        self.count(outcome.kind)

    def _end_lost(self, held: Held, outcome: Outcome, why: str) -> None:
        """Tell apart whether another worker has the job, or this one ended it and never got the answer."""
        if self._was_ended(held):
            self._end(held, outcome)
        else:
            self.lose(held, why)

    def _was_ended(self, held: Held) -> bool:
        """Whether the run has certainly come to an end in the store; nothing but the report depends on it."""
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
        """Whether nothing is left to write of a run, after an error that leaves open whether the write happened."""
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
        what = f"how job {held.lease.job.job_id} ended"
        try:
            return patiently(write, what, clock=self._jobs.clock, goes_on=partial(self._heartbeats.is_held, held))
        except JobtableError as error:
            if is_passing(error):
                raise held.lease.lost() from error  # nobody knows any more whose job it is
            raise
