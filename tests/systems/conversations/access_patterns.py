"""Results of two jobs for two conversations."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from tests.access_patterns import Question, World

from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.model import Entity
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.systems.conversations.conversation_runs import ConversationRuns
from jobtable.systems.conversations.converter import DataConverter
from jobtable.systems.conversations.entities import (
    TABLES,
    CommentCluster,
    CommentClusterAssignment,
    CommentEmbedding,
    CommentExtremity,
    CommentOpinion,
    ConversationRun,
    GraphEdge,
    JobResult,
    OpinionGroup,
    ParticipantOpinion,
    Point,
    StoredFile,
    TopicName,
)
from jobtable.systems.conversations.service import Conversations
from jobtable.testing import FakeClock


def results(job_id: str, conversation_id: str, clock: FakeClock, comments: range) -> Iterator[JobResult]:
    """One result of each kind for each comment."""
    make = DataConverter()
    for comment in comments:
        yield make.create_comment_embedding(conversation_id, comment, [0.5, comment], clock=clock, job_id=job_id)
        yield make.create_cluster_assignment(conversation_id, comment, [comment, 0], clock=clock, job_id=job_id)
        yield make.create_cluster(conversation_id, 0, comment, 1, clock=clock, job_id=job_id)
        yield make.create_graph_edge(conversation_id, comment, comment + 1, 0.5, clock=clock, job_id=job_id)
        yield make.create_topic_name(
            conversation_id, 0, comment, "Parks", model_name="llama3", clock=clock, job_id=job_id
        )
        yield make.create_comment_extremity(
            conversation_id, comment, 0.5, calculation_method="variance", clock=clock, job_id=job_id
        )
        yield from opinions(job_id, conversation_id, clock, comment)


def opinions(job_id: str, conversation_id: str, clock: FakeClock, number: int) -> Iterator[JobResult]:
    """What one participant thinks of one comment, in a group of one."""
    of_job: dict[str, Any] = {"job_id": job_id, "conversation_id": conversation_id, "created_at": clock.now()}
    counts: dict[str, Any] = {"votes": 1, "agrees": 1, "disagrees": 0}
    measures: dict[str, Any] = {
        "consensus_agree": 0.6,
        "consensus_disagree": 0.3,
        "divisiveness": 0.0,
        "priority": 1.0,
        "reach": 0.0,
    }
    yield CommentOpinion(**of_job, comment_id=number, **counts, **measures)
    yield OpinionGroup(**of_job, group_id=number, size=1, position=Point(x=0, y=0))
    yield ParticipantOpinion(**of_job, participant_id=str(number), position=Point(x=0, y=0), votes=1)


def items() -> Iterator[Entity]:
    """The world: job-2 came before job-1, and looked at two conversations."""
    clock = FakeClock(datetime(2025, 7, 24, tzinfo=UTC))
    yield from results("job-2", "36324", clock, range(20, 22))
    yield from results("job-2", "40000", clock, range(22, 23))
    yield from results("job-1", "36324", clock, range(9, 12))
    file = StoredFile(key="conversations/36324/run/comments.csv", size_bytes=1, sha256="0" * 64)
    for run, conversation in (("run-1", "36324"), ("run-2", "40000"), ("run-3", "36324")):
        yield ConversationRun(
            run_id=run,
            conversation_id=conversation,
            created_at=clock.now(),
            created_by="ada",
            comments=file,
            votes=file,
        )


def runs(store: Store) -> ConversationRuns:
    """The verbs of runs."""
    return ConversationRuns(Jobs(store, MemoryObjectStore()))


WORLD = World(
    name="conversations",
    tables=(main, *TABLES),
    items=items,
    questions={
        ("conversations", "All runs of a conversation, newest first"): Question(
            lambda s: [run.run_id for run in runs(s).list_runs("36324")], ["run-3", "run-1"]
        ),
        ("conversations", "Get all data for a specific job"): Question(
            lambda s: [e.comment_id for e in Conversations(s).list_by_job(CommentEmbedding, "job-1")], [9, 10, 11]
        ),
        ("conversations", "Get all data for a specific job and conversation"): Question(
            lambda s: [
                e.comment_id for e in Conversations(s).list_by_job_and_conversation(CommentEmbedding, "job-2", "36324")
            ],
            [20, 21],
        ),
        ("conversations", "Get all data for a specific conversation"): Question(
            lambda s: [e.comment_id for e in Conversations(s).list_by_conversation(CommentEmbedding, "36324")],
            [20, 21, 9, 10, 11],
        ),
        ("conversations", "Get a specific item: comment embedding"): Question(
            lambda s: Conversations(s).get_result(CommentEmbedding, "job-1", 9).embedding.vector, [0.5, 9]
        ),
        ("conversations", "Get a specific item: cluster assignment"): Question(
            lambda s: [Conversations(s).get_result(CommentClusterAssignment, "job-1", 9).layer_clusters],
            [{"0": 9, "1": 0}],
        ),
        ("conversations", "Get a specific item: cluster structure"): Question(
            lambda s: [Conversations(s).get_result(CommentCluster, "job-1", "layer0_9").cluster_id], [9]
        ),
        ("conversations", "Get a specific item: graph edge"): Question(
            lambda s: [Conversations(s).get_result(GraphEdge, "job-1", "9_10").target_id], [10]
        ),
        ("conversations", "Get a specific item: topic name"): Question(
            lambda s: [Conversations(s).get_result(TopicName, "job-1", "layer0_9").topic_name], ["Parks"]
        ),
        ("conversations", "Get a specific item: comment extremity"): Question(
            lambda s: [Conversations(s).get_result(CommentExtremity, "job-1", 9).extremity_value], [0.5]
        ),
        ("conversations", "Get a specific item: comment opinion"): Question(
            lambda s: [Conversations(s).get_result(CommentOpinion, "job-1", 9).agrees], [1]
        ),
        ("conversations", "Get a specific item: opinion group"): Question(
            lambda s: [Conversations(s).get_result(OpinionGroup, "job-1", 9).size], [1]
        ),
        ("conversations", "Get a specific item: participant"): Question(
            lambda s: [Conversations(s).get_result(ParticipantOpinion, "job-1", "9").votes], [1]
        ),
    },
)
