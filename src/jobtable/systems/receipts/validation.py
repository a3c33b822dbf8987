"""Validations of receipts: a summary, categories and results whose counts always agree."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from jobtable.clock import Clock
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
"""How many finished calls with an id a field remembers."""
_LETTERS_A_STEP = 2_000_000
"""A transaction holds 100 actions and 4 MB. The JSON of a finding is at least about as long as its item."""


@dataclass(frozen=True)
class Finding:
    """A finding about one field."""

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

    def __str__(self) -> str:
        return f"image {self.image_id}, receipt {self.receipt_id}"


class ValidationService:
    """Keeps the validations of receipts. A change to a result also changes its category and the summary."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or store.clock

    def start(self, image_id: str, receipt_id: int, *, version: str) -> ReceiptValidationSummary:
        """Start the validation of a receipt, or raise AlreadyExistsError; delete an existing one first."""
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
        """Return the summary of a receipt's validation, or raise NotFoundError."""
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
        """Store findings about a field, and update its category and the summary, in one transaction.

        More than 90 findings, or very long ones, are stored in several transactions; the counts are correct after each.
        If such a call is interrupted, repeat it to finish.

        Without a `call_id`, repeating a call adds the findings again. With one, it returns what the first call stored.
        A field remembers the last 50 such calls.
        """
        receipt, added = _Receipt(image_id, receipt_id), list[ReceiptValidationResult]()
        for step in _steps(findings, call_id):
            added += self._change(receipt, partial(self._add, receipt, field_name, field_category, step))
        return added

    def remove_result(self, image_id: str, receipt_id: int, field_name: str, result_index: int) -> None:
        """Remove a result, and update its category and the summary, in one transaction.

        Its index is not used again in this validation, so repeating the call raises NotFoundError.
        """
        receipt = _Receipt(image_id, receipt_id)
        self._change(receipt, partial(self._remove, receipt, field_name, result_index))

    def second_pass(self, validation: ReceiptChatGPTValidation) -> ReceiptValidationSummary:
        """Store a second pass and give the summary its revised status, in one transaction.

        Repeating the call changes nothing; AlreadyExistsError if another second pass has the same time.
        """
        self._change(_Receipt(validation.image_id, validation.receipt_id), partial(self._revise, validation))
        return self.get_summary(validation.image_id, validation.receipt_id)

    def delete(self, image_id: str, receipt_id: int) -> int:
        """Delete a receipt's validation with all its parts and return the number of items, or raise NotFoundError.

        Nothing can be added once the deletion starts. The summary is deleted last: until then no other validation of
        the receipt can start, and repeating the call completes the deletion.
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
        except NotFoundError:  # a concurrent deletion was faster
            return deleted

    @access_pattern("List the categories of a validation")
    def list_categories(self, image_id: str, receipt_id: int) -> Query[ReceiptValidationCategory]:
        """List the categories of a receipt's validation."""
        return self._store.query(ReceiptValidationCategory.key(image_id=image_id, receipt_id=receipt_id))

    @access_pattern("List the results of a category")
    def list_results(self, image_id: str, receipt_id: int, field_name: str) -> Query[ReceiptValidationResult]:
        """List the results of one category, in order."""
        key = ReceiptValidationResult.key(image_id=image_id, receipt_id=receipt_id, field_name=field_name)
        return self._store.query(key)

    @access_pattern("List the second passes over a validation")
    def list_second_passes(self, image_id: str, receipt_id: int) -> Query[ReceiptChatGPTValidation]:
        """List the second passes over a receipt's validation, oldest first."""
        return self._store.query(ReceiptChatGPTValidation.key(image_id=image_id, receipt_id=receipt_id))

    @access_pattern("List validations by status", index="GSI3")
    def list_by_status(self, status: str) -> Query[ReceiptValidationSummary]:
        """List the validations in a status, oldest first."""
        return self._store.query(ReceiptValidationSummary.by_status(overall_status=status))

    @access_pattern("List second passes by revised status", index="GSI3")
    def list_second_passes_by_status(self, status: str) -> Query[ReceiptChatGPTValidation]:
        """List the second passes with a revised status, oldest first."""
        return self._store.query(ReceiptChatGPTValidation.by_status(revised_status=status))

    @access_pattern("List the categories of a field by status", index="GSI3")
    def list_by_field_status(self, field_name: str, status: str) -> Query[ReceiptValidationCategory]:
        """List the receipts on which a field has a status."""
        return self._store.query(ReceiptValidationCategory.by_status(field_name=field_name, status=status))

    @access_pattern("List results by type", index="GSI3")
    def list_by_result_type(self, result_type: ResultType) -> Query[ReceiptValidationResult]:
        """List the results of a type on all receipts."""
        return self._store.query(ReceiptValidationResult.by_result_type(type=result_type))

    def _change(self, receipt: _Receipt, change: Callable[[], T]) -> T:
        """Make a change that first reads what is stored."""
        return self._store.retrying(lambda: None, lambda _: change(), f"change the validation of {receipt}")

    # --- consistent changes -----------------------------------------------------------------------------------------

    def _add(
        self, receipt: _Receipt, field_name: str, field_category: str | None, step: _CallStep
    ) -> list[ReceiptValidationResult]:
        state = self._read(receipt, field_name, field_category or field_name)
        done = state.calls.finished.get(step.call) or state.calls.unfinished.get(step.call, [])
        if step.number < len(done):  # stored by an earlier attempt of this call
            return _results(state, step.findings, done[step.number])
        if step.number > len(done):
            raise ConflictError(
                f"another call has finished storing the same findings about {field_name} of {receipt}; "
                "nothing is left to add"
            )
        results = _results(state, step.findings, state.following)
        with self._store.transaction() as transaction:
            for result in results:
                transaction.add(result)
            counts = _count(state.category.result_summary, results, 1)
            self._update_counts(transaction, state, counts, state.calls.with_step(step, [*done, state.following]))
        return results

    def _remove(self, receipt: _Receipt, field_name: str, result_index: int) -> None:
        key = ReceiptValidationResult.key(**receipt._asdict(), field_name=field_name, result_index=result_index)
        state = self._read(receipt, field_name, field_name)
        result = self._store.get(key)  # read after the counts, which then include it
        with self._store.transaction() as transaction:
            transaction.delete(key, when=ReceiptValidationResult.type == result.type)
            counts = _count(state.category.result_summary, [result], -1)
            used = ReceiptValidationCategory.next_index.set(state.following)
            self._update_counts(transaction, state, counts, state.calls, used)

    def _revise(self, validation: ReceiptChatGPTValidation) -> None:
        receipt = _Receipt(validation.image_id, validation.receipt_id)
        there = self._store.find(ReceiptChatGPTValidation.key(**receipt._asdict(), timestamp=validation.timestamp))
        if there == validation:
            return
        if there is not None:
            raise AlreadyExistsError(
                f"{receipt} already has another second pass at {validation.timestamp:%Y-%m-%dT%H:%M:%S.%fZ}; "
                "use a different time"
            )
        summary = self._open_summary(receipt)
        with self._store.transaction() as transaction:
            transaction.add(validation)
            transaction.update(
                summary,
                ReceiptValidationSummary.overall_status.set(validation.revised_status),
                ReceiptValidationSummary.overall_reasoning.set(validation.reasoning),
                when=unchanged(summary, ReceiptValidationSummary.overall_status, ReceiptValidationSummary.deleted_at),
            )

    def _read(self, receipt: _Receipt, field_name: str, field_category: str) -> _State:
        """Read what a change is based on. Its transaction succeeds only if nothing of this has changed."""
        place = {**receipt._asdict(), "field_name": field_name}
        stored = self._store.find(ReceiptValidationCategory.key(**place))
        last = self._store.query(ReceiptValidationResult.key(**place), newest_first=True, limit=1).first()
        # The summary is read after its parts, so it shows a deletion that has removed some of them.
        summary = self._open_summary(receipt)
        category = stored or ReceiptValidationCategory(
            **place,
            validation_timestamp=summary.validation_timestamp,
            field_category=field_category,
            status=ValidationStatus.PENDING,
        )
        return _State(summary, category, stored is None, last)

    def _open_summary(self, receipt: _Receipt) -> ReceiptValidationSummary:
        summary = self.get_summary(*receipt)
        if summary.deleted_at is not None:
            raise ConflictError(f"the validation of {receipt} is being deleted; repeat the deletion to complete it")
        return summary

    def _update_counts(
        self, transaction: Transaction, state: _State, counts: ResultSummary, calls: _Calls, *more: Update
    ) -> None:
        summary, category, kind, field = state.summary, state.category, type(state.category), _field_summary(counts)
        unfinished, finished = calls.unfinished or None, calls.finished or None
        if state.is_new:
            transaction.add(
                category.replace(status=field.status, result_summary=counts, unfinished=unfinished, finished=finished)
            )
        else:
            transaction.update(
                category,
                kind.result_summary.set(counts),
                kind.status.set(field.status),
                kind.unfinished.set(unfinished),
                kind.finished.set(finished),
                *more,
                when=unchanged(category, kind.result_summary, kind.unfinished, kind.finished, kind.next_index),
            )
        fields = summary.field_summary | {category.field_name: field}
        transaction.update(
            summary,
            ReceiptValidationSummary.field_summary.set(fields),
            ReceiptValidationSummary.overall_status.set(_overall_status(fields.values())),
            when=unchanged(summary, ReceiptValidationSummary.field_summary, ReceiptValidationSummary.deleted_at),
        )


