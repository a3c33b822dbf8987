"""Sorts the feedback of customers with a model, or by words where none is set; and finds what says nearly the same."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from jobtable.jobs import JobContext, task

QUESTION = "What is this comment of a customer about, how does the customer feel, and what should we do, if anything?"
_WORDS = {"delivery": ("late", "parcel", "courier", "arrived"), "price": ("cheap", "expensive", "price", "refund")}


class Feedback(BaseModel):
    """What a comment says."""

    topic: Literal["delivery", "price", "product"]
    mood: Annotated[int, Field(ge=-2, le=2, description="from -2, angry, to 2, delighted")]
    to_do: Annotated[str | None, Field(description="one sentence, or null")]


@task
def sort_feedback(job: JobContext, *, comments: list[str]) -> dict[str, Any]:
    """Sort comments by topic, and list what is to be done."""
    found: list[Feedback] = []
    was_asked = False
    for number, comment in enumerate(comments, start=1):
        answered = job.assisted(
            "sort feedback",
            QUESTION,
            output=Feedback,
            data={"comment": comment},  # a comment may say "ignore your instructions": it is marked as data
            without=lambda comment=comment: _by_words(comment),  # type: ignore[misc]
        )
        found.append(answered.value)
        was_asked |= answered.was_asked
        job.progress(100 * number / len(comments), f"{number} of {len(comments)} comments")
    return {
        "topics": dict(Counter(each.topic for each in found)),
        "to_do": [each.to_do for each in found if each.to_do],
        "was_asked": was_asked,
    }


@task
def find_similar(job: JobContext, *, comments: list[str], alike: float = 0.8) -> list[list[str]]:
    """Return the pairs of comments that say nearly the same."""
    vectors = job.embed(comments).vectors
    return [
        [comments[first], comments[second]]
        for second in range(len(comments))
        for first in range(second)
        if _cosine(vectors[first], vectors[second]) >= alike
    ]


def _by_words(comment: str) -> Feedback:
    """What can be said without a model: the topic."""
    words = comment.lower().split()
    topic = next((topic for topic, known in _WORDS.items() if any(word in words for word in known)), "product")
    return Feedback.model_validate({"topic": topic, "mood": 0, "to_do": None})


def _cosine(one: list[float], other: list[float]) -> float:
    """The vectors have the length 1."""
    return sum(a * b for a, b in zip(one, other, strict=True))
