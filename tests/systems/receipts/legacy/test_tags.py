"""Tags of the legacy table: the list in the word and the tag items never part."""

from __future__ import annotations

import threading

import pytest
from pydantic import ValidationError
from tests.systems.receipts.legacy.table import legacy_items
from tests.systems.receipts.pictures import CORNERS, NOON, PICTURE, PLACED

from jobtable.errors import TransactionFailedError
from jobtable.model.conditions import WireForm
from jobtable.store import Store
from jobtable.systems.receipts.legacy.entities import (
    GPTInitialTagging,
    Receipt,
    ReceiptWord,
    ReceiptWordTag,
    Word,
    WordTag,
    legacy,
)
from jobtable.systems.receipts.legacy.legacy_jobs import LegacyJobQueries
from jobtable.systems.receipts.legacy.service import LegacyService

WORD = Word(image_id="a", line_id=1, word_id=1, text="milk", **PLACED)
RECEIPT_WORD = ReceiptWord(image_id="a", receipt_id=1, line_id=1, word_id=1, text="milk", **PLACED)


@pytest.fixture
def store(each_store: Store) -> Store:
    each_store.tables.create(legacy)
    each_store.put(WORD)
    each_store.put(RECEIPT_WORD)
    return each_store


def tags_of_items(store: Store) -> tuple[list[str], list[str]]:
    under = list(store.collection(WordTag.key(image_id="a")))
    of_word = [entity.tag_name for entity in under if isinstance(entity, WordTag)]
    return of_word, [entity.tag_name for entity in under if isinstance(entity, ReceiptWordTag)]


def test_tags_are_upper_case_and_in_step(store: Store) -> None:
    service = LegacyService(store)
    tagged = service.set_tags(WORD, ["food", "Dairy", "FOOD"])
    assert tagged.tags == ["FOOD", "DAIRY"]
    service.add_tag(RECEIPT_WORD, "grocery")
    assert tags_of_items(store) == (["DAIRY", "FOOD"], ["GROCERY"])
    assert service.remove_tag(WORD, "food").tags == ["DAIRY"]
    assert service.add_tag(WORD, "dairy").tags == ["DAIRY"]
    assert tags_of_items(store) == (["DAIRY"], ["GROCERY"])
    assert store.get(Word.key(image_id="a", line_id=1, word_id=1)).tags == ["DAIRY"]
    assert [tag.word_id for tag in service.list_words_by_tag("dairy")] == [1]
    assert list(service.list_words_by_tag("GROCERY")) == []
    assert [tag.receipt_id for tag in service.list_receipt_words_by_tag("Grocery")] == [1]


def test_a_word_that_changed_since_it_was_read_is_not_tagged(store: Store) -> None:
    service = LegacyService(store)
    service.set_tags(WORD, ["a"])
    with pytest.raises(TransactionFailedError, match="update Word"):
        service.set_tags(WORD, ["b"])
    assert tags_of_items(store)[0] == ["A"]


@pytest.mark.parametrize(
    "stored",
    [
        {"L": [{"S": "food"}]},
        {"L": [{"S": "FOOD"}, {"S": "food"}]},
        {"SS": ["FOOD"]},
        {"SS": ["food"]},
    ],
)
def test_words_of_other_programs_are_tagged_in_whatever_form_their_tags_stand(store: Store, stored: WireForm) -> None:
    key = Word.key(image_id="a", line_id=1, word_id=1)
    item = {**Word.__schema__.codec.encode(WORD), "tags": stored}
    store.backend.execute("PutItem", {"TableName": store.table_name(legacy), "Item": item})
    store.put(WordTag(image_id="a", line_id=1, word_id=1, tag_name="FOOD", timestamp_added=NOON))
    service = LegacyService(store)
    read = store.get(key)
    assert service.add_tag(WORD, "dairy").tags == ["FOOD", "DAIRY"]
    assert tags_of_items(store)[0] == ["DAIRY", "FOOD"]
    with pytest.raises(TransactionFailedError, match="update Word"):
        service.set_tags(read, ["late"])
    store.backend.execute("PutItem", {"TableName": store.table_name(legacy), "Item": item})
    assert service.set_tags(read, ["Food"]).tags == ["FOOD"]
    store.backend.execute("PutItem", {"TableName": store.table_name(legacy), "Item": item})
    assert service.remove_tag(read, "food").tags == []
    assert store.get(key).tags == []
    assert tags_of_items(store)[0] == ["DAIRY"]


@pytest.mark.parametrize("tag", ["", "   ", "x" * 41, "ß" * 21])
def test_a_tag_has_1_to_40_characters(store: Store, tag: str) -> None:
    with pytest.raises(ValidationError, match="1 to 40 characters"):
        LegacyService(store).set_tags(WORD, [tag])
    assert LegacyService(store).set_tags(WORD, ["x" * 40]).tags == ["X" * 40]


def test_concurrent_taggers_lose_nothing(store: Store) -> None:
    service = LegacyService(store)
    names = [f"TAG{number}" for number in range(6)]
    threads = [threading.Thread(target=service.add_tag, args=(WORD, name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(store.get(Word.key(image_id="a", line_id=1, word_id=1)).tags) == names
    assert tags_of_items(store)[0] == names


def test_the_lists_of_the_legacy_table(store: Store) -> None:
    service = LegacyService(store)
    store.batch_put(legacy_items(3))
    store.put(Receipt(image_id="image-00001", receipt_id=2, **PICTURE, **CORNERS))
    assert [image.image_id for image in service.list_images()] == [f"image-0000{n}" for n in range(3)]
    assert [receipt.receipt_id for receipt in service.list_receipts("image-00001")] == [1, 2]
    assert len(list(service.list_all_receipts())) == 4
    assert len(list(service.list_all_receipt_words())) == 7
    assert len(list(service.list_under_image("image-00002"))) == 20
    assert len(list(LegacyJobQueries(store).list_metric("loss"))) == 3
    word = next(iter(service.list_all_receipt_words().page(size=2).items[1:]))
    answers = service.list_gpt_answers(word, "food")
    assert [type(answer).__name__ for answer in answers] == ["GPTInitialTagging", "GPTValidation"]
    assert isinstance(answers[0], GPTInitialTagging)
    assert answers[0].timestamp_added == NOON
