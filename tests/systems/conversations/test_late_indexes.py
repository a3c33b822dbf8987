"""Analyses on a store whose indexes lag: nothing is lost, nothing is done twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.late_indexes import SEEDS, behind, check_once, everything, work
from tests.systems.conversations.test_conversation_runs import files_of

from jobtable.jobs.stored.field_types import Status
from jobtable.systems.conversations.conversation_runs import QUEUE as CONVERSATIONS
from jobtable.systems.conversations.conversation_runs import ConversationRuns
from jobtable.systems.conversations.example import generate_export
from jobtable.systems.conversations.service import tables


@pytest.mark.parametrize("seed", SEEDS)
def test_an_analysis_runs_each_stage_once_and_leaves_nothing_behind(tmp_path: Path, seed: int) -> None:
    files = files_of(generate_export(1, comments=20, voters=10, votes_per_voter=10), tmp_path)
    with behind(seed, *tables()) as (jobs, clock):
        runs = ConversationRuns(jobs)
        runs.start("c", *files, run_id="r")
        work(jobs, clock, CONVERSATIONS)
        assert runs.get("r").status is Status.COMPLETED
        check_once(jobs)
        runs.delete("r")
        assert everything(jobs, *tables()) == {"QUEUE"}
