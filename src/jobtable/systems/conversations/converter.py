"""From arrays and plain rows to entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Protocol, Required, TypeAlias, TypedDict, TypeVar, Unpack

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import ValueRefusedError
from jobtable.model import PackedFloats
from jobtable.systems.conversations.entities import (
    CommentCluster,
    CommentClusterAssignment,
    CommentEmbedding,
    CommentExtremity,
    Embedding,
    GraphEdge,
    JobResult,
    Keyword,
    Neighbour,
    Point,
    TopicName,
)

R = TypeVar("R", bound=JobResult)
DEFAULT_MODEL = "all-MiniLM-L6-v2"


class Array(Protocol):
    """What the converter needs of a numpy array; numpy itself is not needed."""

    def tolist(self) -> Any:
        """Return the values as Python's own."""
        ...


Floats: TypeAlias = Array | Sequence[float]
Integers: TypeAlias = Array | Sequence[int]
Keywords: TypeAlias = Iterable[tuple[str, float]]


class JobTree(TypedDict, total=False):
    """The job that a result belongs to, always passed as parameters, and its position in the tree."""

    job_id: Required[str]
    parent_job_id: str | None
    root_job_id: str | None
    job_stage: str | None


def _plain(values: Any) -> Any:
    """Return an array or one of its elements as Python's own values."""
    return values.tolist() if hasattr(values, "tolist") else values


def _keywords(words: Keywords) -> list[Keyword]:
    return [Keyword(word=word, score=_plain(score)) for word, score in words]


def _point(coordinates: Floats | None) -> Point | None:
    if coordinates is None:
        return None
    numbers = _plain(coordinates)
    if len(numbers) != 2:
        raise ValueRefusedError(f"a point of the layout must have two coordinates, not {len(numbers)}")
    return Point(x=numbers[0], y=numbers[1])


