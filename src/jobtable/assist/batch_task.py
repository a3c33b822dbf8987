"""The task of a batch job: it sends what is to be sent, looks at what was, records what is over, and waits."""

from __future__ import annotations

import json
import os
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobtable.assist.asking import most_tokens
from jobtable.assist.assist_settings import AssistSettings
from jobtable.assist.batch_lines import BatchLine, LineResult, write_results
from jobtable.assist.batch_providers import BatchRequest, BatchState, open_batch_provider
from jobtable.assist.batch_reading import BatchReading
from jobtable.assist.batch_submission import Batches, BatchKeeper
from jobtable.assist.entities import AssistBatch, AssistCall, BatchStatus
from jobtable.assist.ledger import StoreLedger
from jobtable.assist.prices import PriceTable
from jobtable.assist.providers import ChatRequest, EmbedRequest, ProviderError, Usage
from jobtable.assist.verbs import CallPlan, Ledger
from jobtable.jobs.lifecycle.leases import check_lease, lost_if_refused
from jobtable.jobs.tasks import FailTask, StopTask, SuspendTask, task
from jobtable.model import Update
from jobtable.store.transactions import Transaction

if TYPE_CHECKING:
    from jobtable.jobs.report.context import JobContext

_MOST_LINES: Mapping[str, int] = {"chat": 10_000, "embed": 2_000}
"""In one batch: its answers are in memory together."""
_MOST_CHARACTERS = 30_000_000
_RESULTS_A_STEP = 100
_FAULTS_SHOWN = 3
_IS_OPEN = AssistBatch.status.is_in(BatchStatus.PENDING, BatchStatus.SUBMITTED)


@task
def run_batch(job: JobContext) -> dict[str, Any]:
    """Answer the lines of a job in batches."""
    run = BatchRun(job)
    try:
        return run.go_on()
    finally:
        run.close()


