"""Images and the receipts on them: what OCR has read, stored and read as a whole or in parts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query
from pydantic import BaseModel, Field

from jobtable.systems.receipts.contents import ReceiptContents
from jobtable.systems.receipts.entities import (
    Image,
    Letter,
    Line,
    Receipt,
    ReceiptLetter,
    ReceiptLine,
    ReceiptMetadata,
    ReceiptWord,
    ReceiptWordLabel,
    Word,
)
from jobtable.systems.receipts.ocr import OcrResult, OcrService
from jobtable.web.api.parts import Body, Written, api_router, with_kind
from jobtable.web.dependencies import PageOf, Paging, TheStore, path_id
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.limits import takes_file

router = api_router("receipts")

ImageId = Annotated[str, path_id("3f52804b-2fad-4e00-92c8-b593da3a8ed3")]
Number = Annotated[int, Path(ge=0, le=99_999, examples=[1])]
_MOST = 50_000


async def _ocr(store: TheStore) -> OcrService:
    return OcrService(store)


TheOcr = Annotated[OcrService, Depends(_ocr)]


class OcrBody(Body):
    """What OCR has read from one image."""

    image: Image
    lines: list[Line] = Field([], max_length=_MOST)
    words: list[Word] = Field([], max_length=_MOST)
    letters: list[Letter] = Field([], max_length=_MOST)
    receipts: list[Receipt] = Field([], max_length=_MOST)
    receipt_lines: list[ReceiptLine] = Field([], max_length=_MOST)
    receipt_words: list[ReceiptWord] = Field([], max_length=_MOST)
    receipt_letters: list[ReceiptLetter] = Field([], max_length=_MOST)


class StoredResult(BaseModel):
    """What storing a result did."""

    written: int
    already_there: int
    removed: int


class WholeReceipt(BaseModel):
    """A receipt and what lies under it, letters left out; analyses with the names of their kinds."""

    receipt: Receipt | None
    metadata: ReceiptMetadata | None
    lines: list[ReceiptLine]
    words: list[ReceiptWord]
    labels: list[ReceiptWordLabel]
    analyses: list[dict[str, Any]]


class WholeImage(BaseModel):
    """An image, its lines and words, and the receipts on it."""

    image: Image
    lines: list[Line]
    words: list[Word]
    receipts: list[WholeReceipt]


@router.put("/images")
@allow(WRITE)
@takes_file(whole=True)
def store_result(body: OcrBody, ocr: TheOcr) -> StoredResult:
    """Store a whole OCR result, in place of an older one. The same request again writes what is missing or differs."""
    result = OcrResult(**{name: getattr(body, name) for name in OcrBody.model_fields})
    stored = ocr.store(result)
    return StoredResult(written=stored.written, already_there=stored.already_there, removed=stored.removed)


@router.get("/images")
@allow(READ)
def list_images(ocr: TheOcr, paging: Paging) -> PageOf[Image]:
    """All images, in no order."""
    return paging.page(ocr.list_images())


@router.get("/images/{image_id}")
@allow(READ)
def get_image(image_id: ImageId, ocr: TheOcr) -> Image:
    """The image alone."""
    return ocr.get_image(image_id)


@router.get("/images/{image_id}/contents")
@allow(READ)
def read_image(image_id: ImageId, ocr: TheOcr) -> WholeImage:
    """An image with everything under it but its letters, by one query."""
    contents = ocr.read_image(image_id)
    receipts = [_whole(each) for _, each in sorted(contents.receipts.items())]
    image = ocr.get_image(image_id) if contents.image is None else contents.image
    return WholeImage(image=image, lines=contents.lines, words=contents.words, receipts=receipts)


@router.delete("/images/{image_id}")
@allow(WRITE)
def delete_image(image_id: ImageId, ocr: TheOcr) -> Written:
    """Delete an image and everything under it; gives the number of items."""
    return Written(count=ocr.delete_image(image_id))


@router.get("/images/{image_id}/lines")
@allow(READ)
def list_lines(image_id: ImageId, ocr: TheOcr, paging: Paging) -> PageOf[Line]:
    """The lines of an image in order."""
    return paging.page(ocr.list_lines(image_id))


@router.get("/images/{image_id}/lines/{line_id}/words")
@allow(READ)
def list_words(image_id: ImageId, line_id: Number, ocr: TheOcr, paging: Paging) -> PageOf[Word]:
    """The words of a line in order."""
    return paging.page(ocr.list_words(image_id, line_id))


@router.get("/images/{image_id}/lines/{line_id}/words/{word_id}/letters")
@allow(READ)
def list_letters(image_id: ImageId, line_id: Number, word_id: Number, ocr: TheOcr, paging: Paging) -> PageOf[Letter]:
    """The letters of a word in order."""
    return paging.page(ocr.list_letters(image_id, line_id, word_id))


@router.get("/images/{image_id}/receipts")
@allow(READ)
def list_receipts(image_id: ImageId, ocr: TheOcr, paging: Paging) -> PageOf[Receipt]:
    """The receipts on an image."""
    return paging.page(ocr.list_receipts(image_id))


@router.get("/images/{image_id}/receipts/{receipt_id}")
@allow(READ)
def read_receipt(image_id: ImageId, receipt_id: Number, ocr: TheOcr) -> WholeReceipt:
    """A receipt with everything under it but its letters, by one query."""
    return _whole(ocr.read_receipt(image_id, receipt_id))


@router.get("/images/{image_id}/receipts/{receipt_id}/lines")
@allow(READ)
def list_receipt_lines(image_id: ImageId, receipt_id: Number, ocr: TheOcr, paging: Paging) -> PageOf[ReceiptLine]:
    """The lines of a receipt in order."""
    return paging.page(ocr.list_receipt_lines(image_id, receipt_id))


@router.get("/images/{image_id}/receipts/{receipt_id}/lines/{line_id}/words")
@allow(READ)
def list_words_of_receipt(
    image_id: ImageId, receipt_id: Number, line_id: Number, ocr: TheOcr, paging: Paging
) -> PageOf[ReceiptWord]:
    """The words of a receipt's line in order."""
    return paging.page(ocr.list_words_of_receipt(image_id, receipt_id, line_id))


