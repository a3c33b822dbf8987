"""Runs: analyses of conversations on the job engine.

A run is a root job with one child job per stage. Each stage stores its results under the id of its job; the record of
the run lies beside the root job and names the export in object storage. The same id starts a run only once.
"""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from jobtable.errors import (
    AlreadyExistsError,
    ConflictError,
    JobStateError,
    NotFoundError,
    ObjectNotFoundError,
    ValueRefusedError,
    missing,
)
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import await_workers
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import DependsOn, NewJob, ParentWaits
from jobtable.objects import key_parts, object_key
from jobtable.store import Query
from jobtable.store.patterns import access_pattern
from jobtable.systems.conversations.analysis.polis_export import COMMENTS_FILE, VOTES_FILE, parse_export
from jobtable.systems.conversations.entities import ConversationRun, JobResult, StoredFile
from jobtable.systems.conversations.pipeline import (
    PIPELINE,
    REUSE_TASK,
    STAGE_OF,
    PipelineStage,
    stage_job_id,
    stages_from,
)
from jobtable.systems.conversations.service import Conversations

R = TypeVar("R", bound=JobResult)

QUEUE = "conversations"
JOB_TYPE = "conversation"
PREFIX = "conversations"
"""The prefix of all objects of runs."""
_LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True)
class RunSettings:
    """How to analyse a conversation."""

    seed: int = 0
    embed: str | None = None
    """`module:function` from texts to an array; by default TF-IDF and a truncated SVD."""
    includes_moderated: bool = False
    strict_moderation: bool = False
    """Whether comments that no moderator accepted are left out as well, as participants did not see them."""


@dataclass(frozen=True)
class Run:
    """A run: its record, its root job, and the existing jobs of its stages."""

    record: ConversationRun
    root: Job
    stages: Mapping[PipelineStage, Job]

    @property
    def status(self) -> Status:
        return self.root.status

    @property
    def progress(self) -> float:
        """The progress of the run, in percent."""
        return round(sum(job.progress for job in self.stages.values()) / len(PIPELINE), 1)


@dataclass(frozen=True)
class Deleted:
    """What the deletion of a run removed."""

    results: int
    """Items in the tables of results."""
    items: int
    """Items of the jobs."""


