"""k-means that continues from earlier clusters, so that points that stay together keep their cluster's id."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from jobtable.systems.conversations.analysis.numerics import Floats, Integers

_STILL = 0.01
"""Centres that move less count as still."""
_NOTHING = 1e-9
"""Smaller differences are rounding errors."""
_NEW = -1


@dataclass(frozen=True)
class Points:
    """Positions with a name and a weight each; a name means the same point in every update."""

    names: Integers
    places: Floats
    weights: Floats


@dataclass(frozen=True)
class Clusters:
    """The clusters of some points, by age; `labels` has the index in `ids` of the cluster of each point."""

    ids: Integers
    centres: Floats
    labels: Integers

    def of_names(self, points: Points) -> dict[int, int]:
        """Return the id of the cluster of each point, by the point's name."""
        return dict(zip(points.names.tolist(), self.ids[self.labels].tolist(), strict=True))


def cluster(points: Points, most: int, before: Mapping[int, int] | None = None, *, steps: int) -> Clusters:
    """Find at most so many clusters, starting from those that the points were in `before`, or from the first points.

    The means move until they are still, at most `steps` times; a cluster without points disappears.
    """
    known = np.array([_NEW if before is None else before.get(name, _NEW) for name in points.names.tolist()], np.int64)
    if (known == _NEW).all():
        centres = _distinct(points.places)[:most]
        return _settle(points, np.arange(len(centres)), centres, steps)
    return _settle(points, *_grow(points, known, most), steps)


def _grow(points: Points, known: Integers, most: int) -> tuple[Integers, Floats]:
    """Return the clusters at the current positions; if they are too few, the furthest points become clusters."""
    possible = min(most, len(_distinct(points.places)))
    while True:
        ids, centres = _centres(points, known)
        _, first = np.unique(centres, axis=0, return_index=True)  # two at one position are one
        kept = np.sort(first)
        ids, centres = ids[kept], centres[kept]
        distances = cdist(points.places, centres).min(axis=1)
        if len(ids) >= possible or distances.max() < _NOTHING:
            return ids, centres
        known[distances.argmax()] = known.max() + 1


def _settle(points: Points, ids: Integers, centres: Floats, steps: int) -> Clusters:
    while True:
        nearest = ids[cdist(points.places, centres).argmin(axis=1)]
        before = centres
        ids, centres = _centres(points, nearest)
        if steps == 0 or _at_rest(before, centres):
            return Clusters(ids, centres, np.searchsorted(ids, nearest))
        steps -= 1


def _centres(points: Points, known: Integers) -> tuple[Integers, Floats]:
    """Return the ids of the clusters with points, and the weighted means of those points."""
    is_known = known != _NEW
    ids, labels = np.unique(known[is_known], return_inverse=True)
    weights, places = points.weights[is_known], points.places[is_known]
    sums = [np.bincount(labels, weights * axis) for axis in places.T]
    centres: Floats = np.stack(sums, axis=1) / np.bincount(labels, weights)[:, None]
    return ids, centres


def _at_rest(before: Floats, after: Floats) -> bool:
    """Return whether no centre moved, in any order; one that disappeared does not count."""
    pairs = zip(sorted(before.tolist()), sorted(after.tolist()), strict=False)
    return all(math.dist(old, new) < _STILL for old, new in pairs)


def _distinct(places: Floats) -> Floats:
    _, first = np.unique(places, axis=0, return_index=True)
    return places[np.sort(first)]
