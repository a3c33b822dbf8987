"""Validations: whatever happens, the counts are those of the results."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from tests.interruptions import dies_after
from tests.systems.receipts.pictures import NOON

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import AlreadyExistsError, ConflictError, NotFoundError
from jobtable.jobs.stored.entities import main
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Request, Response, Store
from jobtable.systems.receipts.analyses import AnalysisService
from jobtable.systems.receipts.entities import (
    ReceiptAnalysis,
    ReceiptChatGPTValidation,
    ReceiptLabelAnalysis,
    ReceiptStructureAnalysis,
    ReceiptValidationCategory,
    ReceiptValidationResult,
    ReceiptValidationSummary,
    ReceiptWordLabel,
    ResultType,
)
from jobtable.systems.receipts.validation import Finding, ValidationService
from jobtable.testing import FakeClock

ERROR = Finding(ResultType.ERROR, "no date", expected_value="a date")
WARNING = Finding(ResultType.WARNING, "an odd date")
SUCCESS = Finding(ResultType.SUCCESS, "fine")


def assert_in_step(service: ValidationService) -> None:
    summary = service.get_summary("a", 1)
    categories = {category.field_name: category for category in service.list_categories("a", 1)}
    assert set(summary.field_summary) == set(categories)
    for name, category in categories.items():
        found = Counter(result.type for result in service.list_results("a", 1, name))
        counts, shown = category.result_summary, summary.field_summary[name]
        assert counts.error_count == found[ResultType.ERROR]
        assert counts.warning_count == found[ResultType.WARNING]
        assert counts.success_count == found[ResultType.SUCCESS]
        assert shown.count == counts.total == found.total()
        assert shown.status == category.status
        assert shown.has_errors == (counts.error_count > 0)
        assert shown.has_warnings == (counts.warning_count > 0)


def test_findings_move_the_category_and_the_summary(store: Store) -> None:
    service = ValidationService(store, FakeClock())
    service.start("a", 1, version="1")
    with pytest.raises(AlreadyExistsError):
        service.start("a", 1, version="1")
    service.add_findings("a", 1, "date", [SUCCESS])
    assert service.get_summary("a", 1).overall_status == "VALID"
    service.add_findings("a", 1, "total", [WARNING, SUCCESS])
    assert service.get_summary("a", 1).overall_status == "NEEDS_REVIEW"
    added = service.add_findings("a", 1, "date", [ERROR, ERROR])
    assert [result.result_index for result in added] == [1, 2]
    assert_in_step(service)
    assert [each.receipt_id for each in service.list_by_status("INVALID")] == [1]
    assert [each.field_name for each in service.list_by_field_status("date", "INVALID")] == ["date"]
    assert list(service.list_by_field_status("date", "VALID")) == []
    assert len(list(service.list_by_result_type(ResultType.ERROR))) == 2
    service.remove_result("a", 1, "date", 1)
    assert_in_step(service)
    service.remove_result("a", 1, "date", 2)
    assert_in_step(service)
    assert service.get_summary("a", 1).overall_status == "NEEDS_REVIEW"
    with pytest.raises(NotFoundError):
        service.remove_result("a", 1, "date", 2)
    with pytest.raises(NotFoundError):
        service.add_findings("a", 2, "date", [ERROR])


def test_a_result_that_is_taken_back_again_takes_no_newer_one_with_it(store: Store) -> None:
    service = ValidationService(store)
    service.start("a", 1, version="1")
    service.add_findings("a", 1, "date", [SUCCESS, ERROR])
    service.remove_result("a", 1, "date", 1)
    (newer,) = service.add_findings("a", 1, "date", [WARNING])
    with pytest.raises(NotFoundError):
        service.remove_result("a", 1, "date", 1)  # by somebody who did not get the answer
    assert newer.result_index == 2
    assert_in_step(service)


def test_many_findings_go_in_steps(store: Store) -> None:
    service = ValidationService(store)
    service.start("a", 1, version="1")
    added = service.add_findings("a", 1, "items", [SUCCESS] * 200)
    assert [result.result_index for result in added] == list(range(200))
    assert_in_step(service)


def test_long_findings_go_in_steps(store: Store) -> None:
    service = ValidationService(store)
    service.start("a", 1, version="1")
    long = [Finding(ResultType.INFO, "é" * 10_000, actual_value=["x" * 60_000], reasoning=str(n)) for n in range(89)]
    added = service.add_findings("a", 1, "items", long)
    assert [result.reasoning for result in service.list_results("a", 1, "items")] == [each.reasoning for each in long]
    assert [result.result_index for result in added] == list(range(89))
    assert_in_step(service)


@pytest.mark.parametrize("is_begun", [False, True], ids=["a new field", "a field with findings"])
def test_findings_that_were_interrupted_are_stored_once_by_the_same_call(*, is_begun: bool) -> None:
    findings = [Finding(ResultType.ERROR, f"item {n // 2}", expected_value={"at": n // 2}) for n in range(200)]
    for writes in range(3):
        with Store(EmbeddedBackend(None)) as store:
            store.tables.create(main)
            service = ValidationService(store)
            service.start("a", 1, version="1")
            others = service.add_findings("a", 1, "items", [SUCCESS]) if is_begun else []
            assert dies_after(
                store,
                MemoryObjectStore(),
                writes,
                lambda dying, _: ValidationService(dying).add_findings("a", 1, "items", findings),
            )
            assert_in_step(service)
            others += service.add_findings("a", 1, "items", [WARNING])
            added = service.add_findings("a", 1, "items", findings)
            assert_in_step(service)
            assert [result.message for result in added] == [finding.message for finding in findings]
            stored = list(service.list_results("a", 1, "items"))
            assert stored == sorted([*others, *added], key=lambda result: result.result_index)
            assert [category.unfinished for category in service.list_categories("a", 1)] == [None]


def test_the_same_findings_again_are_more_findings(store: Store) -> None:
    service = ValidationService(store)
    service.start("a", 1, version="1")
    for _ in range(2):
        service.add_findings("a", 1, "items", [SUCCESS] * 100)
    assert service.get_summary("a", 1).field_summary["items"].count == 200
    assert_in_step(service)


@pytest.mark.parametrize("number", [1, 200])
def test_a_call_with_an_id_is_made_once(store: Store, number: int) -> None:
    service = ValidationService(store)
    service.start("a", 1, version="1")
    first = service.add_findings("a", 1, "items", [SUCCESS] * number, call_id="call")
    service.add_findings("a", 1, "items", [SUCCESS] * number, call_id="another")
    assert service.add_findings("a", 1, "items", [SUCCESS] * number, call_id="call") == first
    service.add_findings("a", 1, "items", [ERROR] * number, call_id="call")
    assert service.get_summary("a", 1).field_summary["items"].count == 3 * number
    assert_in_step(service)


def test_a_field_does_not_know_calls_for_ever() -> None:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(main)
        service = ValidationService(store)
        service.start("a", 1, version="1")
        for number in range(60):
            service.add_findings("a", 1, "items", [SUCCESS], call_id=str(number))
        (category,) = service.list_categories("a", 1)
        assert category.finished is not None
        assert sorted(category.finished.values()) == [[index] for index in range(10, 60)]


def test_a_call_that_another_one_has_finished_says_so(store: Store) -> None:
    class Overtaken:
        """A backend on which somebody does the same in front of the second transaction."""

        def __init__(self, overtake: Callable[[], object]) -> None:
            self._overtake = overtake
            self._transactions = 0

        def execute(self, operation: str, request: Request) -> Response:
            self._transactions += operation == "TransactWriteItems"
            if operation == "TransactWriteItems" and self._transactions == 2:
                self._overtake()
            return store.backend.execute(operation, request)

        def close(self) -> None:
            """It belongs to another store."""

    service = ValidationService(store)
    service.start("a", 1, version="1")
    overtaken = Overtaken(lambda: service.add_findings("a", 1, "items", [SUCCESS] * 100))
    with pytest.raises(ConflictError, match="nothing is left to add"):
        ValidationService(Store(overtaken, prefix=store.prefix)).add_findings("a", 1, "items", [SUCCESS] * 100)
    assert service.get_summary("a", 1).field_summary["items"].count == 100
    assert_in_step(service)


def test_concurrent_findings_are_all_counted(store: Store) -> None:
    service = ValidationService(store)
    service.start("a", 1, version="1")
    names = ["date", "total", "date", "total"]
    threads = [
        threading.Thread(target=lambda name=name: [service.add_findings("a", 1, name, [ERROR]) for _ in range(3)])
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_in_step(service)
    assert sum(field.count for field in service.get_summary("a", 1).field_summary.values()) == 12


def test_a_second_pass_revises_the_summary(store: Store) -> None:
    service = ValidationService(store)
    service.start("a", 1, version="1")
    service.add_findings("a", 1, "date", [ERROR])
    second = ReceiptChatGPTValidation(
        image_id="a", receipt_id=1, timestamp=NOON, original_status="INVALID", revised_status="VALID", reasoning="ok"
    )
    revised = service.second_pass(second)
    assert (revised.overall_status, revised.overall_reasoning) == ("VALID", "ok")
    assert service.second_pass(second) == revised
    with pytest.raises(AlreadyExistsError, match="another second pass at 2025-03-14T12:00:00"):
        service.second_pass(second.replace(revised_status="INVALID"))
    assert service.get_summary("a", 1) == revised
    store.put(
        ReceiptWordLabel(
            image_id="a", receipt_id=1, line_id=1, word_id=1, label="X", timestamp_added=NOON, validation_status="VALID"
        )
    )
    assert list(service.list_by_status("VALID")) == [revised]
    assert list(service.list_second_passes_by_status("VALID")) == [second]
    assert list(service.list_second_passes("a", 1)) == [second]
    assert_in_step(service)


def test_a_validation_is_deleted_whole_and_begins_anew(store: Store) -> None:
    service, analyses = ValidationService(store), AnalysisService(store)
    structure = ReceiptStructureAnalysis(image_id="a", receipt_id=1, sections=[], timestamp_added=NOON, version="1")
    analyses.keep(structure)
    with pytest.raises(NotFoundError):
        service.delete("a", 1)
    for receipt_id in (1, 2):
        service.start("a", receipt_id, version="1")
        service.add_findings("a", receipt_id, "date", [ERROR, WARNING])
    second = ReceiptChatGPTValidation(
        image_id="a", receipt_id=1, timestamp=NOON, original_status="INVALID", revised_status="VALID"
    )
    service.second_pass(second)
    assert dies_after(store, MemoryObjectStore(), 2, lambda dying, _: ValidationService(dying).delete("a", 1))
    with pytest.raises(AlreadyExistsError):
        service.start("a", 1, version="2")
    with pytest.raises(ConflictError, match="of image a, receipt 1 is being deleted; repeat the deletion"):
        service.add_findings("a", 1, "date", [SUCCESS])
    assert service.delete("a", 1) == 1
    assert analyses.list_of_receipt("a", 1) == [structure]
    assert len(analyses.list_of_receipt("a", 2)) == 4
    service.start("a", 1, version="2")
    service.add_findings("a", 1, "date", [SUCCESS])
    assert_in_step(service)
    assert service.delete("a", 1) == 3


def test_analyses_are_found_by_kind_and_time(store: Store) -> None:
    service, validation, clock = AnalysisService(store), ValidationService(store), FakeClock()
    kept = [
        ReceiptLabelAnalysis(image_id="a", receipt_id=n, labels=[], timestamp_added=clock.now(), version="1")
        for n in (3, 1, 2)
    ]
    structure = ReceiptStructureAnalysis(image_id="a", receipt_id=1, sections=[], timestamp_added=NOON, version="1")
    for analysis in kept:
        service.keep(analysis)
    service.keep(structure)
    validation.start("a", 1, version="1")
    validation.add_findings("a", 1, "date", [ERROR])
    assert list(service.list_by_time(ReceiptLabelAnalysis)) == kept
    assert list(service.list_by_time(ReceiptLabelAnalysis, after=kept[0].timestamp_added)) == kept[1:]
    assert list(service.list_by_time(ReceiptLabelAnalysis, newest_first=True)) == kept[::-1]
    assert service.get(ReceiptStructureAnalysis, "a", 1) == structure
    kinds = [type(analysis).__name__.removeprefix("Receipt") for analysis in service.list_of_receipt("a", 1)]
    assert kinds == [
        "LabelAnalysis",
        "StructureAnalysis",
        "ValidationSummary",
        "ValidationCategory",
        "ValidationResult",
    ]


def test_validations_are_found_by_time(store: Store) -> None:
    service, clock = AnalysisService(store), FakeClock()
    validation = ValidationService(store, clock)
    seconds = []
    for receipt_id in (2, 1):
        validation.start("a", receipt_id, version="1")
        validation.add_findings("a", receipt_id, "date", [ERROR])
        seconds.append(
            ReceiptChatGPTValidation(
                image_id="a",
                receipt_id=receipt_id,
                timestamp=clock.now(),
                original_status="INVALID",
                revised_status="VALID",
            )
        )
        validation.second_pass(seconds[-1])
        clock.advance(60)
    first = validation.get_summary("a", 2).validation_timestamp
    assert receipts_of(service.list_by_time(ReceiptValidationSummary)) == [2, 1]
    assert receipts_of(service.list_by_time(ReceiptValidationCategory)) == [2, 1]
    assert receipts_of(service.list_by_time(ReceiptValidationResult)) == [2, 1]
    assert receipts_of(service.list_by_time(ReceiptValidationSummary, after=first)) == [1]
    assert receipts_of(service.list_by_time(ReceiptValidationCategory, before=first)) == []
    assert receipts_of(service.list_by_time(ReceiptValidationResult, newest_first=True)) == [1, 2]
    assert list(service.list_by_time(ReceiptChatGPTValidation)) == seconds


def receipts_of(analyses: Iterable[ReceiptAnalysis]) -> list[int]:
    return [analysis.receipt_id for analysis in analyses]
