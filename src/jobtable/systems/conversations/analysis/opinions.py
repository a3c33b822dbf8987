"""What groups of participants think of comments, by Polis' measures: agreement, representative comments, consensus.

Shares have one more vote on either side, so that few votes prove little. A z-score above `SIGNIFICANT` means that a
share, or the difference between two, is greater than chance explains in nine of ten cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jobtable.systems.conversations.analysis.numerics import Flags, Floats, Integers
from jobtable.systems.conversations.analysis.votes import VoteMatrix

SIGNIFICANT = 1.2815515655446004
"""The z-score that one of ten random values exceeds."""
_MOST_CHOSEN = 5
_OWN_PRIORITY = 7.0
"""Of statements about oneself, which Polis asks regardless of their votes."""
_NEWNESS = 8.0
_VOTES_UNTIL_HALF_AS_NEW = 5.0


@dataclass(frozen=True)
class Side:
    """One direction of votes: arrays with a row for each group and a column for each comment."""

    counts: Integers
    shares: Floats
    share_tests: Floats
    """z-scores: the share is greater than a half."""
    ratios: Floats
    """The share in the group divided by that in all other groups."""
    ratio_tests: Floats
    """z-scores: the share is greater than in all other groups."""

    @property
    def metric(self) -> Floats:
        """How well a comment represents a group."""
        return self.ratios * self.ratio_tests * self.shares * self.share_tests


@dataclass(frozen=True)
class Opinions:
    """The votes of groups on comments."""

    votes: Integers
    agree: Side
    disagree: Side

    @property
    def consensus(self) -> tuple[Floats, Floats]:
        """Return for each comment the product of all groups' shares that agree, and that disagree."""
        return self.agree.shares.prod(axis=0), self.disagree.shares.prod(axis=0)


@dataclass(frozen=True)
class Chosen:
    """A comment that represents a group or a majority, and the direction in which it does."""

    column: int
    agrees: bool
    is_best_agreed: bool = False
    """Whether it heads the list because the group agrees with it most."""


def opinions_of(matrix: VoteMatrix, labels: Integers, count: int) -> Opinions:
    """Count and test the votes of each group."""
    values = matrix.values
    rows = [values[labels == group] for group in range(count)]
    votes = np.array([(~np.isnan(each)).sum(axis=0) for each in rows], np.int64).reshape(count, values.shape[1])
    return Opinions(votes, _side(rows, votes, 1), _side(rows, votes, -1))


def _side(rows: Sequence[Floats], votes: Integers, value: int) -> Side:
    counts = np.array([(each == value).sum(axis=0) for each in rows], np.int64).reshape(votes.shape)
    others, other_votes = counts.sum(axis=0) - counts, votes.sum(axis=0) - votes
    shares = _share(counts, votes)
    return Side(
        counts, shares, _test_share(counts, votes), shares / _share(others, other_votes),
        _test_difference(counts, votes, others, other_votes),
    )  # fmt: skip


def _share(counts: Integers, votes: Integers) -> Floats:
    return np.asarray((counts + 1) / (votes + 2), np.float64)


def _test_share(counts: Integers, votes: Integers) -> Floats:
    return np.asarray(2 * np.sqrt(votes + 1) * ((counts + 1) / (votes + 1) - 0.5), np.float64)


def _test_difference(counts: Integers, votes: Integers, others: Integers, other_votes: Integers) -> Floats:
    """Return the z-score of the difference between two shares; 0 where everybody voted so."""
    own, other = (counts + 1) / (votes + 1), (others + 1) / (other_votes + 1)
    both = (counts + others + 2) / (votes + other_votes + 2)
    spread = np.sqrt(np.maximum(both * (1 - both), 0.0) * (1 / (votes + 1) + 1 / (other_votes + 1)))
    return np.asarray(np.divide(own - other, spread, out=np.zeros_like(spread), where=spread > 0), np.float64)


