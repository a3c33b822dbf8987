"""Labels: moved between states with their indexes, listed, and kept clean."""

from __future__ import annotations

import pytest
from tests.clouds import LateIndexes
from tests.interruptions import dies_after
from tests.systems.receipts.pictures import NOON

from jobtable.errors import ConflictError, TransactionFailedError, ValueRefusedError
from jobtable.jobs.stored.entities import main
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.systems.receipts.entities import (
    FieldWord,
    LabelHygieneResult,
    LabelMetadata,
    ReceiptField,
    ReceiptMetadata,
    ReceiptWordLabel,
)
from jobtable.systems.receipts.labels import LabelHygieneService, LabelService
from jobtable.testing import FakeClock


def label(word_id: int, name: str = "TOTAL", image_id: str = "a", status: str = "NONE") -> ReceiptWordLabel:
    return ReceiptWordLabel(
        image_id=image_id,
        receipt_id=1,
        line_id=1,
        word_id=word_id,
        label=name,
        timestamp_added=NOON,
        validation_status=status,
    )


def finding(alias: str, canonical_label: str, *, agreed: bool = True) -> LabelHygieneResult:
    return LabelHygieneResult(
        hygiene_id=f"{alias}-{canonical_label}",
        alias=alias,
        canonical_label=canonical_label,
        gpt_agreed=agreed,
        timestamp=NOON,
    )


def test_moved_labels_leave_one_state_and_enter_the_other(store: Store) -> None:
    service = LabelService(store)
    service.add(label(word) for word in range(1, 121))
    assert service.move(service.list_by_status("NONE").page(size=110).items, "VALID", reasoning="looked at") == 110
    assert store.count(ReceiptWordLabel.by_status(validation_status="NONE")) == 10
    valid = list(service.list_by_status("VALID"))
    assert [each.word_id for each in valid] == list(range(1, 111))
    assert {each.reasoning for each in valid} == {"looked at"}
    assert service.move(valid, "VALID") == 0
    assert len(list(service.list_by_label("TOTAL"))) == 120


def test_a_label_that_was_moved_meanwhile_is_not_moved_again(store: Store) -> None:
    service = LabelService(store)
    service.add([label(1), label(2)])
    read = list(service.list_by_status("NONE"))
    service.move(read[:1], "INVALID")
    with pytest.raises(TransactionFailedError, match="WORD#00001#LABEL#TOTAL"):
        service.move(read, "VALID")
    assert [each.word_id for each in service.list_by_status("NONE")] == [2]


def test_a_move_that_was_interrupted_is_finished_by_the_same_call(store: Store) -> None:
    service = LabelService(store)
    service.add(label(word) for word in range(1, 121))
    read = list(service.list_by_status("NONE"))
    for writes in range(3):
        assert dies_after(
            store, MemoryObjectStore(), writes, lambda dying, _: LabelService(dying).move(read, "VALID", reasoning="ok")
        )
        assert len(list(service.list_by_status("VALID"))) == 50 * writes
    assert service.move(read, "VALID", reasoning="ok") == 120
    assert {each.reasoning for each in service.list_by_status("VALID")} == {"ok"}
    assert len(list(service.list_by_status("VALID"))) == 120


def test_lists_share_partitions_and_give_only_what_is_asked_for(store: Store) -> None:
    service, hygiene = LabelService(store), LabelHygieneService(store)
    service.add([label(1), label(2, "DATE"), label(1, image_id="b")])
    hygiene.describe(LabelMetadata(label="TOTAL", status="ACTIVE", last_updated=NOON, label_target="currency"))
    assert [each.image_id for each in service.list_by_label("TOTAL")] == ["a", "b"]
    assert [each.label for each in service.list_by_receipt("a", 1)] == ["TOTAL", "DATE"]
    assert len(list(service.list_everywhere())) == 3
    assert [each.label for each in hygiene.list_by_target("currency")] == ["TOTAL"]


def test_fields_are_found_by_type_and_by_receipt(store: Store) -> None:
    service = LabelService(store)
    words = [FieldWord(word_id=1, line_id=1, label="DATE")]
    fields = [
        ReceiptField(field_type=kind, image_id=image, receipt_id=1, words=words, timestamp_added=NOON)
        for kind in ("DATE", "TOTAL")
        for image in ("a", "b")
    ]
    store.batch_put(fields)
    assert list(service.list_by_field("DATE")) == fields[:2]
    assert [field.field_type for field in service.list_fields("a", 1)] == ["DATE", "TOTAL"]


