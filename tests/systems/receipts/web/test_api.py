"""Receipts by the API."""

from __future__ import annotations

from typing import Any

import pytest
from tests.systems.receipts.pictures import ocr_result
from tests.web.conftest import Served

from jobtable.systems.receipts.entities import ReceiptChatGPTValidation, ResultType
from jobtable.systems.receipts.ocr import OcrService
from jobtable.systems.receipts.validation import Finding, ValidationService


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("validations", {"overall_status": "NEEDS_REVIEW"}),
        ("validation-fields", {"field_name": "total", "status": "NEEDS_REVIEW"}),
        ("validation-results", {"field_name": "total", "message": "odd"}),
        ("second-passes", {"revised_status": "NEEDS_REVIEW"}),
    ],
)
def test_all_parts_of_validations_are_listed_by_time(open_server: Served, kind: str, told: dict[str, Any]) -> None:
    validation = ValidationService(open_server.services.store)
    image_id = f"listed-{kind}"
    validation.start(image_id, 1, version="1")
    validation.add_findings(image_id, 1, "total", [Finding(ResultType.WARNING, "odd")])
    moment = validation.get_summary(image_id, 1).validation_timestamp
    validation.second_pass(
        ReceiptChatGPTValidation(
            image_id=image_id, receipt_id=1, timestamp=moment, original_status="VALID", revised_status="NEEDS_REVIEW"
        )
    )
    client = open_server.client()
    page = client.get(f"/api/v1/analyses/{kind}", params={"newest_first": True, "limit": 100}).json()
    (found,) = (each for each in page["items"] if each["image_id"] == image_id)
    assert told.items() <= found.items()
    later = client.get(f"/api/v1/analyses/{kind}", params={"after": "2999-01-01T00:00:00Z"}).json()
    assert later["items"] == []


def test_a_validation_is_deleted_and_begins_anew(open_server: Served) -> None:
    client, address = open_server.client(), "/api/v1/images/validated-twice/receipts/1/validation"
    assert client.post(address, json={"version": "1"}).status_code == 201
    assert client.post(address, json={"version": "2"}).status_code == 409
    assert client.delete(address).json() == {"count": 1}
    assert client.delete(address).status_code == 404
    assert client.post(address, json={"version": "2"}).json()["version"] == "2"


def test_a_receipt_is_read_down_to_its_letters(open_server: Served) -> None:
    OcrService(open_server.services.store).store(ocr_result("spelt", lines=2, words=2, letters=3, receipts=2))
    client, address = open_server.client(), "/api/v1/images/spelt/receipts/2/lines"
    for path, member, count in ((address, "line_id", 2), (f"{address}/1/words", "word_id", 2)):
        found = client.get(path).json()["items"]
        assert [(each["receipt_id"], each[member]) for each in found] == [(2, n + 1) for n in range(count)]
    letters = client.get(f"{address}/1/words/2/letters", params={"limit": 2}).json()
    assert [each["letter_id"] for each in letters["items"]] == [1, 2]
    rest = client.get(f"{address}/1/words/2/letters", params={"cursor": letters["cursor"]}).json()
    assert [each["letter_id"] for each in rest["items"]] == [3]


def test_merchants_and_fields_are_stored_and_replaced(open_server: Served) -> None:
    client, place = open_server.client(), {"image_id": "bought", "receipt_id": 1}
    for sure in (0.2, 0.9):
        merchant = {
            **place,
            "merchant_name": "Corner Shop",
            "match_confidence": sure,
            "timestamp": "2025-03-14T12:00:00Z",
        }
        field = {**place, "field_type": "DATE", "words": [], "timestamp_added": "2025-03-14T12:00:00Z"}
        assert client.put("/api/v1/merchants", json=merchant).json()["match_confidence"] == sure
        assert client.put("/api/v1/receipt-fields", json=field).json()["field_type"] == "DATE"
    (found,) = client.get("/api/v1/merchants/Corner Shop").json()["items"]
    assert found["match_confidence"] == 0.9
    assert len(client.get("/api/v1/images/bought/receipts/1/fields").json()["items"]) == 1
    assert client.put("/api/v1/merchants", json={**place, "match_confidence": 2}).status_code == 422


def test_a_table_that_is_not_deployed_says_how_to_create_it(open_server: Served) -> None:
    not_deployed = open_server.client().get("/api/v1/tables/jobtable-legacy/items", params={"partition": "x"})
    assert not_deployed.status_code == 404
    assert "jobtable tables create" in not_deployed.json()["hint"]
