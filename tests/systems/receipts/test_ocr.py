"""OCR results: stored as a whole, resumed after a crash, read by one query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.interruptions import dies_after
from tests.systems.receipts.pictures import NOON, PLACED, ocr_result

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import BackendUnavailable, NotFoundError, ValueRefusedError
from jobtable.jobs.stored.entities import main
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Backend, Item, Request, Response, Store
from jobtable.systems.receipts.entities import Image, ReceiptField, ReceiptMetadata, ReceiptWord, ReceiptWordLabel, Word
from jobtable.systems.receipts.labels import LabelService
from jobtable.systems.receipts.ocr import OcrResult, OcrService, StoredResult

OTHER: Item = {"PK": {"S": "IMAGE#a"}, "SK": {"S": "RECEIPT#00002#RATING"}, "stars": {"N": "5"}}
"""Of a kind that this package does not know."""


class Dying:
    """A backend that fails for good after some writes, as a process does that is killed."""

    def __init__(self, backend: Backend, writes: int) -> None:
        self._backend = backend
        self._left = writes

    def execute(self, operation: str, request: Request) -> Response:
        if operation in ("TransactWriteItems", "PutItem"):
            self._left -= 1
            if self._left < 0:
                raise RuntimeError("killed")
        return self._backend.execute(operation, request)

    def close(self) -> None:
        self._backend.close()


def test_a_result_is_stored_and_read_as_a_whole(store: Store) -> None:
    service, result, seen = OcrService(store), ocr_result("a", receipts=2), list[tuple[int, int]]()
    stored = service.store(result, lambda done, total: seen.append((done, total)))
    total = 1 + 3 * (2 + 4 + 12) + 2
    assert stored == StoredResult(total, 0)
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    contents = service.read_image("a")
    assert contents.image == result.image
    assert contents.lines == result.lines
    assert contents.words == result.words
    assert contents.letters == result.letters
    assert [r.receipt for r in contents.receipts.values()] == result.receipts
    assert [word for r in contents.receipts.values() for word in r.words] == result.receipt_words
    assert contents.others == []


@pytest.mark.parametrize("image_id", ["scan#1", "50%", "%23"])
def test_an_image_id_may_have_the_characters_that_keys_escape(store: Store, image_id: str) -> None:
    service, result = OcrService(store), ocr_result(image_id)
    service.store(result)
    assert service.store(result).written == 0
    assert service.read_image(image_id).words == result.words
    with pytest.raises(ValueRefusedError, match="does not belong to image"):
        service.store(OcrResult(image=result.image, lines=ocr_result("b").lines))


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_a_killed_call_is_completed_by_the_next(store: Store, writes: int) -> None:
    result = ocr_result("a", letters=20, receipts=2)
    total = sum(1 for _ in result.under_the_image())
    with pytest.raises(RuntimeError, match="killed"):
        OcrService(Store(Dying(store.backend, writes), prefix=store.prefix)).store(result)
    service = OcrService(store)
    with pytest.raises(NotFoundError, match="its OCR result is incomplete"):
        service.read_image("a")
    again = service.store(result)
    assert again.already_there == min(90 * max(0, writes - 1), total)  # behind the mark that it has begun
    assert again.written + again.already_there == total + 1
    assert service.store(result) == StoredResult(0, total + 1)
    assert service.read_image("a").letters == result.letters


def test_a_killed_call_leaves_no_mixture_of_two_results(store: Store) -> None:
    service, first = OcrService(store), ocr_result("a", letters=50, receipts=0)
    service.store(first)
    second = replace(first, letters=[each.replace(text="y") for each in first.letters])
    with pytest.raises(RuntimeError, match="killed"):
        OcrService(Store(Dying(store.backend, 3), prefix=store.prefix)).store(second)
    with pytest.raises(NotFoundError, match="its OCR result is incomplete"):
        service.read_image("a")
    assert service.store(second).written == 111
    assert service.read_image("a").letters == second.letters
    assert service.store(second).written == 0


def test_a_new_result_takes_the_place_of_the_old_one(store: Store) -> None:
    service = OcrService(store)
    store_with_findings(store)
    old, new = ocr_result("a", lines=3, receipts=2), ocr_result("a", lines=1, words=1)
    seen = list[tuple[int, int]]()
    count_of_old, count_of_new, outdated_findings = (1 + 3 * (3 + 6 + 18) + 2), (1 + 2 * (1 + 1 + 3) + 1), 5
    removed = count_of_old - count_of_new + outdated_findings
    assert service.store(new, lambda done, total: seen.append((done, total))) == StoredResult(
        1, count_of_new - 1, removed
    )
    assert seen[-1] == (count_of_new + removed, count_of_new + removed)
    contents = service.read_image("a")
    assert (contents.lines, contents.words, contents.letters) == (new.lines, new.words, new.letters)
    assert list(contents.receipts) == [1]
    (receipt,) = contents.receipts.values()
    assert (receipt.receipt, receipt.lines, receipt.words) == (new.receipts[0], new.receipt_lines, new.receipt_words)
    assert [label.word_id for label in receipt.labels] == [1]
    assert receipt.metadata is not None
    assert [field.receipt_id for field in LabelService(store).list_by_field("DATE")] == [1]
    assert [other._undeclared for other in contents.others] == [OTHER]
    assert service.store(new) == StoredResult(0, count_of_new)
    assert service.store(old).removed == 0


@pytest.mark.parametrize(
    "act",
    [
        lambda service: service.store(ocr_result("a", lines=1, words=1)),
        lambda service: service.store(ocr_result("a", lines=0, receipts=0)),
        lambda service: service.delete_image("a"),
    ],
    ids=["replace", "replace by nothing", "delete"],
)
def test_a_killed_change_is_completed_by_the_next(act: Callable[[OcrService], object]) -> None:
    def dead_and_done_again(writes: int) -> tuple[bool, list[Item]]:
        with Store(EmbeddedBackend(None)) as store:
            store.tables.create(main)
            store_with_findings(store)
            has_died = dies_after(store, MemoryObjectStore(), writes, lambda dying, _: act(OcrService(dying)))
            if has_died:
                act(OcrService(store))
            return has_died, store.ask("Scan", {"TableName": main.name}, "test")["Items"]

    _, done = dead_and_done_again(1000)
    has_died, writes = True, 0
    while has_died:
        has_died, ended = dead_and_done_again(writes)
        assert ended == done, f"dead after {writes} writes"
        writes += 1
    assert writes > 4


def store_with_findings(store: Store) -> None:
    """An image with two receipts, what was found out about them, and something that this package does not know."""
    OcrService(store).store(ocr_result("a", lines=3, receipts=2))
    store.batch_put(
        ReceiptWordLabel(image_id="a", receipt_id=n, line_id=1, word_id=w, label="TOTAL", timestamp_added=NOON)
        for n in (1, 2)
        for w in (1, 2)
    )
    for n in (1, 2):
        store.put(ReceiptMetadata(image_id="a", receipt_id=n, merchant_name="S", match_confidence=0.5, timestamp=NOON))
        store.put(ReceiptField(field_type="DATE", image_id="a", receipt_id=n, words=[], timestamp_added=NOON))
    store.ask("PutItem", {"TableName": store.table_name(main), "Item": OTHER}, "test")


def test_a_result_that_does_not_hang_together_is_refused(store: Store) -> None:
    service, good = OcrService(store), ocr_result("a")
    of_another = Word(image_id="b", line_id=1, word_id=9, text="x", **PLACED)
    without_line = Word(image_id="a", line_id=9, word_id=1, text="x", **PLACED)
    for words, reason in (
        ([of_another], "does not belong to image a"),
        ([without_line], "is in the result without its LINE#00009"),
        ([*good.words, good.words[0]], "in the result of image a twice"),
    ):
        with pytest.raises(ValueRefusedError, match=reason):
            service.store(OcrResult(image=good.image, lines=good.lines, words=words))
    assert store.find(Image.key(image_id="a")) is None


def test_a_receipt_is_read_with_everything_under_it(store: Store) -> None:
    service, result = OcrService(store), ocr_result("a", receipts=3)
    service.store(result)
    label = ReceiptWordLabel(image_id="a", receipt_id=2, line_id=1, word_id=1, label="TOTAL", timestamp_added=NOON)
    metadata = ReceiptMetadata(image_id="a", receipt_id=2, merchant_name="Shop", match_confidence=0.5, timestamp=NOON)
    store.batch_put([label, metadata])
    with store.capacity.measure() as spent:
        contents = service.read_receipt("a", 2)
    assert sum(units.calls for units in spent.values()) == 1
    assert contents.receipt == result.receipts[1]
    assert contents.words == [word for word in result.receipt_words if word.receipt_id == 2]
    assert contents.labels == [label]
    assert contents.metadata == metadata
    with pytest.raises(NotFoundError):
        service.read_receipt("a", 9)


def test_lists_give_only_what_is_asked_for(store: Store) -> None:
    service = OcrService(store)
    for image_id in ("a", "b"):
        service.store(ocr_result(image_id))
    unsure = ReceiptWord(image_id="a", receipt_id=1, line_id=1, word_id=1, text="w", **{**PLACED, "confidence": 0.2})
    store.put(unsure)
    assert {image.image_id for image in service.list_images()} == {"a", "b"}
    assert [line.line_id for line in service.list_lines("a")] == [1, 2]
    assert [word.word_id for word in service.list_words("a", 2)] == [1, 2]
    assert [letter.letter_id for letter in service.list_letters("a", 2, 1)] == [1, 2, 3]
    assert [receipt.receipt_id for receipt in service.list_receipts("a")] == [1]
    assert [receipt.image_id for receipt in service.list_all_receipts()] == ["a", "b"]
    assert len(list(service.list_all_receipt_words())) == 8
    assert list(service.list_receipt_words("a", most_confidence=0.5)) == [unsure]
    page = service.list_all_receipt_words().page(size=3)
    assert len(page.items) == 3


def test_deleting_an_image_takes_everything(store: Store) -> None:
    service = OcrService(store)
    store_with_findings(store)
    service.store(ocr_result("b"))
    of_b = ReceiptField(field_type="DATE", image_id="b", receipt_id=1, words=[], timestamp_added=NOON)
    store.put(of_b)
    assert service.delete_image("a") == 84 + 8
    assert service.delete_image("a") == 0
    assert [other._undeclared for other in store.collection(Image.key(image_id="a"))] == [OTHER]
    assert list(LabelService(store).list_by_field("DATE")) == [of_b]
    assert service.read_image("b").image is not None


def test_a_lost_answer_does_not_lose_the_image(store: Store) -> None:
    class Losing(Dying):
        def execute(self, operation: str, request: Request) -> Response:
            response = self._backend.execute(operation, request)
            if operation == "TransactWriteItems" and self._left:
                self._left -= 1
                raise BackendUnavailable("the answer was lost")
            return response

    result = ocr_result("a")
    OcrService(Store(Losing(store.backend, 1), prefix=store.prefix)).store(result)
    assert OcrService(store).read_image("a").words == result.words


def test_images_with_a_hundred_words_and_five_hundred_letters(tmp_path: Path) -> None:
    results = [ocr_result(f"image-{number}", lines=10, words=10, letters=5, receipts=0) for number in range(3)]
    with Store(EmbeddedBackend(tmp_path / "images.db")) as store:
        store.tables.create(main)
        for result in results:
            assert OcrService(store).store(result) == StoredResult(611, 0)
    with Store(EmbeddedBackend(tmp_path / "images.db")) as store:
        for result in results:
            contents = OcrService(store).read_image(result.image.image_id)
            assert (contents.lines, contents.words, contents.letters) == (result.lines, result.words, result.letters)
