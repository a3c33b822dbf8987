"""Labels of words: assigned, moved between statuses, renamed to canonical labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobtable.clock import Clock
from jobtable.errors import ConditionFailedError, ConflictError, ValueRefusedError
from jobtable.model import Entity, unchanged
from jobtable.model.conditions import HasAttribute
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern
from jobtable.store.transactions import packed
from jobtable.systems.receipts.entities import (
    LabelHygieneResult,
    LabelMetadata,
    ReceiptField,
    ReceiptMetadata,
    ReceiptWordLabel,
)
from jobtable.systems.receipts.entities.record_bases import key_of

_LABELS_A_STEP = 50
_LONGEST_CHAIN = 20


class LabelService:
    """The labels of receipts' words, and the fields and merchants derived from them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, labels: Iterable[ReceiptWordLabel]) -> int:
        """Assign labels to words, replace labels that exist, and return their number."""
        return self._store.batch_put(labels)

    def move(self, labels: Iterable[ReceiptWordLabel], status: str, *, reasoning: str | None = None) -> int:
        """Move labels, as they were read, to another validation status and return their number.

        They move in steps of 50, each all or nothing: TransactionFailedError if the status of a label has changed since
        it was read. Labels that already have the status are skipped. After an interruption, repeat the call.
        """
        moved = 0
        is_moved = ReceiptWordLabel.validation_status == status
        changes = [ReceiptWordLabel.validation_status.set(status)]
        if reasoning is not None:
            changes.append(ReceiptWordLabel.reasoning.set(reasoning))
        for step in packed((label for label in labels if label.validation_status != status), _LABELS_A_STEP):
            with self._store.transaction() as transaction:
                for label in step:
                    is_as_read = unchanged(label, ReceiptWordLabel.validation_status)
                    transaction.update(label, *changes, when=is_as_read | is_moved)
            moved += len(step)
        return moved

    def relabel(self, label: ReceiptWordLabel, name: str) -> ReceiptWordLabel:
        """Replace a word's label with another that records the old name, in one transaction.

        If the word already has the new label, that one stays as it is. Repeating the call changes nothing.
        TransactionFailedError if the label has changed since it was read.
        """
        renamed = label.replace(label=name, label_consolidated_from=label.label)
        known = self._store.find(key_of(renamed))
        if known is not None and (name == label.label or self._store.find(key_of(label)) is None):
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
        """List the words that have a label, by image, receipt, line and number."""
        return self._store.query(ReceiptWordLabel.by_label(label=label))

    @access_pattern("List labels by validation status", index="GSI3")
    def list_by_status(self, status: str) -> Query[ReceiptWordLabel]:
        """List the labels in a validation status."""
        return self._store.query(ReceiptWordLabel.by_status(validation_status=status))

    @access_pattern("List the labels of a receipt")
    def list_by_receipt(self, image_id: str, receipt_id: int) -> Query[ReceiptWordLabel]:
        """List the labels of a receipt's words, in the order of the words."""
        return self._store.query(ReceiptWordLabel.key(image_id=image_id, receipt_id=receipt_id))

    @access_pattern("List the labels of all receipts", index="GSI2")
    def list_everywhere(self) -> Query[ReceiptWordLabel]:
        """List the labels of all receipts, by image, receipt, line and word."""
        return self._store.query(ReceiptWordLabel.everywhere())

    def keep_field(self, field: ReceiptField) -> ReceiptField:
        """Store the words of a field of a receipt and replace older ones."""
        self._store.put(field)
        return field

    @access_pattern("List a field over all receipts")
    def list_by_field(self, field_type: str) -> Query[ReceiptField]:
        """List a field of all receipts that have it."""
        return self._store.query(ReceiptField.key(field_type=field_type))

    @access_pattern("List the fields of a receipt", index="GSI1")
    def list_fields(self, image_id: str, receipt_id: int) -> Query[ReceiptField]:
        """List the fields of a receipt."""
        return self._store.query(ReceiptField.by_receipt(image_id=image_id, receipt_id=receipt_id))

    def keep_merchant(self, metadata: ReceiptMetadata) -> ReceiptMetadata:
        """Store the merchant of a receipt and replace an older one."""
        self._store.put(metadata)
        return metadata

    @access_pattern("List the receipts of a merchant", index="GSI1")
    def list_by_merchant(self, merchant_name: str) -> Query[ReceiptMetadata]:
        """List the receipts of a merchant."""
        return self._store.query(ReceiptMetadata.by_merchant(merchant_name=merchant_name))

    @access_pattern("List merchants by confidence", index="GSI2")
    def list_by_confidence(
        self, lowest: float = 0.0, highest: float = 1.0, *, most_sure_first: bool = False
    ) -> Query[ReceiptMetadata]:
        """List the receipts whose merchant match has a confidence within limits, by confidence."""
        limits = (lowest, highest)
        return self._store.query(ReceiptMetadata.by_confidence(), between=limits, newest_first=most_sure_first)


