"""What happens in the process of one job: open the store, run the task, tell how it ended."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, Literal

from pydantic_core import PydanticSerializationError, from_json, to_json

from jobtable.clock import SYSTEM_CLOCK
from jobtable.errors import JobtableError, TaskError, kind_and_text
from jobtable.jobs import tasks
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.report.logging_handler import JobLogHandler
from jobtable.jobs.report.sent_lines import Flushed, LineSender
from jobtable.jobs.submit.definition import Definition
from jobtable.jobs.verbs import WorkVerbs
from jobtable.jobs.worker.patience import insist, is_passing

MOST_RESULT_BYTES = 390_000
"""An item has at most 400 KB, and the job's item holds more than its result."""
_MOST_MESSAGE_CHARACTERS = 1_000
_MOST_TRACEBACK_CHARACTERS = 6_000
_OWN_FILES = (__file__, tasks.__file__)
_HEADROOM_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Request:
    """What the process of a job is told; picklable."""

    open_jobs: Callable[[], WorkVerbs]
    lease: Lease
    output_key: str
    """What its worker knows the lines by that it logs."""


@dataclass(frozen=True)
class Report:
    """How a task ended, as far as its own process can say."""

    kind: Literal["returned", "raised", "terminated", "unopened"]
    """The last one: the task did not begin, because the store could not be opened."""
    result: bytes = b"null"
    """JSON; what the task returned."""
    message: str | None = None
    is_retryable: bool = True
    knew_of_stop: bool = False
    """Whether the task has learned from should_stop() that it is to end."""
    has_stopped: bool = False
    """Whether the task has ended early of its own accord, by StopTask."""

    def outcome(self) -> Outcome:
        """What it means where nobody has interfered."""
        if self.has_stopped:
            return Outcome.stopped(self.message, from_json(self.result))
        if self.kind == "returned":
            return Outcome.completed(from_json(self.result), self.message)
        return Outcome.failed(self.message or "it was terminated", retryable=self.is_retryable)

    def without_last_lines(self, error: JobtableError) -> Report:
        """The same, which also says why what the task told last is missing: how it ended counts all the same."""
        told = f"what it logged last could not be stored: {error}"
        return replace(self, message="\n\n".join(filter(None, [self.message, told])))


class StopFlag:
    """Whether the task is asked to end, and whether it has looked."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.was_seen = False

    def ask(self) -> None:
        """Ask the task to end."""
        self._asked.set()

    def should_stop(self) -> bool:
        """What the task's context says."""
        if self._asked.is_set():
            self.was_seen = True
        return self.was_seen


class Terminated(BaseException):
    """SIGTERM arrived: unwinds the task, past whatever catches Exception."""


def main(control: Connection) -> int:
    """Run the job that comes over the connection, and send its report back; gives the exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    _reseed()
    stop = StopFlag()
    try:
        report = _run(control, stop)
    except Terminated:
        report = Report("terminated", knew_of_stop=stop.was_seen)
    except BaseException as error:  # the worker must hear of everything
        report = Report("raised", message=describe(error))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdout.flush()
    sys.stderr.flush()
    control.send(report)
    return 0


def run_task(definition: Definition, stop: StopFlag, context: Callable[[], JobContext]) -> Report:
    """Run a job's task and say how it ended; nothing that it raises gets out. The context is made if it is wanted."""
    try:
        task = _task_of(definition)
        result = task.call(context() if task.takes_context else None, definition.params)
    except Terminated:
        return Report("terminated", knew_of_stop=stop.was_seen)
    except tasks.StopTask as stopped:
        told = _shortened(stopped.message, _MOST_TRACEBACK_CHARACTERS)
        return replace(_returned(stopped.result, stop), message=told, has_stopped=True)
    except tasks.FailTask as failed:
        told = _shortened(failed.message, _MOST_TRACEBACK_CHARACTERS)
        return Report("raised", message=told, is_retryable=False, knew_of_stop=stop.was_seen)
    except TaskError as error:
        return Report("raised", message=describe(error), is_retryable=False, knew_of_stop=stop.was_seen)
    except MemoryError as error:
        limit = "" if definition.memory_mb is None else f"; its limit is {definition.memory_mb:,.0f} MB"
        return Report("raised", message=f"out of memory{limit}\n\n{describe(error)}", knew_of_stop=stop.was_seen)
    except BaseException as error:  # sys.exit() and KeyboardInterrupt end a task like any error
        return Report("raised", message=describe(error), knew_of_stop=stop.was_seen)
    return _returned(result, stop)


