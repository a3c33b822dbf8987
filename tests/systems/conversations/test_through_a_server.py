"""Analyses through a server, in Python and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.remote.conftest import json_far, working
from tests.running import run_jobs
from tests.web.conftest import Served

from jobtable.app import Services
from jobtable.errors import (
    AlreadyExistsError,
    JobStateError,
    RequestRefused,
    ValueRefusedError,
)
from jobtable.settings import Settings
from jobtable.systems.conversations.analysis.polis_export import write_export
from jobtable.systems.conversations.conversation_runs import ConversationRuns, RunSettings
from jobtable.systems.conversations.example import generate_export
from jobtable.systems.conversations.pipeline import PipelineStage


class TestConversations:
    def test_is_started_run_again_and_deleted(self, served: Served, remote: Services, tmp_path: Path) -> None:
        write_export(generate_export(1, comments=20, voters=8), tmp_path)
        files = (tmp_path / "comments.csv").read_bytes(), (tmp_path / "votes.csv").read_bytes()
        runs = remote.get(ConversationRuns)
        run = runs.start("c1", *files, RunSettings(seed=3), run_id="run-1")
        assert (run.record.seed, run.record.created_by) == (3, "full")
        assert runs.start("c1", *files, RunSettings(seed=3), run_id="run-1").record == run.record
        with pytest.raises(AlreadyExistsError):
            runs.start("c1", *files, RunSettings(seed=4), run_id="run-1")
        with pytest.raises(JobStateError, match="cannot be copied"):
            runs.rerun("run-1", PipelineStage.LAYOUT)
        with pytest.raises(JobStateError, match="cancel its job"):
            runs.delete("run-1")
        run_jobs(served.services.engine, "conversations")
        again = runs.rerun("run-1", PipelineStage.LAYOUT, seed=5)
        assert (again.record.source_run_id, again.record.seed) == ("run-1", 5)
        assert runs.delete("run-1").results > 20

    def test_what_cannot_be_analysed_is_not_sent(self, remote: Services) -> None:
        with pytest.raises(ValueRefusedError, match=r"comments\.csv"):
            remote.get(ConversationRuns).start("c1", b"\xff\xfe", b"")
        with pytest.raises(ValueRefusedError, match="queue"):
            remote.get(ConversationRuns).start("c1", b"", b"", queue="mine")

    def test_an_export_may_be_larger_than_other_requests_and_not_too_large(self) -> None:
        served = Served(most_upload_bytes=20_000, most_request_bytes=10_000)
        comments, votes = b"comment-id,comment-body\n1,%s\n" % (b"x" * 9_000), b"comment-id,voter-id,vote\n"
        try:
            with Services.from_settings(Settings(server=served.url)) as services:
                services.get(ConversationRuns).start("c", comments, votes + b"1,1,1\n" * 500)
                with pytest.raises(RequestRefused, match="larger than 20,000 bytes"):
                    services.get(ConversationRuns).start("c", comments, votes + b"1,1,1\n" * 5_000)
        finally:
            served.stop()


def test_a_conversation_is_analysed_and_followed(served: Served, tmp_path: Path) -> None:
    write_export(generate_export(2, comments=20, voters=8), tmp_path)
    with working(served, "conversations"):
        done = json_far(served, "conversations", "analyze", str(tmp_path), "--id", "cli")
    assert done["root"]["status"] == "COMPLETED"
