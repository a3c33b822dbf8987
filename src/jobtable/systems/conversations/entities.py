"""The tables of conversation analysis, one entity each and keyed by job, and the runs that fill them."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Count
from jobtable.model import Entity, Index, Key, Part, Table, Timestamp, Vector

NonEmpty: TypeAlias = Annotated[str, Field(min_length=1)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]

CONVERSATION_INDEX = "ConversationIndex"


def _table(name: str, range_key: str) -> Table:
    index = Index(CONVERSATION_INDEX, "conversation_id", "created_at")
    return Table(name, pk="job_id", sk=range_key, indexes=[index])


embeddings = _table("Delphi_CommentEmbeddings", "comment_id")
cluster_assignments = _table("Delphi_CommentHierarchicalClusterAssignments", "comment_id")
cluster_structures = _table("Delphi_CommentClustersStructureKeywords", "cluster_key")
graph_edges = _table("Delphi_UMAPGraph", "edge_id")
topic_names = _table("Delphi_CommentClustersLLMTopicNames", "topic_key")
extremities = _table("Delphi_CommentExtremity", "comment_id")
comment_opinions = _table("Delphi_CommentOpinions", "comment_id")
opinion_groups = _table("Delphi_OpinionGroups", "group_id")
participant_opinions = _table("Delphi_ParticipantOpinions", "participant_id")

TABLES = (
    embeddings,
    cluster_assignments,
    cluster_structures,
    graph_edges,
    topic_names,
    extremities,
    comment_opinions,
    opinion_groups,
    participant_opinions,
)


class JobResult(Entity):
    """The fields of every result: the job that made it, its position in the job tree, and its conversation."""

    by_conversation = Key(index=CONVERSATION_INDEX)

    job_id: NonEmpty
    conversation_id: NonEmpty
    created_at: Timestamp
    parent_job_id: str | None = None
    root_job_id: str | None = None
    job_stage: str | None = None


class Embedding(Part):
    """A vector, and the model that made it."""

    vector: Vector
    dimensions: Count
    model: str


class Point(Part):
    """A position in the two-dimensional layout."""

    x: float
    y: float


class Keyword(Part):
    """A word that distinguishes a cluster from others, and how strongly."""

    word: str
    score: float


class Neighbour(Part):
    """A comment that is close to another one."""

    comment_id: Count
    distance: Annotated[float, Field(ge=0)]


class CommentEmbedding(JobResult, table=embeddings):
    """The embedding of a comment, its position in the layout, and its nearest neighbours."""

    comment_id: Count
    embedding: Embedding
    umap_coordinates: Point | None = None
    nearest_neighbors: list[Neighbour] | None = None


class CommentClusterAssignment(JobResult, table=cluster_assignments):
    """The cluster of a comment in each layer of the hierarchy, of which layer 0 is the finest; -1 means none."""

    comment_id: Count
    layer_clusters: dict[str, int]
    """Layer -> cluster."""
    distance_to_centroid: dict[str, float] | None = None
    cluster_confidence: dict[str, Share] | None = None
    is_outlier: bool = False


class CommentCluster(JobResult, table=cluster_structures):
    """A cluster of one layer: its size, position, keywords, and relatives in the hierarchy."""

    cluster_key: NonEmpty
    layer_id: Count
    cluster_id: Count
    size: Count
    centroid_coordinates: Point | None = None
    top_words: list[Keyword] = []
    top_tfidf_words: list[Keyword] = []
    sample_comments: list[str] = []
    top_comment_ids: list[int] = []
    parent_cluster: str | None = None
    child_clusters: list[str] = []


class GraphEdge(JobResult, table=graph_edges):
    """An edge of the neighbourhood graph."""

    edge_id: NonEmpty
    source_id: Count
    target_id: Count
    weight: Annotated[float, Field(ge=0)]
    distance: Annotated[float, Field(ge=0)] | None = None
    is_nearest_neighbor: bool = False
    shared_cluster_layers: list[Count] = []


class TopicName(JobResult, table=topic_names):
    """The name that a model gave to a cluster."""

    topic_key: NonEmpty
    layer_id: Count
    cluster_id: Count
    topic_name: str
    model_name: str
    prompt: str | None = None
    description: str | None = None


class CommentExtremity(JobResult, table=extremities):
    """How much a comment divides the groups of voters, and the components of that measure."""

    comment_id: Count
    extremity_value: Annotated[float, Field(ge=0)]
    calculation_method: str
    component_values: dict[str, float] = {}
    vote_count: Count | None = None
    agree_share: Share | None = None
    disagree_share: Share | None = None


class GroupVotes(Part):
    """The votes of one opinion group on a comment."""

    group_id: Count
    votes: Count
    agrees: Count
    disagrees: Count


class CommentOpinion(JobResult, table=comment_opinions):
    """What participants and their groups think of a comment, by Polis' measures."""

    comment_id: Count
    votes: Count
    """All that were cast, also by those who voted again: the numbers that Polis publishes."""
    agrees: Count
    disagrees: Count
    groups: list[GroupVotes] = []
    """By the last vote of each participant."""
    consensus_agree: Share
    """Group-informed consensus: the product over all groups of the share that agrees."""
    consensus_disagree: Share
    majority: Literal["agree", "disagree"] | None = None
    """Whether it is among the comments that most participants clearly agree or disagree with."""
    divisiveness: Share
    """The largest gap between the shares of two groups that agree, or that disagree."""
    priority: Annotated[float, Field(ge=0)]
    """How urgently Polis asks for more votes on it."""
    reach: Annotated[float, Field(ge=0)]
    """How far it pulls participants apart in the plane of opinions."""
    is_about_self: bool = False
    """Whether it says who its author is: no opinion, so it represents no group and is no consensus."""
    is_moderated_out: bool = False


class Representative(Part):
    """A comment that represents a group, with the numbers of the direction in which it does."""

    comment_id: Count
    agrees: bool
    """Whether the group agrees with it, or disagrees."""
    votes: Count
    count: Count
    """How many of these votes have that direction."""
    share: Share
    share_z: float
    ratio: float
    """The share divided by that of everybody else."""
    ratio_z: float
    is_best_agreed: bool = False


class OpinionGroup(JobResult, table=opinion_groups):
    """Participants who vote alike."""

    group_id: Count
    size: Count
    position: Point
    representative_comments: list[Representative] = []


class ParticipantOpinion(JobResult, table=participant_opinions):
    """Where a participant is in the plane of opinions."""

    participant_id: NonEmpty
    group_id: Count | None = None
    """None with too few votes to be placed."""
    position: Point
    votes: Count


class StoredFile(Part):
    """A file in object storage."""

    key: NonEmpty
    size_bytes: Count
    sha256: str


class ConversationRun(Entity, table=main, type="CONVERSATION_RUN"):
    """One analysis of a conversation: its input and its settings. It has the id of its root job, and lies beside it."""

    key = Key("JOB#{run_id}", "CONVERSATION_RUN")
    by_conversation = Key("CONVERSATION#{conversation_id}", "RUN#{created_at}", index="GSI1")

    run_id: NonEmpty
    conversation_id: NonEmpty
    created_at: Timestamp
    created_by: str
    comments: StoredFile
    votes: StoredFile
    seed: Count = 0
    embed: str | None = None
    """`module:function` from texts to an array; by default TF-IDF and a truncated SVD."""
    includes_moderated: bool = False
    strict_moderation: bool | None = None
    """Whether comments that no moderator accepted are left out as well."""
    source_run_id: str | None = None
    """The run whose results were copied up to `first_stage`."""
    first_stage: str | None = None
