"""Jobs and queues of a server: read from its store, changed by its REST API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import islice
from typing import Any, Unpack

from pydantic_core import to_jsonable_python

from jobtable.errors import JobtableError
from jobtable.jobs.read.job_reads import JobReads
from jobtable.jobs.stored.entities import Job, JobDependency, Queue
from jobtable.jobs.submit.definition import DependsOn, NewJob, new_job
from jobtable.jobs.verbs import ActedOn, JobVerbs, ManyVerb, ManyVerbs, QueueSettings
from jobtable.objects import ObjectStore
from jobtable.remote.server_requests import Server, error_of, path_of
from jobtable.store import Store

_JOBS_A_REQUEST = 500
_ACTED_ON_A_REQUEST = 50
_ACTION_TIMEOUT_SECONDS = 600.0
"""With each job, all its descendants may be ended or deleted."""


class ServerJobs(JobReads, JobVerbs):
    """The verbs of people on a server. Jobs belong to the user of the token; workers use work.py."""

    def __init__(self, server: Server, store: Store, objects: ObjectStore) -> None:
        super().__init__(store, objects)
        self._server = server

    @property
    def many(self) -> ManyVerbs:
        return ServerManyJobs(self._server)

    def submit(self, new: NewJob) -> Job:
        return Job.model_validate(self._server.create("/jobs", _body(new)))

    def submit_many(self, new: Iterable[NewJob]) -> list[Job]:
        submitted: list[Job] = []
        waiting = iter(new)
        while some := [_body(each) for each in islice(waiting, _JOBS_A_REQUEST)]:
            answer = self._server.create("/job-batches", some)
            submitted += [Job.model_validate(each) for each in answer]
        return submitted

    def open_group(self, new: NewJob) -> Job:
        return Job.model_validate(self._server.create("/job-groups", _body(new)))

    def seal(self, job_id: str) -> Job:
        return self._job("POST", job_id, "seal")

    def add_dependency(self, job_id: str, on: DependsOn) -> JobDependency:
        path = path_of("jobs", job_id, "dependencies")
        return JobDependency.model_validate(self._server.create(path, to_jsonable_python(on)))

    def cancel(self, job_id: str, *, by: str = "local", message: str | None = None, tree: bool = True) -> Job:
        return self._job("POST", job_id, "cancel", {"message": message}, tree=tree)

    def stop(self, job_id: str, *, by: str = "local", message: str | None = None, tree: bool = True) -> Job:
        return self._job("POST", job_id, "stop", {"message": message}, tree=tree)

    def retry(self, job_id: str, *, by: str = "local", tree: bool = False) -> Job:
        return self._job("POST", job_id, "retry", tree=tree)

    def prioritise(self, job_id: str, priority: int) -> Job:
        return self._job("PUT", job_id, "priority", {"priority": priority})

    def delete(self, job_id: str, *, tree: bool = False) -> int:
        answer = self._server.write("DELETE", path_of("jobs", job_id), query={"tree": tree})
        return int(answer["count"])

    def create_queue(self, name: str, **settings: Unpack[QueueSettings]) -> Queue:
        given = {setting: value for setting, value in settings.items() if value is not None}
        return Queue.model_validate(self._server.create("/queues", {"queue_name": name, **given}))

    def change_queue(self, name: str, **settings: Unpack[QueueSettings]) -> Queue:
        return self._queue("PATCH", name, body=settings)

    def pause_queue(self, name: str) -> Queue:
        return self._queue("POST", name, "pause")

    def resume_queue(self, name: str) -> Queue:
        return self._queue("POST", name, "resume")

    def delete_queue(self, name: str) -> None:
        self._server.write("DELETE", path_of("queues", name))

    def _job(self, method: str, job_id: str, verb: str, body: Any = None, **query: Any) -> Job:
        return Job.model_validate(self._server.write(method, path_of("jobs", job_id, verb), body, query=query))

    def _queue(self, method: str, name: str, *verb: str, body: Any = None) -> Queue:
        return Queue.model_validate(self._server.write(method, path_of("queues", name, *verb), body))


class ServerManyJobs(ManyVerbs):
    """The same verbs on a server, with a request for every fifty jobs."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def act(self, verb: ManyVerb, job_ids: Iterable[str], **options: Any) -> Iterator[ActedOn[Any]]:
        options.pop("by", None)  # the token names the user
        waiting = iter(job_ids)
        while some := list(islice(waiting, _ACTED_ON_A_REQUEST)):
            try:
                answer = self._server.write(
                    "POST",
                    f"/job-batches/{verb}",
                    {"job_ids": some, **options},
                    timeout_seconds=_ACTION_TIMEOUT_SECONDS,
                )
            except JobtableError as error:  # the requests after it are not sent
                yield from (ActedOn(job_id, error=error) for job_id in (*some, *waiting))
                return
            yield from (self._acted_on(verb, outcome) for outcome in answer["outcomes"])

    def _acted_on(self, verb: ManyVerb, outcome: dict[str, Any]) -> ActedOn[Any]:
        if outcome["problem"] is not None:
            return ActedOn(outcome["job_id"], error=error_of(outcome["problem"], self._server.url))
        given = int(outcome["count"]) if verb == "delete" else Job.model_validate(outcome["job"])
        return ActedOn(outcome["job_id"], given)


_DEFAULTS = {each.name: each.default for each in fields(NewJob)}


def _body(new: NewJob) -> dict[str, Any]:
    """What differs from the defaults of a new job; the token says which user submits it."""
    new = new_job(new)
    given = {each.name: getattr(new, each.name) for each in fields(NewJob) if each.name != "user"}
    return {name: to_jsonable_python(value) for name, value in given.items() if value != _DEFAULTS[name]}
