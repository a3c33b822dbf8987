"""The worker: claims and runs the jobs of some queues until it is stopped or nothing is left."""

from __future__ import annotations

import gc
import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Literal

from jobtable.errors import ConflictError, JobtableError, ValueRefusedError
from jobtable.jobs.lifecycle.instances import InstanceInfo, new_instance
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.verbs import WorkVerbs
from jobtable.jobs.worker.holding import Conclusions, Heartbeats, SlotSetup, WorkerReport
from jobtable.jobs.worker.inline import InlineSlots
from jobtable.jobs.worker.process_slots import ProcessSlots
from jobtable.store.retries import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, is_passing, patiently

_LOG = logging.getLogger("jobtable.worker")
_PROMOTE_SECONDS = 1.0
_SORT_SECONDS = 5.0
_QUIET_SECONDS = 1.0


class Upkeep:
    """What every worker does for all: makes due jobs ready, and recovers jobs of dead workers."""

    def __init__(self, jobs: WorkVerbs, queues: Sequence[str], lease_seconds: float) -> None:
        self.queues = list(queues)
        """The most urgent first; within a priority, the least recently served first."""
        self._priorities: dict[str, int] = {}
        self._served: dict[str, int] = dict.fromkeys(queues, 0)
        self._jobs = jobs
        self._observer = jobs.observer()
        self._recover_seconds = lease_seconds / 3
        now = jobs.clock.monotonic()
        self._promote_at = self._recover_at = self._sort_at = now
        self._quiet_since: float | None = None
        self._recovered_at: float | None = None

    @property
    def next_at(self) -> float:
        """When something is due next, on the monotonic clock."""
        return min(self._promote_at, self._recover_at, self._sort_at)

    def run(self) -> list[Job]:
        """Do what is due; return the jobs recovered from dead workers.

        A queue that fails delays no other: its error is raised after the rest is done.
        """
        now = self._jobs.clock.monotonic()
        if now >= self._sort_at:
            self._sort_at = now + _SORT_SECONDS
            self._sort()
        problem: ConflictError | None = None
        if now >= self._promote_at:
            self._promote_at = now + _PROMOTE_SECONDS
            for name in self.queues:
                try:
                    self._jobs.promote_due(name)
                except ConflictError as error:
                    problem = error
        recovered = self._recover(now) if now >= self._recover_at else []
        if problem is not None:
            raise problem
        return recovered

    def _recover(self, now: float) -> list[Job]:
        self._recover_at = now + self._recover_seconds
        recovered = self._observer.recover()
        self._recovered_at = now
        for job in recovered:
            _LOG.warning("job %s is %s: %s", job.job_id, job.status, job.message)
        return recovered

    def serve(self, queue: str) -> None:
        """Note that jobs of a queue were claimed: others of its priority come first now."""
        self._served[queue] = max(self._served.values()) + 1
        self._order()

    def is_all_done(self) -> bool:
        """Whether the queues are empty, or their jobs wait for something that does not happen here.

        A queue with jobs must have been quiet for a while in which groups without notice of their last child's end were
        looked for. Then the table itself is read, because an index may not show a job yet.
        """
        there = self._jobs.queue_states(self.queues)
        if not any(queue.job_count for queue in there):
            return True
        if any(queue.running_count or queue.has_work for queue in there):
            self._quiet_since = None
            return False
        now = self._jobs.clock.monotonic()
        if self._quiet_since is None:
            self._quiet_since = now
        if now - self._quiet_since < _QUIET_SECONDS:
            return False
        if self._recovered_at is None or self._recovered_at <= self._quiet_since:
            self._recover_at = now
            return False
        if any(queue.has_work for queue in self._jobs.queue_states(self.queues, certain=True)):
            self._quiet_since = None
            return False
        return True

    def _sort(self) -> None:
        self._priorities = {queue.queue_name: queue.priority for queue in self._jobs.queue_states(self.queues)}
        self._order()

    def _order(self) -> None:
        self.queues.sort(key=lambda name: (-self._priorities.get(name, 0), self._served[name]))


_SHORTEST_IDLE_SECONDS = 0.01
_LONGEST_IDLE_SECONDS = 0.5
_LOOK_SECONDS = 0.02
"""How often a store is asked for changes; an idle worker takes half a per cent of a core."""
_OBJECTS_BETWEEN_COLLECTIONS = 5_000
_SILENT_SECONDS = 1.0
_STILL_ENDING = "stopping: still unregistering this worker; send another signal to exit without that"


