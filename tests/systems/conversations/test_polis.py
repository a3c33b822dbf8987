"""A whole conversation as Polis exports it, stored and read back: a generated one, and real ones where they are."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.store import Store
from jobtable.systems.conversations.analysis.embedding import embed_tfidf
from jobtable.systems.conversations.analysis.polis_export import PolisExport, read_export
from jobtable.systems.conversations.converter import DataConverter
from jobtable.systems.conversations.entities import CommentEmbedding, CommentExtremity, JobResult
from jobtable.systems.conversations.example import generate_export
from jobtable.systems.conversations.service import Conversations, tables
from jobtable.testing import FakeClock

REAL = sorted((Path(__file__).parents[4] / "shared" / "data" / "polis").glob("*/comments.csv"))


def results_of(export: PolisExport) -> list[JobResult]:
    """An embedding and an extremity for each comment."""
    clock = FakeClock(datetime(2025, 7, 24, tzinfo=UTC))
    vectors = embed_tfidf([comment.text for comment in export.comments])
    made: list[JobResult] = []
    for (comment_id, *_), vector in zip(export.comments, vectors, strict=True):
        made.append(DataConverter.create_comment_embedding("c", comment_id, vector, clock=clock, job_id="run"))
        votes = [vote.value for vote in export.votes if vote.comment_id == comment_id]
        made.append(
            DataConverter.create_comment_extremity(
                "c", comment_id, 0.5, calculation_method="none", votes=votes, clock=clock, job_id="run"
            )
        )
    return made


@pytest.mark.parametrize("folder", [None, *(path.parent for path in REAL)], ids=lambda f: f.name if f else "generated")
def test_a_conversation_comes_back_as_it_was_stored(folder: Path | None) -> None:
    export = read_export(folder) if folder else generate_export(7, comments=200)
    made = results_of(export)
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(*tables())
        verbs = Conversations(store)
        assert verbs.put_results(made) == len(made) == 2 * len(export.comments)
        embeddings = list(verbs.list_by_job(CommentEmbedding, "run"))
        assert [each.comment_id for each in embeddings] == [comment.comment_id for comment in export.comments]
        by_time = [
            *verbs.list_by_conversation(CommentEmbedding, "c"),
            *verbs.list_by_conversation(CommentExtremity, "c"),
        ]
        assert sorted(by_time, key=lambda each: each.created_at) == made
        extremities = verbs.list_by_job(CommentExtremity, "run")
        assert sum(each.vote_count or 0 for each in extremities) == len(export.votes)
