"""Votes are counted as Polis counts them: judged by red-dwarf, a port of Polis' mathematics, on the same votes."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.systems.conversations.analysis.red_dwarf import (
    calculate_comment_statistics_dataframes,
    priority_metric,
    run_pipeline,
    select_consensus_statements,
    select_representative_statements,
)

from jobtable.systems.conversations.analysis.opinion_study import OpinionStudy
from jobtable.systems.conversations.analysis.polis_export import Comment, PolisExport, Vote, read_export
from jobtable.systems.conversations.analysis.self_statements import is_about_self
from jobtable.systems.conversations.example import generate_export

REAL = sorted((Path(__file__).parents[5] / "shared" / "data" / "polis").glob("*/comments.csv"))
FOLDERS = [None, *(path.parent for path in REAL)]
on_every_export = pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name if f else "generated")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, at what red-dwarf passes
on_real_exports = pytest.mark.parametrize("folder", FOLDERS[1:], ids=lambda f: f.name)


@cache
def exported(folder: Path | None) -> PolisExport:
    return generate_export(3) if folder is None else read_export(folder)


@cache
def studied(folder: Path | None) -> OpinionStudy:
    return OpinionStudy.of(exported(folder), lambda comment: comment.is_shown())


@cache
def judged(folder: Path | None) -> Any:
    """What red-dwarf makes of the same votes, with the same participants."""
    study = studied(folder)
    voters = {voter: number for number, voter in enumerate(study.matrix.voter_ids)}
    rows, columns = np.nonzero(study.matrix.cast)
    ids = study.matrix.comment_ids
    values = study.matrix.values
    votes = [
        {"participant_id": row, "statement_id": ids[column], "vote": int(values[row, column]), "modified": 0}
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    assert len(voters) == values.shape[0]
    return run_pipeline(
        votes=votes,
        mod_out_statement_ids=left_out(study, study.moderated),
        keep_participant_ids=np.flatnonzero(study.groups.labels >= 0).tolist(),
        force_group_count=study.groups.count,
        random_state=0,
    )


def left_out(study: OpinionStudy, flags: Any) -> list[int]:
    return [each for each, flag in zip(study.matrix.comment_ids, flags, strict=True) if flag]


def grouped_votes(study: OpinionStudy) -> tuple[pd.DataFrame, Any]:
    """The votes of those who are in groups, on the comments with votes, and their groups."""
    voted = np.asarray(study.matrix.cast.any(axis=0))
    ids = pd.Index(
        [each for each, has in zip(study.matrix.comment_ids, voted, strict=True) if has], name="statement_id"
    )
    inside = study.groups.labels >= 0
    return pd.DataFrame(study.matrix.values[inside][:, voted], columns=ids), study.groups.labels[inside]


@on_every_export
def test_participants_are_placed_as_polis_places_them(folder: Path | None) -> None:
    """Both directions agree with the oracle, but for their signs, and so does the extremity of every comment."""
    study, oracle = studied(folder), judged(folder)
    for axis, name in enumerate("xy"):
        placed = oracle.participants_df[name].to_numpy()
        assert abs(np.corrcoef(placed, study.groups.places[:, axis])[0, 1]) > 0.9999
    extremity = dict(zip(study.matrix.comment_ids, study.groups.comment_extremity, strict=True))
    for comment_id, value in oracle.statements_df["extremity"].items():
        assert extremity[comment_id] == pytest.approx(value, abs=1e-3)


@on_every_export
def test_groups_are_represented_by_the_same_comments(folder: Path | None) -> None:
    """For each group the choice and the directions are those of the oracle, but for comments that are equally good."""
    study = studied(folder)
    votes, labels = grouped_votes(study)
    statistics, _ = calculate_comment_statistics_dataframes(votes, labels)
    out = left_out(study, study.moderated | study.about_self)
    for group, chosen in select_representative_statements(statistics, mod_out_statement_ids=out).items():
        expected = [each["repness"] * each["repness-test"] * each["p-success"] * each["p-test"] for each in chosen]
        ours = study.representative[int(group)]
        sides = [study.opinions.agree if each.agrees else study.opinions.disagree for each in ours]
        found = [float(side.metric[group, each.column]) for side, each in zip(sides, ours, strict=True)]
        assert sorted(found) == pytest.approx(sorted(expected))
        assert [each.agrees for each in ours] == [each["repful-for"] == "agree" for each in chosen]
        same = {each["tid"] for each in chosen} & {study.matrix.comment_ids[each.column] for each in ours}
        assert len(same) >= len(chosen) - 1


@on_every_export
def test_consensus_and_priorities_are_those_of_polis(folder: Path | None) -> None:
    """Group-informed consensus and priorities equal the oracle's; majorities differ at most where two are as clear."""
    study = studied(folder)
    votes, labels = grouped_votes(study)
    _, consensus = calculate_comment_statistics_dataframes(votes, labels)
    columns = {comment_id: column for column, comment_id in enumerate(study.matrix.comment_ids)}
    for side, name in zip(study.opinions.consensus, ("agree", "disagree"), strict=True):
        for comment_id, value in consensus[f"group-aware-consensus-{name}"].items():
            assert side[columns[comment_id]] == pytest.approx(value)
    places = [columns[comment_id] for comment_id in votes.columns]
    expected = priority_metric(
        study.about_self[places],
        (votes == 1).sum().to_numpy(),
        (votes == -1).sum().to_numpy(),
        votes.notna().sum().to_numpy(),
        study.groups.comment_extremity[places],
    )
    assert study.priorities[places] == pytest.approx(expected)