def representative_of(opinions: Opinions, group: int, candidates: Iterable[int]) -> list[Chosen]:
    """Return the comments that represent a group best, those with which it agrees first.

    The one that the group agrees with most heads the choice. If none is significant, it is the one that differs most.
    """
    columns = list(candidates)
    agree, disagree = opinions.agree, opinions.disagree
    head = _best_agreed(opinions, group, columns)
    chosen = [] if head is None else [Chosen(head, agrees=True, is_best_agreed=True)]
    found = [column for column in columns if _is_significant(opinions, group, column)]
    found.sort(key=lambda column: -float(_direction(opinions, group, column).metric[group, column]))
    if head is None and not found and columns:
        tests = np.maximum(agree.ratio_tests[group], disagree.ratio_tests[group])
        found = [max(columns, key=lambda column: float(tests[column]))]
    chosen += [
        Chosen(column, agrees=_direction(opinions, group, column) is agree) for column in found if column != head
    ]
    return sorted(chosen[:_MOST_CHOSEN], key=lambda each: not each.agrees)


def _direction(opinions: Opinions, group: int, column: int) -> Side:
    agree, disagree = opinions.agree, opinions.disagree
    return agree if agree.ratio_tests[group, column] > disagree.ratio_tests[group, column] else disagree


def _is_significant(opinions: Opinions, group: int, column: int) -> bool:
    sides = (opinions.agree, opinions.disagree)
    tests = ((side.share_tests[group, column], side.ratio_tests[group, column]) for side in sides)
    return any(min(pair) > SIGNIFICANT for pair in tests)


def _best_agreed(opinions: Opinions, group: int, columns: Sequence[int]) -> int | None:
    """Return the comment with which a group agrees most; one that also sets it apart comes before others."""
    agree, best = opinions.agree, None
    plain = agree.shares * agree.share_tests
    for column in columns:
        if opinions.agree.counts[group, column] + opinions.disagree.counts[group, column] == 0:
            continue
        if best is None:
            sets_apart = agree.ratios[group, column] > 1 and agree.shares[group, column] > 0.5
            is_better = bool(agree.share_tests[group, column] > SIGNIFICANT or sets_apart)
        else:
            measure = agree.metric if agree.ratios[group, best] > 1 else plain
            is_better = bool(measure[group, column] > measure[group, best])
        best = column if is_better else best
    return best


def majority_of(matrix: VoteMatrix, candidates: Iterable[int]) -> list[Chosen]:
    """Return the comments that most of all participants agree with, or disagree with: the clearest ones first."""
    everybody = opinions_of(matrix, np.zeros(len(matrix.voter_ids), np.int64), 1)
    columns = list(candidates)
    chosen = []
    for side, agrees in ((everybody.agree, True), (everybody.disagree, False)):
        clear = [each for each in columns if side.shares[0, each] > 0.5 and side.share_tests[0, each] > SIGNIFICANT]
        clear.sort(key=lambda each: -float(side.shares[0, each] * side.share_tests[0, each]))
        chosen += [Chosen(column, agrees=agrees) for column in clear[:_MOST_CHOSEN]]
    return chosen


def priorities_of(matrix: VoteMatrix, labels: Integers, extremity: Floats, about_self: Flags) -> Floats:
    """Return how urgently Polis asks for votes on each comment.

    Comments that are agreed with, not passed on, set people apart, or have few votes come first.
    """
    values = matrix.values[labels >= 0]
    votes = (~np.isnan(values)).sum(axis=0)
    agree = _share((values == 1).sum(axis=0), votes)
    engaged = 1 - _share((values == 0).sum(axis=0), votes)
    newness = 1 + _NEWNESS * np.exp2(-votes / _VOTES_UNTIL_HALF_AS_NEW)
    priority = np.where(about_self, _OWN_PRIORITY, agree * engaged * (1 + extremity) * newness)
    return np.asarray(priority**2, np.float64)
