"""Opinion groups: participants who vote alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds
from sklearn.metrics import silhouette_score

from jobtable.systems.conversations.analysis.kmeans import Clusters, Points, cluster
from jobtable.systems.conversations.analysis.numerics import Flags, Floats, Integers, in_one_thread
from jobtable.systems.conversations.analysis.votes import VoteMatrix

UNGROUPED = -1
_UPDATES = 50
"""The number of updates. From 40 on, two published conversations have as many groups as in Polis; with
fewer updates, the one in which two numbers are almost equally good had 2, 3 or 4."""
_FEWEST_VOTES = 7
"""Participants with fewer votes (and not on every comment) cannot be placed..."""
_FEWEST_VOTERS = 15
"""...unless fewer participants than these would remain."""
_MOST_BASES = 100
_BASE_STEPS = 100
_MOST_GROUPS = 5
_BASES_A_GROUP = 12
_GROUP_STEPS = 20
_PATIENCE = 4
"""After so many updates with the same best number of groups, that number is adopted."""
_SMALL = 100


@dataclass(frozen=True)
class OpinionGroups:
    """The plane of opinions: where each participant is, the group of each, and how far each comment pulls them."""

    labels: Integers
    """-1 for those with too few votes."""
    places: Floats
    """Two coordinates for each participant."""
    comment_reach: Floats
    """The length of each comment's vector in the plane."""
    comment_extremity: Floats
    """How far from the middle somebody is who only agrees with one comment: Polis asks such comments first."""

    @property
    def count(self) -> int:
        return int(self.labels.max(initial=UNGROUPED)) + 1


