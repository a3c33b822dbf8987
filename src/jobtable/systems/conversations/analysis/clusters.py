"""Hierarchical clusters in layers: layer 0 is the finest, and each cluster lies in one cluster of the next layer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, pdist

from jobtable.systems.conversations.analysis.numerics import Flags, Floats, Integers, in_one_thread

NO_CLUSTER = -1
_SMALLER_BY = 3
"""Each layer has about a third as many clusters as the layer below."""


@dataclass(frozen=True)
class Hierarchy:
    """The cluster of each comment (row) in each layer (column); -1 means none."""

    labels: Integers

    @property
    def layers(self) -> range:
        return range(self.labels.shape[1])

    def clusters(self, layer: int) -> list[int]:
        """Return the clusters of a layer, largest first."""
        return list(range(int(self.labels[:, layer].max(initial=NO_CLUSTER)) + 1))

    def members(self, layer: int, cluster: int) -> Integers:
        """Return the rows of the comments in a cluster."""
        return np.flatnonzero(self.labels[:, layer] == cluster)

    def parent(self, layer: int, cluster: int) -> tuple[int, int] | None:
        """Return the cluster of the next layer that contains this one, as (layer, cluster); None in the last layer."""
        if layer + 1 not in self.layers:
            return None
        return layer + 1, int(self.labels[self.members(layer, cluster)[0], layer + 1])

    def children(self, layer: int, cluster: int) -> list[tuple[int, int]]:
        """Return the clusters of the layer below that lie in this one."""
        if layer == 0:
            return []
        inside = np.unique(self.labels[self.members(layer, cluster), layer - 1])
        return [(layer - 1, int(child)) for child in inside]

    def shared_layers(self, one: int, other: int) -> list[int]:
        """Return the layers in which two comments share a cluster."""
        same = (self.labels[one] == self.labels[other]) & (self.labels[one] != NO_CLUSTER)
        return [int(layer) for layer in np.flatnonzero(same)]


@dataclass(frozen=True)
class Fit:
    """How well each comment fits its cluster, in the shape of the labels; 0 without a cluster."""

    distances: Floats
    """From the comment to the centre of its cluster."""
    confidences: Floats
    """From 0 to 1; above 0.5 if its own centre is nearer than any other."""


def layer_sizes(count: int) -> list[int]:
    """Return the number of clusters in each layer for that many comments, finest first."""
    if count < 4:
        return [1] if count else []
    sizes = [min(count // 2, round(1.5 * math.sqrt(count)))]
    while sizes[-1] >= 2 * _SMALLER_BY:
        sizes.append(round(sizes[-1] / _SMALLER_BY))
    return sizes


@in_one_thread
def cluster(vectors: Floats, belongs: Flags | None = None) -> Hierarchy:
    """Cut Ward's hierarchy at several sizes; comments that do not belong (those without words) get no cluster.

    Clusters are numbered by size, then by first comment, so that equal vectors get equal labels in every run.
    """
    chosen = np.arange(len(vectors)) if belongs is None else np.flatnonzero(belongs)
    sizes = layer_sizes(len(chosen))
    cuts = _cuts(vectors[chosen], sizes) if len(chosen) > 1 else [np.zeros(len(chosen), np.int64)] * len(sizes)
    labels = np.full((len(vectors), max(1, len(cuts))), NO_CLUSTER, np.int64)
    for layer, cut in enumerate(cuts):
        labels[chosen, layer] = _by_size(cut)
    return Hierarchy(labels)


def _cuts(vectors: Floats, sizes: list[int]) -> list[Integers]:
    tree = linkage(pdist(vectors), method="ward")
    cuts: list[Integers] = []
    for size in sizes:
        cut = fcluster(tree, size, criterion="maxclust").astype(np.int64)
        # With many equal comments, two sizes can have the same cut, which is then one layer.
        if not cuts or cut.max() < cuts[-1].max():
            cuts.append(cut)
    return cuts


def _by_size(cut: Integers) -> Integers:
    values, first, inverse, counts = np.unique(cut, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values))
    return rank[inverse.reshape(-1)]


@in_one_thread
def fit(vectors: Floats, hierarchy: Hierarchy) -> Fit:
    """Measure the distance of each comment to the centre of its cluster in each layer, and the confidence of it."""
    distances = np.zeros(hierarchy.labels.shape)
    confidences = np.zeros(hierarchy.labels.shape)
    for layer in hierarchy.layers:
        members = [hierarchy.members(layer, each) for each in hierarchy.clusters(layer)]
        if not members:
            continue
        centres = np.array([vectors[inside].mean(axis=0) for inside in members])
        for own, inside in enumerate(members):
            to_all = np.asarray(cdist(vectors[inside], centres), np.float64)
            to_own = to_all[:, own]
            to_other = np.delete(to_all, own, axis=1).min(axis=1, initial=np.inf)
            distances[inside, layer] = to_own
            confidences[inside, layer] = _confidence(to_own, to_other)
    return Fit(np.round(distances, 6), np.round(confidences, 6))


def _confidence(to_own: Floats, to_other: Floats) -> Floats:
    both = to_own + to_other
    sure = np.ones_like(to_own)
    finite = np.isfinite(both)
    sure[finite] = np.divide(to_other[finite], both[finite], out=np.full(finite.sum(), 0.5), where=both[finite] > 0)
    return sure