def _task_of(definition: Definition) -> tasks.Task:
    if definition.problem is not None:
        raise TaskError(definition.problem)
    return tasks.resolve(definition.task or "")


def _returned(result: object, stop: StopFlag) -> Report:
    try:
        text = to_json(result, fallback=_plain)
    except (PydanticSerializationError, TypeError, ValueError) as error:
        problem = f"its result cannot be stored: {error}; a task returns what JSON can say"
        return Report("raised", message=problem, is_retryable=False)
    if len(text) > MOST_RESULT_BYTES:
        problem = (
            f"its result is too large: {len(text):,} bytes of JSON, and an item holds {MOST_RESULT_BYTES:,}; "
            "keep it with job.artifact() and return its name"
        )
        return Report("raised", message=problem, is_retryable=False)
    return Report("returned", text, knew_of_stop=stop.was_seen)


def _plain(value: Any) -> Any:
    """Arrays and scalars of numpy, and of what behaves like it, as lists and numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no JSON")


def describe(error: BaseException) -> str:
    """The type, the message and the traceback of an error, bounded, without frames of the runner itself."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in _OWN_FILES:
        trace = trace.tb_next
    headline = _shortened(kind_and_text(error), _MOST_MESSAGE_CHARACTERS)
    if trace is None:
        return headline
    text = "".join(traceback.format_exception(type(error), error, trace)).rstrip()
    return f"{headline}\n\n{_shortened(text, _MOST_TRACEBACK_CHARACTERS)}"


def _shortened(text: str, most: int) -> str:
    """The text, or its beginning and, longer, its end, where a traceback says what happened."""
    if len(text) <= most:
        return text
    head = most // 3
    return f"{text[:head]}\n[... {len(text) - most:,} characters ...]\n{text[head - most :]}"


def _run(control: Connection, stop: StopFlag) -> Report:
    request: Request = control.recv()
    sender = LineSender((sys.stdout, sys.stderr), request.output_key)
    threading.Thread(target=_listen, args=(control, stop, sender), name="control", daemon=True).start()
    definition = request.lease.job.definition
    if definition.memory_mb is not None:
        _limit_memory(definition.memory_mb)
    try:
        jobs = insist(request.open_jobs, "the store of the job", SYSTEM_CLOCK)
    except JobtableError as error:
        if not is_passing(error):
            raise
        return Report("unopened", message=f"its store could not be opened, and it was not started: {error}")
    context = JobContext(jobs, request.lease, should_stop=stop.should_stop, sender=sender)
    with _logging_into(context):
        report = run_task(definition, stop, lambda: context)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the task has ended; what it has logged is not to be cut off
    try:
        context.close()
        jobs.store.close()
        jobs.objects.close()
    except JobtableError as error:
        return report.without_last_lines(error)
    return report


@contextlib.contextmanager
def _logging_into(context: JobContext) -> Iterator[None]:
    """Let what the task logs with Python's logging, from INFO on, become lines of the job's log."""
    root = logging.getLogger()
    handler = JobLogHandler(context)
    root.addHandler(handler)
    if root.level == logging.WARNING:  # as it is where nobody has chosen a level
        root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _listen(control: Connection, stop: StopFlag, sender: LineSender) -> None:
    """Pass on what the worker says; when it is gone, end this process and all that it has started."""
    try:
        while True:
            said = control.recv()
            if isinstance(said, Flushed):
                sender.hear(said)
            else:
                stop.ask()
    except (EOFError, OSError):
        os.killpg(0, signal.SIGKILL)


def _reseed() -> None:
    """Give each job its own chance, as a new process would have: numpy alone does not see to that after a fork."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def _limit_memory(memory_mb: float) -> None:
    """Refuse allocations far over the limit; what is just over it, the worker sees and ends."""
    most = int(memory_mb * 1024 * 1024) + _HEADROOM_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _terminate(signum: int, frame: FrameType | None) -> None:
    raise Terminated