@in_one_thread
def group_voters(matrix: VoteMatrix, moderated: Flags | None = None) -> OpinionGroups:
    """Find opinion groups like Polis, which updates a conversation again and again while votes come in.

    Votes on moderated comments count when participants are admitted and placed, as if all had passed on them.

    A missing vote counts as the comment's mean. The two main directions of all votes place the participants, those with
    few votes further out; k-means makes at most 100 base clusters of them, and 2 to 5 groups of those, starting from
    the last update. The number of groups is the one with the best silhouette over base clusters, once it is the best
    four times in a row.
    """
    is_moderated = np.zeros(matrix.values.shape[1], np.bool_) if moderated is None else moderated
    conversation = _Conversation(matrix, is_moderated)
    total = len(matrix.history)
    for votes in sorted({-(-total * number // _UPDATES) for number in range(1, _UPDATES + 1)} - {0}):
        conversation.update(votes)
    return OpinionGroups(conversation.labels, conversation.places, conversation.reach, conversation.extremity)


class _Conversation:
    def __init__(self, matrix: VoteMatrix, moderated: Flags) -> None:
        voters, comments = matrix.values.shape
        self._shape = voters, comments
        self._moderated = moderated
        self._rows, self._columns = np.divmod(matrix.history, max(comments, 1))
        self._values = matrix.values[self._rows, self._columns]
        self._is_in: Flags = np.zeros(voters, np.bool_)
        self._bases: dict[int, int] | None = None
        self._groups: dict[int, dict[int, int]] = {}
        self._count = _GroupCount()
        self.labels: Integers = np.full(voters, UNGROUPED, np.int64)
        self.places: Floats = np.zeros((voters, 2))
        self.reach: Floats = np.zeros(comments)
        self.extremity: Floats = np.zeros(comments)

    def update(self, votes: int) -> None:
        """Update the groups by the first `votes` votes."""
        rows, columns, values = self._rows[:votes], self._columns[:votes], self._values[:votes]
        cast = np.bincount(rows, minlength=self._shape[0])
        on_comment = np.bincount(columns, minlength=self._shape[1])
        comments = int(np.count_nonzero(on_comment))
        self._let_in(cast, comments)
        means = np.bincount(columns, values, self._shape[1]) / np.maximum(on_comment, 1)
        kept = ~self._moderated[columns]
        centred = csr_array(((values - means[columns])[kept], (rows[kept], columns[kept])), shape=self._shape)
        directions = _main_directions(centred, self._shape)
        self.reach = np.round(np.linalg.norm(directions, axis=0), 6)
        self.extremity = np.round(np.abs(1 - means) * np.linalg.norm(directions, axis=0) * np.sqrt(comments), 6)
        passed = np.count_nonzero(self._moderated & (on_comment > 0))
        counted = np.bincount(rows[kept], minlength=self._shape[0]) + passed
        seldom = np.sqrt(comments / np.maximum(counted, 1))
        places = np.zeros((self._shape[0], 2))
        places[:, : len(directions)] = np.asarray(centred @ directions.T, np.float64) * seldom[:, None]
        self.places = np.round(places, 9)
        self._divide(self.places)

    def _let_in(self, cast: Integers, comments: int) -> None:
        """Admit participants with enough votes for good; if they are few, also those with the most votes."""
        self._is_in |= cast >= min(_FEWEST_VOTES, comments)
        missing = _FEWEST_VOTERS - np.count_nonzero(self._is_in)
        if missing > 0:
            others = np.flatnonzero(~self._is_in & (cast > 0))
            self._is_in[others[np.argsort(-cast[others], kind="stable")][:missing]] = True

    def _divide(self, places: Floats) -> None:
        active = self._by_first_vote()
        self.labels[active] = 0
        if not places.any():  # all agree
            return
        voters = Points(active, places[active], np.ones(len(active)))
        bases = cluster(voters, _MOST_BASES, self._bases, steps=_BASE_STEPS)
        self._bases = bases.of_names(voters)
        points = Points(bases.ids, bases.centres, np.bincount(bases.labels).astype(np.float64))
        found: dict[int, Clusters] = {}
        for count in range(2, min(_MOST_GROUPS, 2 + len(bases.ids) // _BASES_A_GROUP) + 1):
            found[count] = cluster(points, count, self._groups.get(count), steps=_GROUP_STEPS)
            self._groups[count] = found[count].of_names(points)
        count = self._count.choose({count: _silhouette(points, groups) for count, groups in found.items()})
        self.labels[active] = found[count].labels[bases.labels]

    def _by_first_vote(self) -> Integers:
        """Return the rows of the admitted participants, by their first vote."""
        rows, first = np.unique(self._rows, return_index=True)
        in_order: Integers = rows[np.argsort(first)]
        return in_order[self._is_in[in_order]]


class _GroupCount:
    """The number of groups, which changes only after another number was the best several times in a row."""

    def __init__(self) -> None:
        self._taken = 0
        self._best = 0
        self._times = 0

    def choose(self, scores: dict[int, float]) -> int:
        """Return the number for this update; of equally good numbers, the higher one."""
        best = max(scores, key=lambda count: (scores[count], count))
        self._times = self._times + 1 if best == self._best else 1
        self._best = best
        if self._times >= _PATIENCE or self._taken not in scores:
            self._taken = best
        return self._taken


def _main_directions(centred: csr_array, shape: tuple[int, int]) -> Floats:
    """Return at most two directions, with the sign of their largest entry positive, so that it is always the same."""
    smaller = min(shape)
    if smaller < 2 or not centred.count_nonzero():
        return np.empty((0, shape[1]))
    if smaller <= _SMALL:
        _, singular, directions = np.linalg.svd(centred.toarray(), full_matrices=False)
    else:  # a full decomposition of many votes takes minutes
        start = np.random.default_rng(0).normal(size=smaller)  # centred votes can map a regular one to zero
        _, singular, directions = svds(centred, k=2, v0=start)
    order = np.argsort(-singular, kind="stable")[:2]
    kept = np.asarray(directions)[order][singular[order] > 1e-9]
    largest = np.abs(kept).argmax(axis=1)
    return np.asarray(kept * np.sign(kept[np.arange(len(kept)), largest])[:, None], np.float64)


def _silhouette(points: Points, groups: Clusters) -> float:
    """Return how much nearer the base clusters are to their own group than to the next one, from -1 to 1."""
    count = len(groups.ids)
    if not 2 <= count < len(points.names):
        return 0.0 if count > 1 else -1.0
    return float(silhouette_score(points.places, groups.labels))