class Worker:
    """Runs the jobs of queues: the most urgent queue first, up to `slots` jobs at once.

    mode="process" runs each job in a process of its own; mode="inline" runs tasks that are marked `inline` in this
    process, in `slots` threads and in batches. `open_jobs` opens the store in this process and in each job's own, so
    it must be picklable. `preload` names modules that are imported once, before any job starts.

    On SIGTERM or SIGINT a worker claims nothing more, gives its jobs `drain_seconds` to end, releases the others and
    returns; a second signal makes it do so at once. While the store is away, it waits.
    """

    def __init__(
        self,
        open_jobs: Callable[[], WorkVerbs],
        queues: Sequence[str],
        *,
        slots: int = 1,
        lease_seconds: float = 30.0,
        mode: Literal["process", "inline"] = "process",
        preload: Sequence[str] = (),
        until_empty: bool = False,
        instance: InstanceInfo | None = None,
        drain_seconds: float = 30.0,
    ) -> None:
        opener: object = open_jobs
        if not callable(opener):
            raise TypeError("open_jobs must be a function, such as functools.partial(open_jobs, URL), not a Jobs")
        for name, given in (("queues", queues), ("preload", preload)):
            if isinstance(given, str):
                raise ValueRefusedError(f"{name} must be a list of names: write [{given!r}]")
        if not queues or slots < 1 or lease_seconds <= 0:
            raise ValueRefusedError(
                "a worker needs at least one queue and slot, and a positive lease time, not "
                f"{queues=}, {slots=}, {lease_seconds=}"
            )
        self._open_jobs = open_jobs
        self._queues = list(dict.fromkeys(queues))
        self._slot_count = slots
        self._lease_seconds = lease_seconds
        self._mode = mode
        self._preload = tuple(preload)
        self._until_empty = until_empty
        self._info = instance or InstanceInfo.of_this_machine()
        self._drain_seconds = drain_seconds
        self._events: SimpleQueue[BaseException | None] = SimpleQueue()
        self._is_draining = False
        self._is_urgent = False
        self._failure: BaseException | None = None

    def drain(self, *, at_once: bool = False) -> None:
        """Stop as on SIGTERM; may be called from any thread."""
        self._is_urgent = self._is_urgent or at_once
        self._is_draining = True
        self._events.put(None)

    def run(self) -> WorkerReport:
        """Work until drained, or until the queues are empty; return what was done."""
        with ExitStack() as cleanup:
            self._jobs = cleanup.enter_context(self._open_jobs())
            self._instance = instance = new_instance(
                self._jobs.clock,
                self._info,
                queues=self._queues,
                slots=self._slot_count,
                lease_seconds=self._lease_seconds,
            )
            beat = partial(self._jobs.instances.beat, instance)
            heartbeats = Heartbeats(self._jobs, self._lease_seconds, beat_instance=beat, on_failure=self._events.put)
            self._conclusions = Conclusions(self._jobs, heartbeats)
            self._upkeep = Upkeep(self._jobs, self._queues, self._lease_seconds)
            self._slots = self._make_slots(heartbeats)
            cleanup.callback(self._slots.close)
            patiently(
                partial(self._jobs.instances.register, instance),
                "register this worker",
                clock=self._jobs.clock,
                goes_on=lambda: not self._is_draining,
            )
            cleanup.callback(self._unregister)
            heartbeats.start()
            cleanup.callback(heartbeats.close)
            if threading.current_thread() is threading.main_thread():  # otherwise the process is not the worker's
                cleanup.enter_context(self._signals())
                if self._mode == "inline":
                    cleanup.enter_context(_rarer_collections())
            self._work()
        if self._failure is not None:
            raise self._failure
        return self._conclusions.report()

    # --- working ----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            self._claim_until_told()
        finally:
            was_urgent = self._is_urgent
            if self._is_draining and not was_urgent and not self._slots.is_idle():
                _LOG.info(
                    "stopping: running jobs have %g s to end before they are released; send a second signal"
                    " to release them at once",
                    self._drain_seconds,
                )
            self._slots.drain(0 if was_urgent else self._drain_seconds)
            while not self._slots.is_idle():
                self._wait(_LONGEST_IDLE_SECONDS)
                if self._is_urgent and not was_urgent:
                    was_urgent = True
                    self._slots.drain(0)

    def _claim_until_told(self) -> None:
        idle, pause = _SHORTEST_IDLE_SECONDS, FIRST_PAUSE_SECONDS
        while not self._is_draining and self._failure is None:
            self._keep_up()
            try:
                mark = self._jobs.store.change_mark()
                claimed = self._claim()
                if not claimed and self._until_empty and self._slots.is_idle() and self._upkeep.is_all_done():
                    return
            except JobtableError as error:
                if not is_passing(error):
                    raise
                _LOG.warning("could not claim jobs; will retry in %.1f s: %s", pause, error)
                self._wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
                continue
            pause = FIRST_PAUSE_SECONDS
            if claimed:
                idle = _SHORTEST_IDLE_SECONDS
            elif self._slots.room() == 0:
                self._wait(max(self._upkeep.next_at - self._jobs.clock.monotonic(), 0))
            else:
                idle = self._wait_for_work(mark, idle)

    def _keep_up(self) -> None:
        try:
            self._conclusions.count("recovered", len(self._upkeep.run()))
        except JobtableError as error:
            if not is_passing(error):
                raise
            _LOG.warning("could not promote due jobs or recover lost ones; will retry: %s", error)

    def _claim(self) -> int:
        claimed = 0
        for queue in list(self._upkeep.queues):
            room = self._slots.room()
            if room == 0:
                break
            claimed_at = self._jobs.clock.monotonic()
            leases = self._jobs.claim(
                queue,
                limit=room,
                instance_id=self._instance.instance_id,
                lease_seconds=self._lease_seconds,
                instance=self._instance if self._mode == "process" else None,
            )
            if leases:
                self._slots.start(leases, claimed_at)
                self._upkeep.serve(queue)
            claimed += len(leases)
        return claimed

    def _wait_for_work(self, mark: object | None, idle: float) -> float:
        """Wait before the next claim; return the minimum wait before the one after that.

        A store that reports changes is asked continuously, so new work starts at once. If it cannot, or others keep
        writing, claims become rarer.
        """
        until = self._jobs.clock.monotonic() + _LONGEST_IDLE_SECONDS
        is_told = self._wait(idle)
        if is_told or not self._is_unchanged(mark):
            return min(idle * 2, _LONGEST_IDLE_SECONDS)
        while not is_told and self._is_unchanged(mark) and self._jobs.clock.monotonic() < until:
            is_told = self._wait(_LOOK_SECONDS)
        return _SHORTEST_IDLE_SECONDS

    def _is_unchanged(self, mark: object | None) -> bool:
        try:
            return mark is not None and self._jobs.store.change_mark() == mark
        except JobtableError:
            return False  # the next claim raises it

    def _wait(self, seconds: float) -> bool:
        """Wait for a free slot or a failure; return False after a timeout."""
        try:
            failure = self._events.get(timeout=seconds)
        except Empty:
            return False
        with suppress(Empty):
            while True:
                self._failure = self._failure or failure
                failure = self._events.get_nowait()
        return True

    # --- set-up -----------------------------------------------------------------------------------------------------

    def _make_slots(self, heartbeats: Heartbeats) -> ProcessSlots | InlineSlots:
        setup = SlotSetup(self._slot_count, self._jobs, heartbeats, self._conclusions, self._events.put)
        processes = partial(ProcessSlots, setup, open_jobs=self._open_jobs, preload=self._preload)
        if self._mode == "process":
            return processes()

        def is_draining() -> bool:
            return self._is_draining or self._failure is not None

        return InlineSlots(setup, open_processes=processes, is_draining=is_draining)

    def _unregister(self) -> None:
        until = self._jobs.clock.monotonic() + self._lease_seconds
        # This may take long while the store is away, and the user who pressed Ctrl-C should know.
        reminder = threading.Timer(_SILENT_SECONDS, _LOG.info, [_STILL_ENDING])
        reminder.daemon = True
        reminder.start()
        try:
            patiently(
                partial(self._jobs.instances.stop, self._instance),
                "unregister this worker",
                clock=self._jobs.clock,
                goes_on=lambda: self._jobs.clock.monotonic() < until,
            )
        except JobtableError as error:
            if not is_passing(error):
                raise
            _LOG.warning("could not unregister this worker; other workers will consider it dead: %s", error)
        finally:
            reminder.cancel()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Let SIGTERM and SIGINT drain the worker."""

        def handle(signum: int, frame: FrameType | None) -> None:
            self.drain(at_once=self._is_draining)

        before = {signum: signal.signal(signum, handle) for signum in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)


@contextmanager
def _rarer_collections() -> Iterator[None]:
    """Collect garbage less often: a batch keeps its objects to its end, and looking at them takes time."""
    youngest, *older = gc.get_threshold()
    gc.set_threshold(youngest and max(youngest, _OBJECTS_BETWEEN_COLLECTIONS), *older)  # 0 means never
    try:
        yield
    finally:
        gc.set_threshold(youngest, *older)
