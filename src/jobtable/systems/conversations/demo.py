"""The conversation of the demonstration."""

from __future__ import annotations

from pathlib import Path

from jobtable.app import Services
from jobtable.demo import USER, DemoPart, DemoState
from jobtable.jobs.stored.field_types import FINAL, Status
from jobtable.systems.conversations.analysis.polis_export import read_files, write_export
from jobtable.systems.conversations.conversation_runs import ConversationRuns
from jobtable.systems.conversations.example import generate_export

_CONVERSATION, _RUN = "demo-town-hall", "demo-run"


def _start_conversation(services: Services, folder: Path) -> None:
    export = folder / "conversation"
    if not export.exists():
        write_export(generate_export(3, comments=150, voters=80), export)
    services.get(ConversationRuns).start(_CONVERSATION, *read_files(export), run_id=_RUN, user=USER)


def _look_at_conversation(services: Services) -> DemoState:
    run = services.get(ConversationRuns).get(_RUN)
    detail = f"{sum(job.status is Status.COMPLETED for job in run.stages.values())} of {len(run.stages)} stages"
    return DemoState(run.status, run.progress, detail, run.status in FINAL)


PART = DemoPart("Conversation", f"/conversations/{_CONVERSATION}", _start_conversation, _look_at_conversation)
