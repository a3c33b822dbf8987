"""Items with exactly the attributes that the specification of the main table lists are read."""

from __future__ import annotations

import pytest
from tests.systems.receipts.pictures import NOON, ocr_result

from jobtable.errors import ItemShapeError
from jobtable.jobs.stored.entities import main
from jobtable.model import Entity
from jobtable.store import Store
from jobtable.systems.receipts.entities import (
    CompletionBatchResult,
    ReceiptValidationCategory,
    ReceiptValidationResult,
    ResultType,
)
from jobtable.systems.receipts.model_batches import BatchService
from jobtable.systems.receipts.ocr import OcrService

COMPLETION = CompletionBatchResult(
    batch_id="b",
    image_id="scan#1",
    receipt_id=1,
    line_id=1,
    word_id=1,
    original_label="TOTAL",
    label_changed=False,
    status="VALID",
    validated_at=NOON,
)
CATEGORY = ReceiptValidationCategory(
    image_id="a", receipt_id=1, field_name="date", validation_timestamp=NOON, field_category="DATE", status="INVALID"
)
RESULT = ReceiptValidationResult(
    image_id="a",
    receipt_id=1,
    field_name="date",
    result_index=0,
    validation_timestamp=NOON,
    type=ResultType.ERROR,
    message="no date",
)


def put_without(store: Store, entity: Entity, *attributes: str) -> None:
    item = type(entity).__schema__.codec.encode(entity)
    listed = {name: value for name, value in item.items() if name not in attributes}
    store.backend.execute("PutItem", {"TableName": store.table_name(main), "Item": listed})


def test_what_stands_in_an_index_key_is_read_from_there(store: Store) -> None:
    OcrService(store).store(ocr_result("a"))
    put_without(store, CATEGORY, "validation_timestamp")
    put_without(store, RESULT, "validation_timestamp")
    put_without(store, COMPLETION, "image_id")
    assert OcrService(store).read_image("a").receipts[1].analyses == [CATEGORY, RESULT]
    assert list(BatchService(store).list_completions_of_receipt("scan#1", 1)) == [COMPLETION]
    (read,) = BatchService(store).list_completions("b")
    store.put(read)
    assert list(BatchService(store).list_completions_of_receipt("scan#1", 1)) == [COMPLETION]


def test_what_stands_nowhere_is_missing(store: Store) -> None:
    put_without(store, CATEGORY, "validation_timestamp", "GSI1SK", "GSI1PK")
    with pytest.raises(ItemShapeError, match="validation_timestamp: Field required"):
        store.get(ReceiptValidationCategory.key(image_id="a", receipt_id=1, field_name="date"))
