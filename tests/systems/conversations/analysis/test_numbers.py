"""The numbers of the analysis, each computed a second time by plain loops or by another decomposition."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jobtable.systems.conversations.analysis.clusters import cluster, fit
from jobtable.systems.conversations.analysis.comment_map import find_neighbours
from jobtable.systems.conversations.analysis.extremity import extremities
from jobtable.systems.conversations.analysis.groups import group_voters
from jobtable.systems.conversations.analysis.keywords import words_of_clusters
from jobtable.systems.conversations.analysis.numerics import Floats, Integers
from jobtable.systems.conversations.analysis.polis_export import Vote
from jobtable.systems.conversations.analysis.votes import VoteMatrix, vote_matrix

votes_of_some = st.dictionaries(
    st.tuples(st.integers(0, 7), st.integers(0, 14)), st.sampled_from([-1, 0, 1]), min_size=20, max_size=120
)
vectors_of_some = arrays(np.float64, st.tuples(st.integers(2, 25), st.integers(1, 4)), elements=st.integers(-3, 3))


def matrix_of(cast: dict[tuple[int, int], int]) -> VoteMatrix:
    return vote_matrix(range(8), [Vote(comment, f"{voter:02}", value) for (comment, voter), value in cast.items()])


def centred_by_hand(values: Floats) -> Floats:
    centred = np.zeros(values.shape)
    for column in range(values.shape[1]):
        cast = [value for value in values[:, column] if not math.isnan(value)]
        for row in range(values.shape[0]):
            if not math.isnan(values[row, column]):
                centred[row, column] = values[row, column] - sum(cast) / len(cast)
    return centred


@pytest.mark.parametrize("shape", [(12, 8), (40, 30), (90, 110), (130, 110)], ids=str)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1), share=st.floats(0.3, 1))
def test_reach_and_groups_follow_the_two_main_directions(shape: tuple[int, int], seed: int, share: float) -> None:
    random = np.random.default_rng(seed)
    values = np.where(random.random(shape) < share, random.choice([-1.0, 0.0, 1.0], size=shape), np.nan)
    history = random.permutation(np.flatnonzero(~np.isnan(values)))
    matrix = VoteMatrix(tuple(range(shape[1])), tuple(map(str, range(shape[0]))), values, history)
    groups = group_voters(matrix)
    counts = (~np.isnan(values)).sum(axis=1)
    is_active = groups.labels >= 0
    assert is_active[counts >= 7].all()
    assert is_active.sum() >= min(15, (counts > 0).sum())
    centred = centred_by_hand(values)
    spreads, directions = np.linalg.eigh(centred.T @ centred)
    assume(spreads[-2] > 1e-3 and spreads[-2] - spreads[-3] > 1e-3)  # else the plane is not the only one
    plane = directions[:, -2:]
    assert groups.comment_reach == pytest.approx(np.sqrt((plane**2).sum(axis=1)), abs=1e-5)
    if is_active.sum() <= 100:  # then nobody shares a base cluster, unless they stand in one place
        places = (centred @ plane)[is_active] * np.sqrt(shape[1] / counts[is_active])[:, None]
        assert_nearest_to_own_centre(places, groups.labels[is_active])


def assert_nearest_to_own_centre(places: Floats, labels: Integers) -> None:
    """But for what centres may still have moved in the last step."""
    centres = [places[labels == label].mean(axis=0) for label in range(int(labels.max()) + 1)]
    for place, label in zip(places, labels, strict=True):
        distances = [math.dist(place, centre) for centre in centres]
        assert distances[int(label)] == pytest.approx(min(distances), abs=0.021)


@settings(max_examples=60)
@given(votes_of_some, st.lists(st.integers(-1, 2), min_size=15, max_size=15))
def test_extremity_is_the_largest_gap_between_two_groups(cast: dict[tuple[int, int], int], groups: list[int]) -> None:
    matrix = matrix_of(cast)
    labels = np.array([groups[int(voter)] for voter in matrix.voter_ids], np.int64)
    present = range(int(labels.max()) + 1)
    found = extremities(matrix, labels, np.zeros(8))
    for column, extremity in enumerate(found):
        votes = [cast.get((column, int(voter))) for voter in matrix.voter_ids]
        of_groups = [
            [v for v, label in zip(votes, labels, strict=True) if label == g and v is not None] for g in present
        ]
        gaps = [
            abs((one.count(kind) + 1) / (len(one) + 2) - (other.count(kind) + 1) / (len(other) + 2))
            for one, other in combinations(of_groups, 2)
            for kind in (1, -1)
        ]
        said = [vote for vote in votes if vote is not None]
        spread = 4 * said.count(1) * said.count(-1) / max(1, len(said)) ** 2
        assert extremity.components["vote_spread"] == pytest.approx(spread, abs=1e-5)
        expected = spread if len(present) < 2 else max(gaps) if said else 0
        assert extremity.value == pytest.approx(expected, abs=1e-5)


@settings(max_examples=40)
@given(vectors_of_some)
def test_neighbours_are_those_with_the_smallest_angle(vectors: Floats) -> None:
    near = find_neighbours(vectors, 3)
    lengths = np.linalg.norm(vectors, axis=1)
    for row, (others, distances) in enumerate(zip(near.indices.tolist(), near.distances.tolist(), strict=True)):
        by_hand = {
            other: 1
            - (vectors[row] @ vectors[other] / (lengths[row] * lengths[other]) if lengths[row] * lengths[other] else 0)
            for other in range(len(vectors))
            if other != row
        }
        assert [by_hand[other] for other in others] == pytest.approx(distances, abs=1e-5)
        assert distances == pytest.approx(sorted(by_hand.values())[: len(others)], abs=1e-5)


@settings(max_examples=40)
@given(vectors_of_some)
def test_the_fit_is_the_distance_to_the_mean_of_the_cluster(vectors: Floats) -> None:
    hierarchy = cluster(vectors)
    how = fit(vectors, hierarchy)
    for layer in hierarchy.layers:
        labels = hierarchy.labels[:, layer]
        centres = [vectors[labels == each].mean(axis=0) for each in hierarchy.clusters(layer)]
        for row, label in enumerate(labels.tolist()):
            distances = [math.dist(vectors[row], centre) for centre in centres]
            own = distances.pop(label)
            assert how.distances[row, layer] == pytest.approx(own, abs=1e-5)
            if distances and own + min(distances) > 0:
                sure = min(distances) / (own + min(distances))
                assert how.confidences[row, layer] == pytest.approx(sure, abs=1e-5)


@settings(max_examples=40)
@given(st.lists(st.lists(st.sampled_from(["river", "fish", "rent", "bus"]), max_size=6), min_size=1, max_size=4))
def test_words_tell_clusters_apart_by_share_and_rarity(clusters: list[list[str]]) -> None:
    found = words_of_clusters([[" ".join(words)] for words in clusters])
    together = [word for words in clusters for word in words]
    for words, of_cluster in zip(clusters, found, strict=True):
        assert dict(of_cluster.frequent) == {word: words.count(word) for word in words}
        for word, score in of_cluster.telling:
            rarity = math.log(1 + len(together) / len(clusters) / together.count(word))
            assert score == pytest.approx(words.count(word) / len(words) * rarity, abs=1e-5)