class ConversationRuns:
    """The runs of all conversations on one job engine."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._store = jobs.store
        self._results = Conversations(jobs.store)

    # --- starting

    def start(
        self,
        conversation_id: str,
        comments_csv: bytes,
        votes_csv: bytes,
        settings: RunSettings | None = None,
        *,
        run_id: str | None = None,
        user: str = "local",
        queue: str = QUEUE,
    ) -> Run:
        """Store the export and submit the jobs of all stages; the workers of the queue run them.

        The same call with the same run_id finds the run, or finishes an interrupted start.
        """
        settings = checked_settings(settings, comments_csv, votes_csv)
        run_id = run_id or str(uuid.uuid4())
        record = ConversationRun(
            run_id=run_id,
            conversation_id=conversation_id,
            created_at=self._jobs.clock.now(),
            created_by=user,
            comments=_file(conversation_id, run_id, COMMENTS_FILE, comments_csv),
            votes=_file(conversation_id, run_id, VOTES_FILE, votes_csv),
            seed=settings.seed,
            embed=settings.embed,
            includes_moderated=settings.includes_moderated,
            strict_moderation=settings.strict_moderation or None,
        )
        return self._start(record, (comments_csv, votes_csv), queue, frozenset(PipelineStage))

    def rerun(
        self,
        run_id: str,
        first: PipelineStage,
        *,
        seed: int | None = None,
        new_run_id: str | None = None,
        user: str = "local",
        queue: str = QUEUE,
    ) -> Run:
        """Run a stage and its dependents again, as a new run with copies of the other results.

        The two runs are independent: they can be compared, and either can be deleted. The same call with the same
        new_run_id finds the new run, or finishes an interrupted start.
        """
        source = self.get(run_id)
        anew = stages_from(first)
        if source.status is Status.COMPLETED:
            anew |= {stage for stage in PipelineStage if stage not in source.stages}  # of an earlier version
        for stage in PipelineStage:
            job = source.stages.get(stage)
            if stage not in anew and (job is None or job.status is not Status.COMPLETED):
                message = f"stage {stage} of run {run_id} is {job.status if job else 'missing'} and cannot be copied"
                raise JobStateError(message, hint=f"rerun from {stage} or an earlier stage")
        new_id = new_run_id or str(uuid.uuid4())
        old = source.record
        comments_csv, votes_csv = self._export_of(old)
        record = old.replace(
            run_id=new_id,
            created_at=self._jobs.clock.now(),
            created_by=user,
            comments=_file(old.conversation_id, new_id, COMMENTS_FILE, comments_csv),
            votes=_file(old.conversation_id, new_id, VOTES_FILE, votes_csv),
            seed=old.seed if seed is None else _checked_seed(seed),
            source_run_id=run_id,
            first_stage=first.value,
        )
        return self._start(record, (comments_csv, votes_csv), queue, anew)

    def _export_of(self, record: ConversationRun) -> tuple[bytes, bytes]:
        try:
            return self._jobs.objects.get(record.comments.key), self._jobs.objects.get(record.votes.key)
        except ObjectNotFoundError as error:  # it is deleted first
            raise NotFoundError(f"run {record.run_id} is being deleted and has no export") from error

    def _start(
        self, record: ConversationRun, export: tuple[bytes, bytes], queue: str, anew: frozenset[PipelineStage]
    ) -> Run:
        """Store the export, then the record that names it with all jobs in one transaction, or find the run."""
        run_id = record.run_id
        if not self._is_started(run_id):
            for file, content in zip((record.comments, record.votes), export, strict=True):
                self._jobs.objects.put(file.key, content)
            stages = (self._stage_job(record, stage, queue, is_anew=stage in anew) for stage in PipelineStage)
            self._jobs.submit_together([_root_job(record, queue), *stages], record)
        run = self.get(run_id)  # another start with this id may have been faster
        if _started_with(run.record) != _started_with(record):
            raise AlreadyExistsError(f"run {run_id} was already started with another export or other settings")
        return run

    def _is_started(self, run_id: str) -> bool:
        root = self._store.find(Job.key(job_id=run_id))
        if root is not None and not _is_root(root):
            raise ConflictError(f"job {run_id} exists and is not an analysis", hint="use another id")
        if root is not None and root.deleted_at is not None:
            raise ConflictError(f"run {run_id} is being deleted", hint="finish its deletion first")
        return root is not None

    def _stage_job(self, record: ConversationRun, stage: PipelineStage, queue: str, *, is_anew: bool) -> NewJob:
        declaration = PIPELINE[stage]
        params = {"run_id": record.run_id}
        if not is_anew:
            params |= {"stage": stage.value, "source_run_id": str(record.source_run_id)}
        return NewJob(
            name=f"{stage.lower()} of conversation {record.conversation_id}",
            task=declaration.task if is_anew else REUSE_TASK,
            params=params,
            job_id=stage_job_id(record.run_id, stage),
            job_type=JOB_TYPE,
            job_stage=stage.value,
            parent_job_id=record.run_id,
            parent_waits=ParentWaits(),
            depends_on=tuple(DependsOn(stage_job_id(record.run_id, before)) for before in declaration.after),
            queue=queue,
            user=record.created_by,
            max_attempts=2,
        )

    # --- reading

    def get(self, run_id: str) -> Run:
        """Return a run with the jobs of its tree, or raise NotFoundError."""
        record = self._record(run_id)
        keys = [run_id, *(stage_job_id(run_id, stage) for stage in PipelineStage)]
        root, *jobs = self._store.batch_get(Job.key(job_id=job_id) for job_id in keys)
        if root is None or not _is_root(root):
            raise NotFoundError(f"the start of run {run_id} was interrupted", hint="start it again with the same id")
        return Run(
            record, root, {stage: job for stage, job in zip(PipelineStage, jobs, strict=True) if job is not None}
        )

    def _record(self, run_id: str) -> ConversationRun:
        record = self._store.find(ConversationRun.key(run_id=run_id))
        if record is None:
            raise missing("run", run_id)
        return record

    @access_pattern("All runs of a conversation, newest first", index="GSI1")
    def list_runs(self, conversation_id: str) -> Query[ConversationRun]:
        """List the runs of a conversation, newest first."""
        return self._store.query(ConversationRun.by_conversation(conversation_id=conversation_id), newest_first=True)

    def statuses(self, records: Iterable[ConversationRun]) -> dict[str, Status]:
        """Return the status of each run; one whose start was interrupted has none."""
        jobs = self._store.batch_get(Job.key(job_id=record.run_id) for record in records)
        return {job.job_id: job.status for job in jobs if job is not None and _is_root(job)}

    def list_results(self, run_id: str, kind: type[R]) -> Query[R]:
        """Yield the results of one kind that a run stored, by range key."""
        return self._results.list_by_job(kind, stage_job_id(run_id, STAGE_OF[kind]))

    def find_job_of(self, kind: type[JobResult], job_id: str) -> str:
        """Return the job that stored the results of one kind: of a run, one of its stages; else the job itself."""
        is_run = self._store.find(ConversationRun.key(run_id=job_id)) is not None
        return stage_job_id(job_id, STAGE_OF[kind]) if is_run else job_id

    def count_results(self, run_id: str) -> dict[str, int]:
        """Count the results of a run in each table."""
        return {kind.__schema__.table.name: self.list_results(run_id, kind).count() for kind in STAGE_OF}

    def is_referenced(self, key: str) -> bool:
        """Return whether an object belongs to an existing run, for the sweep of orphans."""
        parts = key_parts(key)
        if len(parts) < 4 or parts[0] != PREFIX:
            return False
        record = self._store.find(ConversationRun.key(run_id=parts[2]))
        return record is not None and key in (record.comments.key, record.votes.key)

    # --- deleting

    def delete(self, run_id: str, *, stop: bool = False, by: str = "local") -> Deleted:
        """Delete a run with everything it stored: results, export and jobs.

        Refused while it runs, unless `stop` cancels it first. The same call again finishes an interrupted deletion: the
        root job goes last.
        """
        root = self._store.find(Job.key(job_id=run_id))
        if root is None or not _is_root(root):
            root = None  # a job of something else stays
            self._record(run_id)  # a root's record may be deleted before it
        if stop:
            self._stop(run_id, by)
        self._refuse_running(run_id)
        self._jobs.mark_as_going(self._jobs_of(run_id))  # so that nothing that is deleted can be retried
        record = self._store.find(ConversationRun.key(run_id=run_id))
        if record is not None:  # before the results: while the export exists, a rerun finds them all
            for file in (record.comments, record.votes):
                self._jobs.objects.delete(file.key)
        results = sum(self._results.delete_job(stage_job_id(run_id, stage)) for stage in PipelineStage)
        if root is None:
            return Deleted(results, int(self._store.delete(ConversationRun.key(run_id=run_id))))
        jobs = reversed(self._jobs_of(run_id))  # the root goes last, with the record under it
        return Deleted(results, sum(self._jobs.delete_for_system(job.job_id) for job in jobs))

    def _stop(self, run_id: str, by: str) -> None:
        """Cancel the unfinished jobs without an index: an earlier call may have cancelled some."""
        for job in self._jobs_of(run_id):
            if not job.is_final:
                with contextlib.suppress(JobStateError):  # it has just ended
                    self._jobs.cancel(job.job_id, by=by, tree=False)

    def _refuse_running(self, run_id: str) -> None:
        """Wait for the workers of a run that ended or must end; JobStateError if it is still running."""
        jobs = self._jobs_of(run_id)
        unfinished = next((job for job in jobs if not job.is_final and job.requested is None), None)
        if unfinished is not None:
            raise JobStateError(f"run {run_id} is {unfinished.status}: cancel its job before you delete it")
        await_workers(self._jobs, jobs, f"delete run {run_id}")

    def _jobs_of(self, run_id: str) -> list[Job]:
        """Return the existing jobs of a run, root first: otherwise the end of its stages would end it."""
        keys = [
            Job.key(job_id=job_id) for job_id in (run_id, *(stage_job_id(run_id, stage) for stage in PipelineStage))
        ]
        found = (job for job in self._store.batch_get(keys) if job is not None)
        return [job for job in found if job.parent_job_id == run_id or _is_root(job)]


def _root_job(record: ConversationRun, queue: str) -> NewJob:
    return NewJob(
        name=f"conversation {record.conversation_id}",
        job_id=record.run_id,
        job_type=JOB_TYPE,
        queue=queue,
        user=record.created_by,
        config={"conversation_id": record.conversation_id, "seed": record.seed},
    )


def _is_root(job: Job) -> bool:
    """Return whether a job is the root of a run; an unrelated job may have its id."""
    return job.job_type == JOB_TYPE and job.parent_job_id is None and job.definition.task is None


def _started_with(record: ConversationRun) -> dict[str, Any]:
    """Return the input and the settings of a run, without its time, user and storage."""
    given = record.model_dump(exclude={"created_at", "created_by", "comments", "votes"})
    return given | {"comments": record.comments.sha256, "votes": record.votes.sha256}


def _file(conversation_id: str, run_id: str, name: str, content: bytes) -> StoredFile:
    sha256 = hashlib.sha256(content).hexdigest()
    # Concurrent starts with one id must not overwrite each other's exports: the second one is refused.
    key = object_key(PREFIX, conversation_id, run_id, sha256[:16], name)
    return StoredFile(key=key, size_bytes=len(content), sha256=sha256)


def _checked_seed(seed: int) -> int:
    if not 0 <= seed <= _LARGEST_SEED:
        raise ValueRefusedError(f"seed must be a number from 0 to {_LARGEST_SEED}, not {seed}")
    return seed


def checked_settings(settings: RunSettings | None, comments_csv: bytes, votes_csv: bytes) -> RunSettings:
    """Return the settings of a run, or raise ValueRefusedError at once for what its first stage would reject."""
    settings = settings or RunSettings()
    _checked_seed(settings.seed)
    export = parse_export(comments_csv, votes_csv)
    strict = settings.strict_moderation
    if not settings.includes_moderated and not any(each.is_shown(strict=strict) for each in export.comments):
        why = f"all {len(export.comments)} are moderated out" if export.comments else "there is no comment"
        raise ValueRefusedError(f"there is no comment to analyse: {why}")
    if settings.includes_moderated and strict:
        raise ValueRefusedError("an analysis of moderated comments cannot be strict about moderation")
    if settings.embed is not None and not all(settings.embed.partition(":")):
        raise ValueRefusedError(f"embed must have the form module:function, not {settings.embed!r}")
    return settings
