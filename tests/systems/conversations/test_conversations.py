"""Conversations: the converter from arrays and rows, and the storage verbs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from tests.systems.conversations.access_patterns import results

from jobtable.errors import ValueRefusedError
from jobtable.store import Store
from jobtable.systems.conversations.converter import DataConverter
from jobtable.systems.conversations.entities import TABLES, CommentEmbedding, CommentExtremity, JobResult, TopicName
from jobtable.systems.conversations.service import Conversations, tables
from jobtable.testing import FakeClock

CLOCK = FakeClock(datetime(2025, 7, 24, tzinfo=UTC))
KINDS: list[type[Any]] = [schema.cls for table in TABLES for schema in table.entities.values()]
JOB = "f84d63ed-3b42-448e-9a1d-3474137f4e80"


def test_an_array_becomes_an_embedding() -> None:
    vector = np.array([0.5, -1.25, 3], dtype=np.float32)
    made = DataConverter.create_comment_embedding(
        "36324",
        np.int64(7),  # type: ignore[arg-type]  # numpy's integers come out of arrays
        vector,
        umap_coordinates=np.array([1.0, 2.0]),
        neighbors=[(8, np.float64(0.5))],
        clock=CLOCK,
        job_id=JOB,
        parent_job_id="p",
        root_job_id="r",
        job_stage="UMAP",
    )
    assert made.embedding.vector == [0.5, -1.25, 3]
    assert (made.embedding.dimensions, made.embedding.model) == (3, "all-MiniLM-L6-v2")
    assert (made.job_id, made.parent_job_id, made.root_job_id, made.job_stage) == (JOB, "p", "r", "UMAP")
    assert type(made.comment_id) is int


def test_a_matrix_becomes_many_embeddings() -> None:
    matrix, layout = np.arange(12, dtype=np.float64).reshape(4, 3), np.zeros((4, 2))
    made = list(
        DataConverter.create_comment_embeddings("36324", np.arange(4), matrix, layout=layout, clock=CLOCK, job_id=JOB)
    )
    assert [each.embedding.vector for each in made] == matrix.tolist()
    with pytest.raises(ValueError, match="shorter"):
        list(DataConverter.create_comment_embeddings("36324", np.arange(5), matrix, clock=CLOCK, job_id=JOB))


def test_layers_become_an_assignment() -> None:
    made = DataConverter.create_cluster_assignment(
        "36324", 7, np.array([14, 3, -1]), distances=np.array([0.5, 1, 2]), clock=CLOCK, job_id=JOB
    )
    assert made.layer_clusters == {"0": 14, "1": 3, "2": -1}
    assert made.distance_to_centroid == {"0": 0.5, "1": 1, "2": 2}
    assert not made.is_outlier
    assert DataConverter.create_cluster_assignment("36324", 7, [-1, -1], clock=CLOCK, job_id=JOB).is_outlier


def test_votes_become_shares() -> None:
    made = DataConverter.create_comment_extremity(
        "36324", 7, 0.5, calculation_method="variance", votes=np.array([1, 1, -1, 0]), clock=CLOCK, job_id=JOB
    )
    assert (made.vote_count, made.agree_share, made.disagree_share) == (4, 0.5, 0.25)
    none = DataConverter.create_comment_extremity(
        "36324", 7, 0.5, calculation_method="variance", votes=[], clock=CLOCK, job_id=JOB
    )
    assert (none.vote_count, none.agree_share) == (0, None)


def test_a_plain_row_becomes_any_result() -> None:
    row = {"comment_id": "7", "conversation_id": "36324", "extremity_value": "0.5", "calculation_method": "variance"}
    made = DataConverter.from_row(CommentExtremity, row, clock=CLOCK, job_id=JOB)
    assert (made.comment_id, made.extremity_value, made.job_id) == (7, 0.5, JOB)


def test_a_point_has_two_coordinates() -> None:
    with pytest.raises(ValueRefusedError, match="two coordinates, not 3"):
        DataConverter.create_cluster("36324", 0, 1, 5, centroid=[1, 2, 3], clock=CLOCK, job_id=JOB)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_job_id_is_required_everywhere(kind: type[JobResult]) -> None:
    assert kind.model_fields["job_id"].is_required()
    made = next(each for each in results("job", "36324", CLOCK, range(1)) if type(each) is kind)
    for missing in (None, ""):
        with pytest.raises(ValidationError, match="job_id"):
            made.replace(job_id=missing)


@pytest.fixture
def verbs(each_store: Store) -> Conversations:
    each_store.tables.create(*tables())
    return Conversations(each_store)


@pytest.mark.parametrize("packed", [False, True])
def test_a_vector_is_stored_in_the_form_that_was_chosen(verbs: Conversations, packed: bool) -> None:
    vector = np.random.default_rng(1).standard_normal(384).astype(np.float32)
    made = DataConverter.create_comment_embedding("36324", 7, vector, packed=packed, clock=CLOCK, job_id=JOB)
    verbs.put_results([made])
    found = verbs.get_result(CommentEmbedding, JOB, 7)
    assert found.embedding.vector == vector.tolist()
    item = CommentEmbedding.__schema__.codec.encode(found)
    assert list(item["embedding"]["M"]["vector"]) == ["B" if packed else "L"]


def test_two_runs_live_side_by_side_and_one_can_go(verbs: Conversations) -> None:
    verbs.put_results(results("old", "36324", CLOCK, range(30)))
    verbs.put_results(results("new", "36324", CLOCK, range(30)))
    for kind in KINDS:
        assert len(list(verbs.list_by_job(kind, "old"))) == 30
        jobs = [each.job_id for each in verbs.list_by_conversation(kind, "36324", newest_first=True)]
        assert jobs == ["new"] * 30 + ["old"] * 30
    assert verbs.delete_job("old") == 30 * len(TABLES)
    for kind in KINDS:
        assert list(verbs.list_by_job(kind, "old")) == []
        assert len(list(verbs.list_by_job(kind, "new"))) == 30


def test_the_conversation_index_can_be_switched_off(each_store: Store) -> None:
    without = tables(conversation_index=False)
    each_store.tables.create(*without)
    verbs = Conversations(each_store, conversation_index=False)
    verbs.put_results(results("job", "36324", CLOCK, range(2)))
    assert len(list(verbs.list_by_job_and_conversation(TopicName, "job", "36324"))) == 2
    with pytest.raises(ValueRefusedError, match="ConversationIndex, which is switched off"):
        verbs.list_by_conversation(TopicName, "36324")
    assert each_store.tables.differences(without[0]) == []
    assert each_store.tables.differences(TABLES[0]) == ["index ConversationIndex is declared, but not deployed"]
