"""Work on the jobs of a server: claimed, reported and ended by its REST API, with a token of the role `worker`.

Tasks have their context but no store: what the context records goes through the server.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import LeaseLostError, NotFoundError, TaskError
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.stored.entities import Instance, Job
from jobtable.jobs.verbs import InstanceVerbs, Observer, QueueState, WorkVerbs
from jobtable.remote.backend import ServerBackend, ServerObjects
from jobtable.remote.recording import ServerRecording, lease_of
from jobtable.remote.server_requests import Server, path_of
from jobtable.store import Store
from jobtable.store.backend import Request, Response
from jobtable.system import declared

if TYPE_CHECKING:
    from jobtable.jobs.engine import Jobs

T = TypeVar("T")

LONGEST_MESSAGE = 10_000
"""How many characters of the message of a progress report a server accepts."""
_DESKS = {
    "jobtable.assist.ledger:StoreLedger": "jobtable.remote.assist:ServerLedger",
    "jobtable.inbox.proposal_desk:ProposalDesk": "jobtable.remote.inbox:ServerProposalDesk",
}
"""For each class of the core that tasks ask with `desk` the class that asks a server instead."""
LONGEST_REASON = 1_000
"""How many characters of the reason of a release it accepts."""


def open_work(url: str, token: str | None, *, clock: Clock = SYSTEM_CLOCK) -> ServerWork:
    """Open the work of a server; each process of a worker does so for itself. The caller closes its `store`."""
    server = Server(url, token)
    return ServerWork(server, Store(_NoStore(server), clock=clock), ServerObjects(server))


class ServerWork(WorkVerbs):
    """The verbs of workers on a server, which takes care of due jobs and of dead workers itself."""

    def __init__(self, server: Server, store: Store, objects: ServerObjects) -> None:
        self.store = store
        self.objects = objects
        self.clock = store.clock
        self.recording = ServerRecording(server, store, objects)
        self.instances = ServerInstances(server)
        self._server = server

    def desk(self, kind: Callable[[Jobs, Lease], T], lease: Lease) -> T:
        path = f"{kind.__module__}:{kind.__qualname__}"
        if path in _DESKS:
            return cast("T", pkgutil.resolve_name(_DESKS[path])(self._server, self, lease))
        for system, desks in declared("desks"):
            if path in desks:
                return cast("T", system.load(desks[path])(self._server, self, lease))
        return kind(self.engine, lease)

    @property
    def engine(self) -> Jobs:
        raise _needs_store(self._server)

    def observer(self) -> Observer:
        return _Nobody()

    def promote_due(self, queue: str, *, limit: int = 100) -> int:
        return 0

    def claim(
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

    def heartbeat(self, lease: Lease) -> Lease:
        return replace(lease, job=Job.model_validate(self._post(lease, "heartbeat")["job"]))

    def refresh(self, lease: Lease) -> Lease:
        (job,) = self.look_at([lease])
        if job is None or not lease.is_held_in(job):
            raise lease.lost()
        return replace(lease, job=job)

    def look_at(self, leases: Sequence[Lease]) -> list[Job | None]:
        return [self._find(lease) for lease in leases]

    def _find(self, lease: Lease) -> Job | None:
        path = path_of("jobs", lease.job.job_id, "held")
        try:
            return Job.model_validate(self._server.read("GET", path, query=lease_of(lease)))
        except (LeaseLostError, NotFoundError):
            return None

    def report(self, lease: Lease, *, progress: float | None = None, message: str | None = None) -> None:
        sent = None if message is None else message[:LONGEST_MESSAGE]
        self._post(lease, "report", {"progress": progress, "message": sent})

    def finish(self, lease: Lease, outcome: Outcome) -> Job:
        return Job.model_validate(self._post(lease, "finish", vars(outcome)))

    def finish_many(self, ended: Sequence[tuple[Lease, Outcome]]) -> list[Lease]:
        lost = []
        for lease, outcome in ended:
            try:
                self.finish(lease, outcome)
            except LeaseLostError:
                lost.append(lease)
        return lost

    def release(self, lease: Lease, reason: str, *, is_unopened: bool = False) -> Job:
        body = {"reason": reason[:LONGEST_REASON], "is_unopened": is_unopened}
        return Job.model_validate(self._post(lease, "release", body))

    def queue_states(self, names: Sequence[str], *, certain: bool = False) -> list[QueueState]:
        answer = self._server.read("GET", "/queue-states", query={"queue": list(names), "certain": certain})
        return [QueueState(**each) for each in answer]

    def _post(self, lease: Lease, verb: str, more: Mapping[str, Any] | None = None) -> Any:
        return self._server.write("POST", path_of("jobs", lease.job.job_id, verb), {**lease_of(lease), **(more or {})})


class ServerInstances(InstanceVerbs):
    """The Instance items of workers, kept by a server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def register(self, instance: Instance) -> None:
        self._send("PUT", instance)

    def beat(self, instance: Instance) -> None:
        self._send("POST", instance, "heartbeat")

    def stop(self, instance: Instance) -> None:
        self._send("POST", instance, "stop")

    def _send(self, method: str, instance: Instance, *verb: str) -> None:
        body = instance.model_dump(
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
        self._server.write(method, path_of("instances", instance.instance_id, *verb), body)


def _needs_store(server: Server, what: str = "") -> TaskError:
    """Return the error that ends the job of a task that needs the store: to retry it here would not help."""
    return TaskError(
        f"this needs the store itself{what}, and its worker has only {server.url}: "
        "let workers at the store serve its queue"
    )


class _NoStore(ServerBackend):
    """Takes the place of the store that tasks at the store find."""

    def execute(self, operation: str, request: Request) -> Response:
        raise _needs_store(self._server, f" ({operation})")


class _Nobody(Observer):
    """A watch that observes no worker: the server does."""

    def recover(self) -> list[Job]:
        return []
