"""The pages of conversations."""

from __future__ import annotations

import re

import httpx
import pytest
from tests.web.conftest import Served
from tests.web.world import World

from jobtable.systems.conversations.conversation_runs import ConversationRuns
from jobtable.systems.conversations.entities import CommentExtremity
from jobtable.systems.conversations.pipeline import PipelineStage, stage_job_id
from jobtable.systems.conversations.web import pages as conversations


def test_a_wrong_address_says_what_is_wrong_with_it(world: World, pages: httpx.Client) -> None:
    page = pages.get(f"/conversations/{world.made['conversation']}?layer=top")
    assert page.status_code == 422
    assert "query.layer: Input should be a valid integer" in page.text


def test_what_nobody_has_voted_on_is_no_consensus(
    served: Served, pages: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    comments = b"comment-id,comment-body\n1,Nobody voted\n2,All agreed\n3,Some did not\n4,Left out"
    run = served.services.get(ConversationRuns).start(
        "silent", comments, b"comment-id,voter-id,vote", run_id="silent-run"
    )
    measured = {1: (0.0, 0), 2: (0.1, 9), 3: (0.8, 9), 4: (0.9, 9)}
    served.services.store.batch_put(
        CommentExtremity(
            job_id=stage_job_id("silent-run", PipelineStage.EXTREMITY),
            comment_id=comment_id,
            conversation_id="silent",
            created_at=run.record.created_at,
            extremity_value=value,
            calculation_method="by hand",
            vote_count=vote_count,
        )
        for comment_id, (value, vote_count) in measured.items()
    )
    monkeypatch.setattr(conversations, "_MOST_POINTS", 3)
    listed = pages.get("/conversations/silent").text.partition('data-region="extremes"')[2]
    consensus, _, divisive = listed.partition("Divisive")
    assert re.findall("<li><span>([^<]+)", consensus) == ["All agreed", "Some did not"]
    assert re.findall("<li><span>([^<]+)", divisive) == ["Some did not", "All agreed"]
    assert listed.count("of the first 3 comments") == 2


def test_a_run_is_not_shown_as_one_of_another_conversation(world: World, served: Served, pages: httpx.Client) -> None:
    served.services.get(ConversationRuns).start("other", b"comment-id,comment-body\n1,x", b"comment-id,voter-id,vote")
    run = next(iter(served.services.get(ConversationRuns).list_runs(world.made["conversation"]))).run_id
    assert pages.get(f"/conversations/{world.made['conversation']}?run={run}").status_code == 200
    assert pages.get(f"/conversations/other?run={run}").status_code == 404
