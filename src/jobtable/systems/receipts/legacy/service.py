"""The verbs of the legacy table. A tag is both in the list of its word and an item, and the two always agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from jobtable.clock import Clock
from jobtable.model import Entity, unchanged
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern
from jobtable.systems.receipts.entities.record_bases import key_of
from jobtable.systems.receipts.legacy.entities import (
    GPTInitialTagging,
    GPTRecord,
    GPTValidation,
    Image,
    Line,
    Receipt,
    ReceiptWord,
    ReceiptWordTag,
    TagRecord,
    Word,
    WordTag,
)

W = TypeVar("W", Word, ReceiptWord)


class LegacyService:
    """Reads the legacy table and tags its words."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or store.clock

    # --- tags -------------------------------------------------------------------------------------------------------

    def set_tags(self, word: W, tags: Iterable[str]) -> W:
        """Give a word, as it was read, exactly these tags: its list and its tag items, in one transaction.

        TransactionFailedError if its tags have changed since it was read, except to these.
        """
        changed = word.replace(tags=_as_tags(word, tags))
        before = _as_tags(word, word.tags)
        may_change = unchanged(word, type(word).tags) | (type(word).tags == changed.tags)
        with self._store.transaction() as transaction:
            transaction.update(key_of(word), type(word).tags.set(changed.tags), when=may_change)
            for tag in changed.tags:
                if tag not in before:
                    transaction.put(self._tag_item(word, tag))
            for tag in before:
                if tag not in changed.tags:
                    transaction.delete(self._tag_item(word, tag))
        return changed

    def add_tag(self, word: W, tag: str) -> W:
        """Add a tag to a word; safe against concurrent changes."""
        return self._retag(word, add=(tag,))

    def remove_tag(self, word: W, tag: str) -> W:
        """Remove a tag from a word; safe against concurrent changes."""
        return self._retag(word, remove=_as_tags(word, [tag]))

    def _retag(self, word: W, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> W:
        def retag(current: W) -> W:
            before: list[str] = _as_tags(word, current.tags)
            return self.set_tags(current, [*(tag for tag in before if tag not in remove), *add])

        key = key_of(word)
        return self._store.retrying(lambda: self._store.get(key), retag, f"change the tags of {key}")

    def _tag_item(self, word: Word | ReceiptWord, tag: str) -> TagRecord:
        kind = ReceiptWordTag if isinstance(word, ReceiptWord) else WordTag
        return kind(**key_of(word).values, tag_name=tag, timestamp_added=self._clock.now())

    @access_pattern("List the words with a tag", index="GSI1")
    def list_words_by_tag(self, tag: str) -> Query[WordTag]:
        """List the words of images that have a tag."""
        return self._store.query(WordTag.by_tag(tag_name=tag))

    @access_pattern("List the receipt words with a tag", index="GSI1")
    def list_receipt_words_by_tag(self, tag: str) -> Query[ReceiptWordTag]:
        """List the words of receipts that have a tag."""
        return self._store.query(ReceiptWordTag.by_tag(tag_name=tag))

    @access_pattern("List the tags of all receipts", index="GSI2")
    def list_all_receipt_word_tags(self) -> Query[ReceiptWordTag]:
        """List the tags of the words of all receipts, by image, receipt, line and word."""
        return self._store.query(ReceiptWordTag.everywhere())

    # --- images and receipts ----------------------------------------------------------------------------------------

    @access_pattern("List all images", index="GSI1")
    def list_images(self) -> Query[Image]:
        """List all images by id."""
        return self._store.query(Image.everywhere())

    @access_pattern("List the lines of all images", index="GSI1")
    def list_all_lines(self) -> Query[Line]:
        """List the lines of all images, by image and number."""
        return self._store.query(Line.everywhere())

    @access_pattern("Get an image with everything under it")
    def list_under_image(self, image_id: str) -> Query[Entity]:
        """List an image and everything under it in key order, with one query."""
        return self._store.collection(Image.key(image_id=image_id))

    @access_pattern("List the receipts of an image", index="GSI1")
    def list_receipts(self, image_id: str) -> Query[Receipt]:
        """List the receipts on an image."""
        return self._store.query(Receipt.by_image(image_id=image_id))

    @access_pattern("List all receipts", index="GSI2")
    def list_all_receipts(self) -> Query[Receipt]:
        """List the receipts of all images."""
        return self._store.query(Receipt.everywhere())

    @access_pattern("List the words of all receipts", index="GSI2")
    def list_all_receipt_words(self) -> Query[ReceiptWord]:
        """List the words of all receipts."""
        return self._store.query(ReceiptWord.everywhere())

    @access_pattern("List what GPT was asked about a word's tag")
    def list_gpt_answers(self, word: ReceiptWord, tag: str) -> list[GPTRecord]:
        """List the initial tagging and the validation of a tag, with one query."""
        place = {**key_of(word).values, "tag": tag}
        found = self._store.collection(GPTInitialTagging.key(**place), until=GPTValidation.key(**place))
        return [entity for entity in found if isinstance(entity, GPTRecord)]


def _as_tags(word: Word | ReceiptWord, names: Iterable[str]) -> list[str]:
    """Return names as the tags of a word: in upper case, each once."""
    return list(dict.fromkeys(word.replace(tags=list(names)).tags))
