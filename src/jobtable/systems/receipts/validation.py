"""Validations of receipts: a summary, categories and results whose counts are always in step."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import AlreadyExistsError, ConflictError, NotFoundError
from jobtable.model import Json, Update, unchanged
from jobtable.store import Query, Store, Transaction
from jobtable.store.patterns import access_pattern
from jobtable.systems.receipts.entities import (
    FieldSummary,
    ReceiptChatGPTValidation,
    ReceiptValidationCategory,
    ReceiptValidationResult,
    ReceiptValidationSummary,
    ResultSummary,
    ResultType,
    ValidationStatus,
)

_FINDINGS_A_STEP = 90
_CALLS_KNOWN = 50
"""How many calls with an id a field knows of."""
_LETTERS_A_STEP = 2_000_000
"""A transaction takes 100 actions and 4 MB. The JSON of a finding is about as long as its item, or longer."""


@dataclass(frozen=True)
class Finding:
    """Something that was found about one field."""

    type: ResultType
    message: str
    reasoning: str | None = None
    field: str | None = None
    expected_value: Json = None
    actual_value: Json = None


T = TypeVar("T")


class _Receipt(NamedTuple):
    image_id: str
    receipt_id: int


class ValidationService:
    """Keeps a receipt's validation: whatever changes a result changes its category and the summary with it."""

    def __init__(self, store: Store, clock: Clock = SYSTEM_CLOCK) -> None:
        self._store = store
        self._clock = clock

    def start(self, image_id: str, receipt_id: int, *, version: str) -> ReceiptValidationSummary:
        """Begin the validation of a receipt, or raise AlreadyExistsError: delete the one that is there before."""
        summary = ReceiptValidationSummary(
            image_id=image_id,
            receipt_id=receipt_id,
            overall_status=ValidationStatus.PENDING,
            validation_timestamp=self._clock.now(),
            version=version,
        )
        self._store.add(summary)
        return summary

    def get_summary(self, image_id: str, receipt_id: int) -> ReceiptValidationSummary:
        """How a receipt's validation stands, or NotFoundError."""
        return self._store.get(ReceiptValidationSummary.key(image_id=image_id, receipt_id=receipt_id))

    def add_findings(
        self,
        image_id: str,
        receipt_id: int,
        field_name: str,
        findings: Iterable[Finding],
        *,
        field_category: str | None = None,
        call_id: str | None = None,
    ) -> list[ReceiptValidationResult]:
        """Store findings about a field, and bring its category and the summary into step, in one transaction.

        More than 90 findings, or very long ones, go in steps, each a transaction of its own; after every one of them
        the counts are right. If such a call is interrupted, the same call again finishes it.

        Without a `call_id` the same findings again are more findings. With one, the same call again gives what the
        first has stored: whoever made it may not have got the answer. A field knows the last 50 of such calls.
        """
        receipt, added = _Receipt(image_id, receipt_id), list[ReceiptValidationResult]()
        for step in _steps(findings, call_id):
            added += self._change(receipt, partial(self._add, receipt, field_name, field_category, step))
        return added

    def _change(self, receipt: _Receipt, change: Callable[[], T]) -> T:
        """Make a change that reads what is stored first."""
        what = f"change the validation of receipt {receipt.receipt_id} of image {receipt.image_id}"
        return self._store.retrying(lambda: None, lambda _: change(), what)

    def remove_result(self, image_id: str, receipt_id: int, field_name: str, result_index: int) -> None:
        """Take a result back, and bring its category and the summary into step, in one transaction.

        No later result of this validation gets its index, so the same call again raises NotFoundError. In a validation
        that is begun anew they count from 0 again.
        """
        receipt = _Receipt(image_id, receipt_id)
        self._change(receipt, partial(self._remove, receipt, field_name, result_index))

    def second_pass(self, validation: ReceiptChatGPTValidation) -> ReceiptValidationSummary:
        """Store a second pass; the summary takes its revised status, in the same transaction.

        The same second pass again changes nothing; AlreadyExistsError where there is another one of its time.
        """
        self._change(_Receipt(validation.image_id, validation.receipt_id), partial(self._revise, validation))
        return self.get_summary(validation.image_id, validation.receipt_id)

    def delete(self, image_id: str, receipt_id: int) -> int:
        """Delete a receipt's validation with all its parts, or raise NotFoundError; gives the number of items.

        From the first moment nothing is added to it any more. The summary goes last: until then no other validation
        begins, and the same call again completes this.
        """
        key = ReceiptValidationSummary.key(image_id=image_id, receipt_id=receipt_id)
        summary = self._store.update(key, ReceiptValidationSummary.deleted_at.set(self._clock.now()))
        last = ReceiptChatGPTValidation.key(image_id=image_id, receipt_id=receipt_id)
        found = self._store.collection(key, until=last)
        parts = (
            entity
            for entity in found
            if isinstance(entity, ReceiptValidationCategory | ReceiptValidationResult | ReceiptChatGPTValidation)
        )
        deleted = self._store.batch_delete(parts)
        try:
            return deleted + self._store.delete(summary, when=ReceiptValidationSummary.deleted_at.exists())
        except NotFoundError:  # somebody else deletes it, too, and was faster
            return deleted

    @access_pattern("List the categories of a validation")
    def list_categories(self, image_id: str, receipt_id: int) -> Query[ReceiptValidationCategory]:
        """The categories of a receipt's validation."""
        return self._store.query(ReceiptValidationCategory.key(image_id=image_id, receipt_id=receipt_id))

    @access_pattern("List the results of a category")
    def list_results(self, image_id: str, receipt_id: int, field_name: str) -> Query[ReceiptValidationResult]:
        """The results of one category, in order."""
        key = ReceiptValidationResult.key(image_id=image_id, receipt_id=receipt_id, field_name=field_name)
        return self._store.query(key)

    @access_pattern("List the second passes over a validation")
    def list_second_passes(self, image_id: str, receipt_id: int) -> Query[ReceiptChatGPTValidation]:
        """The second passes over a receipt's validation, the oldest first."""
        return self._store.query(ReceiptChatGPTValidation.key(image_id=image_id, receipt_id=receipt_id))

    @access_pattern("List validations by status", index="GSI3")
    def list_by_status(self, status: str) -> Query[ReceiptValidationSummary]:
        """The summaries in a status, the oldest first."""
        return self._store.query(ReceiptValidationSummary.by_status(overall_status=status))

    @access_pattern("List second passes by revised status", index="GSI3")
    def list_second_passes_by_status(self, status: str) -> Query[ReceiptChatGPTValidation]:
        """The second passes that gave a status, the oldest first."""
        return self._store.query(ReceiptChatGPTValidation.by_status(revised_status=status))

    @access_pattern("List the categories of a field by status", index="GSI3")
    def list_by_field_status(self, field_name: str, status: str) -> Query[ReceiptValidationCategory]:
        """Where a field has a status, over all receipts."""
        return self._store.query(ReceiptValidationCategory.by_status(field_name=field_name, status=status))

    @access_pattern("List results by type", index="GSI3")
    def list_by_result_type(self, result_type: ResultType) -> Query[ReceiptValidationResult]:
        """The results of a type, over all receipts."""
        return self._store.query(ReceiptValidationResult.by_result_type(type=result_type))

    # --- keeping in step --------------------------------------------------------------------------------------------

    def _add(
        self, receipt: _Receipt, field_name: str, field_category: str | None, step: _Step
    ) -> list[ReceiptValidationResult]:
        state = self._read(receipt, field_name)
        done = state.calls.finished.get(step.call) or state.calls.unfinished.get(step.call, [])
        if step.number < len(done):  # by an earlier call that was interrupted, or whose answer was lost
            return _results(state, step.findings, done[step.number])
        if step.number > len(done):
            raise ConflictError(
                f"the same findings about {field_name} of image {receipt.image_id}, receipt {receipt.receipt_id} were "
                "stored to the end by another call meanwhile: nothing is left to add"
            )
        results = _results(state, step.findings, state.following)
        with self._store.transaction() as transaction:
            for result in results:
                transaction.add(result)
            self._bring_into_step(
                transaction,
                state,
                field_category or field_name,
                _count(state.counts, results, 1),
                state.calls.with_step(step, [*done, state.following]),
            )
        return results

    def _remove(self, receipt: _Receipt, field_name: str, result_index: int) -> None:
        key = ReceiptValidationResult.key(**receipt._asdict(), field_name=field_name, result_index=result_index)
        state = self._read(receipt, field_name)
        result = self._store.get(key)  # behind the counts: else it might be gone, and not be counted in them
        with self._store.transaction() as transaction:
            transaction.delete(key, when=ReceiptValidationResult.type == result.type)
            counts = _count(state.counts, [result], -1)
            used = ReceiptValidationCategory.next_index.set(state.following)  # whoever removes it again finds nothing
            self._bring_into_step(transaction, state, field_name, counts, state.calls, used)

    def _revise(self, validation: ReceiptChatGPTValidation) -> None:
        place = {"image_id": validation.image_id, "receipt_id": validation.receipt_id}
        there = self._store.find(ReceiptChatGPTValidation.key(**place, timestamp=validation.timestamp))
        if there == validation:
            return
        if there is not None:
            raise AlreadyExistsError(
                f"image {validation.image_id}, receipt {validation.receipt_id} has another second pass of "
                f"{validation.timestamp:%Y-%m-%dT%H:%M:%S.%fZ}: give this one a time of its own"
            )
        summary = self._open_summary(_Receipt(validation.image_id, validation.receipt_id))
        with self._store.transaction() as transaction:
            transaction.add(validation)
            transaction.update(
                summary,
                ReceiptValidationSummary.overall_status.set(validation.revised_status),
                ReceiptValidationSummary.overall_reasoning.set(validation.reasoning),
                when=unchanged(summary, ReceiptValidationSummary.overall_status, ReceiptValidationSummary.deleted_at),
            )

    def _read(self, receipt: _Receipt, field_name: str) -> _State:
        """What a change starts from; the transaction that makes it goes through only if this still holds."""
        place = receipt._asdict()
        results = ReceiptValidationResult.key(**place, field_name=field_name)
        category = self._store.find(ReceiptValidationCategory.key(**place, field_name=field_name))
        last = self._store.query(results, newest_first=True, limit=1).first()
        # Behind its parts: where they are being taken away, it says so.
        return _State(field_name, self._open_summary(receipt), category, last)

    def _open_summary(self, receipt: _Receipt) -> ReceiptValidationSummary:
        summary = self.get_summary(*receipt)
        if summary.deleted_at is not None:
            raise ConflictError(
                f"the validation of image {receipt.image_id}, receipt {receipt.receipt_id} is being deleted: "
                "delete it again, to the end"
            )
        return summary

    def _bring_into_step(
        self,
        transaction: Transaction,
        state: _State,
        field_category: str,
        counts: ResultSummary,
        calls: _Calls,
        *more: Update,
    ) -> None:
        summary, category = state.summary, state.category
        if category is None:
            transaction.add(
                ReceiptValidationCategory(
                    image_id=summary.image_id,
                    receipt_id=summary.receipt_id,
                    field_name=state.field_name,
                    validation_timestamp=summary.validation_timestamp,
                    field_category=field_category,
                    status=_status(counts),
                    result_summary=counts,
                    unfinished=calls.unfinished or None,
                    finished=calls.finished or None,
                )
            )
        else:
            transaction.update(
                category,
                ReceiptValidationCategory.result_summary.set(counts),
                ReceiptValidationCategory.status.set(_status(counts)),
                ReceiptValidationCategory.unfinished.set(calls.unfinished or None),
                ReceiptValidationCategory.finished.set(calls.finished or None),
                *more,
                when=unchanged(
                    category,
                    ReceiptValidationCategory.result_summary,
                    ReceiptValidationCategory.unfinished,
                    ReceiptValidationCategory.finished,
                    ReceiptValidationCategory.next_index,
                ),
            )
        fields = summary.field_summary | {state.field_name: _field_summary(counts)}
        transaction.update(
            summary,
            ReceiptValidationSummary.field_summary.set(fields),
            ReceiptValidationSummary.overall_status.set(_overall_status(fields)),
            when=unchanged(summary, ReceiptValidationSummary.field_summary, ReceiptValidationSummary.deleted_at),
        )


