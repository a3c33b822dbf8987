"""The pages of images and the receipts on them."""

from __future__ import annotations

from collections.abc import Container
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response

from jobtable.systems.receipts.contents import ReceiptContents, image_contents
from jobtable.systems.receipts.entities import (
    Receipt,
    ReceiptAnalysis,
    ReceiptLineItemAnalysis,
    ReceiptValidationResult,
    ReceiptValidationSummary,
)
from jobtable.systems.receipts.entities.record_bases import ImagePoint, Picture
from jobtable.systems.receipts.ocr import OcrService
from jobtable.web.guard import READ, PageRoute, allow
from jobtable.web.injection import TheObjects, TheStore, path_id
from jobtable.web.pages.frame import find_gone, picture_address, render

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_PAGE = 50
_MOST_ITEMS = 10_000
"""The most items under the receipts of an image that a page reads; a receipt has some hundreds."""


@router.get("/receipts")
@allow(READ)
def show_receipts(request: Request, store: TheStore, cursor: str = "") -> Response:
    """Show all receipts, listed by type, because their index also contains all words."""
    page = store.query(Receipt.by_type()).page(cursor or None, size=_PAGE)
    receipts = sorted(page.items, key=lambda each: (each.image_id, each.receipt_id))
    keys = [ReceiptValidationSummary.key(image_id=each.image_id, receipt_id=each.receipt_id) for each in receipts]
    validations = store.batch_get(keys)
    return render(
        request,
        "receipts/receipts.html",
        title="Receipts",
        rows=list(zip(receipts, validations, strict=True)),
        cursor=page.cursor,
        is_first=not cursor,
    )


@router.get("/receipts/{image_id}")
@allow(READ)
def show_image(
    request: Request, image_id: Annotated[str, path_id("3f52804b")], store: TheStore, objects: TheObjects
) -> Response:
    """Show the receipts of an image with the boxes of their words, line items and validations."""
    ocr = OcrService(store)
    image = ocr.get_image(image_id)
    under = list(ocr.list_under_receipts(image_id).take(_MOST_ITEMS + 1))
    receipts = image_contents(under[:_MOST_ITEMS]).receipts
    gone = find_gone(objects, (each.receipt.s3_key for each in receipts.values() if each.receipt))
    return render(
        request,
        "receipts/receipt.html",
        title=f"Image {image_id}",
        image=image,
        receipts=[_shown(number, each, gone) for number, each in sorted(receipts.items())],
        most=_MOST_ITEMS if len(under) > _MOST_ITEMS else None,
    )


def _shown(number: int, contents: ReceiptContents, gone: Container[str]) -> dict[str, Any]:
    labels: dict[tuple[int, int], list[Any]] = {}
    for label in contents.labels:
        labels.setdefault((label.line_id, label.word_id), []).append(label)
    picture = contents.receipt
    is_gone = picture is not None and picture.s3_key in gone

    def first(kind: type[ReceiptAnalysis]) -> ReceiptAnalysis | None:
        return next((each for each in contents.analyses if isinstance(each, kind)), None)

    return {
        "number": number,
        "receipt": picture,
        "picture": picture_address(picture.s3_key) if picture and not is_gone else None,
        "is_gone": is_gone,
        "metadata": contents.metadata,
        "words": [
            (word, _corners(word, picture), labels.get((word.line_id, word.word_id), [])) for word in contents.words
        ],
        "labels": contents.labels,
        "line_items": first(ReceiptLineItemAnalysis),
        "validation": first(ReceiptValidationSummary),
        "results": [each for each in contents.analyses if isinstance(each, ReceiptValidationResult)],
    }


def _corners(word: Any, picture: Picture | None) -> str:
    """Return the corners of a word in pixels. Some programs store fractions of the picture, from its bottom."""
    corners: list[ImagePoint] = [word.top_left, word.top_right, word.bottom_right, word.bottom_left]
    is_fraction = all(0 <= value <= 1 for corner in corners for value in (corner.x, corner.y))
    width, height = (picture.width, picture.height) if picture is not None and is_fraction else (1, 1)
    is_from_bottom = word.top_left.y > word.bottom_left.y
    return " ".join(
        f"{corner.x * width:.1f},{(1 - corner.y if is_fraction and is_from_bottom else corner.y) * height:.1f}"
        for corner in corners
    )
