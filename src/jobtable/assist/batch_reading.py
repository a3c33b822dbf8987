"""What the batches of a job hold: the lines of each, and their results as recorded, judged by the declared output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from jobtable.assist.answer_reading import AnswerShape, BadAnswerError, read_answer
from jobtable.assist.asking import messages_sending_back
from jobtable.assist.batch_lines import BatchLine, LineResult, read_lines, read_results
from jobtable.assist.batch_submission import output_of
from jobtable.assist.call_texts import answer_of
from jobtable.assist.entities import AssistBatch, AssistCall, BatchLines, BatchStatus
from jobtable.assist.providers import ChatAnswer
from jobtable.objects import ObjectStore
from jobtable.store import Store


class BatchReading:
    """The lines and results of one job. Both follow from what is recorded, so every run finds the same."""

    def __init__(self, store: Store, objects: ObjectStore, lines: BatchLines) -> None:
        self._store = store
        self._objects = objects
        self.record = lines
        output = output_of(lines)
        self.shape = None if output is None else AnswerShape.of(output)

    @cached_property
    def lines(self) -> list[BatchLine]:
        return read_lines(self._objects.get(self.record.lines_key))

    def lines_of(self, batch: AssistBatch) -> list[BatchLine]:
        """Return the lines of a batch; in another round with what was wrong with the answer before."""
        part = self.lines[batch.first_line : batch.first_line + batch.line_count]
        if batch.retry_of is None:
            return part
        before = self._store.get(AssistBatch.key(job_id=batch.job_id, number=batch.retry_of))
        by_id = {line.line_id: line for line in self.lines_of(before)}
        return [self._again(by_id[each.line_id], each) for each in self.results_of(before) if each.may_succeed]

    def _again(self, line: BatchLine, result: LineResult) -> BatchLine:
        """Return a line as it is sent again: with its answer and the fault, if it had one."""
        if result.text is None or result.error is None:
            return line
        more = messages_sending_back(result.text, f"The answer is not valid: {result.error}", self.shape)
        return replace(line, content=(*line.messages, *more))

    def results_of(self, batch: AssistBatch) -> Iterator[LineResult]:
        """Yield the result of each line of a batch that has ended, in the order of its lines."""
        recorded = {each.line_id: each for each in self._recorded(batch)}
        nothing = batch.error or "the provider returned no result for it"
        for line in self.lines_of(batch):
            found = recorded.get(line.line_id)
            if found is None:
                yield LineResult(line.line_id, error=nothing, may_succeed=batch.status is not BatchStatus.FAILED)
            else:
                yield found if found.error else self._judged(found)

    def _recorded(self, batch: AssistBatch) -> Iterator[LineResult]:
        if batch.status is BatchStatus.FAILED or batch.call_id is None:
            return
        call = self._store.get(AssistCall.key(job_id=batch.job_id, call_id=batch.call_id))
        yield from read_results(answer_of(self._objects, call) or ())

    def _judged(self, result: LineResult) -> LineResult:
        """Return a result with its output, or with what is wrong with it."""
        if not isinstance(result.answer, ChatAnswer):
            return replace(result, output=result.answer and result.answer.vectors[0])
        try:
            found = read_answer(result.answer, self.shape)
        except BadAnswerError as bad:
            return replace(result, error=str(bad), may_succeed=not bad.is_refusal)
        return replace(result, output=found if isinstance(found, str) else found.model_dump(mode="json"))
