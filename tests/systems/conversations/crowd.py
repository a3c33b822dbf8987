"""Conversations with many comments and runs."""

from __future__ import annotations

from collections.abc import Iterator

from tests.systems.conversations.access_patterns import opinions
from tests.web.crowd import START, at

from jobtable.app import Services
from jobtable.model import Entity
from jobtable.systems.conversations.conversation_runs import ConversationRuns
from jobtable.systems.conversations.converter import DataConverter
from jobtable.systems.conversations.entities import ConversationRun, StoredFile
from jobtable.systems.conversations.pipeline import STAGE_OF, stage_job_id
from jobtable.testing import FakeClock

IDS = {"conversation_id": "talk", "item_id": "1", "other_id": "run-b", "run_id": "run-a"}
"""What paths of routes say, by the name of the parameter."""
ASKED: dict[str, list[str]] = {"/api/v1/conversation-jobs/{job_id}/embeddings": ["", "conversation_id=none"]}
"""Queries of routes, beside what their paths say."""
WHOLE: dict[str, str] = {"/api/v1/conversation-runs/{run_id}/comparison/{other_id}": "all results of two runs"}
"""What is asked for as a whole, and is as large as it is."""


def fill(services: Services, count: int) -> None:
    """Write so many of everything."""
    _start_runs(services)
    services.store.batch_put(_conversation(count))


def _start_runs(services: Services) -> None:
    comments = b"comment-id,comment-body,moderated\n1,trees,1\n2,buses,1\n"
    votes = b"comment-id,voter-id,vote\n1,1,1\n2,1,-1\n"
    for run in ("run-a", "run-b"):
        services.get(ConversationRuns).start("talk", comments, votes, run_id=run, user="ada")


def _conversation(count: int) -> Iterator[Entity]:
    clock, make = FakeClock(START), DataConverter()
    file = StoredFile(key="conversations/36324/run/comments.csv", size_bytes=1, sha256="0" * 64)
    stages = {kind.__name__: stage_job_id("run-a", stage) for kind, stage in STAGE_OF.items()}
    for n in range(count):
        yield ConversationRun(
            run_id=f"r{n}", conversation_id="talk", created_at=at(n), created_by="ada", comments=file, votes=file
        )
        made = (
            make.create_comment_embedding("talk", n, [0.5] * 10, clock=clock, job_id="x"),
            make.create_cluster_assignment("talk", n, [n, 0], clock=clock, job_id="x"),
            make.create_cluster("talk", 0, n, 1, clock=clock, job_id="x"),
            make.create_graph_edge("talk", n, n + 1, 0.5, clock=clock, job_id="x"),
            make.create_topic_name("talk", 0, n, "Parks", model_name="m", clock=clock, job_id="x"),
            make.create_comment_extremity("talk", n, 0.5, calculation_method="v", clock=clock, job_id="x"),
        )
        for each in (*made, *opinions("x", "talk", clock, n)):
            yield each.replace(job_id=stages[type(each).__name__])