class _State(NamedTuple):
    summary: ReceiptValidationSummary
    category: ReceiptValidationCategory
    is_new: bool
    """Whether the category is not stored yet."""
    last: ReceiptValidationResult | None

    @property
    def following(self) -> int:
        """The index of the next result; no earlier one has had it, even if removed."""
        used = self.category.next_index or 0
        return used if self.last is None else max(used, self.last.result_index + 1)

    @property
    def calls(self) -> _Calls:
        return _Calls(self.category.unfinished or {}, self.category.finished or {})


class _Calls(NamedTuple):
    """The calls that a field remembers, with the first index of each of their steps."""

    unfinished: dict[str, list[int]]
    finished: dict[str, list[int]]

    def with_step(self, step: _CallStep, starts: list[int]) -> _Calls:
        """Return the calls after this step is stored."""
        unfinished = {call: known for call, known in self.unfinished.items() if call != step.call}
        if not step.is_last:
            return _Calls(unfinished | {step.call: starts}, self.finished)
        if not step.has_id:
            return _Calls(unfinished, self.finished)
        by_age = sorted((self.finished | {step.call: starts}).items(), key=lambda call: call[1])
        return _Calls(unfinished, dict(by_age[-_CALLS_KNOWN:]))


class _CallStep(NamedTuple):
    """The findings of a call that one transaction stores."""

    call: str
    """Identifies the call after an interruption; empty for a call with one step and no id."""
    number: int
    is_last: bool
    has_id: bool
    """Whether the call has an id."""
    findings: Sequence[Finding]


