"""A conversation's votes as Polis counts them: the groups of participants, and what they think of each comment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jobtable.systems.conversations.analysis.extremity import Extremity, extremities
from jobtable.systems.conversations.analysis.groups import OpinionGroups, group_voters
from jobtable.systems.conversations.analysis.numerics import Flags, Floats
from jobtable.systems.conversations.analysis.opinions import (
    Chosen,
    Opinions,
    majority_of,
    opinions_of,
    priorities_of,
    representative_of,
)
from jobtable.systems.conversations.analysis.polis_export import CastVotes, Comment, PolisExport
from jobtable.systems.conversations.analysis.self_statements import is_about_self
from jobtable.systems.conversations.analysis.votes import VoteMatrix, vote_matrix


@dataclass(frozen=True)
class OpinionStudy:
    """Everything that follows from the votes. Columns are all comments of the export, in the order of their ids."""

    matrix: VoteMatrix
    moderated: Flags
    """Comments that are left out: their votes count only when participants are admitted and placed."""
    about_self: Flags
    groups: OpinionGroups
    opinions: Opinions
    divisiveness: list[Extremity]
    representative: list[list[Chosen]]
    """For each group."""
    majority: list[Chosen]
    priorities: Floats
    cast: list[CastVotes]
    """All votes on each comment, also repeated ones."""

    @staticmethod
    def of(export: PolisExport, is_analysed: Callable[[Comment], bool]) -> OpinionStudy:
        """Study the votes of an export."""
        matrix = vote_matrix([comment.comment_id for comment in export.comments], export.votes)
        moderated = np.array([not is_analysed(comment) for comment in export.comments], np.bool_)
        about_self = np.array([each.is_meta or is_about_self(each.text) for each in export.comments], np.bool_)
        groups = group_voters(matrix, moderated)
        opinions = opinions_of(matrix, groups.labels, groups.count)
        columns = np.flatnonzero(~moderated & ~about_self).tolist()
        return OpinionStudy(
            matrix=matrix,
            moderated=moderated,
            about_self=about_self,
            groups=groups,
            opinions=opinions,
            divisiveness=extremities(matrix, groups.labels, groups.comment_reach),
            representative=[representative_of(opinions, group, columns) for group in range(groups.count)],
            majority=majority_of(matrix, columns),
            cast=[_cast_on(export, matrix, column) for column in range(len(matrix.comment_ids))],
            priorities=priorities_of(matrix, groups.labels, groups.comment_extremity, about_self),
        )


def _cast_on(export: PolisExport, matrix: VoteMatrix, column: int) -> CastVotes:
    votes = matrix.votes_on(column)
    single = CastVotes(len(votes), votes.count(1), votes.count(-1))
    return export.repeated.get(matrix.comment_ids[column], single)
