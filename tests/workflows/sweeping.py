"""Kills a worker after an object that it stored, sweeps the orphans, and lets another one finish; prints each run.

A program of its own: it forks a process for every run while it has no store open and no thread.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from tests.workflows.durable.driving import JumpingClock
from tests.workflows.durable.killing import in_fork
from tests.workflows.large_workflows import ANSWER, INNER, INPUT, MACHINE

from jobtable.app import Services
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import Job, QueueJob, main
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.worker.inline import StopFlag, run_task
from jobtable.objects import sweep
from jobtable.objects.filesystem import FilesystemObjectStore
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.machine_verbs import MachineDraft
from jobtable.workflows.asl.execution.links import execution_id
from jobtable.workflows.asl.verbs import RunnableMachine
from jobtable.workflows.durable.durable_tokens import digest_of
from jobtable.workflows.durable.entities import OperationStatus, OperationType
from jobtable.workflows.table_and_queues import QUEUES, workflows
from jobtable.workflows.workflow_objects import PREFIXES, WorkflowObjects

KINDS = ("durable", "machine")


class Work:
    """An execution of one kind, and a worker for everything that it starts."""

    def __init__(self, kind: str, services: Services, clock: JumpingClock, notes: Path) -> None:
        self._kind = kind
        self._notes = notes
        self._services = services
        self._jobs = services.engine
        self._clock = clock

    def start(self) -> None:
        """Start the execution."""
        if self._kind == "durable":
            self._services.durable.start("large_durable", INPUT, name="run")
            return
        self._services.activities.create("person", arns=Arns())
        self._services.machines.create(MachineDraft("inner", json.dumps(INNER)), arns=Arns())
        machine = RunnableMachine("large", json.dumps(MACHINE))
        self._services.executions.start(machine, json.dumps(INPUT), "run", arns=Arns())

    def has_started(self) -> bool:
        """Return whether the execution exists."""
        listed = self._services.durable.list("large_durable") if self._kind == "durable" else self._executions()
        return listed.first() is not None

    def finish(self, *, sweeps: bool = False) -> None:
        """Work until nothing more happens; sweep after every job."""
        while self._work_once() or self._answer() or self._jump():
            if sweeps:
                self.sweep()

    def outcome(self) -> list[Any]:
        """Return how the execution ended, and what is left of its objects after a sweep."""
        if self._kind == "durable":
            durable = self._services.durable
            execution = durable.get("large_durable", "run")
            return [execution.status.value, digest_of(str(durable.output_of(execution))), len(self._keys())]
        ended = self._executions().first()
        assert ended is not None
        output = ended.output if ended.output_object is None else self._services.objects.get(ended.output_object)
        return [ended.status.value, digest_of(str(output)), len(self._keys())]

    def delete(self) -> int:
        """Delete the execution; return how many of its objects that leaves."""
        if self._kind == "durable":
            owner = self._services.durable.get("large_durable", "run").execution_id
            self._services.durable.delete("large_durable", "run")
        else:
            owner = execution_id(self._services.executions.get("large", "run"))
            self._services.executions.delete("large", "run")
        return sum(owner in key for key in self._keys())

    def sweep(self) -> int:
        """Sweep what no record names, after a look whether that is true; return the number of orphans."""
        stored = self._stored()
        named = {key for key in self._keys() if key in stored}
        lookup = WorkflowObjects(self._jobs)
        assert {key for key in self._keys() if lookup.is_referenced(key)} == named
        lookup = WorkflowObjects(self._jobs)
        objects = self._services.objects
        how: dict[str, Any] = {"grace": timedelta(0), "clock": self._clock}
        found = [sweep(objects, lookup.is_referenced, prefix=each, **how) for each in PREFIXES]
        assert set(self._keys()) == named
        return sum(report.orphans for report in found)

    def take_over(self) -> None:
        """Take all jobs from the worker that was killed."""
        for queue in QUEUES:
            for entry in list(self._jobs.store.query(QueueJob.key(queue_name=queue))):
                job = self._jobs.store.get(Job.key(job_id=entry.job_id))
                if job.status is Status.RUNNING:
                    self._jobs.interrupt_lost(job)

    # --- the worker ---------------------------------------------------------------------------------------------------

    def _work_once(self) -> bool:
        worked = False
        for queue in QUEUES:
            for lease in self._jobs.claim(queue, limit=10, instance_id=f"worker-{os.getpid()}", lease_seconds=30):
                context = JobContext(self._jobs, lease)
                report = run_task(lease.job.definition, StopFlag(), partial(_same, context))
                assert report.kind == "returned", report.message
                context.close()
                self._jobs.finish(lease, report.outcome())
                worked = True
        return worked

    def _answer(self) -> bool:
        """Answer what a person is asked."""
        if self._kind == "machine":
            return self._answer_activity()
        durable = self._services.durable
        for operation in durable.operations("large_durable", "run"):
            if (operation.type, operation.status) == (OperationType.CALLBACK, OperationStatus.STARTED):
                durable.succeed_callback(durable.callback_id(operation), json.dumps(ANSWER))
                return True
        return False

    def _answer_activity(self) -> bool:
        """Answer a task with the token that this process, or the one before it, was given."""
        task = self._services.executions.poll("person", "someone", wait_seconds=0)
        if task is not None:
            self._notes.write_text(task.token)
        if not self._notes.exists():
            return False
        self._services.executions.succeed(self._notes.read_text(), json.dumps(ANSWER))
        self._notes.unlink()
        return True

    def _jump(self) -> bool:
        """Move on to what is due next."""
        entries = [self._jobs.store.query(QueueJob.delayed(queue_name=queue), limit=1).first() for queue in QUEUES]
        dues = [entry.not_before for entry in entries if entry is not None and entry.not_before is not None]
        dues = [each for each in dues if each < self._clock.now() + timedelta(hours=1)]
        if not dues:
            return False
        self._clock.jump_to(min(dues))
        return any(self._jobs.promote_due(queue) for queue in QUEUES)

    # --- what is stored -----------------------------------------------------------------------------------------------

    def _executions(self) -> Any:
        return self._services.executions.list("large")

    def _keys(self) -> list[str]:
        return [found.key for prefix in PREFIXES for found in self._services.objects.list(prefix)]

    def _stored(self) -> str:
        """Return all items of the store as one text."""
        store = self._jobs.store
        pages = []
        for table in (main, workflows):
            request: dict[str, Any] = {"TableName": store.table_name(table)}
            while True:
                page = store.backend.execute("Scan", request)
                pages.append(json.dumps(page["Items"]))
                if "LastEvaluatedKey" not in page:
                    break
                request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        return "\n".join(pages)


def _same(context: JobContext) -> JobContext:
    return context


def on_store(folder: Path, kind: str, act: Callable[[Work], object]) -> None:
    """Open the store of a folder and work on it."""
    clock = JumpingClock(folder / "clock")
    with Services.open(f"file:{folder}/jobs.db?durability=normal", clock=clock) as services:
        services.prepare_all()
        act(Work(kind, services, clock, folder / "token"))


def die_after(objects: int) -> None:
    """Kill this process after it stored so many objects of workflows, before a record names the last one."""
    stored = count(1)
    put = FilesystemObjectStore.put

    def put_and_die(store: FilesystemObjectStore, key: str, source: Any) -> Any:
        info = put(store, key, source)
        if key.startswith(PREFIXES) and next(stored) == objects:
            os.kill(os.getpid(), signal.SIGKILL)
        return info

    setattr(FilesystemObjectStore, "put", put_and_die)  # noqa: B010 - for all stores of this process


def run_with_kill(folder: Path, kind: str, objects: int) -> dict[str, Any]:
    """Kill a worker after so many objects, sweep, and let another one finish; return what became of it."""
    folder.mkdir()
    result = folder / "result"

    def begin(work: Work) -> None:
        die_after(objects)
        work.start()
        work.finish()

    def go_on(work: Work) -> None:
        orphans = work.sweep()
        if not work.has_started():
            work.start()
        work.take_over()
        work.finish(sweeps=True)
        found = {"orphans": orphans, "outcome": work.outcome(), "left": work.delete()}
        result.write_text(json.dumps(found))

    was_killed = in_fork(lambda: on_store(folder, kind, begin))
    in_fork(lambda: on_store(folder, kind, go_on))
    return {"was_killed": was_killed, **json.loads(result.read_text())}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    for number in count(1, int(sys.argv[3])):
        run = run_with_kill(Path(sys.argv[1]) / str(number), sys.argv[2], number)
        print(json.dumps(run), flush=True)
        if not run["was_killed"]:
            break
