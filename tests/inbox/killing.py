"""Kills a process at each of its writes to the store, and prints as JSON what others made of what it left.

A program of its own: it forks a process for every step while it has no store open and no thread.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tests.inbox import labels
from tests.inbox.asking_workflows import asking_machine, create, work
from tests.inbox.labels import renaming

from jobtable.app import Services
from jobtable.inbox.entities import TaskStatus
from jobtable.inbox.inbox_watch import InboxWatch
from jobtable.jobs.stored.entities import Job, Queue, QueueJob
from jobtable.jobs.stored.field_types import Status
from jobtable.store.backend import Backend, Request, Response
from jobtable.testing import FakeClock
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.records import StateMachine
from jobtable.workflows.durable.function_tasks import service_of
from jobtable.workflows.table_and_queues import QUEUES

_WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
Step = Callable[[Services], object]


class DyingBackend:
    """Kills this process when so many writes were done, before anybody learns of the last one."""

    def __init__(self, backend: Backend, writes: int) -> None:
        self._backend = backend
        self._left = writes

    def execute(self, operation: str, request: Request) -> Response:
        if operation in _WRITES and self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = self._backend.execute(operation, request)
        self._left -= operation in _WRITES
        return answer

    def close(self) -> None:
        self._backend.close()


def in_fork(folder: Path, step: Step, *, writes: int | None = None, later: float = 0) -> bool:
    """Do a step in a process of its own; return whether it was killed."""
    process = os.fork()
    if process == 0:
        try:
            clock = FakeClock()
            clock.advance(later)
            with Services.open(f"file:{folder}/jobs.db?durability=normal", clock=clock) as services:
                _ = services.inbox
                if writes is not None:
                    services.store.backend = DyingBackend(services.store.backend, writes)
                step(services)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "a step failed"
    return False


def start_machine(services: Services) -> None:
    create(services.engine, asking_machine())
    services.executions.start(services.machines.runnable("asking"), "{}", "run", arns=Arns())


def start_function(services: Services) -> None:
    services.functions.publish()
    service_of(services.engine).start("inbox-asking", {}, name="run")


def run(services: Services) -> None:
    work(services.engine)


def answer(services: Services) -> None:
    """Answer the question, which somebody may have done already."""
    for task in list(services.inbox.list()):
        services.inbox.answer(task.task_id, "yes", by="ada")


def expire(services: Services) -> None:
    InboxWatch(services.engine).look()


def propose(services: Services) -> None:
    """Propose, as a task does that is retried, where a rule accepts."""
    services.inbox.propose(renaming("q", key="once"))


def accept(services: Services) -> None:
    for task in list(services.inbox.list()):
        services.inbox.accept(task.task_id, by="ada")


def add_queue(services: Services) -> None:
    services.engine.create_queue("q", description="A", priority=0)


def add_rule(services: Services) -> None:
    add_queue(services)
    services.inbox.add_rule(system="jobs")


def take_over(services: Services) -> None:
    """Take all jobs from workers that died, do what is due, and run what there is."""
    for queue in QUEUES:
        for entry in list(services.store.query(QueueJob.key(queue_name=queue))):
            job = services.store.get(Job.key(job_id=entry.job_id))
            if job.status is Status.RUNNING:
                services.engine.interrupt_lost(job)
    InboxWatch(services.engine).look()
    work(services.engine)


def found(services: Services, result: Path) -> None:
    """Write down how all ended."""
    tasks = [task for status in TaskStatus for task in services.inbox.list(status)]
    queue = services.engine.queries.get_queue("q") if services.store.find(Queue.key(queue_name="q")) else None
    about: dict[str, Any] = {
        "statuses": [task.status for task in tasks],
        "problems": [task.problem for task in tasks],
        "due": [task.task_id for task in services.inbox.list_due()],
        "applied": None if queue is None else [queue.description, queue.priority],
    }
    executions = (
        list(services.executions.list("asking")) if services.store.find(StateMachine.key(name="asking")) else []
    )
    for execution in executions:
        events = list(services.executions.history("asking", "run"))
        about |= {"ended": execution.status, "event_ids": [event.event_id for event in events]}
        about["answers"] = sum(event.type == "TaskSucceeded" for event in services.executions.history("asking", "run"))
    for durable in services.durable.list("inbox-asking"):
        about |= {"ended": durable.status, "output": services.durable.output_of(durable)}
    result.write_text(json.dumps(about))


SCENARIOS: dict[str, tuple[list[Step], Step, list[Step], float]] = {
    "ask by a machine": ([start_machine], run, [take_over, answer, take_over], 0),
    "ask by a function": ([start_function], run, [take_over, answer, take_over], 0),
    "answer a machine": ([start_machine, run], answer, [take_over, answer, take_over], 0),
    "answer a function": ([start_function, run], answer, [take_over, answer, take_over], 0),
    "expire": ([start_machine, run], expire, [take_over], 3601),
    "accept": ([add_queue, propose], accept, [accept], 0),
    "propose to a rule": ([add_rule], propose, [propose], 0),
}
"""What happens before, what is killed, what others do then, and how many seconds later."""


def run_with_kill(folder: Path, name: str, writes: int) -> tuple[bool, Any]:
    folder.mkdir()
    before, killed, after, later = SCENARIOS[name]
    result = folder / "result"
    for step in before:
        in_fork(folder, step)
    was_killed = in_fork(folder, killed, writes=writes, later=later)
    for step in after:
        in_fork(folder, step, later=later + 1)
    in_fork(folder, lambda services: found(services, result), later=later + 1)
    return was_killed, json.loads(result.read_text())


def main(folder: Path, name: str) -> None:
    """Kill before the first write, then after the first, until a step ends before its kill."""
    for writes in count():
        was_killed, about = run_with_kill(folder / str(writes), name, writes)
        print(json.dumps({"was_killed": was_killed, **about}))
        if not was_killed:
            return


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    labels.DELIVERED.clear()
    main(Path(sys.argv[1]), sys.argv[2])
