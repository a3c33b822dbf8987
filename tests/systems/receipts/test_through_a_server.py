"""Receipts through a server."""

from __future__ import annotations

from tests.systems.receipts.pictures import ocr_result

from jobtable.app import Services
from jobtable.systems.receipts.ocr import OcrService


def test_receipts_are_stored_and_deleted(remote: Services) -> None:
    result = ocr_result("far-scan", receipts=2)
    written = remote.get(OcrService).store(result).written
    assert (written > 20, remote.get(OcrService).store(result).already_there) == (True, written)
    assert remote.get(OcrService).read_image("far-scan").image == result.image
    assert remote.get(OcrService).delete_image("far-scan") == written
    assert remote.get(OcrService).delete_image("far-scan") == 0
