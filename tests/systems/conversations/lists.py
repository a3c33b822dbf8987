"""What the commands of conversations list."""

from __future__ import annotations

from collections.abc import Iterator

from tests.golden import TIMES, golden

from jobtable.model import Entity
from jobtable.systems.conversations.conversation_runs import JOB_TYPE
from jobtable.systems.conversations.pipeline import PipelineStage, stage_job_id

RUN = "f84d63ed-3b42-448e-9a1d-3474137f4e80"
LISTS = ["conversations runs 36324", f"conversations show {RUN} --table extremity"]
ASKED_FOR: dict[str, str] = {}
LAST_SHOWN: set[str] = set()
EMPTY: dict[str, str] = {}


def listed() -> Iterator[Entity]:
    """Three of everything."""
    top = {"parent_job_id": None, "root_job_id": None, "status": "COMPLETED", "created_by": "me"}
    yield golden("jobs/Job", job_id=RUN, job_type=JOB_TYPE, **top)
    extremity = stage_job_id(RUN, PipelineStage.EXTREMITY)
    for number, at in enumerate(TIMES):
        yield golden("conversations/ConversationRun", run_id=[RUN, "run-1", "run-2"][number], created_at=at)
        yield golden("conversations/CommentExtremity", job_id=extremity, comment_id=number)
