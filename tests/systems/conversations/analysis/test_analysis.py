"""The analysis: repeatable, robust, and right where the right answer is known."""

from __future__ import annotations

import csv
import tracemalloc
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from jobtable.errors import ValueRefusedError
from jobtable.systems.conversations.analysis.clusters import NO_CLUSTER, Hierarchy, cluster, fit, layer_sizes
from jobtable.systems.conversations.analysis.comment_map import arrange, find_neighbours
from jobtable.systems.conversations.analysis.embedding import embed_tfidf, embed_with, load_embed
from jobtable.systems.conversations.analysis.extremity import GROUP_DIVERGENCE, VOTE_SPREAD, extremities
from jobtable.systems.conversations.analysis.groups import group_voters
from jobtable.systems.conversations.analysis.keywords import name_topic, words_of, words_of_clusters
from jobtable.systems.conversations.analysis.polis_export import Vote, read_export
from jobtable.systems.conversations.analysis.votes import vote_matrix
from jobtable.systems.conversations.example import generate_export
from jobtable.systems.conversations.run_comparison import adjusted_rand_index

REAL = sorted((Path(__file__).parents[5] / "shared" / "data" / "polis").glob("*/comments.csv"))
TEXTS = [comment.text for comment in generate_export(1).comments]


def hierarchy_of(texts: list[str]) -> Hierarchy:
    vectors = embed_tfidf(texts)
    return cluster(vectors, np.asarray(vectors.any(axis=1)))


def test_words_carry_meaning_in_any_language() -> None:
    assert words_of("We don't need the river\u2019s 42 dams, I can't!") == ["need", "river", "dams"]
    assert words_of("Māori and 河川の水") == ["māori", "河川の水"]
    assert words_of("I am, a 3!") == []


def test_texts_with_the_same_words_are_close() -> None:
    vectors = embed_tfidf(["rivers and fish", "fish in rivers", "buses are late", "late buses", ""])
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.99
    assert cosines[2, 3] > 0.99
    assert abs(cosines[0, 2]) < 0.01
    assert not vectors[4].any()


def test_everything_is_repeatable_with_a_seed() -> None:
    for function in (embed_tfidf, lambda texts, seed: arrange(embed_tfidf(texts), seed=seed)):
        first, second = function(TEXTS, seed=5), function(TEXTS, seed=5)
        assert first.tobytes() == second.tobytes()
    assert arrange(embed_tfidf(TEXTS), seed=6).tobytes() != arrange(embed_tfidf(TEXTS), seed=5).tobytes()
    assert generate_export(3) == generate_export(3) != generate_export(4)


def test_any_function_can_embed_but_its_array_is_checked() -> None:
    assert embed_with(lambda texts: [[len(text), 1] for text in texts], ["a", "bb"]).tolist() == [[1, 1], [2, 1]]
    wrong: list[Any] = [[[1.0]], [1.0, 2.0], [[], []], [[1.0], [float("nan")]]]
    for given_back in wrong:
        with pytest.raises(ValueRefusedError, match="partial"):
            embed_with(partial(lambda array, _: array, given_back), ["a", "b"])
    assert load_embed("math:hypot") is not None
    for path in ("math:nothing", "no.such.module:f", "math", ":f"):
        with pytest.raises(ValueRefusedError, match="cannot load the embedding function"):
            load_embed(path)


