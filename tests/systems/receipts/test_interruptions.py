"""Every verb of receipts that reads before it writes, or writes more than once, interrupted or met by another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.interruptions import Fault, Surroundings, Verb, check_repetition, interleaved
from tests.systems.receipts.legacy.table import legacy_items
from tests.systems.receipts.legacy.test_tags import WORD
from tests.systems.receipts.pictures import NOON, ocr_result
from tests.systems.receipts.test_labels import finding, label
from tests.systems.receipts.test_model_batches import completion
from tests.systems.receipts.test_validation import ERROR, SUCCESS, WARNING, assert_in_step

from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import main
from jobtable.systems.receipts.analyses import AnalysisService
from jobtable.systems.receipts.entities import BatchSummary, Image, ReceiptChatGPTValidation
from jobtable.systems.receipts.labels import LabelHygieneService, LabelService
from jobtable.systems.receipts.legacy.entities import legacy
from jobtable.systems.receipts.legacy.migration import Migration
from jobtable.systems.receipts.legacy.service import LegacyService
from jobtable.systems.receipts.model_batches import BatchService
from jobtable.systems.receipts.ocr import OcrService
from jobtable.systems.receipts.validation import ValidationService

SECOND_PASS = ReceiptChatGPTValidation(
    image_id="a", receipt_id=1, timestamp=NOON, original_status="INVALID", revised_status="VALID"
)


def validation(jobs: Jobs) -> ValidationService:
    return ValidationService(jobs.store, jobs.clock)


def check(jobs: Jobs) -> None:
    """The counts of a validation equal a recount, unless it is being deleted; nothing is left of one that is gone."""
    parts = AnalysisService(jobs.store).list_of_receipt("a", 1)
    if parts and validation(jobs).get_summary("a", 1).deleted_at is None:
        assert_in_step(validation(jobs))


HERE = Surroundings((main, legacy), check)


def validated(jobs: Jobs) -> None:
    validation(jobs).start("a", 1, version="1")
    validation(jobs).add_findings("a", 1, "date", [ERROR, SUCCESS])


def labelled(jobs: Jobs) -> list[Any]:
    labels = LabelService(jobs.store)
    labels.add([*(label(word) for word in range(1, 61)), label(1, "DATE")])
    return list(labels.list_by_label("TOTAL"))


def aliased(jobs: Jobs) -> None:
    LabelService(jobs.store).add(label(word, "TTL") for word in range(1, 4))
    LabelHygieneService(jobs.store).record(finding("TTL", "TOTAL"))


def submitted(jobs: Jobs) -> None:
    batches = BatchService(jobs.store, jobs.clock)
    batches.create(BatchSummary(batch_id="b", batch_type="COMPLETION", status="PENDING"))
    batches.submit("b", "provider's")


def add_findings(jobs: Jobs, _: object) -> object:
    return validation(jobs).add_findings("a", 1, "date", [ERROR, WARNING], call_id="call")


def add_many_findings(jobs: Jobs, _: object) -> object:
    return validation(jobs).add_findings("a", 1, "items", [WARNING] * 200, call_id="call")


VERBS = {
    "start a validation": Verb(lambda jobs, _: validation(jobs).start("a", 1, version="1"), refused="already exists"),
    "add findings": Verb(add_findings, validated),
    "add many findings": Verb(add_many_findings, validated),
    "remove a result": Verb(
        lambda jobs, _: validation(jobs).remove_result("a", 1, "date", 1), validated, refused="there is no"
    ),
    "delete a validation": Verb(
        lambda jobs, _: validation(jobs).delete("a", 1), validated, refused="there is no receipt validation summary"
    ),
    "add a second pass": Verb(lambda jobs, _: validation(jobs).second_pass(SECOND_PASS), validated),
    "move labels": Verb(lambda jobs, given: LabelService(jobs.store).move(given, "VALID"), labelled),
    "relabel": Verb(lambda jobs, given: LabelService(jobs.store).relabel(given[1], "DATE"), labelled),
    "relabel to what is there": Verb(lambda jobs, given: LabelService(jobs.store).relabel(given[0], "DATE"), labelled),
    "consolidate": Verb(lambda jobs, _: LabelHygieneService(jobs.store).consolidate("TTL"), aliased),
    "record results": Verb(
        lambda jobs, _: BatchService(jobs.store).record(completion(word) for word in range(1, 60)), submitted
    ),
    "complete a batch": Verb(lambda jobs, _: BatchService(jobs.store).complete("b", "file"), submitted),
    "fail a batch": Verb(lambda jobs, _: BatchService(jobs.store).fail("b"), submitted),
    "set tags": Verb(
        lambda jobs, _: LegacyService(jobs.store, jobs.clock).set_tags(WORD, ["food", "dairy"]),
        lambda jobs: jobs.store.put(WORD),
    ),
    "add a tag": Verb(
        lambda jobs, _: LegacyService(jobs.store, jobs.clock).add_tag(WORD, "food"), lambda jobs: jobs.store.put(WORD)
    ),
    "migrate": Verb(
        lambda jobs, _: Migration(jobs.store, jobs.store, clock=jobs.clock).run(),
        lambda jobs: jobs.store.batch_put(legacy_items(1)),
    ),
}


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_was_interrupted_may_be_repeated(name: str, fault: Fault) -> None:
    check_repetition(VERBS[name], HERE, fault)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("add findings", "remove a result"),
        ("add findings", "delete a validation"),
        ("add many findings", "delete a validation"),
        ("remove a result", "remove a result"),
        ("remove a result", "delete a validation"),
        ("add a second pass", "delete a validation"),
        ("delete a validation", "add findings"),
        ("delete a validation", "remove a result"),
        ("delete a validation", "add a second pass"),
        ("delete a validation", "delete a validation"),
    ],
)
def test_a_validation_that_two_change_at_once_is_in_step_or_gone(first: str, other: str) -> None:
    assert list(interleaved(HERE, validated, VERBS[first].act, VERBS[other].act))


def two_labels(jobs: Jobs) -> list[Any]:
    LabelService(jobs.store).add([label(1), label(1, "DATE")])
    return list(LabelService(jobs.store).list_by_receipt("a", 1))


def test_a_label_that_another_one_gives_way_to_does_not_go_at_the_same_time() -> None:
    def relabel_to_the_other(jobs: Jobs, given: Any) -> None:
        LabelService(jobs.store).relabel(given[1], "DATE")

    def relabel_the_other(jobs: Jobs, given: Any) -> None:
        LabelService(jobs.store).relabel(given[0], "TIME")

    left = list(interleaved(HERE, two_labels, relabel_to_the_other, relabel_the_other))
    assert [len(labels) for labels in left] == [2, 2, 2]


def test_labels_that_are_moved_while_they_are_consolidated_are_consolidated() -> None:
    def move(jobs: Jobs, _: object) -> None:
        LabelService(jobs.store).move(LabelService(jobs.store).list_by_label("TTL"), "VALID")

    left = list(interleaved(HERE, aliased, VERBS["consolidate"].act, move))
    assert left
    assert all(sum('{"S": "LABEL#TOTAL"}' in item for item in labels) == 3 for labels in left)


OLD, NEW = (ocr_result("a", lines=lines, words=30, letters=1) for lines in (2, 1))
OTHER = replace(OLD, words=[word.replace(text="other") for word in OLD.words])


def check_image(jobs: Jobs) -> None:
    """An image that stands is one of the results as a whole; nothing is left of one that is gone."""
    found = OcrService(jobs.store).list_images().first()
    under = [each for each in jobs.store.collection(Image.key(image_id="a")) if not isinstance(each, Image)]
    results = [] if found is None else [sorted(map(repr, each.under_the_image())) for each in (OLD, NEW, OTHER)]
    assert sorted(map(repr, under)) in (results or [[]])


@pytest.mark.parametrize("other", [lambda ocr: ocr.store(OTHER), lambda ocr: ocr.delete_image("a")])
@pytest.mark.parametrize("act", [lambda ocr: ocr.store(NEW), lambda ocr: ocr.delete_image("a")])
@pytest.mark.parametrize("before", [lambda ocr: ocr.store(OLD), lambda ocr: ocr.store(NEW)])
def test_of_two_who_store_or_delete_an_image_at_once_one_wins_wholly(
    before: Callable[[OcrService], object], act: Callable[[OcrService], object], other: Callable[[OcrService], object]
) -> None:
    left = interleaved(
        Surroundings((main,), check_image),
        lambda jobs: before(OcrService(jobs.store)),
        lambda jobs, _: act(OcrService(jobs.store)),
        lambda jobs, _: other(OcrService(jobs.store)),
    )
    assert list(left)
