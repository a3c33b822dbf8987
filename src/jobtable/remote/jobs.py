"""Jobs and queues of a server: read as here, changed by its REST API."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from itertools import islice
from typing import Any

from pydantic_core import to_jsonable_python

from jobtable.jobs.definition import DependsOn, NewJob
from jobtable.jobs.engine import Jobs
from jobtable.jobs.entities import Job, JobDependency, Queue
from jobtable.objects import ObjectStore
from jobtable.remote.server import Server, path_of
from jobtable.store import Store

_JOBS_A_REQUEST = 500


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


_DEFAULTS = {each.name: each.default for each in fields(NewJob)}


def _body(new: NewJob) -> dict[str, Any]:
    """What is not as usual of a new job; in whose name it is, the token says."""
    given = {each.name: getattr(new, each.name) for each in fields(NewJob) if each.name != "user"}
    return {name: to_jsonable_python(value) for name, value in given.items() if value != _DEFAULTS[name]}
