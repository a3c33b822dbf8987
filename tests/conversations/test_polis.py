"""A whole conversation as Polis exports it, stored and read back: a generated one, and real ones where they are."""

from __future__ import annotations

import csv
import zlib
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from jobtable.conversations.converter import DataConverter
from jobtable.conversations.entities import CommentEmbedding, CommentExtremity, JobResult
from jobtable.conversations.service import Conversations, tables
from jobtable.embedded import EmbeddedBackend
from jobtable.store import Store
from jobtable.testing import FakeClock

REAL = sorted((Path(__file__).parents[3] / "shared" / "data" / "polis").glob("*/comments.csv"))


@dataclass(frozen=True)
class Export:
    """Comments by their id, and the votes on each: 1 agrees, -1 disagrees, 0 passes."""

    comments: dict[int, str]
    votes: dict[int, list[int]]


def generated() -> Export:
    """An export of 200 comments with 10,000 votes."""
    random = np.random.default_rng(7)
    words = ["parks", "police", "buses", "schools", "rents", "rivers"]
    comments = {number: " ".join(random.choice(words, 5)) for number in range(200)}
    votes: dict[int, list[int]] = defaultdict(list)
    for comment in random.integers(0, 200, 10_000).tolist():
        votes[comment].append(int(random.integers(-1, 2)))
    return Export(comments, votes)


def exported(folder: Path) -> Export:
    """An export from its files."""
    with (folder / "comments.csv").open(newline="") as file:
        comments = {int(row["comment-id"]): row["comment-body"] for row in csv.DictReader(file)}
    votes: dict[int, list[int]] = defaultdict(list)
    with (folder / "votes.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            votes[int(row["comment-id"])].append(int(row["vote"]))
    return Export(comments, votes)


def vector_of(text: str) -> np.ndarray:
    """Counts of a text's words, each at the place that its checksum names."""
    vector = np.zeros(64, dtype=np.float32)
    for word in text.lower().split():
        vector[zlib.crc32(word.encode()) % 64] += 1
    return vector


def results_of(export: Export) -> list[JobResult]:
    """An embedding and an extremity for each comment."""
    clock = FakeClock(datetime(2025, 7, 24, tzinfo=UTC))
    made: list[JobResult] = []
    for comment, text in export.comments.items():
        made.append(DataConverter.create_comment_embedding("c", comment, vector_of(text), clock=clock, job_id="run"))
        votes = np.array(export.votes.get(comment, []), dtype=np.int64)
        spread = float(votes.std()) if len(votes) else 0.0
        made.append(
            DataConverter.create_comment_extremity(
                "c", comment, spread, calculation_method="deviation", votes=votes, clock=clock, job_id="run"
            )
        )
    return made


@pytest.mark.parametrize("folder", [None, *(path.parent for path in REAL)], ids=lambda f: f.name if f else "generated")
def test_a_conversation_comes_back_as_it_was_stored(folder: Path | None) -> None:
    export = exported(folder) if folder else generated()
    made = results_of(export)
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(*tables())
        verbs = Conversations(store)
        assert verbs.put_results(made) == len(made) == 2 * len(export.comments)
        embeddings = list(verbs.list_by_job(CommentEmbedding, "run"))
        assert [each.comment_id for each in embeddings] == sorted(export.comments)
        by_time = [
            *verbs.list_by_conversation(CommentEmbedding, "c"),
            *verbs.list_by_conversation(CommentExtremity, "c"),
        ]
        assert sorted(by_time, key=lambda each: each.created_at) == made
        extremities = verbs.list_by_job(CommentExtremity, "run")
        counted = sum(len(votes) for comment, votes in export.votes.items() if comment in export.comments)
        assert sum(each.vote_count or 0 for each in extremities) == counted
