"""The votes of a conversation as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jobtable.systems.conversations.analysis.numerics import Flags, Floats, Integers
from jobtable.systems.conversations.analysis.polis_export import Vote


@dataclass(frozen=True)
class VoteMatrix:
    """The votes of participants (rows) on comments (columns): 1 agrees, -1 disagrees, 0 passes, NaN without a vote."""

    comment_ids: tuple[int, ...]
    voter_ids: tuple[str, ...]
    values: Floats
    history: Integers
    """The flat indices of the votes (row times columns plus column), in the order in which they were cast."""

    @property
    def cast(self) -> Flags:
        """Whether there is a vote, by participant and comment."""
        return ~np.isnan(self.values)

    def votes_on(self, column: int) -> list[int]:
        """Return the votes on one comment."""
        votes = self.values[:, column]
        return [int(vote) for vote in votes[~np.isnan(votes)]]


def vote_matrix(comment_ids: Sequence[int], votes: Sequence[Vote]) -> VoteMatrix:
    """The matrix of all votes on these comments, which come in the order in which they were cast; others are left out.

    Of several votes of a participant on a comment the last one counts, from the first one on.
    """
    columns = {comment_id: column for column, comment_id in enumerate(comment_ids)}
    known = [vote for vote in votes if vote.comment_id in columns]
    voters = sorted({vote.voter_id for vote in known})
    rows = {voter_id: row for row, voter_id in enumerate(voters)}
    values = np.full((len(voters), len(columns)), np.nan)
    for vote in known:
        values[rows[vote.voter_id], columns[vote.comment_id]] = vote.value
    places = (rows[vote.voter_id] * len(columns) + columns[vote.comment_id] for vote in known)
    history = np.fromiter(dict.fromkeys(places), np.int64)
    return VoteMatrix(tuple(comment_ids), tuple(voters), values, history)