@router.get("/images/{image_id}/receipts/{receipt_id}/lines/{line_id}/words/{word_id}/letters")
@allow(READ)
def list_letters_of_receipt(
    image_id: ImageId, receipt_id: Number, line_id: Number, word_id: Number, ocr: TheOcr, paging: Paging
) -> PageOf[ReceiptLetter]:
    """The letters of a receipt's word in order."""
    return paging.page(ocr.list_letters_of_receipt(image_id, receipt_id, line_id, word_id))


@router.get("/images/{image_id}/receipt-words")
@allow(READ)
def list_receipt_words(
    image_id: ImageId,
    ocr: TheOcr,
    paging: Paging,
    most_confidence: Annotated[float | None, Query(ge=0, le=1, description="Only words less sure than this.")] = None,
) -> PageOf[ReceiptWord]:
    """The words of an image's receipts."""
    return paging.page(ocr.list_receipt_words(image_id, most_confidence=most_confidence))


@router.get("/receipts")
@allow(READ)
def list_all_receipts(ocr: TheOcr, paging: Paging) -> PageOf[Receipt]:
    """The receipts of all images, by image and number."""
    return paging.page(ocr.list_all_receipts())


@router.get("/receipt-words")
@allow(READ)
def list_all_receipt_words(ocr: TheOcr, paging: Paging) -> PageOf[ReceiptWord]:
    """The words of the receipts of all images."""
    return paging.page(ocr.list_all_receipt_words())


def _whole(contents: ReceiptContents) -> WholeReceipt:
    return WholeReceipt(
        receipt=contents.receipt,
        metadata=contents.metadata,
        lines=contents.lines,
        words=contents.words,
        labels=contents.labels,
        analyses=[with_kind(each) for each in contents.analyses],
    )