class _State(NamedTuple):
    field_name: str
    summary: ReceiptValidationSummary
    category: ReceiptValidationCategory | None
    last: ReceiptValidationResult | None

    @property
    def counts(self) -> ResultSummary:
        return self.category.result_summary if self.category else ResultSummary()

    @property
    def following(self) -> int:
        """The index of the next result: none that there was before has it, also if it was taken back."""
        used = 0 if self.category is None else self.category.next_index or 0
        return used if self.last is None else max(used, self.last.result_index + 1)

    @property
    def calls(self) -> _Calls:
        there = self.category
        return _Calls({}, {}) if there is None else _Calls(there.unfinished or {}, there.finished or {})


class _Calls(NamedTuple):
    """The calls that a field knows of: the first index of each of their steps."""

    unfinished: dict[str, list[int]]
    finished: dict[str, list[int]]

    def with_step(self, step: _Step, starts: list[int]) -> _Calls:
        """The calls once this step is stored, too."""
        unfinished = {call: known for call, known in self.unfinished.items() if call != step.call}
        if not step.is_last:
            return _Calls(unfinished | {step.call: starts}, self.finished)
        if not step.may_come_again:
            return _Calls(unfinished, self.finished)
        by_age = sorted((self.finished | {step.call: starts}).items(), key=lambda call: call[1])
        return _Calls(unfinished, dict(by_age[-_CALLS_KNOWN:]))


