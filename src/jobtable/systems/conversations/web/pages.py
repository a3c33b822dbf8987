"""The pages of conversations: their runs, and a map of the comments with topics, agreement and division."""

from __future__ import annotations

import html
import textwrap
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response

from jobtable.app import Services
from jobtable.errors import NotFoundError, ObjectNotFoundError, missing
from jobtable.jobs.stored.field_types import Status
from jobtable.systems.conversations.analysis.polis_export import parse_comments
from jobtable.systems.conversations.conversation_runs import ConversationRuns
from jobtable.systems.conversations.entities import (
    CommentCluster,
    CommentClusterAssignment,
    CommentEmbedding,
    CommentOpinion,
    ConversationRun,
    OpinionGroup,
    TopicName,
)
from jobtable.web.guard import READ, PageRoute, allow
from jobtable.web.injection import AllServices, TheStore, path_id
from jobtable.web.pages.frame import render

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_MOST_POINTS = 3000
_MOST_CLUSTERS = 500
_SHOWN = 8
_WIDTH, _MOST_LINES = 60, 8


@router.get("/conversations")
@allow(READ)
def show_conversations(request: Request, services: AllServices, store: TheStore, cursor: str = "") -> Response:
    """Show all runs of all conversations."""
    page = store.query(ConversationRun.by_type()).page(cursor or None, size=50)
    runs = sorted(page.items, key=lambda run: run.created_at, reverse=True)
    statuses = services.get(ConversationRuns).statuses(runs) if runs else {}
    return render(
        request,
        "conversations/conversations.html",
        title="Conversations",
        runs=runs,
        statuses=statuses,
        cursor=page.cursor,
        is_first=not cursor,
    )


@router.get("/conversations/{conversation_id}")
@allow(READ)
def show_conversation(
    request: Request,
    conversation_id: Annotated[str, path_id("bg2018")],
    services: AllServices,
    run: str = "",
    layer: int = 0,
) -> Response:
    """Show one run of a conversation."""
    runs = services.get(ConversationRuns).list_runs(conversation_id).page(size=50).items
    if not runs:
        raise missing("run of conversation", conversation_id)
    statuses = services.get(ConversationRuns).statuses(runs)
    chosen = run or _latest(runs, statuses)
    shown = services.get(ConversationRuns).get(chosen)
    if shown.record.conversation_id != conversation_id:
        raise NotFoundError(f"run {chosen} is one of conversation {shown.record.conversation_id}")
    clusters = list(services.get(ConversationRuns).list_results(chosen, CommentCluster).take(_MOST_CLUSTERS))
    names = {
        (topic.layer_id, topic.cluster_id): topic.topic_name
        for topic in services.get(ConversationRuns).list_results(chosen, TopicName).take(_MOST_CLUSTERS)
    }
    texts = _texts(services, shown.record)
    opinions = list(services.get(ConversationRuns).list_results(chosen, CommentOpinion).take(_MOST_POINTS))
    shown_opinions = [each for each in opinions if each.votes and not each.is_moderated_out and not each.is_about_self]
    return render(
        request,
        "conversations/conversation.html",
        title=f"Conversation {conversation_id}",
        conversation_id=conversation_id,
        runs=runs,
        statuses=statuses,
        shown=shown,
        layer=layer,
        layers=sorted({cluster.layer_id for cluster in clusters}),
        clusters=sorted((c for c in clusters if c.layer_id == layer), key=lambda c: -c.size),
        names=names,
        texts=texts,
        consensus=_consensus(shown_opinions),
        divisive=sorted(shown_opinions, key=lambda each: -each.divisiveness)[:_SHOWN],
        about_self=[each for each in opinions if each.is_about_self and not each.is_moderated_out],
        groups=list(services.get(ConversationRuns).list_results(chosen, OpinionGroup)),
        looked_at=_MOST_POINTS if len(opinions) == _MOST_POINTS else None,
        plot=_map(services, chosen, layer, names, texts),
    )


def _consensus(opinions: list[CommentOpinion]) -> list[CommentOpinion]:
    """Return the comments with which every group agrees, or disagrees, most."""
    return sorted(opinions, key=lambda each: -max(each.consensus_agree, each.consensus_disagree))[:_SHOWN]


def _latest(runs: list[ConversationRun], statuses: dict[str, Status]) -> str:
    complete = (run.run_id for run in runs if statuses.get(run.run_id) is Status.COMPLETED)
    return next(complete, runs[0].run_id)


def _texts(services: Services, record: ConversationRun) -> dict[int, str]:
    try:
        file = services.objects.get(record.comments.key)
    except ObjectNotFoundError:
        return {}
    return {comment.comment_id: comment.text for comment in parse_comments(file)}


def _map(
    services: Services, run_id: str, layer: int, names: dict[tuple[int, int], str], texts: dict[int, str]
) -> dict[str, Any]:
    """Return the plot of all comments, with one trace per cluster of a layer."""
    runs = services.get(ConversationRuns)
    cluster_of = {
        each.comment_id: each.layer_clusters.get(str(layer), -1)
        for each in runs.list_results(run_id, CommentClusterAssignment).take(_MOST_POINTS)
    }
    traces: dict[int, dict[str, Any]] = {}
    for each in runs.list_results(run_id, CommentEmbedding).take(_MOST_POINTS):
        if each.umap_coordinates is None:
            continue
        cluster = cluster_of.get(each.comment_id, -1)
        name = names.get((layer, cluster), "no cluster" if cluster < 0 else f"cluster {cluster}")
        trace = traces.setdefault(
            cluster, {"x": [], "y": [], "text": [], "mode": "markers", "name": name, "palette": cluster, "size": 8}
        )
        trace["x"].append(each.umap_coordinates.x)
        trace["y"].append(each.umap_coordinates.y)
        trace["text"].append(_wrapped(texts.get(each.comment_id, f"comment {each.comment_id}")))
    return {"traces": [traces[cluster] for cluster in sorted(traces)], "isMap": True}


def _wrapped(text: str) -> str:
    """Return a text in lines for the chart, which interprets markup, so that is escaped."""
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "<br>".join(html.escape(line, quote=False) for line in lines[:_MOST_LINES])
