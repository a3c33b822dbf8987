"""The context of a task: its log, progress, metrics, checkpoints and artifacts."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, SupportsFloat, TypeVar, Unpack, overload

from jobtable.errors import JobtableError, LeaseLostError, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.assistant import Asking, Assistant, Assisted, Embedded, Embedding, Prompt, assistant_of
from jobtable.jobs.report.buffer import Flusher, Timed
from jobtable.jobs.report.captured_output import LineSender
from jobtable.jobs.report.checkpoints import Checkpoint, Checkpoints, SavedState
from jobtable.jobs.report.log_lines import LONGEST_PROGRESS_BYTES, clean, cut, log_line
from jobtable.jobs.report.proposing import Proposal, Proposed, proposal_desk
from jobtable.jobs.report.recording import (
    ReportRules,
    expiry_of,
    number,
    refuse_unstorable,
    stored_number,
    whole_number,
)
from jobtable.jobs.report.run_files import Artifacts
from jobtable.jobs.stored.entities import JobArtifact, JobCheckpoint, JobMetric
from jobtable.jobs.submit.definition import Definition

if TYPE_CHECKING:
    from pydantic import BaseModel

    from jobtable.jobs.engine import Jobs
    from jobtable.jobs.verbs import WorkVerbs

M = TypeVar("M", bound="BaseModel")


def _never() -> bool:
    return False


class JobContext:
    """One run of one job, as its task sees it. All threads and forked processes may use it.

    Log lines, metrics and progress are stored every `flush_seconds`, by flush() and by close(). A killed process loses
    at most the last two intervals: a task that is faster than the store waits for it. While the store is away they are
    kept until the buffer is full. Checkpoints, artifacts and progress raise LeaseLostError if another worker may have
    the job.

    With a `sender`, log lines go to the job's worker at once, in order with what the task prints.
    """

    def __init__(
        self,
        jobs: WorkVerbs,
        lease: Lease,
        *,
        should_stop: Callable[[], bool] = _never,
        flush_seconds: float = 1.0,
        sender: LineSender | None = None,
    ) -> None:
        self.work = jobs
        self.job_id = lease.job.job_id
        self.epoch = lease.epoch
        self.attempt = lease.job.attempts
        self.definition: Definition = lease.job.definition
        self.params: Mapping[str, Any] = self.definition.params
        self.on_metric: Callable[[str, float, int | None, int | None], None] | None = None
        """Called with every reported metric (name, value, step, epoch); what it raises ends the task."""
        self.knows_of_stop = False
        """Whether should_stop() has told the task to end."""
        self._lease = lease
        self._asked_to_stop = should_stop
        self._flush_seconds = flush_seconds
        self._sender = sender
        self._rules = ReportRules.of(lease.job)
        self._begin()

    @property
    def jobs(self) -> Jobs:
        """The job engine, with its store; TaskError on a worker that has only a server."""
        return self.work.engine

    def _begin(self) -> None:
        """Start with empty buffers, also in a forked process; the first line starts the thread."""
        self._process_id = os.getpid()
        self._lock = threading.Lock()
        self._stored_names: set[tuple[str, str | None]] = set()
        most_seconds = 2 * self._flush_seconds
        recording = self.work.recording
        self._records = recording.buffer(self._lease, self.job_id, most_seconds=most_seconds)
        rule = self._rules.roll_up
        other_id = self.job_id if rule is None else rule.job_id
        self._copies = recording.buffer(self._lease, other_id, most_seconds=most_seconds)
        self._flusher: Flusher | None = None
        self._is_closed = False
        self._progress: tuple[float, str | None] | None = None
        self._lost: LeaseLostError | None = None

    @cached_property
    def _checkpoints(self) -> Checkpoints:
        return self.work.recording.checkpoints(self._lease)

    @cached_property
    def _artifacts(self) -> Artifacts:
        return self.work.recording.artifacts(self._lease)

    @property
    def lease(self) -> Lease:
        """The right to run the job; writes with check_lease() fail once another worker holds it."""
        return self._lease

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- reports ----------------------------------------------------------------------------------------------------

    def log(
        self,
        message: object,
        level: str = "INFO",
        *,
        source: str | None = None,
        exception: str | BaseException | None = None,
    ) -> None:
        """Add a line to the job's log."""
        text = clean(str(message))
        line = log_line(
            self.job_id,
            self.work.clock.now(),
            level,
            text,
            source=source,
            exception=exception,
            time_to_live=self._expiry(self._rules.logs_ttl_seconds),
        )
        if self._sender is None or not self._sender.send(line, text):
            self._collect(line)
        elif self._is_closed:
            self._sender.flush()

    def debug(self, message: object, *, source: str | None = None) -> None:
        """Log a detail."""
        self.log(message, "DEBUG", source=source)

    def info(self, message: object, *, source: str | None = None) -> None:
        """Log what happens."""
        self.log(message, "INFO", source=source)

    def warning(self, message: object, *, source: str | None = None) -> None:
        """Log what someone should look at."""
        self.log(message, "WARNING", source=source)

    def error(self, message: object, *, source: str | None = None, exception: BaseException | None = None) -> None:
        """Log what went wrong."""
        self.log(message, "ERROR", source=source, exception=exception)

    def progress(self, percent: SupportsFloat, message: str | None = None) -> None:
        """Report the progress from 0 to 100; of several within a flush interval the last one is stored.

        A long message is cut; one for which the job has no room becomes a WARNING in the log.
        """
        told = number("progress", percent)
        if math.isnan(told):
            raise ValueRefusedError(f"job {self.job_id}: progress must be a number from 0 to 100, not {told}")
        self._own_process()
        if self._lost is not None:
            raise self._lost
        self._progress = (min(max(told, 0.0), 100.0), None if message is None else _progress_text(message))
        self._started_flusher()

    def metric(
        self,
        name: str,
        value: SupportsFloat,
        step: int | None = None,
        epoch: int | None = None,
        unit: str | None = None,
    ) -> None:
        """Report a value; NaN, infinity and what else the table cannot hold become a WARNING in the log.

        A metric that the job's roll-up rule names is also recorded under the other job.
        """
        self._store_metric(name, value, step, epoch, unit)
        if self.on_metric is not None:
            self.on_metric(name, float(value), step, epoch)

    def _store_metric(
        self, name: str, value: SupportsFloat, step: int | None, epoch: int | None, unit: str | None
    ) -> None:
        stored = stored_number(number(name, value))
        if stored is None:
            self.warning(f"metric {name} is {value}{_place(step, epoch)}, which is not stored as a metric")
            return
        metric = JobMetric(
            job_id=self.job_id,
            metric_name=name,
            timestamp=self.work.clock.now(),
            value=stored,
            unit=unit,
            step=whole_number("step", step),
            epoch=whole_number("epoch", epoch),
            time_to_live=self._expiry(self._rules.metrics_ttl_seconds),
        )
        if (name, unit) not in self._stored_names:
            refuse_unstorable(metric)
            self._stored_names.add((name, unit))
        self._collect(metric)
        for copy in self._rules.copies(metric, self.work.clock.seconds()):
            self._collect(copy)

    # --- files ------------------------------------------------------------------------------------------------------

    def checkpoint(
        self,
        source: Path | str | bytes,
        *,
        metrics: Mapping[str, SupportsFloat] | None = None,
        step: int = 0,
        epoch: int = 0,
        is_best: bool = False,
        keep_last: int | None = None,
        model_state: bool = True,
        optimizer_state: bool = True,
    ) -> JobCheckpoint:
        """Save a state to resume from: a file or bytes. Earlier lines and metrics are stored before it.

        `is_best` takes the flag from the checkpoint that had it; `model_state` and `optimizer_state` say what is in
        it. With `keep_last`, or `keep_checkpoints` in the definition, all but that many of the last ones and the best
        are removed. LeaseLostError if another worker has the job.
        """
        values = {name: stored_number(number(name, value)) for name, value in (metrics or {}).items()}
        for name in (name for name, value in values.items() if value is None):
            self.warning(f"metric {name} of a checkpoint cannot be stored as a number{_place(step, epoch)}")
        self.work.recording.insist(self.flush, "store the log before a checkpoint")
        state = SavedState(
            step=whole_number("step", step) or 0,
            epoch=whole_number("epoch", epoch) or 0,
            metrics={name: value for name, value in values.items() if value is not None},
            is_best=is_best,
            model_state=model_state,
            optimizer_state=optimizer_state,
        )
        saved = Path(source) if isinstance(source, str) else source
        kept = self._rules.keep_checkpoints if keep_last is None else keep_last
        with self._noticing_loss():
            return self.work.recording.insist(
                lambda: self._checkpoints.add(saved, state, keep_last=kept), "save a checkpoint"
            )

    def resume(self, *, best: bool = False) -> Checkpoint | None:
        """Return the last (or the best) checkpoint of any attempt, or None."""
        find = self._checkpoints.find_best if best else self._checkpoints.find_latest
        return self.work.recording.insist(find, "read the checkpoints")

    def artifact(self, name: str, source: Path | str | bytes) -> JobArtifact:
        """Store a file or bytes under a name, replacing what had it; LeaseLostError as for checkpoints."""
        kept = Path(source) if isinstance(source, str) else source
        with self._noticing_loss():
            return self.work.recording.insist(lambda: self._artifacts.put(name, kept), f"store artifact {name}")

    # --- models -----------------------------------------------------------------------------------------------------

    @cached_property
    def _assistant(self) -> Assistant:
        return assistant_of(self)

    @overload
    def assist(self, purpose: str, prompt: Prompt, *, output: type[M], **how: Unpack[Asking]) -> M: ...

    @overload
    def assist(self, purpose: str, prompt: Prompt, **how: Unpack[Asking]) -> str: ...

    def assist(
        self, purpose: str, prompt: Prompt, *, output: type[BaseModel] | None = None, **how: Unpack[Asking]
    ) -> Any:
        """Ask a model, and return its text or, with `output`, a valid object of that class.

        A retry of the job finds the recorded answer instead of paying again. See `Assistant.ask` for the errors.
        """
        return self.assisted(purpose, prompt, output=output, **how).value

    def assisted(
        self, purpose: str, prompt: Prompt, *, output: type[BaseModel] | None = None, **how: Unpack[Asking]
    ) -> Assisted[Any]:
        """Ask a model like `assist`; return the value with its cost, its records, and whether a model was asked."""
        return self._assistant.ask(purpose, prompt, output=output, **how)

    def embed(self, texts: Sequence[str], **how: Unpack[Embedding]) -> Embedded:
        """Return a vector for each text, from a provider or from the model that the extra `embeddings` installs."""
        return self._assistant.embed(texts, **how)

    # --- people -----------------------------------------------------------------------------------------------------

    def propose(self, proposal: Proposal) -> Proposed:
        """Propose a change, which waits in the inbox for a person unless a rule accepts it.

        A retry of the job finds the same proposal. LeaseLostError if another worker has the job.
        """
        with self._noticing_loss():
            return proposal_desk(self).propose(proposal)

    # --- the run ----------------------------------------------------------------------------------------------------

    def should_stop(self) -> bool:
        """Return whether the task must end soon: someone asked for it, or another worker has the job."""
        if self._lost is not None or self._asked_to_stop():
            self.knows_of_stop = True
        return self.knows_of_stop

    def flush(self) -> None:
        """Store all that was reported; if that fails, raise and keep it for the next flush."""
        if self._sender is not None:
            self._sender.flush()
        self._flush_records()

    def _flush_records(self) -> None:
        self._own_process()
        self._records.flush()
        self._copies.flush()
        self._store_progress()

    def close(self) -> None:
        """Store all that was reported, or raise IncompleteBatchError with the number of lines left.

        Closed again, it tries again. On SIGTERM raise an exception, and close the context where it is caught: a
        signal handler may run in the middle of a write.
        """
        self._own_process()
        self._is_closed = True
        if self._flusher is not None:
            self._flusher.close()
        self.work.recording.insist(self._close_records, "store the last lines and metrics")

    def _close_records(self) -> None:
        if self._sender is not None:
            self._sender.flush()
        self._records.close()
        self._copies.close()
        with contextlib.suppress(LeaseLostError):  # its worker learns that when it ends the job
            self._store_progress()

    @property
    def is_flushing(self) -> bool:
        """Whether this thread is flushing: what it logs then is about the store, not about the job."""
        is_flusher = self._flusher is not None and self._flusher.is_current
        return is_flusher or self._records.is_flushing or self._copies.is_flushing

    def _collect(self, record: Timed) -> None:
        self._own_process()
        records = self._records if record.job_id == self.job_id else self._copies
        records.add(record)
        if self._is_closed:
            records.flush()
        elif records.is_filling:
            self._started_flusher().wake()
        else:
            self._started_flusher()

    def _started_flusher(self) -> Flusher:
        with self._lock:
            if self._flusher is None:
                self._flusher = Flusher(self._flush_records, self._flush_seconds, f"log of job {self.job_id}")
            return self._flusher

    def _own_process(self) -> None:
        """In a forked process, start with empty buffers: the others belong to its parent."""
        if self._process_id != os.getpid():
            self._begin()
            Finalize(self, self.flush, exitpriority=10)  # a process of multiprocessing ends without atexit

    def _store_progress(self) -> None:
        with self._lock:
            told, self._progress = self._progress, None
        if told is None or self._lost is not None:
            return
        try:
            with self._noticing_loss():
                self.work.report(self._lease, progress=told[0], message=told[1])
        except ValueRefusedError as error:  # it would be refused again, and so would all that is told after it
            self.warning(str(error))
        except JobtableError:
            with self._lock:
                self._progress = self._progress or told
            raise

    @contextlib.contextmanager
    def _noticing_loss(self) -> Iterator[None]:
        """Remember that the lease is lost, so that should_stop() returns true."""
        try:
            yield
        except LeaseLostError as error:
            self._lost = error
            raise

    def _expiry(self, seconds: float | None) -> int | None:
        return None if seconds is None else expiry_of(seconds, self.work.clock.seconds())


def _progress_text(message: str) -> str:
    return cut(clean(str(message)), LONGEST_PROGRESS_BYTES)


def _place(step: int | None, epoch: int | None) -> str:
    told = [f"{name} {value}" for name, value in (("epoch", epoch), ("step", step)) if value is not None]
    return f" at {', '.join(told)}" if told else ""
