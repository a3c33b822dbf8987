"""The results of the stage OPINIONS, from a study of the votes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from jobtable.systems.conversations.analysis.numerics import Floats
from jobtable.systems.conversations.analysis.opinion_study import OpinionStudy
from jobtable.systems.conversations.analysis.opinions import Chosen
from jobtable.systems.conversations.entities import (
    CommentOpinion,
    GroupVotes,
    OpinionGroup,
    ParticipantOpinion,
    Point,
    Representative,
)
from jobtable.systems.conversations.stage_work import StageWork

_DIGITS = 6


def comments(work: StageWork, study: OpinionStudy) -> Iterator[CommentOpinion]:
    """Yield what participants think of each comment."""
    agree, disagree = study.opinions.consensus
    majority: dict[int, Literal["agree", "disagree"]] = {
        each.column: "agree" if each.agrees else "disagree" for each in study.majority
    }
    for column, comment_id in enumerate(study.matrix.comment_ids):
        yield CommentOpinion(
            comment_id=comment_id,
            conversation_id=work.conversation_id,
            created_at=work.clock.now(),
            **study.cast[column]._asdict(),
            groups=[_votes_of(study, group, column) for group in range(study.groups.count)],
            consensus_agree=_rounded(agree[column]),
            consensus_disagree=_rounded(disagree[column]),
            majority=majority.get(column),
            divisiveness=study.divisiveness[column].value,
            priority=_rounded(study.priorities[column]),
            reach=_rounded(study.groups.comment_reach[column]),
            is_about_self=bool(study.about_self[column]),
            is_moderated_out=bool(study.moderated[column]),
            **work.tree,
        )


def _votes_of(study: OpinionStudy, group: int, column: int) -> GroupVotes:
    opinions = study.opinions
    return GroupVotes(
        group_id=group,
        votes=int(opinions.votes[group, column]),
        agrees=int(opinions.agree.counts[group, column]),
        disagrees=int(opinions.disagree.counts[group, column]),
    )


def groups(work: StageWork, study: OpinionStudy) -> Iterator[OpinionGroup]:
    """Yield the groups, each with the comments that represent it."""
    for group, chosen in enumerate(study.representative):
        members = study.groups.labels == group
        yield OpinionGroup(
            group_id=group,
            conversation_id=work.conversation_id,
            created_at=work.clock.now(),
            size=int(members.sum()),
            position=_point(study.groups.places[members].mean(axis=0)),
            representative_comments=[_representative(study, group, each) for each in chosen],
            **work.tree,
        )


def _representative(study: OpinionStudy, group: int, chosen: Chosen) -> Representative:
    side = study.opinions.agree if chosen.agrees else study.opinions.disagree
    column = chosen.column
    return Representative(
        comment_id=study.matrix.comment_ids[column],
        agrees=chosen.agrees,
        votes=int(study.opinions.votes[group, column]),
        count=int(side.counts[group, column]),
        share=_rounded(side.shares[group, column]),
        share_z=_rounded(side.share_tests[group, column]),
        ratio=_rounded(side.ratios[group, column]),
        ratio_z=_rounded(side.ratio_tests[group, column]),
        is_best_agreed=chosen.is_best_agreed,
    )


def participants(work: StageWork, study: OpinionStudy) -> Iterator[ParticipantOpinion]:
    """Yield the position and the group of each participant."""
    cast = study.matrix.cast.sum(axis=1)
    rows = zip(study.matrix.voter_ids, study.groups.labels.tolist(), study.groups.places, cast.tolist(), strict=True)
    for participant_id, label, place, votes in rows:
        yield ParticipantOpinion(
            participant_id=participant_id,
            conversation_id=work.conversation_id,
            created_at=work.clock.now(),
            group_id=None if label < 0 else label,
            position=_point(place),
            votes=votes,
            **work.tree,
        )


def _point(place: Floats) -> Point:
    return Point(x=_rounded(place[0]), y=_rounded(place[1]))


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)
