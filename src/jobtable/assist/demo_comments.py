"""The task of the demonstration that could ask a model, and takes its way without one: nothing is sent to anybody."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import BaseModel

from jobtable.assist.assist_settings import NO_PROVIDER
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import task

COMMENTS = (
    "The parcel arrived two weeks late.",
    "Far too expensive for what it is.",
    "Lovely colours, and it fits.",
    "The courier left it in the rain.",
    "Can I have a refund?",
    "My daughter wears it every day.",
)
_WORDS = {"delivery": ("late", "parcel", "courier"), "price": ("expensive", "refund", "price")}


class Sorted(BaseModel):
    """What a comment of a customer is about."""

    topic: Literal["delivery", "price", "product"]


@task
def sort_comments(job: JobContext, comments: list[str]) -> dict[str, int]:
    """Count comments by topic: by words, whatever provider is set."""
    topics: Counter[str] = Counter()
    for number, comment in enumerate(comments, start=1):
        found = job.assist(
            "sort comments",
            "What is this comment of a customer about?",
            output=Sorted,
            data=comment,
            provider=NO_PROVIDER,
            without=lambda: _by_words(comment),  # noqa: B023 - called at once
        )
        topics[found.topic] += 1
        job.progress(100 * number / len(comments), f"{number} of {len(comments)} comments")
    return dict(topics)


def _by_words(comment: str) -> Sorted:
    words = comment.lower().rstrip(".?").split()
    topic = next((topic for topic, known in _WORDS.items() if any(word in words for word in known)), "product")
    return Sorted.model_validate({"topic": topic})
