"""OCR results: stored as a whole, read as a whole or in parts."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import ClassVar, NamedTuple, Self

from pydantic import ConfigDict

from jobtable.errors import ConflictError, NotFoundError, TransactionFailedError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.model import Entity, unchanged
from jobtable.store import Query, Store, Transaction, Undeclared
from jobtable.store.patterns import access_pattern
from jobtable.store.transactions import packed
from jobtable.systems.receipts.contents import ImageContents, ReceiptContents, image_contents, receipt_contents
from jobtable.systems.receipts.entities import (
    Image,
    ImageChange,
    Letter,
    Line,
    Receipt,
    ReceiptAnalysis,
    ReceiptField,
    ReceiptLetter,
    ReceiptLine,
    ReceiptMetadata,
    ReceiptWord,
    ReceiptWordLabel,
    Word,
)

Progress = Callable[[int, int], None]
"""Called with the number of items that are done, and of all items."""

_ITEMS_A_STEP = 90


@dataclass(frozen=True)
class OcrResult:
    """The OCR result of one image: the image, its text, and the receipts on it with their text."""

    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}
    """Rejects unknown members: a misspelt one would replace stored items with nothing."""

    image: Image
    lines: Sequence[Line] = ()
    words: Sequence[Word] = ()
    letters: Sequence[Letter] = ()
    receipts: Sequence[Receipt] = ()
    receipt_lines: Sequence[ReceiptLine] = ()
    receipt_words: Sequence[ReceiptWord] = ()
    receipt_letters: Sequence[ReceiptLetter] = ()

    def under_the_image(self) -> Iterator[Entity]:
        """Yield everything except the image itself."""
        return chain(
            self.lines,
            self.words,
            self.letters,
            self.receipts,
            self.receipt_lines,
            self.receipt_words,
            self.receipt_letters,
        )

    def check(self) -> None:
        """Raise ValueRefusedError if an item belongs to another image, is repeated, or lacks its parent."""
        seen: set[str] = set()
        partition = Image.__schema__.codec.key_of(self.image)["PK"]
        for entity in self.under_the_image():
            key = type(entity).__schema__.codec.key_of(entity)
            if key["PK"] != partition:
                key_text = f"{key['PK']['S']} {key['SK']['S']}"
                raise ValueRefusedError(
                    f"{key_text} does not belong to image {self.image.image_id}; store it with its own image"
                )
            if key["SK"]["S"] in seen:
                raise ValueRefusedError(f"{key['SK']['S']} is in the result of image {self.image.image_id} twice")
            seen.add(key["SK"]["S"])
        for name in seen:
            parent = "#".join(name.split("#")[:-2])
            if parent and parent not in seen:
                raise ValueRefusedError(f"{name} of image {self.image.image_id} is in the result without its {parent}")


@dataclass(frozen=True)
class StoredResult:
    """The number of items that storing a result changed."""

    written: int
    already_there: int
    removed: int = 0
    """Items that only an older result had, and what belonged to them."""


class OcrService:
    """Stores and reads OCR results."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @classmethod
    def of(cls, jobs: Jobs) -> Self:
        """Make the service on the store of the jobs."""
        return cls(jobs.store)

    def store(self, result: OcrResult, progress: Progress | None = None) -> StoredResult:
        """Store a whole result and replace an older one. After a crash, repeat the call to complete it.

        Writes what is missing or differs, and deletes what only the older result had: a word with its labels, a receipt
        with its merchant, fields and analyses. The image is deleted first and stored last, so an image that exists is
        complete. ConflictError if another call starts to store or delete the image meanwhile; the later call wins.
        """
        result.check()
        report = progress or (lambda _done, _total: None)
        plan = self._plan(result)
        if plan.is_done:
            report(plan.total, plan.total)
            return StoredResult(0, plan.kept + 1)
        change = _ImageWriter(self._store, result.image.image_id)
        plan = self._plan(result)  # from now on nobody else writes to the image
        if plan.has_image:  # a partial result must not look complete
            change.delete([result.image])
        done = plan.kept
        for apply, entities in ((change.put, plan.missing), (change.delete, plan.outdated)):
            for step in packed(entities, _ITEMS_A_STEP):
                apply(step)
                done += len(step)
                report(done, plan.total)
        change.end(result.image)
        report(plan.total, plan.total)
        return StoredResult(len(plan.missing) + 1, plan.kept, len(plan.outdated))

    def _plan(self, result: OcrResult) -> _Plan:
        image_id = result.image.image_id
        there = {_name(e): e for e in self._store.collection(Image.key(image_id=image_id))}
        under = list(result.under_the_image())
        missing = [entity for entity in under if there.get(_name(entity)) != entity]
        outdated = list(_outdated(chain(there.values(), self._fields(image_id)), result))
        image = there.get(_name(result.image))
        return _Plan(missing, outdated, len(under) - len(missing), image is not None, image == result.image)

    @access_pattern("Get an image with everything under it")
    def read_image(self, image_id: str) -> ImageContents:
        """Return an image with everything under it, with one query, or raise NotFoundError."""
        contents = image_contents(self._store.collection(Image.key(image_id=image_id)))
        if contents.image is None:
            raise NotFoundError(
                f"image {image_id} does not exist, or its OCR result is incomplete", kind="image", key=image_id
            )
        return contents

    @access_pattern("Get a receipt with everything under it")
    def read_receipt(self, image_id: str, receipt_id: int) -> ReceiptContents:
        """Return a receipt with everything under it, with one query, or raise NotFoundError."""
        first = Receipt.key(image_id=image_id, receipt_id=receipt_id)
        last = ReceiptMetadata.key(image_id=image_id, receipt_id=receipt_id)
        contents = receipt_contents(self._store.collection(first, until=last))
        if contents.receipt is None:
            raise NotFoundError(f"image {image_id} has no receipt {receipt_id}")
        return contents

    def list_under_receipts(self, image_id: str) -> Query[Entity]:
        """List the receipts on an image and everything under them, in key order."""
        receipts = Receipt.key(image_id=image_id)
        return self._store.collection(receipts, until=receipts)

    def get_image(self, image_id: str) -> Image:
        """Return an image without its contents, or raise NotFoundError."""
        return self._store.get(Image.key(image_id=image_id))

    @access_pattern("List all images", index="GSITYPE")
    def list_images(self) -> Query[Image]:
        """List all images, in no particular order."""
        return self._store.query(Image.by_type())

    @access_pattern("List the lines of an image", index="GSI1")
    def list_lines(self, image_id: str) -> Query[Line]:
        """List the lines of an image in order, without reading its words and letters."""
        return self._store.query(Line.by_image(image_id=image_id))

    @access_pattern("List the words of a line")
    def list_words(self, image_id: str, line_id: int) -> Query[Word]:
        """List the words of a line in order."""
        return self._store.query(Word.key(image_id=image_id, line_id=line_id))

    @access_pattern("List the letters of a word")
    def list_letters(self, image_id: str, line_id: int, word_id: int) -> Query[Letter]:
        """List the letters of a word in order."""
        return self._store.query(Letter.key(image_id=image_id, line_id=line_id, word_id=word_id))

    @access_pattern("List the receipts of an image", index="GSI1")
    def list_receipts(self, image_id: str) -> Query[Receipt]:
        """List the receipts on an image."""
        return self._store.query(Receipt.by_image(image_id=image_id))

    @access_pattern("List the lines of a receipt")
    def list_receipt_lines(self, image_id: str, receipt_id: int) -> Query[ReceiptLine]:
        """List the lines of a receipt in order. Their words and letters lie between them and are read as well."""
        return self._store.query(ReceiptLine.key(image_id=image_id, receipt_id=receipt_id))

    @access_pattern("List the words of a line of a receipt")
    def list_words_of_receipt(self, image_id: str, receipt_id: int, line_id: int) -> Query[ReceiptWord]:
        """List the words of a receipt's line in order."""
        return self._store.query(ReceiptWord.key(image_id=image_id, receipt_id=receipt_id, line_id=line_id))

    @access_pattern("List the letters of a word of a receipt")
    def list_letters_of_receipt(
        self, image_id: str, receipt_id: int, line_id: int, word_id: int
    ) -> Query[ReceiptLetter]:
        """List the letters of a receipt's word in order."""
        word = {"image_id": image_id, "receipt_id": receipt_id, "line_id": line_id, "word_id": word_id}
        return self._store.query(ReceiptLetter.key(**word))

    @access_pattern("List an image with its lines, receipts and fields", index="GSI1")
    def list_outline(self, image_id: str) -> Query[Entity]:
        """List an image, its lines, its receipts and their fields, without reading words and letters."""
        return self._store.collection(Image.by_image(image_id=image_id))

    @access_pattern("List the receipts of an image with their words", index="GSI3")
    def list_receipts_with_words(self, image_id: str) -> Query[Entity]:
        """List the receipts on an image, each before its words, without reading lines and letters."""
        return self._store.collection(Receipt.with_words(image_id=image_id))

    @access_pattern("List all receipts", index="GSI2")
    def list_all_receipts(self) -> Query[Receipt]:
        """List the receipts of all images, by image and number.

        Their words and labels lie between them in the index and are read as well; `Receipt.by_type()` avoids that.
        """
        return self._store.query(Receipt.everywhere())

    @access_pattern("List the words of all receipts", index="GSI2")
    def list_all_receipt_words(self) -> Query[ReceiptWord]:
        """List the words of the receipts of all images, by image, receipt, line and number."""
        return self._store.query(ReceiptWord.everywhere())

    @access_pattern("List the receipt words of an image", index="GSI3")
    def list_receipt_words(self, image_id: str, *, most_confidence: float | None = None) -> Query[ReceiptWord]:
        """List the words of an image's receipts, without reading letters, optionally up to a confidence."""
        where = None if most_confidence is None else ReceiptWord.confidence <= most_confidence
        return self._store.query(ReceiptWord.by_image(image_id=image_id), where=where)

    def delete_image(self, image_id: str) -> int:
        """Delete an image and everything under it, and return the number of items.

        The image is deleted first, so a partial result never looks complete. Items of unknown kinds stay. ConflictError
        if another call starts to store or delete the image meanwhile. A receipt's field that was stored just now may
        be missed, because only an index finds it; repeat the call to delete it.
        """
        change = _ImageWriter(self._store, image_id)
        deleted = 0
        while some := change.delete_all(self._declared(image_id)):  # others may add items until none is left
            deleted += some
        deleted += change.delete_all(self._fields(image_id))  # last, because the index may be late
        change.end()
        return deleted

    def _declared(self, image_id: str) -> Iterator[Entity]:
        under = self._store.collection(Image.key(image_id=image_id))
        return (entity for entity in under if not isinstance(entity, Undeclared | ImageChange))

    def _fields(self, image_id: str) -> Query[ReceiptField]:
        """List the fields of an image's receipts, which lie in partitions of their own."""
        return self._store.query(ReceiptField.by_receipt(image_id=image_id))


