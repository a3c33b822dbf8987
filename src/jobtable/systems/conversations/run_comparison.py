"""The comparison of two runs."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import comb
from operator import attrgetter
from typing import Any, TypeVar

from jobtable.systems.conversations.conversation_runs import ConversationRuns
from jobtable.systems.conversations.entities import CommentClusterAssignment, CommentExtremity, JobResult, TopicName
from jobtable.systems.conversations.pipeline import STAGE_OF

R = TypeVar("R", bound=JobResult)

_OF_THE_RUN = {"job_id", "parent_job_id", "root_job_id", "created_at"}
_LARGEST_CHANGES = 10
_NO_CLUSTER = -1


@dataclass(frozen=True)
class TableComparison:
    """The number of results of one kind in each run, and of those that are equal in both."""

    table: str
    one: int
    other: int
    same: int


@dataclass(frozen=True)
class LayerComparison:
    """How similarly two runs cluster their common comments in one layer."""

    layer: int
    one_clusters: int
    other_clusters: int
    agreement: float
    """The adjusted Rand index: 1 for equal clusters, about 0 for unrelated ones."""


@dataclass(frozen=True)
class ExtremityChange:
    """A comment whose extremity differs."""

    comment_id: int
    one: float
    other: float


@dataclass(frozen=True)
class RunComparison:
    """Two runs, of the same conversation or of different ones."""

    one: str
    other: str
    settings: dict[str, tuple[Any, Any]]
    """The inputs and settings that differ."""
    tables: list[TableComparison]
    layers: list[LayerComparison]
    topics_of_both: list[str]
    topics_of_one: list[str]
    topics_of_other: list[str]
    extremity_changes: list[ExtremityChange]
    """The largest changes of extremity, largest first."""

    @property
    def is_same(self) -> bool:
        """Whether both runs have the same results."""
        return all(table.one == table.other == table.same for table in self.tables)


def compare_runs(runs: ConversationRuns, one: str, other: str) -> RunComparison:
    """Compare two runs."""
    first, second = runs.get(one).record, runs.get(other).record
    looked_at = ("conversation_id", "seed", "embed", "includes_moderated", "strict_moderation")
    settings = {name: (getattr(first, name), getattr(second, name)) for name in looked_at}
    settings |= {"comments": (first.comments.sha256, second.comments.sha256)}
    settings |= {"votes": (first.votes.sha256, second.votes.sha256)}
    topics = [{topic.topic_name for topic in runs.list_results(run, TopicName)} for run in (one, other)]
    return RunComparison(
        one=one,
        other=other,
        settings={name: pair for name, pair in settings.items() if pair[0] != pair[1]},
        tables=[_compare_table(runs, one, other, kind) for kind in STAGE_OF],
        layers=_compare_layers(runs, one, other),
        topics_of_both=sorted(topics[0] & topics[1]),
        topics_of_one=sorted(topics[0] - topics[1]),
        topics_of_other=sorted(topics[1] - topics[0]),
        extremity_changes=_extremity_changes(runs, one, other),
    )


def _compare_table(runs: ConversationRuns, one: str, other: str, kind: type[JobResult]) -> TableComparison:
    table = kind.__schema__.table
    range_key = attrgetter(table.primary[1])
    counts = Counter[int]()
    same = 0
    # Both are sorted by range key, so only two results are in memory at once: embeddings are large.
    sides = (_marked(side, runs.list_results(run, kind)) for side, run in enumerate((one, other)))
    in_order = heapq.merge(*sides, key=lambda marked: range_key(marked[1]))
    for _, pair in groupby(in_order, key=lambda marked: range_key(marked[1])):
        found = {side: result.model_dump(exclude=_OF_THE_RUN) for side, result in pair}
        counts.update(found.keys())
        same += len(found) == 2 and found[0] == found[1]
    return TableComparison(table.name, counts[0], counts[1], same)


def _marked(side: int, results: Iterable[R]) -> Iterator[tuple[int, R]]:
    return ((side, result) for result in results)


def _compare_layers(runs: ConversationRuns, one: str, other: str) -> list[LayerComparison]:
    first, second = (
        {each.comment_id: each.layer_clusters for each in runs.list_results(run, CommentClusterAssignment)}
        for run in (one, other)
    )
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return []
    layers = first[shared[0]].keys() & second[shared[0]].keys()
    compared = []
    for layer in sorted(layers, key=int):
        labels = [[clusters[comment][layer] for comment in shared] for clusters in (first, second)]
        one_clusters, other_clusters = (len(set(of_run) - {_NO_CLUSTER}) for of_run in labels)
        compared.append(LayerComparison(int(layer), one_clusters, other_clusters, adjusted_rand_index(*labels)))
    return compared


def _extremity_changes(runs: ConversationRuns, one: str, other: str) -> list[ExtremityChange]:
    first, second = (
        {each.comment_id: each.extremity_value for each in runs.list_results(run, CommentExtremity)}
        for run in (one, other)
    )
    changes = [
        ExtremityChange(comment, first[comment], second[comment])
        for comment in first.keys() & second.keys()
        if first[comment] != second[comment]
    ]
    changes.sort(key=lambda change: (-abs(change.one - change.other), change.comment_id))
    return changes[:_LARGEST_CHANGES]


def adjusted_rand_index(one: Sequence[int], other: Sequence[int]) -> float:
    """Return how similar two clusterings of the same things are, corrected for chance; at most 1."""
    pairs = comb(len(one), 2)
    together = _pairs(Counter(zip(one, other, strict=True)).values())
    in_one, in_other = _pairs(Counter(one).values()), _pairs(Counter(other).values())
    expected = in_one * in_other / pairs if pairs else 0.0
    most = (in_one + in_other) / 2
    return 1.0 if most == expected else round((together - expected) / (most - expected), 6)


def _pairs(sizes: Iterable[int]) -> int:
    return sum(comb(size, 2) for size in sizes)