class _Step(NamedTuple):
    """As many findings of a call as one transaction stores."""

    call: str
    """What tells the call from others, once it is interrupted; a call of one step is never half done."""
    number: int
    is_last: bool
    may_come_again: bool
    """Whether the caller has given it an id."""
    findings: Sequence[Finding]


def _results(state: _State, findings: Iterable[Finding], first_index: int) -> list[ReceiptValidationResult]:
    return [
        ReceiptValidationResult(
            image_id=state.summary.image_id,
            receipt_id=state.summary.receipt_id,
            **vars(finding),
            field_name=state.field_name,
            result_index=index,
            validation_timestamp=state.summary.validation_timestamp,
        )
        for index, finding in enumerate(findings, first_index)
    ]


def _count(counts: ResultSummary, results: Iterable[ReceiptValidationResult], by: int) -> ResultSummary:
    found = Counter(f"{result.type.value}_count" for result in results)
    return counts.replace(**{name: getattr(counts, name) + by * number for name, number in found.items()})


def _status(counts: ResultSummary) -> ValidationStatus:
    if counts.error_count:
        return ValidationStatus.INVALID
    if counts.warning_count:
        return ValidationStatus.NEEDS_REVIEW
    return ValidationStatus.VALID if counts.total else ValidationStatus.PENDING


