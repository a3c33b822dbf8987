"""The pages of conversations."""

from __future__ import annotations

import re

import httpx
import pytest
from tests.web.conftest import Served
from tests.web.world import World

from jobtable.systems.conversations.conversation_runs import ConversationRuns
from jobtable.systems.conversations.entities import CommentOpinion, TopicName
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
    measured = {1: (0.5, 0.0, 0), 2: (0.9, 0.1, 9), 3: (0.3, 0.8, 9), 4: (0.2, 0.9, 9)}
    served.services.store.batch_put(
        CommentOpinion(
            job_id=stage_job_id("silent-run", PipelineStage.OPINIONS),
            comment_id=comment_id,
            conversation_id="silent",
            created_at=run.record.created_at,
            votes=votes,
            agrees=votes,
            disagrees=0,
            consensus_agree=consensus,
            consensus_disagree=0.1,
            divisiveness=divisiveness,
            priority=1,
            reach=0,
        )
        for comment_id, (consensus, divisiveness, votes) in measured.items()
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


def test_one_id_of_an_analysis_answers_for_all_its_stages(served: Served, pages: httpx.Client) -> None:
    """The routes of results take the id of a run as well as that of the stage that stored them."""
    runs = served.services.get(ConversationRuns)
    files = b"comment-id,comment-body\n1,Trees", b"comment-id,voter-id,vote"
    run = runs.start("one-id", *files, run_id="one-id-run")
    stage = stage_job_id("one-id-run", PipelineStage.TOPICS)
    topic = TopicName(
        job_id=stage,
        topic_key="layer0_0",
        conversation_id="one-id",
        created_at=run.record.created_at,
        layer_id=0,
        cluster_id=0,
        topic_name="Trees",
        model_name="by hand",
    )
    served.services.store.put(topic)
    for job_id in ("one-id-run", stage):
        listed = pages.get(f"/api/v1/conversation-jobs/{job_id}/topic-names").json()["items"]
        assert [each["topic_name"] for each in listed] == ["Trees"]
        assert pages.get(f"/api/v1/conversation-jobs/{job_id}/topic-names/layer0_0").json()["job_id"] == stage
