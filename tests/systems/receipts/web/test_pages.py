"""The pages of receipts."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest
from tests.systems.receipts.pictures import ocr_result
from tests.web.conftest import Served

from jobtable.errors import ObjectStoreUnavailable
from jobtable.objects import ListedObject
from jobtable.systems.receipts.ocr import OcrService
from jobtable.systems.receipts.web import pages as receipts


def test_a_receipt_of_which_only_the_text_is_known_has_a_page(served: Served, pages: httpx.Client) -> None:
    image_id = "0b1f7a52-5b7e-4a43-8d0e-2f9a3f9f8a11"
    OcrService(served.services.store).store(ocr_result(image_id))
    answer = pages.get(f"/receipts/{image_id}")
    assert answer.status_code == 200
    assert "No analyses yet" in answer.text


def _store_receipts(served: Served, image_id: str, *keys: str) -> str:
    """Receipts of two words each, of one image, whose own images have those keys; gives the address of their page."""
    found = ocr_result(image_id, lines=1, words=2, receipts=len(keys))
    pictured = [each.replace(s3_key=key) for each, key in zip(found.receipts, keys, strict=True)]
    OcrService(served.services.store).store(replace(found, receipts=pictured))
    return f"/receipts/{image_id}"


def test_a_receipt_whose_image_is_gone_says_so_and_shows_the_rest(served: Served, pages: httpx.Client) -> None:
    served.services.objects.put("scans/kept.png", b"a picture")
    path = _store_receipts(served, "lost", "scans/lost <1>.png", "scans/kept.png", "../outside.png")
    lost, kept, outside = pages.get(path).text.split('<section class="card"')[1:]
    assert "<code>scans/lost &lt;1&gt;.png</code>" in lost
    assert "<code>../outside.png</code>" in outside
    for shown in (lost, outside):
        assert "The image is no longer in the object store" in shown
        assert "<image" not in shown
        assert shown.count("<polygon") == 2
    assert "not in the object store" not in kept
    assert 'href="/api/v1/objects/scans/kept.png"' in kept


def test_where_object_storage_is_away_no_image_is_told_to_be_gone(
    served: Served, pages: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def describe(key: str) -> ListedObject:
        asked.append(key)
        raise ObjectStoreUnavailable(f"{key} cannot be asked for")

    path = _store_receipts(served, "unknown", "scans/1.png", "scans/2.png")
    monkeypatch.setattr(served.services.objects, "describe", describe)
    shown = pages.get(path).text
    assert "not in the object store" not in shown
    assert (shown.count("<image"), asked) == (2, ["scans/1.png"])


def test_of_a_very_long_receipt_the_beginning_is_shown(
    served: Served, pages: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    OcrService(served.services.store).store(ocr_result("long", lines=1, words=9, letters=1))
    assert pages.get("/receipts/long").text.count("<polygon") == 9
    monkeypatch.setattr(receipts, "_MOST_ITEMS", 8)
    shown = pages.get("/receipts/long").text
    assert shown.count("<polygon") == 3
    assert "Shows the first 8 items" in shown
