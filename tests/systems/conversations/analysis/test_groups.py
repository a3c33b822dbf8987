"""Groups over time: what an update remembers of the ones before."""

from __future__ import annotations

import numpy as np
import pytest

from jobtable.systems.conversations.analysis import groups
from jobtable.systems.conversations.analysis.groups import UNGROUPED, group_voters
from jobtable.systems.conversations.analysis.kmeans import Points, cluster
from jobtable.systems.conversations.analysis.numerics import Floats
from jobtable.systems.conversations.analysis.polis_export import Vote
from jobtable.systems.conversations.analysis.votes import vote_matrix


def points(places: list[list[float]], names: list[int] | None = None, weights: list[float] | None = None) -> Points:
    """Points named by their number, each as heavy as the others, unless told otherwise."""
    number = len(places)
    return Points(
        np.array(names if names is not None else range(number), np.int64),
        np.array(places, np.float64),
        np.array(weights or [1] * number, np.float64),
    )


FOUR: list[list[float]] = [[0, 0], [0, 1], [10, 0], [10, 1]]


def test_clusters_begin_with_the_first_points_that_differ() -> None:
    found = cluster(points([[0, 0], [0, 0], [0, 1], [9, 9]]), 2, steps=0)
    assert found.labels.tolist() == [0, 0, 1, 1]
    assert found.centres.tolist() == [[0, 0], [4.5, 5]]


def test_heavy_points_pull_the_centre() -> None:
    found = cluster(points([[0, 0], [1, 0]], weights=[3, 1]), 1, steps=5)
    assert found.centres.tolist() == [[0.25, 0]]


def test_clusters_go_on_with_their_ids() -> None:
    moved = points([[10, 2], [0, 2], *FOUR], names=[7, 8, 0, 1, 2, 3])
    found = cluster(moved, 2, {0: 3, 1: 3, 2: 5, 3: 5}, steps=20)
    assert found.of_names(moved) == {0: 3, 1: 3, 2: 5, 3: 5, 7: 5, 8: 3}


def test_the_furthest_point_begins_a_cluster_where_there_are_too_few() -> None:
    one = dict.fromkeys(range(4), 4)
    apart = points([*FOUR[:2], [50, 0], FOUR[2]])
    assert cluster(apart, 2, one, steps=20).of_names(apart) == {0: 4, 1: 4, 2: 5, 3: 4}


def test_points_in_one_place_are_one_cluster() -> None:
    same = points([[1, 1], [1, 1], [1, 1]])
    assert len(cluster(same, 3, {0: 0, 1: 1, 2: 2}, steps=20).ids) == 1
    assert len(cluster(same, 3, steps=20).ids) == 1


def test_points_that_are_apart_by_rounding_alone_come_to_an_end() -> None:
    near = points([[0.1, 0], [0.1 + 2**-56, 0], [0.1 - 2**-56, 0]], weights=[3, 7, 49])
    assert len(cluster(near, 3, dict.fromkeys(range(3), 0), steps=20).ids) == 1


def test_the_number_of_groups_changes_when_another_was_best_four_times() -> None:
    count = groups._GroupCount()
    assert count.choose({2: 0.5, 3: 0.4}) == 2
    assert [count.choose({2: 0.4, 3: 0.5}) for _ in range(3)] == [2, 2, 2]
    assert count.choose({2: 0.5, 3: 0.4}) == 2
    assert [count.choose({2: 0.5, 3: 0.5}) for _ in range(4)] == [2, 2, 2, 3]
    assert count.choose({2: 0.1}) == 2


def two_sides(voters: int, comments: int) -> list[Vote]:
    """The even ones agree to everything, the others disagree; they come one after the other."""
    return [Vote(comment, f"{voter:03}", 1 - 2 * (voter % 2)) for voter in range(voters) for comment in range(comments)]


def test_who_votes_seldom_is_placed_while_there_are_few() -> None:
    many, few = two_sides(15, 8), [Vote(0, "100", 1), Vote(1, "101", -1)]
    assert group_voters(vote_matrix(range(8), [*many, *few])).labels[15:].tolist() == [UNGROUPED, UNGROUPED]
    of_few = group_voters(vote_matrix(range(8), [*two_sides(4, 8), *few]))
    assert of_few.labels[4:].tolist() == [of_few.labels[0], of_few.labels[1]]


@pytest.mark.parametrize(("voters", "most"), [(23, 3), (24, 4), (36, 5), (90, 5)])
def test_there_is_a_group_more_for_every_twelve_who_differ(
    monkeypatch: pytest.MonkeyPatch, voters: int, most: int
) -> None:
    tried: list[dict[int, float]] = []

    def choose(_: groups._GroupCount, scores: dict[int, float]) -> int:
        tried.append(scores)
        return 2

    monkeypatch.setattr(groups._GroupCount, "choose", choose)
    values: Floats = np.random.default_rng(1).choice([-1, 0, 1], size=(voters, 40))
    votes = [Vote(comment, str(voter), int(values[voter, comment])) for voter, comment in np.ndindex(values.shape)]
    group_voters(vote_matrix(range(40), votes))
    assert max(tried[-1]) == most


def test_the_order_of_votes_is_part_of_the_conversation() -> None:
    votes = two_sides(20, 9)
    assert vote_matrix(range(9), votes).history.tolist() == list(range(180))
    again = [Vote(0, "001", 1), *votes]
    matrix = vote_matrix(range(9), again)
    assert matrix.history.tolist() == [9, *(place for place in range(180) if place != 9)]
    assert matrix.values[1, 0] == -1