class DataConverter:
    """Makes entities from the arrays of an analysis. `job_id` is always given, never looked up."""

    @staticmethod
    def create_comment_embedding(
        conversation_id: str,
        comment_id: int,
        vector: Floats,
        *,
        model: str = DEFAULT_MODEL,
        umap_coordinates: Floats | None = None,
        neighbors: Iterable[tuple[int, float]] | None = None,
        packed: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        **job: Unpack[JobTree],
    ) -> CommentEmbedding:
        """Make the embedding of a comment; `packed` stores its vector as float32 instead of a list of numbers."""
        numbers = [float(number) for number in _plain(vector)]
        near = None
        if neighbors is not None:
            near = [Neighbour(comment_id=int(other), distance=float(distance)) for other, distance in neighbors]
        return CommentEmbedding(
            comment_id=int(comment_id),
            conversation_id=conversation_id,
            embedding=Embedding(
                vector=PackedFloats(numbers) if packed else numbers, dimensions=len(numbers), model=model
            ),
            umap_coordinates=_point(umap_coordinates),
            nearest_neighbors=near,
            created_at=clock.now(),
            **job,
        )

    @staticmethod
    def create_comment_embeddings(
        conversation_id: str,
        comment_ids: Integers,
        vectors: Iterable[Floats],
        *,
        layout: Iterable[Floats] | None = None,
        model: str = DEFAULT_MODEL,
        packed: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        **job: Unpack[JobTree],
    ) -> Iterator[CommentEmbedding]:
        """Yield the embeddings of many comments, from a matrix with a row and a `layout` with a point for each."""
        points: Iterable[Floats | None] = repeat(None, len(_plain(comment_ids))) if layout is None else layout
        for comment_id, vector, point in zip(_plain(comment_ids), vectors, points, strict=True):
            yield DataConverter.create_comment_embedding(
                conversation_id,
                comment_id,
                vector,
                model=model,
                umap_coordinates=point,
                packed=packed,
                clock=clock,
                **job,
            )

    @staticmethod
    def from_row(kind: type[R], row: Mapping[str, Any], *, clock: Clock = SYSTEM_CLOCK, **job: Unpack[JobTree]) -> R:
        """Make any result from a plain row, such as one of a CSV file; names are the entity's fields."""
        values = {"created_at": clock.now(), **{name: _plain(value) for name, value in row.items()}, **job}
        return kind.model_validate(values)

    @staticmethod
    def create_cluster_assignment(
        conversation_id: str,
        comment_id: int,
        layer_clusters: Integers,
        *,
        distances: Floats | None = None,
        confidences: Floats | None = None,
        clock: Clock = SYSTEM_CLOCK,
        **job: Unpack[JobTree],
    ) -> CommentClusterAssignment:
        """Make the cluster assignment of a comment from its row of an array of layers; -1 means none."""
        clusters = [int(cluster) for cluster in _plain(layer_clusters)]
        return CommentClusterAssignment(
            comment_id=int(comment_id),
            conversation_id=conversation_id,
            layer_clusters=_by_layer(clusters),
            distance_to_centroid=None if distances is None else _by_layer(_plain(distances)),
            cluster_confidence=None if confidences is None else _by_layer(_plain(confidences)),
            is_outlier=all(cluster < 0 for cluster in clusters),
            created_at=clock.now(),
            **job,
        )

    @staticmethod
    def create_cluster(  # noqa: PLR0913 - each argument is one attribute of the item
        conversation_id: str,
        layer_id: int,
        cluster_id: int,
        size: int,
        *,
        centroid: Floats | None = None,
        top_words: Keywords = (),
        top_tfidf_words: Keywords = (),
        sample_comments: Sequence[str] = (),
        top_comment_ids: Integers = (),
        parent: tuple[int, int] | None = None,
        children: Iterable[tuple[int, int]] = (),
        clock: Clock = SYSTEM_CLOCK,
        **job: Unpack[JobTree],
    ) -> CommentCluster:
        """Make a cluster with its keywords; parent and children are (layer, cluster)."""
        return CommentCluster(
            cluster_key=cluster_key(layer_id, cluster_id),
            conversation_id=conversation_id,
            layer_id=int(layer_id),
            cluster_id=int(cluster_id),
            size=int(size),
            centroid_coordinates=_point(centroid),
            top_words=_keywords(top_words),
            top_tfidf_words=_keywords(top_tfidf_words),
            sample_comments=list(sample_comments),
            top_comment_ids=[int(comment) for comment in _plain(top_comment_ids)],
            parent_cluster=None if parent is None else cluster_key(*parent),
            child_clusters=[cluster_key(*child) for child in children],
            created_at=clock.now(),
            **job,
        )

    @staticmethod
    def create_graph_edge(
        conversation_id: str,
        source_id: int,
        target_id: int,
        weight: float,
        *,
        distance: float | None = None,
        is_nearest_neighbor: bool = False,
        shared_cluster_layers: Integers = (),
        clock: Clock = SYSTEM_CLOCK,
        **job: Unpack[JobTree],
    ) -> GraphEdge:
        """Make an edge between two comments."""
        source, target = int(source_id), int(target_id)
        return GraphEdge(
            edge_id=f"{source}_{target}",
            conversation_id=conversation_id,
            source_id=source,
            target_id=target,
            weight=float(weight),
            distance=None if distance is None else float(distance),
            is_nearest_neighbor=is_nearest_neighbor,
            shared_cluster_layers=[int(layer) for layer in _plain(shared_cluster_layers)],
            created_at=clock.now(),
            **job,
        )

    @staticmethod
    def create_topic_name(
        conversation_id: str,
        layer_id: int,
        cluster_id: int,
        topic_name: str,
        *,
        model_name: str,
        prompt: str | None = None,
        description: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
        **job: Unpack[JobTree],
    ) -> TopicName:
        """Make the name that a model gave a cluster."""
        return TopicName(
            topic_key=cluster_key(layer_id, cluster_id),
            conversation_id=conversation_id,
            layer_id=int(layer_id),
            cluster_id=int(cluster_id),
            topic_name=topic_name,
            model_name=model_name,
            prompt=prompt,
            description=description,
            created_at=clock.now(),
            **job,
        )

    @staticmethod
    def create_comment_extremity(
        conversation_id: str,
        comment_id: int,
        extremity_value: float,
        *,
        calculation_method: str,
        component_values: Mapping[str, float] | None = None,
        votes: Integers | None = None,
        clock: Clock = SYSTEM_CLOCK,
        **job: Unpack[JobTree],
    ) -> CommentExtremity:
        """Make the extremity of a comment; `votes` are those on it: 1 agrees, -1 disagrees, 0 passes."""
        cast = None if votes is None else [int(vote) for vote in _plain(votes)]
        return CommentExtremity(
            comment_id=int(comment_id),
            conversation_id=conversation_id,
            extremity_value=float(extremity_value),
            calculation_method=calculation_method,
            component_values={name: float(value) for name, value in (component_values or {}).items()},
            vote_count=None if cast is None else len(cast),
            agree_share=cast.count(1) / len(cast) if cast else None,
            disagree_share=cast.count(-1) / len(cast) if cast else None,
            created_at=clock.now(),
            **job,
        )


def cluster_key(layer_id: int, cluster_id: int) -> str:
    """Return the key of a cluster within its job."""
    return f"layer{int(layer_id)}_{int(cluster_id)}"


def _by_layer(values: Iterable[Any]) -> dict[str, Any]:
    return {str(layer): value for layer, value in enumerate(values)}