class _Plan(NamedTuple):
    """The changes that store a result."""

    missing: list[Entity]
    outdated: list[Entity]
    kept: int
    """The number of items under the image that stay as they are."""
    has_image: bool
    is_same_image: bool

    @property
    def is_done(self) -> bool:
        return self.is_same_image and not self.missing and not self.outdated

    @property
    def total(self) -> int:
        return self.kept + len(self.missing) + len(self.outdated) + 1


class _ImageWriter:
    """Writes under an image in steps, which fail once another writer of the image starts, so no two results mix."""

    def __init__(self, store: Store, image_id: str) -> None:
        self._store = store
        self._own = ImageChange(image_id=image_id, change_id=str(uuid.uuid4()))
        self._is_latest = unchanged(self._own, ImageChange.change_id)
        store.put(self._own)

    def put(self, entities: Iterable[Entity]) -> None:
        with self._transaction() as transaction:
            transaction.check(self._own, self._is_latest)
            for entity in entities:
                transaction.put(entity)

    def delete(self, entities: Iterable[Entity]) -> None:
        with self._transaction() as transaction:
            transaction.check(self._own, self._is_latest)
            for entity in entities:
                transaction.delete(entity)

    def delete_all(self, entities: Iterable[Entity]) -> int:
        waiting, deleted = iter(entities), 0
        while step := list(islice(waiting, _ITEMS_A_STEP)):
            self.delete(step)
            deleted += len(step)
        return deleted

    def end(self, image: Image | None = None) -> None:
        """Finish, and store the image if it is complete now."""
        with self._transaction() as transaction:
            transaction.delete(self._own, when=self._is_latest)
            if image is not None:
                transaction.put(image)

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        try:
            with self._store.transaction() as transaction:
                yield transaction
        except TransactionFailedError as error:
            raise ConflictError(
                f"another call stored or deleted image {self._own.image_id} meanwhile; repeat the call if it should win"
            ) from error


def _outdated(there: Iterable[Entity], result: OcrResult) -> Iterator[Entity]:
    """Yield the stored items of an image that its new result does not have. Items of other kinds stay."""
    names = {_name(entity) for entity in result.under_the_image()}
    words = {(word.receipt_id, word.line_id, word.word_id) for word in result.receipt_words}
    receipts = {receipt.receipt_id for receipt in result.receipts}
    for entity in there:
        match entity:
            case Line() | Word() | Letter() | Receipt() | ReceiptLine() | ReceiptWord() | ReceiptLetter():
                is_kept = _name(entity) in names
            case ReceiptWordLabel():
                is_kept = (entity.receipt_id, entity.line_id, entity.word_id) in words
            case ReceiptMetadata() | ReceiptAnalysis() | ReceiptField():
                is_kept = entity.receipt_id in receipts
            case _:
                is_kept = True
        if not is_kept:
            yield entity


def _name(entity: Entity) -> str:
    """Return the sort key, which identifies an item under one image."""
    return "" if isinstance(entity, Undeclared) else str(type(entity).__schema__.codec.key_of(entity)["SK"]["S"])