def _field_summary(counts: ResultSummary) -> FieldSummary:
    return FieldSummary(
        status=_status(counts),
        count=counts.total,
        has_errors=counts.error_count > 0,
        has_warnings=counts.warning_count > 0,
    )


def _overall_status(fields: Mapping[str, FieldSummary]) -> ValidationStatus:
    if any(field.has_errors for field in fields.values()):
        return ValidationStatus.INVALID
    if any(field.has_warnings for field in fields.values()):
        return ValidationStatus.NEEDS_REVIEW
    return ValidationStatus.VALID if any(field.count for field in fields.values()) else ValidationStatus.PENDING


def _steps(findings: Iterable[Finding], call_id: str | None) -> list[_Step]:
    parts, texts, size = list[list[Finding]](), list[str](), 0
    for finding in findings:
        text = json.dumps(vars(finding), sort_keys=True, default=repr)
        size += len(text)
        if not parts or len(parts[-1]) == _FINDINGS_A_STEP or size > _LETTERS_A_STEP:
            parts.append([])
            size = len(text)
        parts[-1].append(finding)
        texts.append(text)
    has_id = call_id is not None
    call = _fingerprint(call_id or "", parts, texts) if len(parts) > 1 or has_id else ""
    return [_Step(call, number, part is parts[-1], has_id, part) for number, part in enumerate(parts)]


def _fingerprint(call_id: str, parts: Iterable[Sequence[Finding]], texts: Iterable[str]) -> str:
    """Tells whether a call goes on with the same findings, in the same steps."""
    lengths = (str(len(part)) for part in parts)
    return hashlib.sha256("\n".join([*([call_id] if call_id else []), *lengths, *texts]).encode()).hexdigest()