class BatchRun:
    """One run of a batch job. Each step may be repeated: what is recorded decides where it goes on."""

    def __init__(self, job: JobContext) -> None:
        self._job = job
        self._jobs = job.jobs
        self._store = job.jobs.store
        self._clock = job.jobs.clock
        self._lines = Batches(job.jobs).get_lines(job.job_id)
        self._reading = BatchReading(job.jobs.store, job.jobs.objects, self._lines)
        self._ledger: Ledger = job.work.desk(StoreLedger, job.lease)
        settings = AssistSettings.load(os.environ, Path.cwd())
        self._prices = PriceTable.load(None if settings.prices is None else Path(settings.prices))
        self._provider = open_batch_provider(settings, self._lines.provider)
        self._keeper: BatchKeeper | None = None
        if self._lines.keeper is not None:
            self._keeper = pkgutil.resolve_name(self._lines.keeper)(job.jobs, self._lines)

    def close(self) -> None:
        """Close the connections to the provider."""
        self._provider.close()

    def go_on(self) -> dict[str, Any]:
        """Advance every open batch; return the counts if all have ended, or else wait."""
        self._plan()
        for batch in self._open():
            try:
                self._end_early(batch) if self._is_ending else self._advance(batch)
            except ProviderError as error:
                if not error.is_retryable:
                    raise
                self._job.warning(f"batch {batch.number}: {error}")
                self._wait(error.retry_after)
        if self._open():
            self._wait()
        return self._counts()

    @property
    def _is_ending(self) -> bool:
        return self._lines.is_ending or self._job.should_stop()

    def _end_early(self, batch: AssistBatch) -> None:
        """Cancel a batch at the provider, and record it when that is done; one that was not sent is closed."""
        if batch.remote_id is not None:
            self._provider.cancel_batch(batch.remote_id)
            self._advance(batch)
        else:
            lines = self._reading.lines_of(batch)
            self._close(
                batch.replace(status=BatchStatus.FAILED, error="the job was ended before it was sent"), lines, []
            )

    # --- batches ----------------------------------------------------------------------------------------------------

    def _batches(self) -> list[AssistBatch]:
        return list(self._store.query(AssistBatch.key(job_id=self._job.job_id)))

    def _open(self) -> list[AssistBatch]:
        return [each for each in self._batches() if each.status in (BatchStatus.PENDING, BatchStatus.SUBMITTED)]

    def _plan(self) -> None:
        """Make the batches of the first round, in one order, so that an interrupted plan is completed."""
        made = {batch.number for batch in self._batches()}
        for number, (first, count) in enumerate(self._parts(), start=1):
            if number not in made:
                self._add(number=number, first_line=first, line_count=count)

    def _add(self, **given: Any) -> None:
        batch = AssistBatch(job_id=self._job.job_id, created_at=self._clock.now(), **given)
        self._change(lambda tx: tx.add(batch))

    def _parts(self) -> Iterator[tuple[int, int]]:
        """Yield the first line and the number of lines of each batch."""
        first = characters = 0
        for place, line in enumerate(self._reading.lines):
            length = sum(len(str(message.get("content"))) for message in line.messages)
            is_full = place - first == _MOST_LINES[self._lines.kind] or characters + length > _MOST_CHARACTERS
            if is_full and place > first:
                yield first, place - first
                first, characters = place, 0
            characters += length
        yield first, self._lines.line_count - first

    def _advance(self, batch: AssistBatch) -> None:
        """Send a batch that was not sent, record one that is over, or note how far it is."""
        state = None
        if batch.remote_id is not None:
            state = self._provider.look_at_batch(batch.remote_id)
            if not state.is_over:
                self._note(batch, state)
                return
        lines = self._reading.lines_of(batch)
        begun = self._ledger.begin(self._call_plan(batch, lines))
        if begun.answer is not None:
            self._end(batch.replace(call_id=begun.call.call_id), lines)
        elif state is None:
            self._send(batch, begun.call, lines)
        else:
            self._record(batch, begun.call, state, lines)

    def _send(self, batch: AssistBatch, call: AssistCall, lines: list[BatchLine]) -> None:
        try:
            remote_id = self._provider.send_batch(self._batch_request(batch, lines))
        except ProviderError as error:
            if error.is_retryable:
                raise
            self._refuse(batch, call, str(error), lines)
            return
        sent = batch.replace(
            call_id=call.call_id, remote_id=remote_id, status=BatchStatus.SUBMITTED, submitted_at=self._clock.now()
        )
        self._update(
            sent,
            AssistBatch.call_id.set(sent.call_id),
            AssistBatch.remote_id.set(remote_id),
            AssistBatch.status.set(sent.status),
            AssistBatch.submitted_at.set(sent.submitted_at),
        )
        self._job.info(f"sent batch {batch.number} with {len(lines)} lines as {remote_id}")
        if self._keeper is not None:
            self._keeper.keep_batch(sent, lines)

    def _note(self, batch: AssistBatch, state: BatchState) -> None:
        if state.done != batch.done_lines:
            self._update(batch, AssistBatch.done_lines.set(state.done))

    def _record(self, batch: AssistBatch, call: AssistCall, state: BatchState, lines: list[BatchLine]) -> None:
        """Record all answers of a batch with their cost, before anything is made of them."""
        request = self._batch_request(batch, lines)
        results = list(self._provider.read_batch(state, request))
        if state.error is not None and not results:
            self._refuse(batch, call, state.error, lines)
            return
        usage = sum((each.answer.usage for each in results if each.answer is not None), Usage())
        seconds = (self._clock.now() - (batch.submitted_at or batch.created_at)).total_seconds()
        self._ledger.end(call, write_results(results), usage, tries=1, seconds=seconds)
        self._end(batch, lines)

    def _refuse(self, batch: AssistBatch, call: AssistCall, error: str, lines: list[BatchLine]) -> None:
        self._ledger.fail(call, error, tries=1, seconds=0.0)
        self._job.error(f"the provider refused batch {batch.number}: {error}")
        self._close(batch.replace(status=BatchStatus.FAILED, call_id=call.call_id, error=error), lines, [])

    def _end(self, batch: AssistBatch, lines: list[BatchLine]) -> None:
        """Pass recorded answers on, and close the batch; the lines that may yet succeed go into another one."""
        ended = batch.replace(status=BatchStatus.COMPLETED)
        again: list[LineResult] = []
        final: list[tuple[BatchLine, LineResult]] = []
        by_id = {line.line_id: line for line in lines}
        for result in self._reading.results_of(ended):
            if result.error and result.may_succeed and batch.round < self._lines.most_rounds and not self._is_ending:
                again.append(result)
            else:
                final.append((by_id[result.line_id], result))
        self._close(ended, lines, final, again)

    def _close(
        self,
        batch: AssistBatch,
        lines: list[BatchLine],
        final: list[tuple[BatchLine, LineResult]],
        again: list[LineResult] | None = None,
    ) -> None:
        """Keep what is final, then close the batch and add the next round in one transaction."""
        answered = sum(result.is_answered for _, result in final)
        ended = batch.replace(
            ended_at=self._clock.now(), answered=answered, failed=len(lines) - answered, done_lines=len(lines)
        )
        if self._keeper is not None:
            for some in _steps(final):
                self._keeper.keep_results(ended, some)
            self._keeper.keep_batch(ended, lines)
        following = self._following(ended, len(again or ()))

        def close(tx: Transaction) -> None:
            tx.put(ended, when=_IS_OPEN)
            if following is not None:
                tx.add(following)

        self._change(close)
        self._tell(ended, again or [])
        if ended.remote_id is not None:
            self._discard(ended.remote_id)

    def _following(self, batch: AssistBatch, count: int) -> AssistBatch | None:
        if count == 0:
            return None
        number = max(each.number for each in self._batches()) + 1
        return AssistBatch(
            job_id=batch.job_id,
            number=number,
            first_line=batch.first_line,
            line_count=count,
            round=batch.round + 1,
            retry_of=batch.number,
            created_at=self._clock.now(),
        )

    def _discard(self, remote_id: str) -> None:
        """Delete the files at the provider: what they held is recorded here."""
        try:
            self._provider.discard_batch(remote_id)
        except ProviderError as error:
            self._job.warning(f"the files of {remote_id} stay at the provider: {error}")

    def _tell(self, batch: AssistBatch, again: list[LineResult]) -> None:
        self._job.info(f"batch {batch.number}: {batch.answered} lines answered, {batch.failed} not")
        for each in again[:_FAULTS_SHOWN]:
            self._job.warning(f"line {each.line_id} is sent again: {each.error}")

    # --- requests ---------------------------------------------------------------------------------------------------

    def _batch_request(self, batch: AssistBatch, lines: list[BatchLine]) -> BatchRequest:
        return BatchRequest(
            name=f"jobtable-{batch.job_id}-{batch.number}",
            requests={line.line_id: self._request_of(line) for line in lines},
            since=batch.created_at,
        )

    def _request_of(self, line: BatchLine) -> ChatRequest | EmbedRequest:
        record, shape = self._lines, self._reading.shape
        if record.kind == "embed":
            return EmbedRequest(record.model, (str(line.content),))
        return ChatRequest(
            model=record.model,
            messages=line.messages,
            schema=None if shape is None else shape.schema,
            schema_name="answer" if shape is None else shape.name,
            temperature=record.temperature,
            max_output_tokens=record.max_output_tokens,
        )

    def _call_plan(self, batch: AssistBatch, lines: list[BatchLine]) -> CallPlan:
        requests = [asdict(self._request_of(line)) for line in lines]
        text = json.dumps({"batch": batch.number, "requests": requests}, ensure_ascii=False, separators=(",", ":"))
        answers = 0 if self._lines.kind == "embed" else len(lines) * self._lines.max_output_tokens
        return CallPlan(
            purpose=self._lines.purpose,
            kind=self._lines.kind,
            provider=self._lines.provider,
            model=self._lines.model,
            request=text,
            most_usage=Usage(most_tokens(text), answers),
            attempt=batch.round,
            price=self._prices.find(self._provider.kind, self._lines.model, is_batch=True),
        )

    # --- the run ----------------------------------------------------------------------------------------------------

    def _update(self, batch: AssistBatch, *changes: Update) -> None:
        self._change(lambda tx: tx.update(batch, *changes, when=_IS_OPEN))

    def _change(self, act: Callable[[Transaction], None]) -> None:
        lease = self._job.lease
        with lost_if_refused(lease), self._store.transaction() as tx:
            check_lease(tx, lease)
            act(tx)

    def _wait(self, seconds: float | None = None) -> None:
        pause = self._lines.poll_seconds if seconds is None else seconds
        raise SuspendTask(self._clock.now() + timedelta(seconds=pause), "waits for the provider")

    def _counts(self) -> dict[str, Any]:
        batches = self._batches()
        answered = sum(batch.answered for batch in batches)
        counts = {"lines": self._lines.line_count, "answered": answered, "batches": len(batches)}
        if answered == self._lines.line_count:
            return counts
        unanswered = f"{self._lines.line_count - answered} of {self._lines.line_count} lines have no valid answer"
        rounds = max(batch.round for batch in batches)
        faults = {each.error for batch in batches if batch.ended_at for each in self._reading.results_of(batch)}
        told = sorted(fault for fault in faults if fault)[:_FAULTS_SHOWN]
        if self._is_ending:
            raise StopTask(f"ended early: {unanswered}", counts)
        raise FailTask(f"{unanswered} after round {rounds}: {'; '.join(told)}", counts)


def _steps(results: list[tuple[BatchLine, LineResult]]) -> Iterator[list[tuple[BatchLine, LineResult]]]:
    remaining = iter(results)
    while some := list(islice(remaining, _RESULTS_A_STEP)):
        yield some
