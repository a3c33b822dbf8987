"""The work of a server's jobs from elsewhere: claimed, reported and ended by its REST API, with the role `worker`.

Tasks find what their context gives them, and no store: what the context tells and keeps goes through the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import LeaseLostError, NotFoundError, TaskError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.instances import Instances
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.lifecycle.recovery import LeaseObserver
from jobtable.jobs.queues import QueueState
from jobtable.jobs.stored.entities import Instance, Job
from jobtable.remote.backend import ServerBackend, ServerObjects
from jobtable.remote.recording import ServerRecording, lease_of
from jobtable.remote.server import Server, path_of
from jobtable.store import Store
from jobtable.store.backend import Request, Response
from jobtable.system import declared

T = TypeVar("T")

LONGEST_MESSAGE = 10_000
"""How many characters of the message beside a task's progress a server takes."""
LONGEST_REASON = 1_000
"""How many characters it takes of why a job is given back."""


def open_work(url: str, token: str | None, *, clock: Clock = SYSTEM_CLOCK) -> ServerWork:
    """The work of a server: what each process of a worker opens for itself. The caller closes its `store`."""
    server = Server(url, token)
    return ServerWork(server, Store(_NoStore(server), clock=clock), ServerObjects(server))


class ServerWork(Jobs):
    """The verbs of workers, on a server. Due jobs and those of dead workers the server looks after itself."""

    def __init__(self, server: Server, store: Store, objects: ServerObjects) -> None:
        super().__init__(store, objects)
        self._server = server
        self.recording = ServerRecording(server, store, objects)
        self.instances = ServerInstances(server, store)
        self.queue_states = self._queue_states
        self.claim = self._claim
        self.heartbeat = self._heartbeat
        self.refresh = self._refresh
        self.look_at = self._look_at
        self.report = self._report
        self.finish = self._finish
        self.finish_many = self._finish_many
        self.release = self._release
        self.promote_due = lambda queue, *, limit=100: 0

    def desk(self, kind: Callable[[Jobs, Lease], T], lease: Lease) -> T:
        """What the tasks of a system ask for, asked of the server where it knows that desk."""
        path = f"{kind.__module__}:{kind.__qualname__}"
        for system, desks in declared("desks"):
            if path in desks:
                return cast("T", system.load(desks[path])(self._server, self, lease))
        return kind(self, lease)

    def observer(self) -> LeaseObserver:
        """A watch that sees nobody."""
        return _Nobody(self.store, self.clock, self.queries, lambda job: None, lambda job_id: None)

    def _claim(
        self,
        queue: str,
        *,
        limit: int,
        instance_id: str,
        lease_seconds: float,
        instance: Instance | None = None,
    ) -> list[Lease]:
        body = {"instance_id": instance_id, "limit": min(limit, 100), "lease_seconds": lease_seconds}
        answer = self._server.write("POST", path_of("queues", queue, "claim"), body)
        return [Lease(Job.model_validate(each["job"]), instance_id) for each in answer]

    def _heartbeat(self, lease: Lease) -> Lease:
        return replace(lease, job=Job.model_validate(self._tell(lease, "heartbeat")["job"]))

    def _refresh(self, lease: Lease) -> Lease:
        (job,) = self._look_at([lease])
        if job is None or not lease.is_held_in(job):
            raise lease.lost()
        return replace(lease, job=job)

    def _look_at(self, leases: Sequence[Lease]) -> list[Job | None]:
        return [self._find(lease) for lease in leases]

    def _find(self, lease: Lease) -> Job | None:
        path = path_of("jobs", lease.job.job_id, "held")
        try:
            return Job.model_validate(self._server.read("GET", path, query=lease_of(lease)))
        except (LeaseLostError, NotFoundError):
            return None

    def _report(self, lease: Lease, *, progress: float | None = None, message: str | None = None) -> None:
        told = None if message is None else message[:LONGEST_MESSAGE]
        self._tell(lease, "report", {"progress": progress, "message": told})

    def _finish(self, lease: Lease, outcome: Outcome) -> Job:
        return Job.model_validate(self._tell(lease, "finish", vars(outcome)))

    def _finish_many(self, ended: Sequence[tuple[Lease, Outcome]]) -> list[Lease]:
        lost = []
        for lease, outcome in ended:
            try:
                self._finish(lease, outcome)
            except LeaseLostError:
                lost.append(lease)
        return lost

    def _release(self, lease: Lease, reason: str, *, is_unopened: bool = False) -> Job:
        body = {"reason": reason[:LONGEST_REASON], "is_unopened": is_unopened}
        return Job.model_validate(self._tell(lease, "release", body))

    def _queue_states(self, names: Sequence[str], *, certain: bool = False) -> list[QueueState]:
        answer = self._server.read("GET", "/queue-states", query={"queue": list(names), "certain": certain})
        return [QueueState(**each) for each in answer]

    def _tell(self, lease: Lease, verb: str, more: Mapping[str, Any] | None = None) -> Any:
        return self._server.write("POST", path_of("jobs", lease.job.job_id, verb), {**lease_of(lease), **(more or {})})


class ServerInstances(Instances):
    """The workers of a server, as they say of themselves that they are there."""

    def __init__(self, server: Server, store: Store) -> None:
        super().__init__(store)
        self._server = server

    def register(self, instance: Instance) -> None:
        """Say that a worker is there."""
        self._tell("PUT", instance)

    def beat(self, instance: Instance) -> None:
        """Say that it lives."""
        self._tell("POST", instance, "heartbeat")

    def stop(self, instance: Instance) -> None:
        """Say that it has ended in good order."""
        self._tell("POST", instance, "stop")

    def _tell(self, method: str, instance: Instance, *verb: str) -> None:
        told = instance.model_dump(
            mode="json",
            include={
                "instance_type",
                "gpu_count",
                "ip_address",
                "availability_zone",
                "is_spot",
                "queues",
                "slots",
                "lease_seconds",
            },
        )
        self._server.write(method, path_of("instances", instance.instance_id, *verb), told)


class _NoStore(ServerBackend):
    """Stands where tasks at the store find one."""

    def execute(self, operation: str, request: Request) -> Response:
        """Refused, in a way that ends the job: to try it again here would not help."""
        raise TaskError(
            f"this needs the store itself ({operation}), and its worker has only {self._server.url}: "
            "let workers at the store serve its queue"
        )


class _Nobody(LeaseObserver):
    def recover(self) -> list[Job]:
        """Nobody is watched here."""
        return []
