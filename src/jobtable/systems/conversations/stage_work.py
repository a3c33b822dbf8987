"""A running stage: its run, the results of earlier stages, and the storage of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from jobtable.clock import SystemClock
from jobtable.errors import NotFoundError, ObjectNotFoundError, ValueRefusedError
from jobtable.jobs.lifecycle.leases import check_lease, lost_if_refused
from jobtable.store.transactions import packed
from jobtable.systems.conversations.analysis.clusters import Hierarchy
from jobtable.systems.conversations.analysis.numerics import Floats
from jobtable.systems.conversations.analysis.polis_export import Comment, PolisExport, parse_comments, parse_export
from jobtable.systems.conversations.converter import JobTree
from jobtable.systems.conversations.entities import (
    CommentClusterAssignment,
    CommentEmbedding,
    ConversationRun,
    JobResult,
    StoredFile,
)
from jobtable.systems.conversations.pipeline import STAGE_OF, PipelineStage, stage_job_id
from jobtable.systems.conversations.service import Conversations

if TYPE_CHECKING:
    from jobtable.jobs.report.context import JobContext

R = TypeVar("R", bound=JobResult)
_RESULTS_A_STEP = 50


class StageWork:
    """What a stage of a run works with. Comments, and all arrays with a row for each, are in the order of ids."""

    def __init__(self, job: JobContext, run_id: str, stage: PipelineStage) -> None:
        jobs = job.jobs
        self.run = jobs.store.get(ConversationRun.key(run_id=run_id))
        self.conversation_id = self.run.conversation_id
        self.clock = _Stamp(self.run.created_at)
        self.tree = self.tree_of(stage)
        self.results = Conversations(jobs.store)
        self._objects = jobs.objects
        self._store = jobs.store
        self._lease = job.lease

    def tree_of(self, stage: PipelineStage) -> JobTree:
        """Return the position in the job tree of a stage's results."""
        run_id = self.run.run_id
        return JobTree(
            job_id=stage_job_id(run_id, stage), parent_job_id=run_id, root_job_id=run_id, job_stage=stage.value
        )

    @cached_property
    def _all_comments(self) -> tuple[Comment, ...]:
        return parse_comments(self._read(self.run.comments))

    @cached_property
    def comments(self) -> tuple[Comment, ...]:
        """The comments that the run analyses, without moderated ones unless its settings include them."""
        return tuple(each for each in self._all_comments if self.is_analysed(each))

    def is_analysed(self, comment: Comment) -> bool:
        """Return whether the settings of the run leave a comment in."""
        return self.run.includes_moderated or comment.is_shown(strict=bool(self.run.strict_moderation))

    @property
    def left_out(self) -> int:
        """The number of comments that the run skips because a moderator rejected them."""
        return len(self._all_comments) - len(self.comments)

    @cached_property
    def texts(self) -> list[str]:
        return [comment.text for comment in self.comments]

    @cached_property
    def comment_ids(self) -> list[int]:
        return [comment.comment_id for comment in self.comments]

    def export(self) -> PolisExport:
        """Return the whole export with the votes."""
        return parse_export(self._read(self.run.comments), self._read(self.run.votes))

    def _read(self, file: StoredFile) -> bytes:
        content = self._objects.get(file.key)
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise ValueRefusedError(f"object {file.key} changed since run {self.run.run_id} was started")
        return content

    def refuse_deleted(self, source_run_id: str) -> None:
        """Raise ValueRefusedError if a run is deleted or being deleted, so that some of its results may be missing.

        Its export is deleted first: while that exists, so do all results.
        """
        try:
            source = self._store.get(ConversationRun.key(run_id=source_run_id))
            self._objects.describe(source.votes.key)
        except (NotFoundError, ObjectNotFoundError) as error:
            message = f"run {source_run_id} was deleted, so its results cannot be copied"
            raise ValueRefusedError(message, hint="start a new run") from error

    def earlier(self, kind: type[R]) -> list[R]:
        """Return the results of an earlier stage of this run, by key."""
        return list(self.results.list_by_job(kind, stage_job_id(self.run.run_id, STAGE_OF[kind])))

    def vectors(self) -> Floats:
        """Return the embedding of each comment."""
        return np.array([embedding.embedding.vector for embedding in self.earlier(CommentEmbedding)], np.float64)

    def hierarchy(self) -> Hierarchy:
        """Return the clusters of each comment."""
        assigned = [assignment.layer_clusters for assignment in self.earlier(CommentClusterAssignment)]
        layers = range(len(assigned[0]))
        return Hierarchy(np.array([[clusters[str(layer)] for layer in layers] for clusters in assigned], np.int64))

    def store(self, results: Iterable[JobResult]) -> int:
        """Store results over those of an earlier attempt; return their number.

        LeaseLostError once another worker may run the stage, because later stages may have added to its results.
        """
        stored = 0
        for some in packed(results, _RESULTS_A_STEP):
            with lost_if_refused(self._lease), self._store.transaction() as tx:
                check_lease(tx, self._lease)
                for result in some:
                    tx.put(result)
            stored += len(some)
        return stored


class _Stamp(SystemClock):
    """A clock that stands still: the results of a stage have the time of its run, however often it runs."""

    def __init__(self, moment: datetime) -> None:
        super().__init__()
        self._moment = moment

    def now(self) -> datetime:
        return self._moment
