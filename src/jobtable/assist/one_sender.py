"""One sender for each call: threads and forked processes of a run that ask the same wait for the first one.

The turn is a lock of a file, which the operating system releases even if the process is killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobtable.assist.entities import AssistCall
from jobtable.assist.providers import Usage
from jobtable.assist.verbs import BegunCall, CallPlan, Ledger
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.model.fields import format_timestamp

_LOOK_SECONDS = 0.05
"""How often who waits for another sender looks."""


class OneSender(Ledger):
    """A ledger of which one thread at a time sends a call, from its `begin` to its `end` or `fail`."""

    def __init__(self, records: Ledger, lease: Lease) -> None:
        self._records = records
        self._lease = lease
        self._turns: dict[str, _Turn] = {}

    def begin(self, plan: CallPlan) -> BegunCall:
        self._wait_for_turn(plan.call_id)
        try:
            begun = self._records.begin(plan)
        except BaseException:
            self._leave(plan.call_id)
            raise
        if begun.answer is not None:
            self._leave(plan.call_id)
        return begun

    def _wait_for_turn(self, call_id: str) -> None:
        turn = self._turns.get(call_id)
        if turn is not None and turn.is_own:
            return
        path = _lock_file(self._lease, call_id)
        while (taken := _Turn.take_if_free(path)) is None:
            holder = self._turns.get(call_id)
            if holder is not None and holder.is_abandoned:
                holder.leave()
            time.sleep(_LOOK_SECONDS)
        self._turns[call_id] = taken

    def end(
        self,
        call: AssistCall,
        answer: Any,
        usage: Usage,
        *,
        tries: int,
        seconds: float,
        answered_by: str | None = None,
    ) -> AssistCall:
        try:
            return self._records.end(call, answer, usage, tries=tries, seconds=seconds, answered_by=answered_by)
        finally:
            self._leave(call.call_id)

    def fail(
        self, call: AssistCall, error: str, *, tries: int, seconds: float, usage: Usage | None = None
    ) -> AssistCall:
        try:
            return self._records.fail(call, error, tries=tries, seconds=seconds, usage=usage)
        finally:
            self._leave(call.call_id)

    def refuse(self, call: AssistCall, fault: str) -> AssistCall:
        return self._records.refuse(call, fault)

    def take_slot(self, provider: str, call_id: str, *, most: int, seconds: float) -> float:
        return self._records.take_slot(provider, call_id, most=most, seconds=seconds)

    def release_slot(self, provider: str, call_id: str, *, pause_seconds: float = 0.0) -> None:
        self._records.release_slot(provider, call_id, pause_seconds=pause_seconds)

    def skip(self, plan: CallPlan) -> AssistCall:
        return self._records.skip(plan)

    def find_vectors(self, provider: str, model: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        return self._records.find_vectors(provider, model, digests)

    def share(self, call: AssistCall, digests: Sequence[bytes], dimensions: int) -> None:
        self._records.share(call, digests, dimensions)

    def _leave(self, call_id: str) -> None:
        turn = self._turns.get(call_id)
        if turn is not None and turn.is_own:
            del self._turns[call_id]
            turn.leave()


class _Turn:
    """The turn of a thread, which ends at the latest with its ledger."""

    def __init__(self, path: Path, file: int) -> None:
        self._process_id = os.getpid()
        self._thread = threading.current_thread()
        self.leave = weakref.finalize(self, _leave, path, file, self._process_id)

    @staticmethod
    def take_if_free(path: Path) -> _Turn | None:
        """Take the turn of a call, or return None while another thread or process has it."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), path.stat()):  # its last holder has not deleted it
                return _Turn(path, file)
        os.close(file)
        return None

    @property
    def is_own(self) -> bool:
        """Whether this thread has it; a forked process does not have that of its parent."""
        return self._process_id == os.getpid() and self._thread is threading.current_thread()

    @property
    def is_abandoned(self) -> bool:
        """Whether its thread has ended without ending the call."""
        return self._process_id == os.getpid() and not self._thread.is_alive()


def _leave(path: Path, file: int, process_id: int) -> None:
    if process_id == os.getpid():
        path.unlink(missing_ok=True)
        fcntl.flock(file, fcntl.LOCK_UN)  # closing the file does not unlock it while a forked process has a copy
    os.close(file)


def _lock_file(lease: Lease, call_id: str) -> Path:
    """Return the file for a call of a run, the same in all its processes, which are on one machine."""
    job = lease.job
    named = f"{job.job_id} {format_timestamp(job.created_at)} {lease.epoch} {lease.instance_id} {call_id}"
    return Path(tempfile.gettempdir(), f"jobtable-call-{hashlib.sha256(named.encode()).hexdigest()[:32]}.lock")