def _results(state: _State, findings: Iterable[Finding], first_index: int) -> list[ReceiptValidationResult]:
    return [
        ReceiptValidationResult(
            image_id=state.summary.image_id,
            receipt_id=state.summary.receipt_id,
            **vars(finding),
            field_name=state.category.field_name,
            result_index=index,
            validation_timestamp=state.summary.validation_timestamp,
        )
        for index, finding in enumerate(findings, first_index)
    ]


def _count(counts: ResultSummary, results: Iterable[ReceiptValidationResult], by: int) -> ResultSummary:
    found = Counter(f"{result.type.value}_count" for result in results)
    return counts.replace(**{name: getattr(counts, name) + by * number for name, number in found.items()})


def _status(*, has_errors: bool, has_warnings: bool, has_results: bool) -> ValidationStatus:
    if has_errors:
        return ValidationStatus.INVALID
    if has_warnings:
        return ValidationStatus.NEEDS_REVIEW
    return ValidationStatus.VALID if has_results else ValidationStatus.PENDING


def _field_summary(counts: ResultSummary) -> FieldSummary:
    has = {"has_errors": counts.error_count > 0, "has_warnings": counts.warning_count > 0}
    return FieldSummary(status=_status(**has, has_results=counts.total > 0), count=counts.total, **has)


def _overall_status(fields: Collection[FieldSummary]) -> ValidationStatus:
    return _status(
        has_errors=any(field.has_errors for field in fields),
        has_warnings=any(field.has_warnings for field in fields),
        has_results=any(field.count for field in fields),
    )


def _steps(findings: Iterable[Finding], call_id: str | None) -> list[_CallStep]:
    parts, texts, size = list[list[Finding]](), list[str](), 0
    for finding in findings:
        text = json.dumps(vars(finding), sort_keys=True, default=repr)
        size += len(text)
        if not parts or len(parts[-1]) == _FINDINGS_A_STEP or size > _LETTERS_A_STEP:
            parts.append([])
            size = len(text)
        parts[-1].append(finding)
        texts.append(text)
    call = ""
    if len(parts) > 1 or call_id is not None:  # the same findings in the same steps are the same call
        known = [*([call_id] if call_id else []), *(str(len(part)) for part in parts), *texts]
        call = hashlib.sha256("\n".join(known).encode()).hexdigest()
    return [_CallStep(call, number, part is parts[-1], call_id is not None, part) for number, part in enumerate(parts)]
