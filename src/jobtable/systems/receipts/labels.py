"""Labels of words: given, moved between states, and kept clean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import ConditionFailedError, ConflictError, ValueRefusedError
from jobtable.model import Entity, Selection, unchanged
from jobtable.model.conditions import HasAttribute
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern
from jobtable.systems.receipts.entities import (
    LabelHygieneResult,
    LabelMetadata,
    ReceiptField,
    ReceiptMetadata,
    ReceiptWordLabel,
)

_LABELS_A_STEP = 50
_LONGEST_CHAIN = 20


class LabelService:
    """The labels of receipts' words, and the fields and merchants that come of them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, labels: Iterable[ReceiptWordLabel]) -> int:
        """Give labels to words; gives their number. A label that is there is replaced."""
        return self._store.batch_put(labels)

    def move(self, labels: Iterable[ReceiptWordLabel], status: str, *, reasoning: str | None = None) -> int:
        """Move labels that were read to another validation status, their indexes with them; gives their number.

        They move in steps of 50, each all or nothing: a label that has got another status since it was read makes its
        step fail with TransactionFailedError. Labels that were read in the status already are left alone. If it is
        interrupted, the same call again moves the rest.
        """
        moved = 0
        is_moved = ReceiptWordLabel.validation_status == status
        changes = [ReceiptWordLabel.validation_status.set(status)]
        if reasoning is not None:
            changes.append(ReceiptWordLabel.reasoning.set(reasoning))
        for step in _steps(label for label in labels if label.validation_status != status):
            with self._store.transaction() as transaction:
                for label in step:
                    is_as_read = unchanged(label, ReceiptWordLabel.validation_status)
                    transaction.update(label, *changes, when=is_as_read | is_moved)
            moved += len(step)
        return moved

    def relabel(self, label: ReceiptWordLabel, name: str) -> ReceiptWordLabel:
        """Give a word another label in place of this one, which is remembered, in one transaction.

        Where the word has the other label already, that one stays as it is. The same call again changes nothing.
        TransactionFailedError if the label has changed since it was read.
        """
        renamed = label.replace(label=name, label_consolidated_from=label.label)
        known = self._store.find(_key_of(renamed))
        if known is not None and (name == label.label or self._store.find(_key_of(label)) is None):
            return known
        with self._store.transaction() as transaction:
            as_read = unchanged(label, ReceiptWordLabel.validation_status, ReceiptWordLabel.reasoning)
            transaction.delete(label, when=as_read)
            if known is None:
                transaction.add(renamed)
            else:
                transaction.check(known, HasAttribute(ReceiptWordLabel.__schema__.table.pk))
        return known or renamed

    @access_pattern("List the words with a label", index="GSI1")
    def list_by_label(self, label: str) -> Query[ReceiptWordLabel]:
        """The words that have a label, by image, receipt, line and number."""
        return self._store.query(ReceiptWordLabel.by_label(label=label))

    @access_pattern("List labels by validation status", index="GSI3")
    def list_by_status(self, status: str) -> Query[ReceiptWordLabel]:
        """The labels in a validation status."""
        return self._store.query(ReceiptWordLabel.by_status(validation_status=status))

    @access_pattern("List the labels of a receipt")
    def list_by_receipt(self, image_id: str, receipt_id: int) -> Query[ReceiptWordLabel]:
        """The labels of a receipt's words, in the order of the words."""
        return self._store.query(ReceiptWordLabel.key(image_id=image_id, receipt_id=receipt_id))

    @access_pattern("List the labels of all receipts", index="GSI2")
    def list_everywhere(self) -> Query[ReceiptWordLabel]:
        """The labels of all receipts, by image, receipt, line and word."""
        return self._store.query(ReceiptWordLabel.everywhere())

    def keep_field(self, field: ReceiptField) -> None:
        """Store the words that make up a field of a receipt, in place of older ones."""
        self._store.put(field)

    @access_pattern("List a field over all receipts")
    def list_by_field(self, field_type: str) -> Query[ReceiptField]:
        """One field of all receipts that have it."""
        return self._store.query(ReceiptField.key(field_type=field_type))

    @access_pattern("List the fields of a receipt", index="GSI1")
    def list_fields(self, image_id: str, receipt_id: int) -> Query[ReceiptField]:
        """The fields of a receipt."""
        return self._store.query(ReceiptField.by_receipt(image_id=image_id, receipt_id=receipt_id))

    def keep_merchant(self, metadata: ReceiptMetadata) -> None:
        """Store the merchant of a receipt, in place of an older one."""
        self._store.put(metadata)

    @access_pattern("List the receipts of a merchant", index="GSI1")
    def list_by_merchant(self, merchant_name: str) -> Query[ReceiptMetadata]:
        """The receipts of a merchant."""
        return self._store.query(ReceiptMetadata.by_merchant(merchant_name=merchant_name))

    @access_pattern("List merchants by confidence", index="GSI2")
    def list_by_confidence(
        self, lowest: float = 0.0, highest: float = 1.0, *, most_sure_first: bool = False
    ) -> Query[ReceiptMetadata]:
        """The receipts whose merchant was found with a confidence within limits, in order of confidence."""
        limits = (lowest, highest)
        return self._store.query(ReceiptMetadata.by_confidence(), between=limits, newest_first=most_sure_first)