class LabelHygieneService:
    """Finds which labels are aliases of canonical ones, and renames them."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or store.clock
        self._labels = LabelService(store)

    def record(self, result: LabelHygieneResult) -> LabelHygieneResult:
        """Store a finding that a label is an alias of a canonical one."""
        if result.alias == result.canonical_label:
            raise ValueRefusedError(f"label {result.alias!r} cannot be an alias of itself")
        self._store.put(result)
        return result

    def describe(self, description: LabelMetadata) -> LabelMetadata:
        """Store the description of a canonical label."""
        self._store.put(description)
        return description

    @access_pattern("Get the description of a label")
    def find_description(self, label: str) -> LabelMetadata | None:
        """Return the description of a canonical label, if there is one."""
        return self._store.find(LabelMetadata.key(label=label))

    @access_pattern("List the labels of a target", index="GSI2")
    def list_by_target(self, label_target: str) -> Query[LabelMetadata]:
        """List the canonical labels for a target."""
        return self._store.query(LabelMetadata.by_target(label_target=label_target))

    @access_pattern("Get a label with its words and description", index="GSI1")
    def list_under_label(self, label: str) -> Query[Entity]:
        """List the words that have a label, followed by its description."""
        return self._store.collection(LabelMetadata.by_label(label=label))

    @access_pattern("List the findings under an id")
    def list_by_id(self, hygiene_id: str) -> Query[LabelHygieneResult]:
        """List the findings that were recorded under an id, by alias."""
        return self._store.query(LabelHygieneResult.key(hygiene_id=hygiene_id))

    @access_pattern("List the findings about an alias", index="GSI1")
    def list_by_alias(self, alias: str) -> Query[LabelHygieneResult]:
        """List the findings about an alias."""
        return self._store.query(LabelHygieneResult.by_alias(alias=alias))

    @access_pattern("List the aliases of a label", index="GSI2")
    def list_aliases(self, canonical_label: str) -> Query[LabelHygieneResult]:
        """List the findings that name a canonical label."""
        return self._store.query(LabelHygieneResult.by_canonical_label(canonical_label=canonical_label))

    def resolve(self, label: str) -> str:
        """Return the canonical label for a label according to the agreed findings, or the label itself.

        ConflictError if an alias has several canonical labels, or the aliases form a cycle.
        """
        seen = [label]
        while True:
            found = {result.canonical_label for result in self._findings(seen[-1]) if result.gpt_agreed}
            if not found:
                return seen[-1]
            if len(found) > 1:
                raise ConflictError(
                    f"{seen[-1]!r} is an alias of {', '.join(sorted(found))}; agree to only one of them"
                )
            (following,) = found
            if following in seen or len(seen) == _LONGEST_CHAIN:
                raise ConflictError(
                    f"the aliases {' -> '.join([*seen, following])} form a cycle or are too long a chain"
                )
            seen.append(following)

    def _findings(self, alias: str) -> Iterator[LabelHygieneResult]:
        """Return the findings about an alias as they are now, because the index may be out of date."""
        keys = (
            LabelHygieneResult.key(hygiene_id=each.hygiene_id, alias=alias, canonical_label=each.canonical_label)
            for each in self.list_by_alias(alias)
        )
        return (result for result in self._store.batch_get(keys) if result is not None)

    def consolidate(self, alias: str) -> int:
        """Rename an alias to its canonical label on every word and return their number.

        The description of the canonical label, if there is one, then lists the alias. After an interruption, repeat the
        call.
        """
        canonical = self.resolve(alias)
        if canonical == alias:
            return 0
        self._note_alias(canonical, alias)
        return sum(self._relabel(indexed, canonical) for indexed in self._labels.list_by_label(alias))

    def _relabel(self, indexed: ReceiptWordLabel, canonical: str) -> bool:
        def relabel(label: ReceiptWordLabel | None) -> bool:
            if label is None:  # the index may be out of date
                return False
            self._labels.relabel(label, canonical)
            return True

        what = f"relabel a word from {indexed.label} to {canonical}"
        return self._store.retrying(lambda: self._store.find(key_of(indexed)), relabel, what)

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
            return  # a concurrent call noted it
