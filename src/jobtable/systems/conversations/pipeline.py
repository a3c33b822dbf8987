"""The stages of an analysis: their dependencies, tasks and results."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum

from jobtable.systems.conversations.entities import (
    CommentCluster,
    CommentClusterAssignment,
    CommentEmbedding,
    CommentExtremity,
    CommentOpinion,
    GraphEdge,
    JobResult,
    OpinionGroup,
    ParticipantOpinion,
    TopicName,
)

_IDS = uuid.UUID("0b7b5b0e-6a3c-5d50-8f0c-0f6d2f0a9c11")
"""The namespace of the ids of stage jobs."""
_STAGES = "jobtable.systems.conversations.stages"


class PipelineStage(StrEnum):
    """The stages in order."""

    EMBEDDING = "EMBEDDING"
    CLUSTERING = "CLUSTERING"
    LAYOUT = "LAYOUT"
    KEYWORDS = "KEYWORDS"
    TOPICS = "TOPICS"
    OPINIONS = "OPINIONS"
    EXTREMITY = "EXTREMITY"


@dataclass(frozen=True)
class StageDeclaration:
    """The task of a stage, its dependencies, and the results that it stores."""

    task: str
    after: tuple[PipelineStage, ...]
    stores: tuple[type[JobResult], ...]


PIPELINE: dict[PipelineStage, StageDeclaration] = {
    PipelineStage.EMBEDDING: StageDeclaration(f"{_STAGES}:embed_comments", (), (CommentEmbedding,)),
    PipelineStage.CLUSTERING: StageDeclaration(
        f"{_STAGES}:cluster_comments", (PipelineStage.EMBEDDING,), (CommentClusterAssignment,)
    ),
    PipelineStage.LAYOUT: StageDeclaration(
        f"{_STAGES}:lay_out_comments", (PipelineStage.EMBEDDING, PipelineStage.CLUSTERING), (GraphEdge,)
    ),
    PipelineStage.KEYWORDS: StageDeclaration(
        f"{_STAGES}:describe_clusters", (PipelineStage.CLUSTERING, PipelineStage.LAYOUT), (CommentCluster,)
    ),
    PipelineStage.TOPICS: StageDeclaration(f"{_STAGES}:name_topics", (PipelineStage.KEYWORDS,), (TopicName,)),
    PipelineStage.OPINIONS: StageDeclaration(
        f"{_STAGES}:find_opinions", (), (CommentOpinion, OpinionGroup, ParticipantOpinion)
    ),
    PipelineStage.EXTREMITY: StageDeclaration(
        f"{_STAGES}:measure_extremity", (PipelineStage.OPINIONS,), (CommentExtremity,)
    ),
}
"""Every stage, after its dependencies. LAYOUT also adds positions and neighbours to the stored embeddings."""

REUSE_TASK = f"{_STAGES}:take_over_results"

STAGE_OF: dict[type[JobResult], PipelineStage] = {
    kind: stage for stage, declaration in PIPELINE.items() for kind in declaration.stores
}
"""The stage that stores each kind of result."""


def stage_job_id(run_id: str, stage: PipelineStage) -> str:
    """Return the id of a stage's job, derived from the run's so that starting a run twice makes no second job."""
    return str(uuid.uuid5(_IDS, f"{run_id}\n{stage}"))


def stages_from(first: PipelineStage) -> frozenset[PipelineStage]:
    """Return a stage and all stages that depend on it, directly or indirectly."""
    chosen = {first}
    for stage, declaration in PIPELINE.items():
        if chosen.intersection(declaration.after):
            chosen.add(stage)
    return frozenset(chosen)