class LabelHygieneService:
    """Which labels are other names for canonical ones, and the move from one to the other."""

    def __init__(self, store: Store, clock: Clock = SYSTEM_CLOCK) -> None:
        self._store = store
        self._clock = clock
        self._labels = LabelService(store)

    def record(self, result: LabelHygieneResult) -> None:
        """Keep a finding that an alias means a canonical label."""
        if result.alias == result.canonical_label:
            raise ValueRefusedError(f"the label {result.alias!r} cannot be an alias of itself")
        self._store.put(result)

    def describe(self, label: LabelMetadata) -> None:
        """Store what a canonical label means."""
        self._store.put(label)

    @access_pattern("Get the description of a label")
    def find_description(self, label: str) -> LabelMetadata | None:
        """What a canonical label means, or None."""
        return self._store.find(LabelMetadata.key(label=label))

    @access_pattern("List the labels of a target", index="GSI2")
    def list_by_target(self, label_target: str) -> Query[LabelMetadata]:
        """The canonical labels for a target."""
        return self._store.query(LabelMetadata.by_target(label_target=label_target))

    @access_pattern("A label with its description and words", index="GSI1")
    def list_under_label(self, label: str) -> Query[Entity]:
        """The words that have a label, and behind them what it means, each as what it is."""
        return self._store.collection(LabelMetadata.by_label(label=label))

    @access_pattern("List the findings of an id")
    def list_by_id(self, hygiene_id: str) -> Query[LabelHygieneResult]:
        """The findings that were recorded under an id, by alias."""
        return self._store.query(LabelHygieneResult.key(hygiene_id=hygiene_id))

    @access_pattern("List what an alias stands for", index="GSI1")
    def list_by_alias(self, alias: str) -> Query[LabelHygieneResult]:
        """The findings about an alias."""
        return self._store.query(LabelHygieneResult.by_alias(alias=alias))

    @access_pattern("List the aliases of a label", index="GSI2")
    def list_aliases(self, canonical_label: str) -> Query[LabelHygieneResult]:
        """The findings that lead to a canonical label."""
        return self._store.query(LabelHygieneResult.by_canonical_label(canonical_label=canonical_label))

    def resolve(self, label: str) -> str:
        """The canonical label for a label, by the findings that were agreed to; itself where there is none.

        ConflictError where an alias stands for several labels, or for itself in the end.
        """
        seen = [label]
        while True:
            found = {result.canonical_label for result in self._findings(seen[-1]) if result.gpt_agreed}
            if not found:
                return seen[-1]
            if len(found) > 1:
                raise ConflictError(f"{seen[-1]!r} is an alias of {', '.join(sorted(found))}: agree to one of them")
            (following,) = found
            if following in seen or len(seen) == _LONGEST_CHAIN:
                raise ConflictError(f"the aliases {' -> '.join([*seen, following])} do not come to an end")
            seen.append(following)

    def _findings(self, alias: str) -> Iterator[LabelHygieneResult]:
        """The findings about an alias as they are now: the index may still show what was taken back."""
        keys = (
            LabelHygieneResult.key(hygiene_id=each.hygiene_id, alias=alias, canonical_label=each.canonical_label)
            for each in self.list_by_alias(alias)
        )
        return (result for result in self._store.batch_get(keys) if result is not None)

    def consolidate(self, alias: str) -> int:
        """Give every word with an alias its canonical label; gives how many. Called again it completes.

        The canonical label's description, where there is one, lists the alias from then on.
        """
        canonical = self.resolve(alias)
        if canonical == alias:
            return 0
        self._note_alias(canonical, alias)
        return sum(self._relabel(indexed, canonical) for indexed in self._labels.list_by_label(alias))

    def _relabel(self, indexed: ReceiptWordLabel, canonical: str) -> bool:
        def relabel(label: ReceiptWordLabel | None) -> bool:
            if label is None:  # an index may still show a deleted item
                return False
            self._labels.relabel(label, canonical)
            return True

        what = f"relabel a word from {indexed.label} to {canonical}"
        return self._store.retrying(lambda: self._store.find(_key_of(indexed)), relabel, what)

    def _note_alias(self, canonical: str, alias: str) -> None:
        description = self.find_description(canonical)
        if description is None or alias in description.aliases:
            return
        try:
            self._store.update(
                LabelMetadata.key(label=canonical),
                LabelMetadata.aliases.append(alias),
                LabelMetadata.last_updated.set(self._clock.now()),
                when=~LabelMetadata.aliases.contains(alias),
            )
        except ConditionFailedError:
            return  # somebody else has noted it in between


def _key_of(label: ReceiptWordLabel) -> Selection[ReceiptWordLabel]:
    return ReceiptWordLabel.key(
        image_id=label.image_id,
        receipt_id=label.receipt_id,
        line_id=label.line_id,
        word_id=label.word_id,
        label=label.label,
    )


def _steps(labels: Iterable[ReceiptWordLabel]) -> Iterator[list[ReceiptWordLabel]]:
    iterator = iter(labels)
    while step := list(islice(iterator, _LABELS_A_STEP)):
        yield step
