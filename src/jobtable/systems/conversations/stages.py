"""The tasks of an analysis, one per stage: each reads the results of earlier stages and stores its own.

A stage that runs twice stores the same items: they depend only on the export, the settings and the seed, have the
creation time of the run, and the arithmetic keeps its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from jobtable.jobs.tasks import task
from jobtable.systems.conversations import opinion_results
from jobtable.systems.conversations.analysis.clusters import Hierarchy, cluster, fit
from jobtable.systems.conversations.analysis.comment_map import Neighbourhood, arrange, find_neighbours
from jobtable.systems.conversations.analysis.embedding import TFIDF_MODEL, embed_tfidf, embed_with, load_embed
from jobtable.systems.conversations.analysis.extremity import extremities
from jobtable.systems.conversations.analysis.groups import UNGROUPED
from jobtable.systems.conversations.analysis.keywords import name_topic, words_of_clusters
from jobtable.systems.conversations.analysis.numerics import Floats, Integers
from jobtable.systems.conversations.analysis.opinion_study import OpinionStudy
from jobtable.systems.conversations.analysis.votes import VoteMatrix, vote_matrix
from jobtable.systems.conversations.converter import DataConverter
from jobtable.systems.conversations.entities import (
    CommentCluster,
    CommentClusterAssignment,
    CommentEmbedding,
    CommentOpinion,
    GraphEdge,
    Neighbour,
    ParticipantOpinion,
    Point,
)
from jobtable.systems.conversations.pipeline import PIPELINE, PipelineStage, stage_job_id
from jobtable.systems.conversations.stage_work import StageWork

if TYPE_CHECKING:
    from jobtable.jobs.report.context import JobContext

KEYWORD_MODEL = "class-tf-idf"
_SAMPLES = 5
_TOP_COMMENTS = 10


@task
def embed_comments(job: JobContext, run_id: str) -> dict[str, int]:
    """Embed each comment."""
    work = StageWork(job, run_id, PipelineStage.EMBEDDING)
    if work.run.embed is None:
        vectors, model = embed_tfidf(work.texts, seed=work.run.seed), TFIDF_MODEL
    else:
        vectors, model = embed_with(load_embed(work.run.embed), work.texts), work.run.embed
    made = DataConverter.create_comment_embeddings(
        work.conversation_id, work.comment_ids, vectors, model=model, clock=work.clock, **work.tree
    )
    return {"comments": work.store(made), "moderated_out": work.left_out, "dimensions": vectors.shape[1]}


@task
def cluster_comments(job: JobContext, run_id: str) -> dict[str, int]:
    """Cluster the comments in layers."""
    work = StageWork(job, run_id, PipelineStage.CLUSTERING)
    vectors = work.vectors()
    hierarchy = cluster(vectors, np.asarray(vectors.any(axis=1)))
    how = fit(vectors, hierarchy)
    rows = zip(work.comment_ids, hierarchy.labels, how.distances, how.confidences, strict=True)
    made = (
        DataConverter.create_cluster_assignment(
            work.conversation_id,
            comment_id,
            labels,
            distances=distances,
            confidences=confidences,
            clock=work.clock,
            **work.tree,
        )
        for comment_id, labels, distances, confidences in rows
    )
    return {"comments": work.store(made), "layers": len(hierarchy.layers)}


@task
def lay_out_comments(job: JobContext, run_id: str) -> dict[str, int]:
    """Find a position and the neighbours of each comment, and the graph of all neighbours."""
    work = StageWork(job, run_id, PipelineStage.LAYOUT)
    vectors = work.vectors()
    near = find_neighbours(vectors)
    edges = work.store(_edges(work, near))
    job.progress(30, "found the neighbours")
    places = arrange(vectors, seed=work.run.seed)
    work.store(_placed(work, near, places))
    return {"comments": len(places), "edges": edges}


def _edges(work: StageWork, near: Neighbourhood) -> Iterator[GraphEdge]:
    hierarchy, ids = work.hierarchy(), work.comment_ids
    nearest = [row[0] if row else None for row in near.indices.tolist()]
    for edge in near.edges():
        yield DataConverter.create_graph_edge(
            work.conversation_id,
            ids[edge.source],
            ids[edge.target],
            edge.weight,
            distance=edge.distance,
            is_nearest_neighbor=nearest[edge.source] == edge.target or nearest[edge.target] == edge.source,
            shared_cluster_layers=hierarchy.shared_layers(edge.source, edge.target),
            clock=work.clock,
            **work.tree,
        )


def _placed(work: StageWork, near: Neighbourhood, places: Floats) -> Iterator[CommentEmbedding]:
    ids = work.comment_ids
    rows = zip(work.earlier(CommentEmbedding), places.tolist(), near.indices, near.distances, strict=True)
    for embedding, (x, y), others, distances in rows:
        neighbours = [
            Neighbour(comment_id=ids[other], distance=distance)
            for other, distance in zip(others.tolist(), distances.tolist(), strict=True)
        ]
        yield embedding.replace(umap_coordinates=Point(x=x, y=y), nearest_neighbors=neighbours)


@task
def describe_clusters(job: JobContext, run_id: str) -> dict[str, int]:
    """Describe each cluster: its size, position, words, comments, and relatives in the hierarchy."""
    work = StageWork(job, run_id, PipelineStage.KEYWORDS)
    hierarchy = work.hierarchy()
    return {"clusters": work.store(_clusters(work, hierarchy)), "layers": len(hierarchy.layers)}


def _clusters(work: StageWork, hierarchy: Hierarchy) -> Iterator[CommentCluster]:
    points = [embedding.umap_coordinates for embedding in work.earlier(CommentEmbedding)]
    places = np.array([(point.x, point.y) if point else (0.0, 0.0) for point in points])
    distances = [assignment.distance_to_centroid or {} for assignment in work.earlier(CommentClusterAssignment)]
    for layer in hierarchy.layers:
        members = [hierarchy.members(layer, each) for each in hierarchy.clusters(layer)]
        words = words_of_clusters([[work.texts[place] for place in inside] for inside in members])
        for number, (inside, of_cluster) in enumerate(zip(members, words, strict=True)):
            central = sorted(inside.tolist(), key=lambda place: (distances[place].get(str(layer), 0.0), place))
            yield DataConverter.create_cluster(
                work.conversation_id,
                layer,
                number,
                len(inside),
                centroid=np.round(places[inside].mean(axis=0), 6),
                top_words=of_cluster.frequent,
                top_tfidf_words=of_cluster.telling,
                sample_comments=[work.texts[place] for place in central[:_SAMPLES]],
                top_comment_ids=[work.comment_ids[place] for place in central[:_TOP_COMMENTS]],
                parent=hierarchy.parent(layer, number),
                children=hierarchy.children(layer, number),
                clock=work.clock,
                **work.tree,
            )


@task
def name_topics(job: JobContext, run_id: str) -> dict[str, int]:
    """Name each cluster by its words."""
    work = StageWork(job, run_id, PipelineStage.TOPICS)
    made = (
        DataConverter.create_topic_name(
            work.conversation_id,
            each.layer_id,
            each.cluster_id,
            name_topic([(keyword.word, keyword.score) for keyword in each.top_tfidf_words]),
            model_name=KEYWORD_MODEL,
            description=each.sample_comments[0] if each.sample_comments else None,
            clock=work.clock,
            **work.tree,
        )
        for each in work.earlier(CommentCluster)
    )
    return {"topics": work.store(made)}


@task
def measure_extremity(job: JobContext, run_id: str) -> dict[str, int]:
    """Measure how much each comment divides the opinion groups."""
    work = StageWork(job, run_id, PipelineStage.EXTREMITY)
    export = work.export()
    matrix = vote_matrix(work.comment_ids, export.votes)
    labels, reach = _groups_of(work, matrix)
    made = (
        DataConverter.create_comment_extremity(
            work.conversation_id,
            comment_id,
            found.value,
            calculation_method=found.method,
            component_values=found.components,
            votes=matrix.votes_on(column),
            clock=work.clock,
            **work.tree,
        )
        for column, (comment_id, found) in enumerate(
            zip(work.comment_ids, extremities(matrix, labels, reach), strict=True)
        )
    )
    return {
        "comments": work.store(made),
        "voters": len(matrix.voter_ids),
        "groups": len(set(labels[labels >= 0].tolist())),
    }


def _groups_of(work: StageWork, matrix: VoteMatrix) -> tuple[Integers, Floats]:
    """Return the group of each participant, and the reach of each comment, as OPINIONS found them."""
    found = {each.participant_id: each.group_id for each in work.earlier(ParticipantOpinion)}
    reach = {each.comment_id: each.reach for each in work.earlier(CommentOpinion)}
    groups = (found[voter] for voter in matrix.voter_ids)
    labels = np.array([UNGROUPED if group is None else group for group in groups], np.int64)
    return labels, np.array([reach[comment_id] for comment_id in matrix.comment_ids], np.float64)


@task
def find_opinions(job: JobContext, run_id: str) -> dict[str, int]:
    """Find groups of participants, what represents them, and what all of them agree on."""
    work = StageWork(job, run_id, PipelineStage.OPINIONS)
    export = work.export()
    if export.unknown_votes:
        job.warning(f"ignored {export.unknown_votes} votes on comments that the export does not contain")
    study = OpinionStudy.of(export, work.is_analysed)
    results = (*opinion_results.comments(work, study), *opinion_results.groups(work, study))
    stored = work.store(results) + work.store(opinion_results.participants(work, study))
    grouped = int((study.groups.labels >= 0).sum())
    return {"results": stored, "voters": len(study.matrix.voter_ids), "grouped": grouped, "groups": study.groups.count}


@task
def take_over_results(job: JobContext, run_id: str, stage: PipelineStage, source_run_id: str) -> dict[str, int]:
    """Copy the results of the same stage of another run, so that each run is complete in itself."""
    work = StageWork(job, run_id, stage)
    stored = 0
    for kind in PIPELINE[stage].stores:
        for_source = work.results.list_by_job(kind, stage_job_id(source_run_id, stage))
        changes = {**work.tree, "created_at": work.run.created_at}
        if stage is PipelineStage.EMBEDDING:  # positions and neighbours come from LAYOUT, which may run again
            changes |= {"umap_coordinates": None, "nearest_neighbors": None}
        stored += work.store(each.replace(**changes) for each in for_source)
    if stage is PipelineStage.LAYOUT:
        _take_over_places(work, source_run_id)
    work.refuse_deleted(source_run_id)
    return {"results": stored}


def _take_over_places(work: StageWork, source_run_id: str) -> None:
    placed = work.results.list_by_job(CommentEmbedding, stage_job_id(source_run_id, PipelineStage.EMBEDDING))
    own = {**work.tree_of(PipelineStage.EMBEDDING), "created_at": work.run.created_at}
    work.store(each.replace(**own) for each in placed)
