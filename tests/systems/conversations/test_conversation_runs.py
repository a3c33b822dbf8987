"""Runs of the pipeline, end to end: on every store, with the real S3 server where the store is DynamoDB."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.clouds import LateIndexes
from tests.interruptions import dies_after
from tests.running import jobs_in_memory, run_again, run_jobs, run_task

from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    JobStateError,
    LeaseLostError,
    NotFoundError,
    ValueRefusedError,
)
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.stored.entities import Job, main
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.systems.conversations.analysis.polis_export import Comment, PolisExport, Vote, read_files, write_export
from jobtable.systems.conversations.conversation_runs import QUEUE, ConversationRuns, Run, RunSettings
from jobtable.systems.conversations.entities import (
    CommentCluster,
    CommentClusterAssignment,
    CommentEmbedding,
    CommentExtremity,
    CommentOpinion,
    ConversationRun,
    GraphEdge,
    JobResult,
    OpinionGroup,
    ParticipantOpinion,
    TopicName,
)
from jobtable.systems.conversations.example import generate_export
from jobtable.systems.conversations.pipeline import STAGE_OF, PipelineStage, stage_job_id, stages_from
from jobtable.systems.conversations.run_comparison import compare_runs
from jobtable.systems.conversations.service import Conversations, tables
from jobtable.testing import FakeClock

REAL = sorted((Path(__file__).parents[4] / "shared" / "data" / "polis").glob("*/comments.csv"))


def files_of(export: PolisExport, folder: Path) -> tuple[bytes, bytes]:
    write_export(export, folder)
    return read_files(folder)


@pytest.fixture
def small(tmp_path: Path) -> tuple[bytes, bytes]:
    return files_of(generate_export(1, comments=40, voters=20, votes_per_voter=20), tmp_path)


def analysed(
    jobs: Jobs, files: tuple[bytes, bytes], settings: RunSettings | None = None, run_id: str | None = None
) -> Run:
    runs = ConversationRuns(jobs)
    started = runs.start("36324", *files, settings, run_id=run_id)
    run_jobs(jobs, QUEUE)
    run = runs.get(started.record.run_id)
    assert run.status is Status.COMPLETED, {stage: job.message for stage, job in run.stages.items()}
    return run


def results(jobs: Jobs, run: Run) -> dict[type[JobResult], list[JobResult]]:
    runs = ConversationRuns(jobs)
    return {kind: list(runs.list_results(run.record.run_id, kind)) for kind in STAGE_OF}


def check_results(jobs: Jobs, run: Run, comments: int) -> None:
    """Every table has what it must have, under the job of its stage, in its place of the tree."""
    found = results(jobs, run)
    for kind, stored in found.items():
        stage = STAGE_OF[kind]
        assert stored, kind
        for each in stored:
            assert each.job_id == run.stages[stage].job_id
            assert (each.parent_job_id, each.root_job_id) == (run.root.job_id, run.root.job_id)
            assert (each.job_stage, each.conversation_id) == (stage.value, "36324")
    for kind in (CommentEmbedding, CommentClusterAssignment, CommentExtremity):
        assert len(found[kind]) == comments
    runs = ConversationRuns(jobs)
    run_id = run.root.job_id
    assert all(each.umap_coordinates for each in runs.list_results(run_id, CommentEmbedding))
    clusters = {each.cluster_key: each for each in runs.list_results(run_id, CommentCluster)}
    assert clusters.keys() == {each.topic_key for each in runs.list_results(run_id, TopicName)}
    assignments = list(runs.list_results(run_id, CommentClusterAssignment))
    for each in clusters.values():
        assert all(clusters[child].parent_cluster == each.cluster_key for child in each.child_clusters)
        inside = [
            assignment.comment_id
            for assignment in assignments
            if assignment.layer_clusters[str(each.layer_id)] == each.cluster_id
        ]
        assert each.size == len(inside)
        assert set(each.top_comment_ids) <= set(inside)
    edges = list(runs.list_results(run_id, GraphEdge))
    assert all(edge.source_id < edge.target_id for edge in edges)
    check_opinions(runs, run_id)


def check_opinions(runs: ConversationRuns, run_id: str) -> None:
    """Groups have their members, and what represents them are comments that were analysed."""
    participants = list(runs.list_results(run_id, ParticipantOpinion))
    opinions = {each.comment_id: each for each in runs.list_results(run_id, CommentOpinion)}
    for group in runs.list_results(run_id, OpinionGroup):
        assert group.size == sum(each.group_id == group.group_id for each in participants)
        for chosen in group.representative_comments:
            opinion = opinions[chosen.comment_id]
            assert not opinion.is_moderated_out
            assert not opinion.is_about_self
            (votes,) = (each for each in opinion.groups if each.group_id == group.group_id)
            assert (chosen.votes, chosen.count) == (votes.votes, votes.agrees if chosen.agrees else votes.disagrees)


def test_a_run_fills_all_tables(each_jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    run = analysed(each_jobs, small)
    expected = len(generate_export(1, comments=40, voters=20, votes_per_voter=20).without_moderated_out().comments)
    check_results(each_jobs, run, expected)
    assert run.progress == 100
    children = list(each_jobs.queries.list_descendants(run.root.job_id))
    assert {job.job_stage for job in children} == {stage.value for stage in PipelineStage}
    assert {(job.parent_job_id, job.root_job_id) for job in children} == {(run.root.job_id, run.root.job_id)}
    stored = runs_total(each_jobs, run)
    assert ConversationRuns(each_jobs).delete(run.root.job_id).results == stored
    assert list(each_jobs.objects.list()) == []
    with pytest.raises(NotFoundError):
        ConversationRuns(each_jobs).get(run.root.job_id)
    for table in (main, *tables()):
        name = each_jobs.store.table_name(table)
        left = each_jobs.store.backend.execute("Scan", {"TableName": name})["Items"]
        assert [item for item in left if item.get("TYPE", {}).get("S") != "QUEUE"] == [], name


@pytest.mark.parametrize("is_included", [False, True])
def test_a_run_says_how_many_comments_it_leaves_out(
    jobs: Jobs, small: tuple[bytes, bytes], *, is_included: bool
) -> None:
    run = analysed(jobs, small, RunSettings(includes_moderated=is_included))
    export = generate_export(1, comments=40, voters=20, votes_per_voter=20)
    taken_out = sum(comment.is_moderated_out for comment in export.comments)
    assert taken_out > 0
    found = jobs.queries.get_job(stage_job_id(run.root.job_id, PipelineStage.EMBEDDING)).result
    assert isinstance(found, dict)
    left_out = 0 if is_included else taken_out
    assert (found["comments"], found["moderated_out"]) == (40 - left_out, left_out)


def test_two_runs_with_one_seed_are_the_same_but_for_their_ids(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    runs = ConversationRuns(jobs)
    one, other = (analysed(jobs, small, RunSettings(seed=7)) for _ in range(2))
    assert [each.run_id for each in runs.list_runs("36324")] == [other.root.job_id, one.root.job_id]
    compared = compare_runs(runs, one.root.job_id, other.root.job_id)
    assert compared.is_same
    assert compared.settings == {}
    assert all(layer.agreement == 1 for layer in compared.layers)
    third = analysed(jobs, small, RunSettings(seed=8, includes_moderated=True))
    compared = compare_runs(runs, one.root.job_id, third.root.job_id)
    assert not compared.is_same
    assert compared.settings == {"seed": (7, 8), "includes_moderated": (False, True)}
    assert runs.delete(one.root.job_id).results == runs_total(jobs, other)
    assert compare_runs(runs, other.root.job_id, other.root.job_id).is_same
    assert list(runs.list_runs("nobody")) == []


def runs_total(jobs: Jobs, run: Run) -> int:
    return sum(ConversationRuns(jobs).count_results(run.root.job_id).values())


def test_a_stage_that_runs_twice_leaves_the_same_items(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    once = results(jobs, analysed(jobs, small, run_id="run"))
    ConversationRuns(jobs).delete("run")
    ConversationRuns(jobs).start("36324", *small, run_id="run")
    while leases := jobs.claim(QUEUE, limit=1, instance_id="test", lease_seconds=60):
        for _ in range(2):  # as if the first attempt's worker had died before it could say that it is done
            run_task(jobs, leases[0])
        jobs.finish(leases[0], Outcome.completed())
    twice = results(jobs, ConversationRuns(jobs).get("run"))
    assert [_without_time(each) for each in twice.values()] == [_without_time(each) for each in once.values()]


def _without_time(found: list[JobResult]) -> list[dict[str, Any]]:
    return [result.model_dump(exclude={"created_at"}) for result in found]


def test_a_worker_that_lost_its_lease_changes_no_results(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    run = analysed(jobs, small)
    before = results(jobs, run)
    for stage in PipelineStage:
        with pytest.raises(LeaseLostError):
            run_again(jobs, [run.stages[stage]])
    assert results(jobs, run) == before


def test_results_of_any_size_are_stored(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    run = analysed(jobs, small, RunSettings(embed=f"{__name__}:embed_at_length"))
    assert runs_total(jobs, run) > 100


@pytest.mark.parametrize("first", list(PipelineStage))
def test_a_rerun_takes_over_what_came_before(jobs: Jobs, small: tuple[bytes, bytes], first: PipelineStage) -> None:
    runs = ConversationRuns(jobs)
    run = analysed(jobs, small)
    again = runs.rerun(run.root.job_id, first)
    run_jobs(jobs, QUEUE)
    again = runs.get(again.root.job_id)
    assert again.status is Status.COMPLETED
    assert (again.record.source_run_id, again.record.first_stage) == (run.root.job_id, first.value)
    taken_over = {stage for stage, job in again.stages.items() if "take_over" in str(job.definition.task)}
    assert taken_over == set(PipelineStage) - stages_from(first)
    check_results(jobs, again, len(results(jobs, run)[CommentEmbedding]))
    assert compare_runs(runs, run.root.job_id, again.root.job_id).is_same
    runs.delete(run.root.job_id)
    assert compare_runs(runs, again.root.job_id, again.root.job_id).is_same


@pytest.mark.parametrize("first", list(PipelineStage))
def test_what_is_deleted_before_it_was_taken_over_fails_the_rerun(
    jobs: Jobs, small: tuple[bytes, bytes], first: PipelineStage
) -> None:
    runs = ConversationRuns(jobs)
    analysed(jobs, small, run_id="run")
    again = runs.rerun("run", first)
    delete = partial(_delete, "run")
    assert dies_after(jobs.store, jobs.objects, 3, delete)  # when only some of the results are gone
    run_jobs(jobs, QUEUE)
    again = runs.get(again.root.job_id)
    assert again.status is Status.FAILED
    assert any("run run was deleted" in str(job.message) for job in again.stages.values())


def test_what_did_not_complete_cannot_be_taken_over(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    runs = ConversationRuns(jobs)
    run = runs.start("36324", *small)
    with pytest.raises(JobStateError, match=r"stage EMBEDDING of run .* is PENDING"):
        runs.rerun(run.root.job_id, PipelineStage.LAYOUT)
    with pytest.raises(JobStateError, match="cancel its job before you delete it"):
        runs.delete(run.root.job_id)
    assert jobs.cancel(run.root.job_id).status is Status.CANCELLED
    assert {job.status for job in runs.get(run.root.job_id).stages.values()} == {Status.CANCELLED}
    assert runs.delete(run.root.job_id).results == 0
    assert list(jobs.objects.list()) == []


def test_a_run_is_stopped_before_it_is_deleted_when_that_is_asked_for(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    clock = FakeClock(jobs.clock.now())  # on which waiting takes no time
    runs = ConversationRuns(Jobs(jobs.store, jobs.objects, clock=clock))
    run_id = runs.start("36324", *small).root.job_id
    (lease,) = jobs.claim(QUEUE, limit=1, instance_id="test", lease_seconds=60)
    before = {found.key for found in jobs.objects.list()}
    with pytest.raises(ConflictError, match="a worker runs job"):
        runs.delete(run_id, stop=True)
    assert {found.key for found in jobs.objects.list()} == before
    with pytest.raises(NotFoundError):
        runs.delete(lease.job.job_id)
    jobs.finish(lease, Outcome("cancelled"))
    runs.delete(run_id)
    assert (list(jobs.queries.list_jobs()), list(jobs.objects.list())) == ([], [])


def test_a_run_is_deleted_though_no_index_shows_its_jobs_yet(small: tuple[bytes, bytes]) -> None:
    clock = FakeClock()
    with Store(LateIndexes(clock), clock=clock) as store:
        store.tables.create(main, *tables())
        clock.advance(2)
        jobs = jobs_in_memory(store)
        ConversationRuns(jobs).start("36324", *small, run_id="run")
        ConversationRuns(jobs).delete("run", stop=True)
        check_nothing_is_left(jobs)


def check_nothing_is_left(jobs: Jobs) -> None:
    for table in (main, *tables()):
        items = jobs.store.ask("Scan", {"TableName": jobs.store.table_name(table)}, "test")["Items"]
        assert {item.get("TYPE", {"S": table.name})["S"] for item in items} <= {"QUEUE", "DEPENDENCY_GRAPH"}
    assert list(jobs.objects.list()) == []


def _delete(run_id: str, store: Store, objects: ObjectStore) -> None:
    ConversationRuns(Jobs(store, objects)).delete(run_id, stop=True)


def test_a_deletion_that_was_interrupted_is_finished_by_the_next(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    runs = ConversationRuns(jobs)
    for writes in range(1000):
        run_id = runs.start("36324", *small).root.job_id
        delete = partial(_delete, run_id)
        was_interrupted = dies_after(jobs.store, jobs.objects, writes, delete)
        if was_interrupted:
            runs.delete(run_id, stop=True)
        with pytest.raises(NotFoundError):
            runs.delete(run_id)
        check_nothing_is_left(jobs)
        if not was_interrupted:
            assert writes > 10
            return


def test_a_failed_stage_fails_the_run_and_can_be_retried(
    jobs: Jobs, small: tuple[bytes, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = ConversationRuns(jobs)
    monkeypatch.setattr("tests.systems.conversations.test_conversation_runs.embed_lengths", broken_embed)
    run_id = runs.start(
        "36324", *small, RunSettings(embed="tests.systems.conversations.test_conversation_runs:embed_lengths")
    ).root.job_id
    run_jobs(jobs, QUEUE)
    run = runs.get(run_id)
    assert run.status is Status.FAILED
    assert run.stages[PipelineStage.EMBEDDING].status is Status.FAILED
    assert run.stages[PipelineStage.LAYOUT].status is Status.CANCELLED
    assert run.stages[PipelineStage.EXTREMITY].status is Status.COMPLETED
    assert "the model is not there" in str(run.stages[PipelineStage.EMBEDDING].message)
    monkeypatch.undo()
    jobs.retry(run_id, tree=True)
    run_jobs(jobs, QUEUE)
    run = runs.get(run_id)
    assert run.status is Status.COMPLETED
    check_results(jobs, run, len(list(runs.list_results(run_id, CommentExtremity))))


def broken_embed(texts: list[str]) -> list[list[float]]:
    raise RuntimeError("the model is not there")


def embed_at_length(texts: list[str]) -> list[list[float]]:
    """Vectors that do not fit into one transaction together."""
    return [[len(text) / (place + 3) for place in range(15_000)] for text in texts]


def embed_lengths(texts: list[str]) -> list[list[float]]:
    return [[len(text), text.count("a"), 1.0] for text in texts]


def test_any_function_can_embed(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    run = analysed(jobs, small, RunSettings(embed="tests.systems.conversations.test_conversation_runs:embed_lengths"))
    (first, *_) = ConversationRuns(jobs).list_results(run.root.job_id, CommentEmbedding)
    assert first.embedding.model == "tests.systems.conversations.test_conversation_runs:embed_lengths"
    assert first.embedding.dimensions == 3


def test_a_start_with_the_same_id_is_one_run(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    runs = ConversationRuns(jobs)
    one, other = (runs.start("36324", *small, run_id="my-run") for _ in range(2))
    assert one == other
    assert len(list(runs.list_runs("36324"))) == 1
    with pytest.raises(AlreadyExistsError, match="another export or other settings"):
        runs.start("36324", *small, RunSettings(seed=1), run_id="my-run")
    with pytest.raises(AlreadyExistsError, match="another export or other settings"):
        runs.start("36324", small[0] + b"99,1,more\n", small[1], run_id="my-run")
    assert jobs.objects.get(one.record.comments.key) == small[0]


def test_a_job_of_somebody_else_is_neither_taken_nor_deleted(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    runs = ConversationRuns(jobs)
    jobs.submit(NewJob(name="precious", task="m:f", job_id="run"))
    with pytest.raises(ConflictError, match="job run exists and is not an analysis"):
        runs.start("36324", *small, run_id="run")
    assert list(jobs.objects.list()) == []
    with pytest.raises(NotFoundError, match="there is no run"):
        runs.delete("run", stop=True)
    started = runs.start("36324", *small, run_id="other")
    jobs.store.add(started.record.replace(run_id="run"))  # as a start has left it that was refused too late
    with pytest.raises(NotFoundError, match="start of run run was interrupted"):
        runs.get("run")
    assert runs.statuses([started.record, started.record.replace(run_id="run")]) == {"other": Status.RUNNING}
    assert runs.delete("run", stop=True).items == 1
    assert jobs.queries.get_job("run").status is Status.PENDING


def test_a_job_of_a_run_is_not_deleted_without_it(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    run = analysed(jobs, small, run_id="run")
    for job_id in ("run", run.stages[PipelineStage.LAYOUT].job_id):
        with pytest.raises(JobStateError, match="`jobtable conversations delete run`"):
            jobs.delete(job_id, tree=True)


@pytest.mark.parametrize(
    "export",
    [
        PolisExport((Comment(0, "Only one"),), ()),
        PolisExport((Comment(0, ""), Comment(1, "!")), (Vote(0, "a", 1),)),
        PolisExport(tuple(Comment(number, "Everyone says this") for number in range(12)), ()),
        PolisExport(tuple(Comment(number, f"Rivers {'ab'[number % 2]}{number % 3}") for number in range(6)), ()),
    ],
    ids=["one comment", "no words", "all the same", "few"],
)
def test_odd_conversations_are_analysed(jobs: Jobs, tmp_path: Path, export: PolisExport) -> None:
    run = analysed(jobs, files_of(export, tmp_path))
    found = results(jobs, run)
    assert len(found[CommentEmbedding]) == len(found[CommentExtremity]) == len(export.comments)
    runs, run_id = ConversationRuns(jobs), run.root.job_id
    clusters = [cluster.layer_id for cluster in runs.list_results(run_id, CommentCluster)]
    for layer in compare_runs(runs, run_id, run_id).layers:
        assert layer.one_clusters == layer.other_clusters == clusters.count(layer.layer)


def test_what_cannot_be_analysed_is_refused_at_once(jobs: Jobs, tmp_path: Path, small: tuple[bytes, bytes]) -> None:
    runs = ConversationRuns(jobs)
    moderated = files_of(PolisExport((Comment(0, "x", -1),), ()), tmp_path)
    with pytest.raises(ValueRefusedError, match="all 1 are moderated out"):
        runs.start("36324", *moderated)
    with pytest.raises(ValueRefusedError, match="there is no comment"):
        runs.start("36324", *files_of(PolisExport((), ()), tmp_path))
    for settings, complaint in ((RunSettings(embed="nothing"), "module:function"), (RunSettings(seed=-1), "seed")):
        with pytest.raises(ValueRefusedError, match=complaint):
            runs.start("36324", *small, settings)
    assert list(jobs.objects.list()) == []


def test_an_export_that_was_changed_is_refused(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    runs = ConversationRuns(jobs)
    run = runs.start("36324", *small)
    jobs.objects.put(run.record.comments.key, small[0] + b"99,1,more\n")
    run_jobs(jobs, QUEUE)
    assert "changed since run" in str(runs.get(run.root.job_id).stages[PipelineStage.EMBEDDING].message)


def test_objects_of_runs_are_known_to_the_sweep(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    runs = ConversationRuns(jobs)
    run = runs.start("36324", *small)
    kept = [each.key for each in jobs.objects.list()]
    assert len(kept) == 2
    assert all(runs.is_referenced(key) for key in kept)
    assert not runs.is_referenced("conversations/36324/other/votes.csv")
    assert not runs.is_referenced("jobs/36324")
    assert jobs.store.get(ConversationRun.key(run_id=run.root.job_id)).votes.size_bytes == len(small[1])


def test_a_run_of_an_earlier_version_is_run_again_with_its_opinions(jobs: Jobs, small: tuple[bytes, bytes]) -> None:
    """A stage that the earlier version did not have runs anew, instead of being copied."""
    source = analysed(jobs, small)
    opinions = source.stages[PipelineStage.OPINIONS]
    Conversations(jobs.store).delete_job(opinions.job_id)
    jobs.store.delete(Job.key(job_id=opinions.job_id))
    again = ConversationRuns(jobs).rerun(source.record.run_id, PipelineStage.TOPICS)
    run_jobs(jobs, QUEUE)
    run = ConversationRuns(jobs).get(again.record.run_id)
    assert run.status is Status.COMPLETED, {stage: job.message for stage, job in run.stages.items()}
    check_opinions(ConversationRuns(jobs), run.record.run_id)


def test_strict_moderation_leaves_out_what_nobody_accepted(jobs: Jobs) -> None:
    """Comments that no moderator has seen are analysed only if moderation is loose."""
    comments = b"comment-id,comment-body,moderated\n1,More trees,1\n2,More buses,0\n3,More noise,-1\n"
    files = comments, b"comment-id,voter-id,vote\n1,1,1\n2,1,-1\n3,1,1\n"
    for strict, kept in ((True, [1]), (False, [1, 2])):
        run = analysed(jobs, files, RunSettings(strict_moderation=strict))
        found = ConversationRuns(jobs).list_results(run.record.run_id, CommentExtremity)
        assert [each.comment_id for each in found] == kept
    with pytest.raises(ValueRefusedError, match="strict"):
        ConversationRuns(jobs).start("c", *files, RunSettings(includes_moderated=True, strict_moderation=True))


def test_stage_jobs_have_ids_of_their_own() -> None:
    assert len({stage_job_id(run, stage) for run in ("a", "b") for stage in PipelineStage}) == 14


@pytest.mark.parametrize("folder", [path.parent for path in REAL], ids=lambda folder: folder.name)
def test_real_conversations_are_analysed(jobs: Jobs, folder: Path) -> None:
    run = analysed(jobs, read_files(folder), RunSettings(seed=1))
    found = results(jobs, run)
    check_results(jobs, run, len(found[CommentExtremity]))
    assert (
        max(each.extremity_value for each in ConversationRuns(jobs).list_results(run.root.job_id, CommentExtremity))
        > 0.5
    )
    assert replace(run, stages={}).progress == 0
    assert isinstance(run.root, Job)