def test_merchants_are_listed_by_name_and_in_order_of_confidence(store: Store) -> None:
    service = LabelService(store)
    for number, confidence in enumerate([0.5, 1.0, 0.05, 0.55, 0.0]):
        name = "Shop #1" if number < 2 else "Shop"
        store.put(
            ReceiptMetadata(
                image_id="a", receipt_id=number, merchant_name=name, match_confidence=confidence, timestamp=NOON
            )
        )
    assert [each.receipt_id for each in service.list_by_merchant("Shop #1")] == [0, 1]
    assert [each.receipt_id for each in service.list_by_merchant("Shop")] == [2, 3, 4]
    assert [each.match_confidence for each in service.list_by_confidence()] == [0.0, 0.05, 0.5, 0.55, 1.0]
    assert [each.match_confidence for each in service.list_by_confidence(0.5, 0.55)] == [0.5, 0.55]
    assert next(iter(service.list_by_confidence(most_sure_first=True))).match_confidence == 1.0


def test_a_label_that_is_renamed_is_never_lost(store: Store) -> None:
    service, first = LabelService(store), label(1, "SUM", status="VALID")
    service.add([first])
    assert service.relabel(first, "SUM") == first
    renamed = service.relabel(first, "TOTAL")
    assert renamed.label_consolidated_from == "SUM"
    assert service.relabel(first, "TOTAL") == renamed
    assert list(service.list_by_receipt("a", 1)) == [renamed]
    with pytest.raises(TransactionFailedError):
        service.relabel(first, "AMOUNT")
    assert list(service.list_by_receipt("a", 1)) == [renamed]


def test_a_reasoning_that_a_label_got_meanwhile_is_not_lost_when_it_is_renamed(store: Store) -> None:
    service, first = LabelService(store), label(1, "SUM")
    changed = first.replace(reasoning="it is the last line")
    service.add([first])
    service.add([changed])
    with pytest.raises(TransactionFailedError, match="LABEL#SUM"):
        service.relabel(first, "TOTAL")
    assert service.relabel(changed, "TOTAL").reasoning == "it is the last line"


def test_a_finding_that_was_taken_back_counts_no_more_though_an_index_still_shows_it() -> None:
    clock = FakeClock()
    with Store(LateIndexes(clock), clock=clock) as late:
        late.tables.create(main)
        hygiene, agreed = LabelHygieneService(late, clock), finding("SUM", "TOTAL")
        LabelService(late).add([label(1, "SUM")])
        hygiene.record(agreed)
        clock.advance(2)
        hygiene.record(agreed.replace(gpt_agreed=False))
        assert hygiene.resolve("SUM") == "SUM"
        assert hygiene.consolidate("SUM") == 0


def test_an_alias_is_consolidated_into_its_canonical_label(store: Store) -> None:
    service, hygiene = LabelService(store), LabelHygieneService(store, FakeClock())
    service.add([label(1, "SUM", status="VALID"), label(2, "SUM"), label(2, "TOTAL", status="VALID"), label(3, "DATE")])
    hygiene.describe(LabelMetadata(label="TOTAL", status="ACTIVE", last_updated=NOON, aliases=["AMOUNT"]))
    hygiene.record(finding("SUM", "AMOUNT"))
    hygiene.record(finding("AMOUNT", "TOTAL"))
    hygiene.record(finding("SUM", "DATE", agreed=False))
    assert hygiene.resolve("SUM") == "TOTAL"
    assert hygiene.consolidate("SUM") == 2
    assert hygiene.consolidate("SUM") == 0
    assert list(service.list_by_label("SUM")) == []
    first, second = service.list_by_label("TOTAL")
    assert first == label(1, "TOTAL", status="VALID").replace(label_consolidated_from="SUM")
    assert second == label(2, "TOTAL", status="VALID")
    described = hygiene.find_description("TOTAL")
    assert described is not None
    assert described.aliases == ["AMOUNT", "SUM"]
    assert [each.alias for each in hygiene.list_aliases("TOTAL")] == ["AMOUNT"]
    assert hygiene.consolidate("DATE") == 0


def test_aliases_that_contradict_each_other_are_reported(store: Store) -> None:
    hygiene = LabelHygieneService(store)
    with pytest.raises(ValueRefusedError, match="alias of itself"):
        hygiene.record(finding("A", "A"))
    hygiene.record(finding("A", "B"))
    hygiene.record(finding("B", "A"))
    with pytest.raises(ConflictError, match="A -> B -> A"):
        hygiene.resolve("A")
    hygiene.record(finding("B", "C"))
    with pytest.raises(ConflictError, match="alias of A, C"):
        hygiene.resolve("B")
