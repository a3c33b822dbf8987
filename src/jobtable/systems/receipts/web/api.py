"""Images and the receipts on them: OCR results, stored as a whole, read as a whole or in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Path, Query
from pydantic import BaseModel, Field

from jobtable.store import Store
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
from jobtable.systems.receipts.ocr import OcrResult, OcrService, StoredResult
from jobtable.web.api.route_parts import Body, api_router, with_kind
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.injection import TheStore, path_id
from jobtable.web.limits import takes_file

router = api_router("receipts")

ImageId = Annotated[str, path_id("3f52804b-2fad-4e00-92c8-b593da3a8ed3")]
Number = Annotated[int, Path(ge=0, le=99_999, examples=[1])]
RECEIPT_PATH = "/images/{image_id}/receipts/{receipt_id}"
RECEIPT: dict[str, Any] = {"image_id": ImageId, "receipt_id": Number}
"""The parameters of routes under a receipt."""
_MOST = 50_000


def on_store(kind: Callable[[Store], Any]) -> Any:
    """Make a dependency on a service that needs only the store."""

    async def get(store: TheStore) -> Any:
        return kind(store)

    return Depends(get)


TheOcr = Annotated[OcrService, on_store(OcrService)]


class OcrBody(Body):
    """The OCR result of one image."""

    image: Image
    lines: list[Line] = Field([], max_length=_MOST)
    words: list[Word] = Field([], max_length=_MOST)
    letters: list[Letter] = Field([], max_length=_MOST)
    receipts: list[Receipt] = Field([], max_length=_MOST)
    receipt_lines: list[ReceiptLine] = Field([], max_length=_MOST)
    receipt_words: list[ReceiptWord] = Field([], max_length=_MOST)
    receipt_letters: list[ReceiptLetter] = Field([], max_length=_MOST)


class WholeReceipt(BaseModel):
    """A receipt and everything under it except letters; each analysis names its kind as `entity`."""

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
    """Store a whole OCR result and replace an older one. Repeating the request writes what is missing or differs."""
    return ocr.store(OcrResult(**dict(body)))


@router.get("/images/{image_id}/contents")
@allow(READ)
def read_image(image_id: ImageId, ocr: TheOcr) -> WholeImage:
    """Return an image with everything under it except letters, with one query."""
    contents = ocr.read_image(image_id)
    receipts = [_whole(each) for _, each in sorted(contents.receipts.items())]
    image = contents.image or ocr.get_image(image_id)
    return WholeImage(image=image, lines=contents.lines, words=contents.words, receipts=receipts)


@router.get(RECEIPT_PATH)
@allow(READ)
def read_receipt(image_id: ImageId, receipt_id: Number, ocr: TheOcr) -> WholeReceipt:
    """Return a receipt with everything under it except letters, with one query."""
    return _whole(ocr.read_receipt(image_id, receipt_id))


def _whole(contents: ReceiptContents) -> WholeReceipt:
    values: dict[str, Any] = {**vars(contents), "analyses": [with_kind(each) for each in contents.analyses]}
    return WholeReceipt(**values)


add_verbs(
    router,
    TheOcr,
    RECEIPT
    | {
        "line_id": Number,
        "word_id": Number,
        "most_confidence": Annotated[
            float | None, Query(ge=0, le=1, description="Only words with at most this confidence.")
        ],
    },
    ("list_images", "GET /images", OcrService.list_images),
    ("get_image", "GET /images/{image_id}", OcrService.get_image),
    ("delete_image", "DELETE /images/{image_id}", OcrService.delete_image),
    ("list_lines", "GET /images/{image_id}/lines", OcrService.list_lines),
    ("list_words", "GET /images/{image_id}/lines/{line_id}/words", OcrService.list_words),
    ("list_letters", "GET /images/{image_id}/lines/{line_id}/words/{word_id}/letters", OcrService.list_letters),
    ("list_receipts", "GET /images/{image_id}/receipts", OcrService.list_receipts),
    ("list_receipt_lines", f"GET {RECEIPT_PATH}/lines", OcrService.list_receipt_lines),
    ("list_words_of_receipt", f"GET {RECEIPT_PATH}/lines/{{line_id}}/words", OcrService.list_words_of_receipt),
    (
        "list_letters_of_receipt",
        f"GET {RECEIPT_PATH}/lines/{{line_id}}/words/{{word_id}}/letters",
        OcrService.list_letters_of_receipt,
    ),
    ("list_receipt_words", "GET /images/{image_id}/receipt-words", OcrService.list_receipt_words),
    ("list_all_receipts", "GET /receipts", OcrService.list_all_receipts),
    ("list_all_receipt_words", "GET /receipt-words", OcrService.list_all_receipt_words),
)