@on_every_export
def test_majorities_are_those_of_polis(folder: Path | None) -> None:
    """Every comment that is chosen is at least as clear as those that the oracle chooses."""
    study = studied(folder)
    voted = np.asarray(study.matrix.cast.any(axis=0))
    ids = pd.Index(
        [each for each, has in zip(study.matrix.comment_ids, voted, strict=True) if has], name="statement_id"
    )
    votes = pd.DataFrame(study.matrix.values[:, voted], columns=ids)
    out = left_out(study, study.moderated | study.about_self)
    oracle = select_consensus_statements(votes, mod_out_statement_ids=out)
    for name, agrees in (("agree", True), ("disagree", False)):
        expected = [(each["p-success"], each["p-test"]) for each in oracle[name]]
        value = 1 if agrees else -1
        found = []
        for chosen in study.majority:
            if chosen.agrees == agrees:
                column = study.matrix.values[:, chosen.column]
                cast, same = int((~np.isnan(column)).sum()), int((column == value).sum())
                found.append(((same + 1) / (cast + 2), 2 * np.sqrt(cast + 1) * ((same + 1) / (cast + 1) - 0.5)))
        assert sorted(a * b for a, b in found) == pytest.approx(sorted(a * b for a, b in expected))


@on_real_exports
def test_votes_and_groups_are_those_that_polis_published(folder: Path) -> None:
    """The numbers of groups, of grouped participants, and of votes on each comment are those of the conversation."""
    study = studied(folder)
    with (folder / "summary.csv").open(newline="") as file:
        summary = {row[0]: row[1] for row in csv.reader(file) if len(row) > 1}
    assert study.groups.count == int(summary["groups"])
    if "443 people" in summary["conversation-description"]:
        assert int((study.groups.labels >= 0).sum()) == 443
    with (folder / "comments.csv").open(newline="") as file:
        published = {int(row["comment-id"]): row for row in csv.DictReader(file)}
    for column, comment_id in enumerate(study.matrix.comment_ids):
        row, cast = published[comment_id], study.cast[column]
        assert (cast.agrees, cast.disagrees) == (int(row["agrees"]), int(row["disagrees"]))


@pytest.mark.parametrize(
    "text",
    [
        "I am under 30 years of age",
        "I am 30 years old or older but under 55 years of age",
        "My ethnicity is Arab.",
        "I live in a rural area in NZ",
        "Ich bin zwischen 20 und 30 Jahre alt.",
        "Ich wohne in einer Großstadt",
        "Soy mujer",
        "J\u2019habite à la campagne",
    ],
)
def test_statements_about_oneself_are_recognised(text: str) -> None:
    """Age, gender, origin, residence: they say who somebody is."""
    assert is_about_self(text)


@pytest.mark.parametrize(
    "text",
    [
        "I think police should live in the city they serve",
        "I don't like using poisons for pest control",
        "My generation has been growing watching things get worse and worse",
        "Rural areas need more buses",
        "I am worried about the city",
        "Ich finde, die Stadt braucht mehr Busse",
        "I am a farmer and I support a ban on nitrates",
    ],
)
def test_opinions_are_not_statements_about_oneself(text: str) -> None:
    """Also those that begin with I, or name a place or a group."""
    assert not is_about_self(text)


def test_declared_statements_are_shown_apart() -> None:
    """A comment that the export declares represents nobody and is no consensus, whatever its text."""
    comments = (Comment(1, "Anything", is_meta=True), Comment(2, "Everything"))
    votes = tuple(Vote(comment, str(voter), 1) for voter in range(20) for comment in (1, 2))
    study = OpinionStudy.of(PolisExport(comments, votes), lambda comment: True)
    chosen = {each.column for each in (*study.majority, *(each for group in study.representative for each in group))}
    assert chosen == {1}
    assert study.priorities[0] == 49
