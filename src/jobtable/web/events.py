"""The events of live views: the topics of a change, and its encoding."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic_core import to_json

from jobtable.assist.entities import AssistCall, AssistCost
from jobtable.inbox.entities import InboxTask
from jobtable.jobs.stored.entities import Instance, Job, Queue, main
from jobtable.model import Selection, Table
from jobtable.store.changes import Change
from jobtable.system import declared
from jobtable.web.formats import duration_text
from jobtable.workflows.asl.catalogue.records import StateMachine
from jobtable.workflows.asl.entities import Execution
from jobtable.workflows.durable.entities import DurableExecution
from jobtable.workflows.table_and_queues import workflows

_MOST_CHANGES = 200
_MOST_BYTES = 1_000_000
"""Maximum size of an event, because many may wait for a slow reader."""
_JOB_FIELDS = {
    "job_id",
    "name",
    "status",
    "progress",
    "message",
    "attempts",
    "created_at",
    "started_at",
    "ended_at",
    "requested",
    "queue_name",
}
_FIELDS: dict[str, set[str]] = {"jobs": _JOB_FIELDS, "assist": set()}
"""What the changes of a topic hold, if not everything; viewers of all calls get no prompts or answers."""


@dataclass(frozen=True)
class LiveTopics:
    """The topics of the changes of some tables, to which a viewer can subscribe.

    `names` are topics without an id. `with_id` are topics of one thing, as in `job:ID`, with the thing's key.
    """

    tables: tuple[Table, ...]
    topics_of: Callable[[Change], Iterable[str]]
    """Returns the topics of a change by its keys, so that a change without viewers is not decoded."""
    names: tuple[str, ...] = ()
    with_id: Mapping[str, Callable[[str], Selection[Any]]] = field(default_factory=dict)

    def in_keys(self, topic: str) -> str:
        """Return a topic with its id as in keys."""
        kind, _, given = topic.partition(":")
        return f"{kind}:{id_in(self.with_id[kind](given).equal)}" if given else topic


def id_in(key: Mapping[str, Any]) -> str:
    """Return the id in a partition key, as in `JOB#5f3c`."""
    return str(key["PK"]["S"]).partition("#")[2]


def _topics_of_jobs(change: Change) -> Iterator[str]:
    """jobs: every job; job:ID: a job and everything under it; queues: queues and workers; assist: calls and costs.

    inbox: the tasks of people; inbox:ID: one of them.
    """
    item = change.new_item or change.old_item or {}
    if item["PK"]["S"].startswith("JOB#"):
        yield f"job:{id_in(item)}"
    elif change.is_of(InboxTask):
        yield "inbox"
        yield f"inbox:{id_in(item)}"
    if change.is_of(Job):
        yield "jobs"
    elif change.is_of(Queue, Instance):
        yield "queues"
    elif change.is_of(AssistCall, AssistCost):
        yield "assist"


_JOBS = LiveTopics(
    (main,),
    _topics_of_jobs,
    ("overview", "jobs", "queues", "assist", "inbox"),
    {"job": lambda given: Job.key(job_id=given), "inbox": lambda given: InboxTask.key(task_id=given)},
)


def _topics_of_workflows(change: Change) -> Iterator[str]:
    """machines, machine:NAME: machines and their executions; execution:ID, durable:ID: one and everything under it."""
    item = change.new_item or change.old_item or {}
    kind, _, given = item["PK"]["S"].partition("#")
    if kind in ("EXECUTION", "DURABLE"):
        yield f"{kind.lower()}:{given}"
    if change.is_of(Execution):
        yield "machines"
        yield f"machine:{item['GSI1PK']['S'].partition('#')[2]}"
    elif kind == "MACHINE":
        yield "machines"
        yield f"machine:{given}"
    elif kind == "MAP_RUN":
        yield f"execution:{item['GSI1PK']['S'].partition('#')[2]}"
    elif change.is_of(DurableExecution):
        yield "durables"


def _key_of_execution(given: str) -> Selection[Any]:
    machine, _, name = given.partition("#")
    return Execution.key(machine=machine, name=name)


def _key_of_durable(given: str) -> Selection[Any]:
    function, _, name = given.partition("#")
    return DurableExecution.key(function=function, name=name)


_WORKFLOWS = LiveTopics(
    (workflows,),
    _topics_of_workflows,
    ("machines", "durables"),
    {
        "machine": lambda given: StateMachine.key(name=given),
        "execution": _key_of_execution,
        "durable": _key_of_durable,
    },
)


@cache
def all_topics() -> tuple[LiveTopics, ...]:
    """Return the topics of jobs, of workflows, and of every system."""
    return (_JOBS, _WORKFLOWS, *(system.load(path) for system, path in declared("live")))


def topics_of(change: Change) -> Iterator[str]:
    """Yield the topics of a change."""
    for topics in all_topics():
        if change.table in topics.tables:
            yield from topics.topics_of(change)


def encode_changes(topic: str, changes: list[Change]) -> bytes:
    """Return one event with the last change of each item of a topic, or, if that is too much, without any."""
    latest: dict[Any, Change] = {}
    for change in changes:
        latest[json.dumps([change.table.name, *_key(change)])] = change
    if len(latest) <= _MOST_CHANGES:
        values = [_values(topic, change) for change in latest.values()]
        event = encode("changes", {"topic": topic, "changes": values, "is_complete": True})
        if len(event) <= _MOST_BYTES:
            return event
    return encode("changes", {"topic": topic, "changes": [], "is_complete": False})


def encode(event: str, data: Any) -> bytes:
    """Return one server-sent event."""
    return b"event: " + event.encode() + b"\ndata: " + to_json(data) + b"\n\n"


def _key(change: Change) -> list[Any]:
    item = change.new_item or change.old_item or {}
    return [item.get(name) for name in change.table.primary]


def _values(topic: str, change: Change) -> dict[str, Any]:
    entity = change.after or change.before
    fields = _FIELDS.get(topic)
    values = entity.model_dump(mode="json", include=fields) if entity is not None else {}
    if topic == "jobs" and isinstance(entity, Job):
        values["took"] = duration_text(entity.duration_seconds)
    return {"kind": change.kind, "type": type(entity).__name__, "values": values}
