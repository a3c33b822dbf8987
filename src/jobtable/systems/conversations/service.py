"""The verbs of conversation analysis: store the results of a job, and find them by job or by conversation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self, TypeVar

from jobtable.errors import ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.model import Table
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern
from jobtable.systems.conversations.entities import CONVERSATION_INDEX, TABLES, JobResult

R = TypeVar("R", bound=JobResult)


def tables(*, conversation_index: bool = True) -> tuple[Table, ...]:
    """Return the tables of results with or without the index by conversation."""
    return TABLES if conversation_index else tuple(table.without_index(CONVERSATION_INDEX) for table in TABLES)


class Conversations:
    """The results of all jobs in one store; each kind of result is named by its entity.

    `conversation_index=False` means that the tables were created without the optional index.
    """

    def __init__(self, store: Store, *, conversation_index: bool = True) -> None:
        self._store = store
        self._has_index = conversation_index

    @classmethod
    def of(cls, jobs: Jobs) -> Self:
        return cls(jobs.store)

    def put_results(self, results: Iterable[JobResult]) -> int:
        """Store results of any kind, each on its own; return their number."""
        return self._store.batch_put(results)

    @access_pattern("Get all data for a specific job")
    def list_by_job(self, kind: type[R], job_id: str) -> Query[R]:
        """Yield all results of one kind that a job stored, by range key."""
        return self._store.query(kind.key(job_id=job_id))

    @access_pattern("Get all data for a specific job and conversation")
    def list_by_job_and_conversation(self, kind: type[R], job_id: str, conversation_id: str) -> Query[R]:
        """Yield the results of one kind that a job stored for one conversation; reads all of the job's."""
        return self._store.query(kind.key(job_id=job_id), where=kind.conversation_id == conversation_id)

    @access_pattern("Get all data for a specific conversation", index="ConversationIndex")
    def list_by_conversation(self, kind: type[R], conversation_id: str, *, newest_first: bool = False) -> Query[R]:
        """Yield the results of one kind of all jobs for a conversation, by creation; requires the optional index."""
        if not self._has_index:
            raise ValueRefusedError(
                f"{kind.__name__} by conversation needs the index {CONVERSATION_INDEX}, which is switched off; "
                "create the tables with it, or ask by job"
            )
        return self._store.query(kind.by_conversation(conversation_id=conversation_id), newest_first=newest_first)

    def delete_job(self, job_id: str) -> int:
        """Delete everything that a job stored in all tables; return the number of items."""
        kinds = [schema.cls for table in TABLES for schema in table.entities.values()]
        return sum(self._store.batch_delete(self._store.query(kind.key(job_id=job_id))) for kind in kinds)

    @access_pattern("Get a specific item: comment embedding")
    @access_pattern("Get a specific item: cluster assignment")
    @access_pattern("Get a specific item: cluster structure")
    @access_pattern("Get a specific item: graph edge")
    @access_pattern("Get a specific item: topic name")
    @access_pattern("Get a specific item: comment extremity")
    @access_pattern("Get a specific item: comment opinion")
    @access_pattern("Get a specific item: opinion group")
    @access_pattern("Get a specific item: participant")
    def get_result(self, kind: type[R], job_id: str, range_key: int | str) -> R:
        """Return one result of a job by its range key, or raise NotFoundError."""
        return self._store.get(kind.key(**dict(zip(kind.__schema__.table.primary, (job_id, range_key), strict=True))))
