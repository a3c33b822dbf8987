"""Batches: many requests to one model as one job, which waits for the provider without a worker."""

from __future__ import annotations

import os
import pkgutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from pydantic import BaseModel

from jobtable.assist.assist_settings import AssistSettings
from jobtable.assist.batch_lines import BatchLine, LineResult, read_lines, write_lines
from jobtable.assist.batch_providers import check_batches
from jobtable.assist.entities import AssistBatch, BatchLines, BatchStatus
from jobtable.errors import DefinitionError, SettingsError, ValueRefusedError
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import DEFAULT_QUEUE, NewJob
from jobtable.objects import ObjectStore, object_key
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern

if TYPE_CHECKING:
    from jobtable.jobs.engine import Jobs
    from jobtable.system import Owner

TASK = "jobtable.assist.batch_task:run_batch"
JOB_TYPE = "assist-batch"


@dataclass(frozen=True, kw_only=True)
class NewBatch:
    """Requests to send in batches."""

    name: str
    purpose: str
    kind: Literal["chat", "embed"]
    lines: Iterable[BatchLine]
    provider: str | None = None
    model: str | None = None
    """Both are by default those of the settings where it is submitted."""
    output: type[BaseModel] | None = None
    """What each answer must be; one that is not is asked for again in the next round."""
    keeper: str | None = None
    """`module:Class` of a BatchKeeper."""
    temperature: float = 0.0
    max_output_tokens: int = 1024
    most_rounds: int = 3
    poll_seconds: int = 60
    max_cost: float | None = None
    """US dollars that the job may spend."""
    max_tokens: int | None = None
    queue: str = DEFAULT_QUEUE
    user: str = "local"
    job_id: str | None = None
    parent_job_id: str | None = None
    owner: Owner | None = None


class BatchKeeper(Protocol):
    """Records batches in a system's own form. Each method may be repeated, with the same arguments."""

    def __init__(self, jobs: Jobs, lines: BatchLines) -> None: ...

    def keep_batch(self, batch: AssistBatch, lines: Sequence[BatchLine]) -> None:
        """Record a batch that was sent or has ended, as its status says."""
        ...

    def keep_results(self, batch: AssistBatch, results: Sequence[tuple[BatchLine, LineResult]]) -> None:
        """Record results of a batch, some hundred at a time: lines with a valid answer, and those given up."""
        ...


class BatchReads:
    """The batches of jobs and their results."""

    def __init__(self, store: Store, objects: ObjectStore) -> None:
        self._store = store
        self._objects = objects

    @access_pattern("Get what a batch job sends")
    def get_lines(self, job_id: str) -> BatchLines:
        """Return what a job sends in batches, or raise NotFoundError."""
        return self._store.get(BatchLines.key(job_id=job_id))

    @access_pattern("List the batches of a job")
    def list_batches(self, job_id: str) -> Query[AssistBatch]:
        """List the batches of a job, in the order in which they were made."""
        return self._store.query(AssistBatch.key(job_id=job_id))

    @access_pattern("List batches of models by status", index="GSI1")
    def list_by_status(self, status: BatchStatus) -> Query[AssistBatch]:
        """List the batches in a status, oldest first."""
        return self._store.query(AssistBatch.by_status(status=status))

    def read_lines(self, job_id: str) -> list[BatchLine]:
        """Return the lines of a batch job, in their order."""
        return read_lines(self._objects.get(self.get_lines(job_id).lines_key))

    def read_results(self, job_id: str) -> Iterator[tuple[BatchLine, LineResult]]:
        """Yield each line with its result in the order of the lines; NotFoundError if the job is no batch.

        Lines that have no result yet are left out.
        """
        from jobtable.assist.batch_reading import BatchReading  # noqa: PLC0415 - it imports this module

        reading = BatchReading(self._store, self._objects, self.get_lines(job_id))
        found: dict[str, LineResult] = {}
        for batch in self.list_batches(job_id):
            if batch.status is BatchStatus.COMPLETED:
                found.update((each.line_id, each) for each in reading.results_of(batch))
        for line in reading.lines:
            if line.line_id in found:
                yield line, found[line.line_id]


