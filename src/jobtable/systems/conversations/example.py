"""Generated conversations, to try and to test the analysis."""

from __future__ import annotations

import numpy as np

from jobtable.systems.conversations.analysis.polis_export import (
    AGREE,
    DISAGREE,
    MODERATED_OUT,
    PASS,
    Comment,
    PolisExport,
    Vote,
)

_TOPICS = (
    ("rivers", "wetlands", "fish", "water", "pollution", "farming", "streams"),
    ("police", "youth", "trust", "streets", "patrols", "safety", "training"),
    ("buses", "cycling", "lanes", "traffic", "parking", "trains", "fares"),
    ("schools", "teachers", "lunches", "classes", "tutors", "libraries", "exams"),
    ("rents", "housing", "landlords", "tenants", "building", "flats", "mortgages"),
    ("parks", "trees", "gardens", "playgrounds", "benches", "birds", "meadows"),
)
_OPENINGS = ("We need better", "The council should pay for", "I worry about", "Nobody looks after", "More money for")
_LOYALTY = 0.85
"""The probability that a participant votes like their group."""


def generate_export(seed: int = 0, *, comments: int = 120, voters: int = 60, votes_per_voter: int = 40) -> PolisExport:
    """Generate a conversation with clear topics and two opinion groups; one comment in twenty is moderated out."""
    random = np.random.default_rng(seed)
    made = []
    stances = random.choice([AGREE, DISAGREE], size=(2, comments))
    for comment_id in range(comments):
        topic = _TOPICS[int(random.integers(len(_TOPICS)))]
        words = random.choice(topic, size=3, replace=False)
        opening = _OPENINGS[int(random.integers(len(_OPENINGS)))]
        moderation = MODERATED_OUT if random.random() < 0.05 else 1
        made.append(Comment(comment_id, f"{opening} {words[0]}, {words[1]} and {words[2]}.", moderation))
    votes = []
    for voter in range(voters):
        stance = stances[voter % 2]
        for comment_id in random.choice(comments, size=min(votes_per_voter, comments), replace=False).tolist():
            loyal = random.random() < _LOYALTY
            value = int(stance[comment_id]) if loyal else int(random.choice([AGREE, PASS, DISAGREE]))
            votes.append(Vote(comment_id, str(voter), value))
    return PolisExport(tuple(made), tuple(votes))
