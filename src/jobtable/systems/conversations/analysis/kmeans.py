"""k-means that goes on from the clusters of an earlier moment: those who stay together keep their id."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from jobtable.systems.conversations.analysis.numerics import Floats, Integers

_STILL = 0.01
"""Centres that move less have come to rest."""
_NOTHING = 1e-9
"""What differs by less differs because numbers are rounded."""
_NEW = -1


@dataclass(frozen=True)
class Points:
    """Places with a name and a weight each; a name stands for the same point at every moment."""

    names: Integers
    places: Floats
    weights: Floats


@dataclass(frozen=True)
class Clusters:
    """The clusters of some points, by age. Which one a point is in stands in `labels`, as its place in `ids`."""

    ids: Integers
    centres: Floats
    labels: Integers

    def of_names(self, points: Points) -> dict[int, int]:
        """The id of the cluster of each point, by the point's name."""
        return dict(zip(points.names.tolist(), self.ids[self.labels].tolist(), strict=True))


def cluster(points: Points, most: int, before: Mapping[int, int] | None = None, *, steps: int) -> Clusters:
    """At most so many clusters, from those that the points were in `before`, or else from the first points.

    The means move until they rest, but no more often than `steps`; a cluster that loses all its points is gone.
    """
    known = np.array([_NEW if before is None else before.get(name, _NEW) for name in points.names.tolist()], np.int64)
    if (known == _NEW).all():
        centres = _distinct(points.places)[:most]
        return _settle(points, np.arange(len(centres)), centres, steps)
    return _settle(points, *_grow(points, known, most), steps)


def _grow(points: Points, known: Integers, most: int) -> tuple[Integers, Floats]:
    """The clusters as their points are placed now; where there are too few, the furthest point is one of its own."""
    possible = min(most, len(_distinct(points.places)))
    while True:
        ids, centres = _centres(points, known)
        _, first = np.unique(centres, axis=0, return_index=True)  # two in one place are one
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
    """The clusters that have points, by their ids, and the weighted means of those points."""
    is_known = known != _NEW
    ids, labels = np.unique(known[is_known], return_inverse=True)
    weights, places = points.weights[is_known], points.places[is_known]
    sums = [np.bincount(labels, weights * axis) for axis in places.T]
    centres: Floats = np.stack(sums, axis=1) / np.bincount(labels, weights)[:, None]
    return ids, centres


def _at_rest(before: Floats, after: Floats) -> bool:
    """Whether no centre has moved, in whatever order they stand; one that is gone does not count."""
    pairs = zip(sorted(before.tolist()), sorted(after.tolist()), strict=False)
    return all(math.dist(old, new) < _STILL for old, new in pairs)


def _distinct(places: Floats) -> Floats:
    """The places that differ, in the order in which they come first."""
    _, first = np.unique(places, axis=0, return_index=True)
    return places[np.sort(first)]
