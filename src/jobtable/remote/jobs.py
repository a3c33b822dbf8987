"""Jobs and queues of a server: read as here, changed by its REST API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import islice
from typing import Any, TypeVar

from pydantic_core import to_jsonable_python

from jobtable.errors import JobtableError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.many import ActedOn, ManyJobs
from jobtable.jobs.stored.entities import Job, JobDependency, Queue
from jobtable.jobs.submit.definition import DependsOn, NewJob
from jobtable.jobs.submit.submission import new_job
from jobtable.objects import ObjectStore
from jobtable.remote.server import Server, error_of, path_of
from jobtable.store import Store

T = TypeVar("T")

_JOBS_A_REQUEST = 500
_ACTED_ON_A_REQUEST = 50
_ACTION_TIMEOUT_SECONDS = 600.0
"""With each job, everything under it may be ended or deleted."""


class ServerJobs(Jobs):
    """The verbs of people, on a server. Jobs belong to the user whom the token names. Workers use work.py."""

    def __init__(self, server: Server, store: Store, objects: ObjectStore) -> None:
        super().__init__(store, objects)
        self._server = server
        self.submit = self._submit
        self.submit_many = self._submit_many
        self.open_group = self._open_group
        self.seal = lambda job_id: self._job("POST", job_id, "seal")
        self.add_dependency = self._add_dependency
        self.create_queue = self._create_queue
        self.change_queue = self._change_queue
        self.pause_queue = lambda name: self._queue("POST", name, "pause")
        self.resume_queue = lambda name: self._queue("POST", name, "resume")
        self.delete_queue = self._delete_queue
        self.cancel = self._cancel
        self.stop = self._stop
        self.retry = self._retry
        self.prioritise = self._prioritise
        self.delete = self._delete

    @property
    def many(self) -> ManyJobs:
        """What people do with jobs, done with many by one request."""
        return ServerManyJobs(self, self._server)

    def _submit(self, new: NewJob) -> Job:
        return Job.model_validate(self._server.create("/jobs", _body(new)))

    def _submit_many(self, new: Iterable[NewJob]) -> list[Job]:
        submitted: list[Job] = []
        waiting = iter(new)
        while some := [_body(each) for each in islice(waiting, _JOBS_A_REQUEST)]:
            answer = self._server.create("/job-batches", some)
            submitted += [Job.model_validate(each) for each in answer]
        return submitted

    def _open_group(self, new: NewJob) -> Job:
        return Job.model_validate(self._server.create("/job-groups", _body(new)))

    def _add_dependency(self, job_id: str, on: DependsOn) -> JobDependency:
        path = path_of("jobs", job_id, "dependencies")
        body = to_jsonable_python(on)
        return JobDependency.model_validate(self._server.create(path, body))

    def _cancel(self, job_id: str, *, by: str = "local", message: str | None = None, tree: bool = True) -> Job:
        return self._job("POST", job_id, "cancel", {"message": message}, tree=tree)

    def _stop(self, job_id: str, *, by: str = "local", message: str | None = None, tree: bool = True) -> Job:
        return self._job("POST", job_id, "stop", {"message": message}, tree=tree)

    def _retry(self, job_id: str, *, by: str = "local", tree: bool = False) -> Job:
        return self._job("POST", job_id, "retry", tree=tree)

    def _prioritise(self, job_id: str, priority: int) -> Job:
        return self._job("PUT", job_id, "priority", {"priority": priority})

    def _delete(self, job_id: str, *, tree: bool = False) -> int:
        answer = self._server.write("DELETE", path_of("jobs", job_id), query={"tree": tree})
        return int(answer["count"])

    def _create_queue(
        self, name: str, *, max_concurrent_jobs: int = 1000, priority: int = 500, description: str = ""
    ) -> Queue:
        body = {
            "queue_name": name,
            "max_concurrent_jobs": max_concurrent_jobs,
            "priority": priority,
            "description": description,
        }
        return Queue.model_validate(self._server.create("/queues", body))

    def _change_queue(
        self,
        name: str,
        *,
        max_concurrent_jobs: int | None = None,
        priority: int | None = None,
        description: str | None = None,
    ) -> Queue:
        body = {"max_concurrent_jobs": max_concurrent_jobs, "priority": priority, "description": description}
        return self._queue("PATCH", name, body=body)

    def _delete_queue(self, name: str) -> None:
        self._server.write("DELETE", path_of("queues", name))

    def _job(self, method: str, job_id: str, verb: str, body: Any = None, **query: Any) -> Job:
        return Job.model_validate(self._server.write(method, path_of("jobs", job_id, verb), body, query=query))

    def _queue(self, method: str, name: str, *verb: str, body: Any = None) -> Queue:
        return Queue.model_validate(self._server.write(method, path_of("queues", name, *verb), body))


class ServerManyJobs(ManyJobs):
    """The same verbs, on a server: a request for every fifty jobs."""

    def __init__(self, jobs: Jobs, server: Server) -> None:
        super().__init__(jobs)
        self._server = server

    def cancel(
        self, job_ids: Iterable[str], *, by: str = "local", message: str | None = None, tree: bool = True
    ) -> Iterator[ActedOn[Job]]:
        """Cancel jobs."""
        return self._act("cancel", job_ids, _job_of, message=message, tree=tree)

    def stop(
        self, job_ids: Iterable[str], *, by: str = "local", message: str | None = None, tree: bool = True
    ) -> Iterator[ActedOn[Job]]:
        """Stop jobs."""
        return self._act("stop", job_ids, _job_of, message=message, tree=tree)

    def retry(self, job_ids: Iterable[str], *, by: str = "local", tree: bool = False) -> Iterator[ActedOn[Job]]:
        """Let jobs begin anew."""
        return self._act("retry", job_ids, _job_of, tree=tree)

    def delete(self, job_ids: Iterable[str], *, tree: bool = False) -> Iterator[ActedOn[int]]:
        """Delete jobs; gives the number of items of each."""
        return self._act("delete", job_ids, lambda outcome: int(outcome["count"]), tree=tree)

    def _act(
        self, verb: str, job_ids: Iterable[str], given: Callable[[dict[str, Any]], T], **told: Any
    ) -> Iterator[ActedOn[T]]:
        """Act on jobs some at a time; behind a request that fails as a whole, none is sent any more."""
        waiting = iter(job_ids)
        while some := list(islice(waiting, _ACTED_ON_A_REQUEST)):
            try:
                answer = self._server.write(
                    "POST",
                    f"/job-batches/{verb}",
                    {"job_ids": some, **told},
                    timeout_seconds=_ACTION_TIMEOUT_SECONDS,
                )
            except JobtableError as error:
                yield from (ActedOn(job_id, error=error) for job_id in (*some, *waiting))
                return
            for outcome in answer["outcomes"]:
                if outcome["problem"] is None:
                    yield ActedOn(outcome["job_id"], given(outcome))
                else:
                    yield ActedOn(outcome["job_id"], error=error_of(outcome["problem"], self._server.url))


def _job_of(outcome: dict[str, Any]) -> Job:
    return Job.model_validate(outcome["job"])


_DEFAULTS = {each.name: each.default for each in fields(NewJob)}


def _body(new: NewJob) -> dict[str, Any]:
    """What is not as usual of a new job; in whose name it is, the token says."""
    new = new_job(new)
    given = {each.name: getattr(new, each.name) for each in fields(NewJob) if each.name != "user"}
    return {name: to_jsonable_python(value) for name, value in given.items() if value != _DEFAULTS[name]}
