"""How much a comment divides its voters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jobtable.systems.conversations.analysis.groups import UNGROUPED
from jobtable.systems.conversations.analysis.numerics import Floats, Integers
from jobtable.systems.conversations.analysis.votes import VoteMatrix

GROUP_DIVERGENCE = "group_divergence"
VOTE_SPREAD = "vote_spread"


@dataclass(frozen=True)
class Extremity:
    """How much one comment divides its voters, from 0 for agreement to 1 for the greatest division."""

    value: float
    method: str
    components: dict[str, float]


def extremities(matrix: VoteMatrix, labels: Integers, reach: Floats) -> list[Extremity]:
    """Return the extremity of each comment, by the groups of participants and the reach of comments.

    With at least two opinion groups it is the largest gap between the shares of any two groups that agree (or
    disagree); a group without votes counts as undecided. Otherwise it is how evenly the votes split.
    """
    spread = _spread(matrix.values)
    count = int(labels.max(initial=UNGROUPED)) + 1
    if count < 2:
        return [Extremity(value, VOTE_SPREAD, {"vote_spread": value}) for value in spread.tolist()]
    members = [matrix.values[labels == group] for group in range(count)]
    agree = np.array([_share(votes, 1) for votes in members])
    disagree = np.array([_share(votes, -1) for votes in members])
    parts = {
        "agree_gap": np.ptp(agree, axis=0),
        "disagree_gap": np.ptp(disagree, axis=0),
        "comment_reach": reach,
        "vote_spread": spread,
    }
    voted = matrix.cast.any(axis=0)
    values = np.where(voted, np.maximum(parts["agree_gap"], parts["disagree_gap"]), 0.0)
    return [
        Extremity(
            round(float(value), 6),
            GROUP_DIVERGENCE,
            {name: round(float(part[column]), 6) for name, part in parts.items()},
        )
        for column, value in enumerate(values)
    ]


def _share(votes: Floats, kind: int) -> Floats:
    """Return the share of one kind among a group's votes on each comment, with one more vote on either side."""
    share: Floats = ((votes == kind).sum(axis=0) + 1) / ((~np.isnan(votes)).sum(axis=0) + 2)
    return share


def _spread(values: Floats) -> Floats:
    """Return 4 times the product of the shares that agree and disagree: 1 if half agree and half disagree."""
    counts = np.maximum((~np.isnan(values)).sum(axis=0), 1)
    spread: Floats = np.round(4 * ((values == 1).sum(axis=0) / counts) * ((values == -1).sum(axis=0) / counts), 6)
    return spread
