"""Opinion groups: participants who vote alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import svds
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from jobtable.conversations.analysis.arrays import Floats, Integers
from jobtable.conversations.analysis.threads import in_one_thread
from jobtable.conversations.analysis.votes import VoteMatrix

UNGROUPED = -1
_FEWEST_VOTES = 7
"""Who has voted less often (and not on every comment) says too little to be placed."""
_MOST_GROUPS = 5
_SMALL = 100
_MOST_COMPARED = 2000


@dataclass(frozen=True)
class OpinionGroups:
    """The group of each participant, -1 for who is in none; and how far each comment pulls opinions apart."""

    labels: Integers
    comment_reach: Floats
    """The length of each comment's vector in the plane of opinions."""

    @property
    def count(self) -> int:
        return int(self.labels.max(initial=UNGROUPED)) + 1


@in_one_thread
def group_voters(matrix: VoteMatrix, *, seed: int = 0) -> OpinionGroups:
    """Opinion groups as Polis finds them.

    A missing vote counts as the comment's mean. Participants are placed by the two main directions of their votes,
    who voted seldom further out, and divided by k-means into the number of groups (2 to 5) with the best silhouette.
    """
    labels = np.full(len(matrix.voter_ids), UNGROUPED, np.int64)
    cast = matrix.cast
    active = np.flatnonzero(cast.sum(axis=1) >= min(_FEWEST_VOTES, max(1, cast.shape[1])))
    centred = _centred(matrix.values[active])
    directions = _main_directions(centred)
    if not len(directions):
        labels[active] = 0
        return OpinionGroups(labels, np.zeros(len(matrix.comment_ids)))
    seldom = np.sqrt(cast.shape[1] / cast[active].sum(axis=1))
    places = np.round((centred @ directions.T) * seldom[:, None], 9)
    labels[active] = _divide(places, seed)
    return OpinionGroups(labels, np.round(np.linalg.norm(directions, axis=0), 6))


def _centred(values: Floats) -> Floats:
    counts = (~np.isnan(values)).sum(axis=0)
    means = np.divide(np.nansum(values, axis=0), counts, out=np.zeros(values.shape[1]), where=counts > 0)
    centred: Floats = np.where(np.isnan(values), 0.0, values - means)
    return centred


def _main_directions(centred: Floats) -> Floats:
    """At most two directions, each pointing to the side of its largest entry, so that the sign is always the same."""
    smaller = min(centred.shape)
    if smaller < 2 or not centred.any():
        return np.empty((0, centred.shape[1]))
    if smaller <= _SMALL:
        _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    else:  # only two directions are wanted, and a whole decomposition of many votes takes minutes
        start = np.random.default_rng(0).normal(size=smaller)  # centred votes can take a regular one to zero
        _, singular, directions = svds(centred, k=2, v0=start)
    order = np.argsort(-singular, kind="stable")[:2]
    kept = np.asarray(directions)[order][singular[order] > 1e-9]
    largest = np.abs(kept).argmax(axis=1)
    return np.asarray(kept * np.sign(kept[np.arange(len(kept)), largest])[:, None], np.float64)


def _divide(places: Floats, seed: int) -> Integers:
    different = len(np.unique(places, axis=0))
    best = np.zeros(len(places), np.int64)
    best_score = -1.0
    for count in range(2, min(_MOST_GROUPS, different, len(places) - 1) + 1):
        # scikit-learn has no types, and pyright takes the default of a parameter for all that it may be.
        means = KMeans(count, n_init=10, random_state=seed)  # pyright: ignore[reportArgumentType]
        labels = np.asarray(means.fit_predict(places), np.int64)
        looked_at = _sample(labels, seed)
        score = float(silhouette_score(places[looked_at], labels[looked_at]))
        if score > best_score:
            best, best_score = labels, score
    return best


def _sample(labels: Integers, seed: int) -> Integers:
    """The places of some participants of every group: few enough to calculate the distances of all pairs quickly."""
    some = np.random.default_rng(seed).permutation(len(labels))[:_MOST_COMPARED]
    _, first_of_each = np.unique(labels, return_index=True)
    return np.union1d(some, first_of_each)
