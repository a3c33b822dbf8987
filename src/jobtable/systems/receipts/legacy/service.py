"""Verbs of the legacy table: tags that stand in their word and as items of their own, always in step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.model import Entity, Selection, unchanged
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern
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
    """Reads the legacy table, and tags words in it."""

    def __init__(self, store: Store, clock: Clock = SYSTEM_CLOCK) -> None:
        self._store = store
        self._clock = clock

    # --- tags -------------------------------------------------------------------------------------------------------

    def set_tags(self, word: W, tags: Iterable[str]) -> W:
        """Give a word that was read exactly these tags: its list and its tag items, in one transaction.

        TransactionFailedError where its tags have changed since it was read, but to these.
        """
        changed = word.replace(tags=_as_tags(word, tags))
        before = _as_tags(word, word.tags)
        may_change = unchanged(word, type(word).tags) | (type(word).tags == changed.tags)
        with self._store.transaction() as transaction:
            transaction.update(_key_of(word), type(word).tags.set(changed.tags), when=may_change)
            for tag in changed.tags:
                if tag not in before:
                    transaction.put(self._tag_item(word, tag))
            for tag in before:
                if tag not in changed.tags:
                    transaction.delete(self._tag_item(word, tag))
        return changed

    def add_tag(self, word: W, tag: str) -> W:
        """Give a word one more tag, whatever others do to it meanwhile."""
        return self._change_tags(word, add=(tag,))

    def remove_tag(self, word: W, tag: str) -> W:
        """Take a tag from a word, whatever others do to it meanwhile."""
        return self._change_tags(word, remove=_as_tags(word, [tag]))

    def _change_tags(self, word: W, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> W:
        def retag(current: W) -> W:
            before: list[str] = _as_tags(word, current.tags)
            return self.set_tags(current, [*(tag for tag in before if tag not in remove), *add])

        key = _key_of(word)
        return self._store.retrying(lambda: self._store.get(key), retag, f"change the tags of {key}")

    def _tag_item(self, word: Word | ReceiptWord, tag: str) -> TagRecord:
        if isinstance(word, ReceiptWord):
            return ReceiptWordTag(
                image_id=word.image_id,
                receipt_id=word.receipt_id,
                line_id=word.line_id,
                word_id=word.word_id,
                tag_name=tag,
                timestamp_added=self._clock.now(),
            )
        return WordTag(
            image_id=word.image_id,
            line_id=word.line_id,
            word_id=word.word_id,
            tag_name=tag,
            timestamp_added=self._clock.now(),
        )

    @access_pattern("List the words with a tag", index="GSI1")
    def list_words_by_tag(self, tag: str) -> Query[WordTag]:
        """The words of images that have a tag."""
        return self._store.query(WordTag.by_tag(tag_name=tag))

    @access_pattern("List the receipt words with a tag", index="GSI1")
    def list_receipt_words_by_tag(self, tag: str) -> Query[ReceiptWordTag]:
        """The words of receipts that have a tag."""
        return self._store.query(ReceiptWordTag.by_tag(tag_name=tag))

    @access_pattern("List the tags of all receipts", index="GSI2")
    def list_all_receipt_word_tags(self) -> Query[ReceiptWordTag]:
        """The tags of the words of all receipts, by image, receipt, line and word."""
        return self._store.query(ReceiptWordTag.everywhere())

    # --- images and receipts ----------------------------------------------------------------------------------------

    @access_pattern("List all images", index="GSI1")
    def list_images(self) -> Query[Image]:
        """All images, in order of their ids."""
        return self._store.query(Image.everywhere())

    @access_pattern("List the lines of all images", index="GSI1")
    def list_all_lines(self) -> Query[Line]:
        """The lines of all images, by image and number."""
        return self._store.query(Line.everywhere())

    @access_pattern("Everything under an image")
    def list_under_image(self, image_id: str) -> Query[Entity]:
        """An image with everything under it, in key order, by one query."""
        return self._store.collection(Image.key(image_id=image_id))

    @access_pattern("List the receipts of an image", index="GSI1")
    def list_receipts(self, image_id: str) -> Query[Receipt]:
        """The receipts on an image."""
        return self._store.query(Receipt.by_image(image_id=image_id))

    @access_pattern("List all receipts", index="GSI2")
    def list_all_receipts(self) -> Query[Receipt]:
        """The receipts of all images."""
        return self._store.query(Receipt.everywhere())

    @access_pattern("List the words of all receipts", index="GSI2")
    def list_all_receipt_words(self) -> Query[ReceiptWord]:
        """The words of all receipts."""
        return self._store.query(ReceiptWord.everywhere())

    @access_pattern("What GPT was asked about a word's tag")
    def list_gpt_answers(self, word: ReceiptWord, tag: str) -> list[GPTRecord]:
        """The initial tagging and the validation of a tag, by one query."""
        place = {"image_id": word.image_id, "receipt_id": word.receipt_id, "line_id": word.line_id}
        place |= {"word_id": word.word_id, "tag": tag}
        found = self._store.collection(GPTInitialTagging.key(**place), until=GPTValidation.key(**place))
        return [entity for entity in found if isinstance(entity, GPTRecord)]


def _as_tags(word: Word | ReceiptWord, names: Iterable[str]) -> list[str]:
    """Names as the tags of a word: in upper case, each once."""
    return list(dict.fromkeys(word.replace(tags=list(names)).tags))


def _key_of(word: W) -> Selection[W]:
    values = {name: getattr(word, name) for name in type(word).__schema__.primary.inputs}
    return type(word).key(**values)
