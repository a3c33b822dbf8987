"""Runs executions in this process without waiting: a clock that jumps to what is due, and answers to callbacks."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from aws_durable_execution_sdk_python.lambda_service import ErrorObject
from tests.workflows.durable.handlers import HANDLERS, TARGETS

from jobtable.errors import TaskClosedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import Job, QueueJob
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.workflows.durable.durable_service import DurableService
from jobtable.workflows.durable.entities import DurableExecution, DurableStatus
from jobtable.workflows.functions import function
from jobtable.workflows.table_and_queues import FUNCTIONS_QUEUE

LEASE_SECONDS = 30.0
_FAR = timedelta(minutes=30)
"""What is due later than this is not waited for: it stands for what never happens."""

for _name, _handler in {**HANDLERS, **TARGETS}.items():
    function(name=_name, inline=True)(_handler)


class JumpingClock:
    """The machine's clock, ahead by what was jumped over; with a file, in all processes that share it."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._ahead = float(file.read_text()) if file is not None and file.exists() else 0.0
        self._last = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        with self._lock:
            current = datetime.now(UTC) + timedelta(seconds=self._ahead)
            self._last = max(current, self._last + timedelta(microseconds=1))
            return self._last

    def seconds(self) -> float:
        return time.time() + self._ahead

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def jump_to(self, instant: datetime) -> None:
        """Move on to an instant."""
        with self._lock:
            self._ahead += max(0.0, instant.timestamp() - (time.time() + self._ahead)) + 0.001
            if self._file is not None:
                self._file.write_text(str(self._ahead))


class Driver:
    """A worker of one thread, which answers the callbacks that handlers note in their file of effects."""

    def __init__(self, jobs: Jobs, clock: JumpingClock, effects: Path, name: str = "driver") -> None:
        self.jobs = jobs
        self.clock = clock
        self.service = DurableService(jobs)
        self.effects = effects
        self._name = name

    def run(self, handler: str, name: str = "run") -> DurableExecution:
        """Start an execution and run it to its end."""
        self.service.start(handler, {"effects": str(self.effects)}, name=name)
        return self.run_to_end(handler, name)

    def run_to_end(self, handler: str, name: str = "run") -> DurableExecution:
        """Run what there is until an execution has ended."""
        while (execution := self.service.get(handler, name)).status is DurableStatus.RUNNING:
            assert self.work_once() or self._answer(handler) or self.jump(), f"{handler} hangs"
        while self.work_once():
            pass
        return execution

    def work_once(self) -> bool:
        """Run the jobs that are ready, once; say whether there were some."""
        leases = self.jobs.claim(FUNCTIONS_QUEUE, limit=10, instance_id=self._name, lease_seconds=LEASE_SECONDS)
        for lease in leases:
            context = JobContext(self.jobs, lease)
            report = run_task(lease.job.definition, StopFlag(), partial(_same, context))
            context.close()
            self.jobs.finish(lease, report.outcome())
        return bool(leases)

    def take_over(self) -> None:
        """Take all jobs from workers that died."""
        for entry in list(self.jobs.store.query(QueueJob.key(queue_name=FUNCTIONS_QUEUE))):
            job = self.jobs.store.get(Job.key(job_id=entry.job_id))
            if job.status is Status.RUNNING:
                self.jobs.interrupt_lost(job)

    def _answer(self, handler: str) -> bool:
        """Answer the first callback that waits."""
        lines = self.effects.read_text().splitlines() if self.effects.exists() else []
        for callback_id in (line.removeprefix("callback ") for line in lines if line.startswith("callback ")):
            try:
                answer(self.service, handler, callback_id)
            except TaskClosedError:
                continue
            return True
        return False

    def jump(self) -> bool:
        """Move on to what is due next, unless that is far."""
        entry = self.jobs.store.query(QueueJob.delayed(queue_name=FUNCTIONS_QUEUE), limit=1).first()
        if entry is None or entry.not_before is None or entry.not_before > self.clock.now() + _FAR:
            return False
        self.clock.jump_to(entry.not_before)
        self.jobs.promote_due(FUNCTIONS_QUEUE)
        return True


def answer(service: Any, handler: str, callback_id: str) -> None:
    """Answer a callback as its handler's test wants it; `service` may also be the SDK's own runner."""
    if isinstance(service, DurableService):
        if handler == "failed_callback":
            service.fail_callback(callback_id, {"ErrorMessage": "refused", "ErrorType": "Refused"})
        else:
            service.succeed_callback(callback_id, json.dumps("yes"))
    elif handler == "failed_callback":
        service.send_callback_failure(callback_id, ErrorObject("refused", "Refused", None, None))
    else:
        service.send_callback_success(callback_id, json.dumps("yes").encode())


def _same(context: JobContext) -> JobContext:
    return context
