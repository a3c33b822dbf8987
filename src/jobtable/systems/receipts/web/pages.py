"""Images and the receipts on them, with what was read, labelled and validated."""

from __future__ import annotations

from collections.abc import Container
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response

from jobtable.systems.receipts.contents import ReceiptContents, image_contents
from jobtable.systems.receipts.entities import (
    Receipt,
    ReceiptLineItemAnalysis,
    ReceiptValidationResult,
    ReceiptValidationSummary,
)
from jobtable.systems.receipts.geometry import Point
from jobtable.systems.receipts.ocr import OcrService
from jobtable.systems.receipts.records import Picture
from jobtable.web.dependencies import TheObjects, TheStore, path_id
from jobtable.web.guard import READ, PageRoute, allow
from jobtable.web.pages.frame import find_gone, picture_address, render

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_PAGE = 50
_MOST_ITEMS = 10_000
"""Lines, words, letters and what belongs to them; a receipt has some hundreds."""


@router.get("/receipts")
@allow(READ)
def show_receipts(request: Request, store: TheStore, cursor: str = "") -> Response:
    """All receipts. By their type: in their order stand the words of all of them as well."""
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
    """One image: its receipts with the boxes of their words, line items and validations."""
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
    return {
        "number": number,
        "receipt": picture,
        "picture": picture_address(picture.s3_key) if picture and picture.s3_key not in gone else None,
        "is_gone": picture is not None and picture.s3_key in gone,
        "metadata": contents.metadata,
        "words": [
            (word, _corners(word, picture), labels.get((word.line_id, word.word_id), [])) for word in contents.words
        ],
        "labels": contents.labels,
        "names": sorted({label.label for label in contents.labels}),
        "line_items": next((each for each in contents.analyses if isinstance(each, ReceiptLineItemAnalysis)), None),
        "validation": next((each for each in contents.analyses if isinstance(each, ReceiptValidationSummary)), None),
        "results": [each for each in contents.analyses if isinstance(each, ReceiptValidationResult)],
    }


def _corners(word: Any, picture: Picture | None) -> str:
    """The corners of a word in the picture's pixels. Some programs count in fractions, from the bottom."""
    corners: list[Point] = [word.top_left, word.top_right, word.bottom_right, word.bottom_left]
    is_fraction = all(0 <= value <= 1 for corner in corners for value in (corner.x, corner.y))
    width, height = (picture.width, picture.height) if picture is not None and is_fraction else (1, 1)
    is_from_bottom = word.top_left.y > word.bottom_left.y
    return " ".join(
        f"{corner.x * width:.1f},{(1 - corner.y if is_fraction and is_from_bottom else corner.y) * height:.1f}"
        for corner in corners
    )
