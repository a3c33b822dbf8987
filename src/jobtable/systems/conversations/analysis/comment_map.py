"""A map of the comments: their neighbours, and a position in the plane for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from jobtable.systems.conversations.analysis.numerics import Floats, Integers, in_one_thread

NEIGHBOURS = 8
_DECIMALS = 6
_FEWEST_TO_ARRANGE = 5
"""Fewer points are placed on a circle."""


@dataclass(frozen=True)
class Edge:
    """Two neighbouring comments by their rows, the smaller first."""

    source: int
    target: int
    distance: float
    weight: float
    """1 for equal comments, about 0 for unrelated ones."""


@dataclass(frozen=True)
class Neighbourhood:
    """The nearest neighbours of each comment by their rows, nearest first."""

    indices: Integers
    distances: Floats

    def edges(self) -> list[Edge]:
        """Return each pair of neighbours once."""
        found: dict[tuple[int, int], float] = {}
        for source, (others, distances) in enumerate(zip(self.indices.tolist(), self.distances.tolist(), strict=True)):
            for other, distance in zip(others, distances, strict=True):
                found[min(source, other), max(source, other)] = distance
        return [
            Edge(source, target, distance, round(max(0.0, 1 - distance), _DECIMALS))
            for (source, target), distance in sorted(found.items())
        ]


@in_one_thread
def find_neighbours(vectors: Floats, count: int = NEIGHBOURS) -> Neighbourhood:
    """Find the nearest comments by cosine distance, at most `count` for each."""
    count = min(count, len(vectors) - 1)
    if count < 1:
        return Neighbourhood(np.empty((len(vectors), 0), np.int64), np.empty((len(vectors), 0)))
    search = NearestNeighbors(n_neighbors=count, metric="cosine", algorithm="brute").fit(vectors)
    distances, indices = search.kneighbors()  # without an argument, a point is not its own neighbour
    return Neighbourhood(indices.astype(np.int64), np.round(np.clip(distances, 0.0, 2.0), _DECIMALS))


@in_one_thread
def arrange(vectors: Floats, *, seed: int = 0) -> Floats:
    """Place vectors in the plane, similar ones near each other; the same seed yields the same positions."""
    count = len(vectors)
    if count < _FEWEST_TO_ARRANGE or len(np.unique(vectors, axis=0)) < _FEWEST_TO_ARRANGE:
        return _circle(vectors)
    perplexity = min(30.0, (count - 1) / 3)
    places = TSNE(
        perplexity=perplexity, metric="cosine", init="random", learning_rate="auto", random_state=seed
    ).fit_transform(vectors)
    return _rounded(np.asarray(places, np.float64))


def _circle(vectors: Floats) -> Floats:
    """Place different vectors evenly on a circle, equal ones at one position."""
    _, place = np.unique(vectors, axis=0, return_inverse=True)
    angles = place.reshape(-1) * (2 * np.pi / max(1, int(place.max(initial=0)) + 1))
    return _rounded(np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float64))


def _rounded(places: Floats) -> Floats:
    rounded: Floats = np.round(places, _DECIMALS) + 0.0  # plus 0.0 turns -0.0 into 0.0
    return rounded