def test_near_comments_are_neighbours_and_stand_near() -> None:
    texts = [f"{animal} {animal}{'abcdefghij'[n]}" for animal in ("kiwi", "trout") for n in range(10)]
    vectors = embed_tfidf(texts)
    near = find_neighbours(vectors, 4)
    assert all(set((near.indices[row] // 10).tolist()) == {row // 10} for row in range(20))
    edges = near.edges()
    assert len({(edge.source, edge.target) for edge in edges}) == len(edges)
    assert all(edge.source < edge.target and 0 <= edge.weight <= 1 for edge in edges)
    places = arrange(vectors, seed=1)
    middle = places.reshape(2, 10, 2).mean(axis=1)
    own = np.linalg.norm(places - np.repeat(middle, 10, axis=0), axis=1).mean()
    assert np.linalg.norm(middle[0] - middle[1]) > own


word = st.sampled_from(["river", "fish", "bus", "school", "the", "42", "!", "rent", "park"])
many_texts = st.lists(st.lists(word, max_size=4).map(" ".join), max_size=60)


@settings(max_examples=50)
@given(many_texts)
def test_every_cluster_lies_whole_in_one_of_the_next_layer(texts: list[str]) -> None:
    hierarchy = hierarchy_of(texts)
    labels = hierarchy.labels
    assert labels.shape[0] == len(texts)
    for row, text in enumerate(texts):
        assert (labels[row] != NO_CLUSTER).all() == bool(words_of(text))
    for layer in hierarchy.layers:
        clusters = hierarchy.clusters(layer)
        sizes = [len(hierarchy.members(layer, each)) for each in clusters]
        assert all(sizes)
        assert sizes == sorted(sizes, reverse=True)
        for each in clusters:
            parent = hierarchy.parent(layer, each)
            if parent is not None:
                assert (layer, each) in hierarchy.children(*parent)
                assert set(hierarchy.members(layer, each)) <= set(hierarchy.members(*parent))
    how = fit(embed_tfidf(texts), hierarchy)
    assert ((how.confidences >= 0) & (how.confidences <= 1)).all()
    assert (how.distances >= 0).all()


def test_the_fit_of_long_vectors_needs_little_memory() -> None:
    vectors = np.random.default_rng(1).normal(size=(600, 384)) * np.repeat([1, 0.01], 300)[:, None]
    hierarchy = cluster(vectors)
    tracemalloc.start()
    try:
        fit(vectors, hierarchy)
        assert tracemalloc.get_traced_memory()[1] < 5 * vectors.nbytes
    finally:
        tracemalloc.stop()


@settings(max_examples=30)
@given(many_texts)
def test_any_texts_have_neighbours_and_places(texts: list[str]) -> None:
    vectors = embed_tfidf(texts)
    assert np.isfinite(arrange(vectors, seed=0)).all()
    near = find_neighbours(vectors)
    assert near.indices.shape == (len(texts), max(0, min(8, len(texts) - 1)))
    assert all(row not in others for row, others in enumerate(near.indices.tolist()))


def test_layers_become_coarser() -> None:
    assert layer_sizes(0) == []
    assert layer_sizes(1) == layer_sizes(3) == [1]
    for count in range(4, 5000, 37):
        sizes = layer_sizes(count)
        assert sizes == sorted(set(sizes), reverse=True)
        assert sizes[0] <= count // 2
        assert sizes[-1] >= 2


def test_keywords_tell_clusters_apart() -> None:
    words = words_of_clusters([["the river has fish", "river water river"], ["bus fares", "the river bus"], [""]])
    assert [each.telling[0][0] if each.telling else "" for each in words] == ["river", "bus", ""]
    assert words[0].frequent[0] == ("river", 3.0)
    assert dict(words[0].telling)["fish"] > dict(words[1].telling)["river"]
    assert name_topic(words[0].telling) == "River, fish, water"
    assert name_topic([("police", 3), ("policing", 2), ("youth", 1)]) == "Police, youth"
    assert name_topic([]) == "Without words"


def divided_votes() -> list[Vote]:
    """Ten say yes to comment 1 where ten others say no; all say yes to comments 2 to 9."""
    return [
        Vote(comment, str(voter), 1 if comment > 1 or voter < 10 else -1)
        for comment in range(1, 10)
        for voter in range(20)
    ]


def test_what_divides_the_groups_is_extreme() -> None:
    matrix = vote_matrix(range(1, 11), divided_votes())
    groups = group_voters(matrix)
    assert groups.count == 2
    assert len(set(groups.labels[[matrix.voter_ids.index(str(v)) for v in range(10)]].tolist())) == 1
    found = extremities(matrix, groups.labels, groups.comment_reach)
    assert {each.method for each in found} == {GROUP_DIVERGENCE}
    assert found[0].value == max(each.value for each in found) == pytest.approx(10 / 12)
    assert all(each.value == 0 for each in found[1:])


@pytest.mark.parametrize("shape", [(128, 256), (200, 120)], ids=["fewer voters", "fewer comments"])
def test_votes_whose_sums_are_all_zero_have_groups(shape: tuple[int, int]) -> None:
    voters, comments = shape
    stances = np.random.default_rng(1).choice([-1, 1], size=(voters // 2, comments // 2))
    values = np.block([[stances, -stances], [-stances, stances]])
    votes = [Vote(comment, str(voter), int(values[voter, comment])) for voter, comment in np.ndindex(shape)]
    assert group_voters(vote_matrix(range(comments), votes)).count >= 2


def test_one_who_votes_unlike_thousands_is_a_group() -> None:
    votes = [Vote(comment, str(voter), 1 if voter else -1) for voter in range(3000) for comment in range(8)]
    groups = group_voters(vote_matrix(range(8), votes))
    assert sorted(Counter(groups.labels.tolist()).values()) == [1, 2999]


def test_without_groups_extremity_is_how_votes_split() -> None:
    votes = [Vote(1, "a", 1), Vote(1, "b", -1), Vote(2, "a", 1), Vote(99, "a", 1)]
    matrix = vote_matrix([1, 2, 3], votes)
    groups = group_voters(vote_matrix([1, 2, 3], []))
    assert groups.count == 0
    found = extremities(matrix, np.zeros(2, np.int64), np.zeros(3))
    assert [(each.value, each.method) for each in found] == [(1, VOTE_SPREAD), (0, VOTE_SPREAD), (0, VOTE_SPREAD)]
    assert matrix.votes_on(0) == [1, -1]


@settings(max_examples=50)
@given(st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 12)), st.sampled_from([-1, 0, 1]), max_size=130))
def test_any_votes_give_extremities_between_0_and_1(cast: dict[tuple[int, int], int]) -> None:
    matrix = vote_matrix(range(10), [Vote(comment, str(voter), value) for (comment, voter), value in cast.items()])
    groups = group_voters(matrix)
    found = extremities(matrix, groups.labels, groups.comment_reach)
    assert len(found) == 10
    assert all(0 <= each.value <= 1 for each in found)


def test_generated_conversations_have_the_groups_and_topics_they_were_made_with() -> None:
    export = generate_export(2).without_moderated_out()
    matrix = vote_matrix([comment.comment_id for comment in export.comments], export.votes)
    labels = group_voters(matrix).labels
    sides = Counter((int(voter) % 2, int(label)) for voter, label in zip(matrix.voter_ids, labels, strict=True))
    assert sorted(sides.values()) == [30, 30]


def groups_in_summary(folder: Path) -> int:
    """How many groups Polis has found."""
    with (folder / "summary.csv").open(newline="") as file:
        return int(dict(csv.reader(file))["groups"])


@pytest.mark.parametrize("folder", [path.parent for path in REAL], ids=lambda folder: folder.name)
def test_real_conversations_have_groups_and_divisive_comments(folder: Path) -> None:
    export = read_export(folder).without_moderated_out()
    matrix = vote_matrix([comment.comment_id for comment in export.comments], export.votes)
    groups = group_voters(matrix)
    assert groups.count == groups_in_summary(folder)
    assert max(each.value for each in extremities(matrix, groups.labels, groups.comment_reach)) > 0.5
    hierarchy = hierarchy_of([comment.text for comment in export.comments])
    assert len(hierarchy.layers) >= 2


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_agreement_of_clusters_is_the_adjusted_rand_index(pairs: list[tuple[int, int]]) -> None:
    one, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assert adjusted_rand_index(one, other) == pytest.approx(adjusted_rand_score(one, other), abs=1e-5)