class Batches(BatchReads):
    """Submits batches, reads their results, and ends them early."""

    def __init__(self, jobs: Jobs) -> None:
        super().__init__(jobs.store, jobs.objects)
        self._jobs = jobs

    def submit(self, new: NewBatch, settings: AssistSettings | None = None) -> Job:
        """Submit the job of a batch; a second submission with its id returns the same job.

        SettingsError if the provider has no batches, or no model is named.
        """
        provider, model = _chosen(new, settings or AssistSettings.load(os.environ, Path.cwd()))
        job_id = new.job_id or str(uuid.uuid4())
        content, count = write_lines(new.lines)
        key = object_key("jobs", job_id, "assist", "lines.jsonl")
        lines = BatchLines(
            job_id=job_id,
            purpose=new.purpose,
            kind=new.kind,
            provider=provider,
            model=model,
            lines_key=key,
            line_count=count,
            temperature=new.temperature,
            max_output_tokens=new.max_output_tokens,
            output=None if new.output is None else path_of(new.output),
            keeper=new.keeper,
            most_rounds=new.most_rounds,
            poll_seconds=new.poll_seconds,
            created_at=self._jobs.clock.now(),
        )
        if self._store.find(BatchLines.key(job_id=job_id)) is None:
            self._jobs.objects.put(key, content)
        (job,) = self._jobs.submit_together([self._job_of(new, job_id)], lines)
        return job

    def _job_of(self, new: NewBatch, job_id: str) -> NewJob:
        return NewJob(
            name=new.name,
            task=TASK,
            job_id=job_id,
            job_type=JOB_TYPE,
            queue=new.queue,
            user=new.user,
            parent_job_id=new.parent_job_id,
            owner=new.owner,
            max_attempts=5,
            max_cost=new.max_cost,
            max_tokens=new.max_tokens,
        )

    def end_early(self, job_id: str) -> None:
        """Let a batch job cancel its batches at the provider and end, STOPPED, with what they have answered.

        A job that is cancelled or stopped otherwise leaves its batches to the provider, which completes and charges
        them.
        """
        ending = BatchLines.is_ending.set(True)

        def wake(job: Job | None) -> None:
            with self._store.transaction() as tx:
                tx.update(BatchLines.key(job_id=job_id), ending)
                self._jobs.add_wake(tx, job)

        self.get_lines(job_id)
        key = Job.key(job_id=job_id)
        self._store.retrying(lambda: self._store.find(key), wake, f"end batch job {job_id}")


def _chosen(new: NewBatch, settings: AssistSettings) -> tuple[str, str]:
    """Return the names of the provider and the model of a batch."""
    name = new.provider or settings.provider
    found = settings.find(name)
    check_batches(name, found.kind)
    setting = "model" if new.kind == "chat" else "embedding_model"
    model = new.model or getattr(found, setting)
    if model is None:
        raise SettingsError(
            f"provider {name} has no {setting}",
            hint=f"set assist.providers.{name}.{setting} in jobtable.toml, or name the model of the batch",
        )
    return name, model


def path_of(output: type[BaseModel]) -> str:
    """Return the path by which a worker imports a class, or raise DefinitionError."""
    path = f"{output.__module__}:{output.__qualname__}"
    if output.__module__ == "__main__" or "<locals>" in path:
        raise DefinitionError(f"a worker cannot import {path}; declare the class in a module")
    return path


def output_of(lines: BatchLines) -> type[BaseModel] | None:
    """Return the class that each answer must satisfy, or None."""
    if lines.output is None:
        return None
    found = pkgutil.resolve_name(lines.output)
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        raise ValueRefusedError(f"{lines.output}, the output of batch job {lines.job_id}, is no pydantic model")
    return found
