"""Labels of receipts' words, the fields and merchants that come of them, and how labels are kept clean."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body as JsonBody
from fastapi import Depends, Query
from pydantic import BaseModel, Field

from jobtable.errors import missing
from jobtable.systems.receipts.entities import (
    LabelHygieneResult,
    LabelMetadata,
    ReceiptField,
    ReceiptMetadata,
    ReceiptWordLabel,
)
from jobtable.systems.receipts.labels import LabelHygieneService, LabelService
from jobtable.systems.receipts.web.api import ImageId, Number
from jobtable.web.api.parts import Body, Written, api_router
from jobtable.web.dependencies import PageOf, Paging, TheStore, path_id
from jobtable.web.guard import READ, WRITE, allow

router = api_router("labels")

Label = Annotated[str, path_id("MERCHANT_NAME")]
Share = Annotated[float, Query(ge=0, le=1)]


async def _labels(store: TheStore) -> LabelService:
    return LabelService(store)


async def _hygiene(store: TheStore) -> LabelHygieneService:
    return LabelHygieneService(store, store.clock)


TheLabels = Annotated[LabelService, Depends(_labels)]
TheHygiene = Annotated[LabelHygieneService, Depends(_hygiene)]


class MoveBody(Body):
    """Labels as they were read, and the validation status that they get."""

    labels: list[ReceiptWordLabel] = Field(max_length=500)
    status: str = Field(min_length=1, max_length=100, examples=["VALID"])
    reasoning: str | None = Field(None, max_length=10_000)


class RelabelBody(Body):
    """A label as it was read, and the one that its word gets instead."""

    label: ReceiptWordLabel
    name: str = Field(min_length=1, max_length=200, examples=["GRAND_TOTAL"])


class Resolved(BaseModel):
    """The canonical name of a label."""

    label: str


@router.put("/labels")
@allow(WRITE)
def add_labels(labels: Annotated[list[ReceiptWordLabel], JsonBody(max_length=1000)], service: TheLabels) -> Written:
    """Give labels to words; a label that is there is replaced."""
    return Written(count=service.add(labels))


@router.post("/labels/move")
@allow(WRITE)
def move_labels(body: MoveBody, service: TheLabels) -> Written:
    """Move labels that were read to another validation status, in steps of 50, each all or nothing."""
    return Written(count=service.move(body.labels, body.status, reasoning=body.reasoning))


@router.post("/labels/relabel")
@allow(WRITE)
def relabel(body: RelabelBody, service: TheLabels) -> ReceiptWordLabel:
    """Give a word another label in place of this one, which is remembered."""
    return service.relabel(body.label, body.name)


@router.get("/labels")
@allow(READ)
def list_labels(
    service: TheLabels,
    paging: Paging,
    label: Annotated[str | None, Query(min_length=1, description="Only this label.")] = None,
    status: Annotated[str | None, Query(min_length=1, description="Only in this validation status.")] = None,
) -> PageOf[ReceiptWordLabel]:
    """The labels of all receipts; those of one name or in one status. A name goes before a status."""
    if label is not None:
        return paging.page(service.list_by_label(label))
    if status is not None:
        return paging.page(service.list_by_status(status))
    return paging.page(service.list_everywhere())


@router.get("/images/{image_id}/receipts/{receipt_id}/labels")
@allow(READ)
def list_labels_of_receipt(
    image_id: ImageId, receipt_id: Number, service: TheLabels, paging: Paging
) -> PageOf[ReceiptWordLabel]:
    """The labels of a receipt's words, in the order of the words."""
    return paging.page(service.list_by_receipt(image_id, receipt_id))


@router.get("/images/{image_id}/receipts/{receipt_id}/fields")
@allow(READ)
def list_fields_of_receipt(
    image_id: ImageId, receipt_id: Number, service: TheLabels, paging: Paging
) -> PageOf[ReceiptField]:
    """The fields of a receipt."""
    return paging.page(service.list_fields(image_id, receipt_id))


@router.put("/receipt-fields")
@allow(WRITE)
def keep_field(field: ReceiptField, service: TheLabels) -> ReceiptField:
    """Store the words that make up a field of a receipt, in place of older ones."""
    service.keep_field(field)
    return field


@router.get("/receipt-fields/{field_type}")
@allow(READ)
def list_field(field_type: Annotated[str, path_id("DATE")], service: TheLabels, paging: Paging) -> PageOf[ReceiptField]:
    """One field of all receipts that have it."""
    return paging.page(service.list_by_field(field_type))


@router.put("/merchants")
@allow(WRITE)
def keep_merchant(metadata: ReceiptMetadata, service: TheLabels) -> ReceiptMetadata:
    """Store the merchant of a receipt, in place of an older one."""
    service.keep_merchant(metadata)
    return metadata


@router.get("/merchants")
@allow(READ)
def list_merchants(
    service: TheLabels, paging: Paging, lowest: Share = 0.0, highest: Share = 1.0, most_sure_first: bool = False
) -> PageOf[ReceiptMetadata]:
    """The receipts whose merchant was found with a confidence within limits, in order of confidence."""
    return paging.page(service.list_by_confidence(lowest, highest, most_sure_first=most_sure_first))


@router.get("/merchants/{merchant_name}")
@allow(READ)
def list_receipts_of_merchant(
    merchant_name: Annotated[str, path_id("Corner Shop")], service: TheLabels, paging: Paging
) -> PageOf[ReceiptMetadata]:
    """The receipts of a merchant."""
    return paging.page(service.list_by_merchant(merchant_name))


# --- what labels mean ------------------------------------------------------------------------------------------------


@router.put("/label-descriptions")
@allow(WRITE)
def describe_label(description: LabelMetadata, hygiene: TheHygiene) -> LabelMetadata:
    """Store what a canonical label means."""
    hygiene.describe(description)
    return description


@router.get("/label-descriptions/{label}")
@allow(READ)
def get_description(label: Label, hygiene: TheHygiene) -> LabelMetadata:
    """What a canonical label means."""
    found = hygiene.find_description(label)
    if found is None:
        raise missing("description of the label", label)
    return found


@router.get("/label-targets/{label_target}")
@allow(READ)
def list_labels_of_target(
    label_target: Annotated[str, path_id("merchant")], hygiene: TheHygiene, paging: Paging
) -> PageOf[LabelMetadata]:
    """The canonical labels for a target."""
    return paging.page(hygiene.list_by_target(label_target))


@router.put("/label-aliases")
@allow(WRITE)
def record_alias(result: LabelHygieneResult, hygiene: TheHygiene) -> LabelHygieneResult:
    """Keep a finding that an alias means a canonical label."""
    hygiene.record(result)
    return result


@router.get("/label-aliases/{alias}")
@allow(READ)
def list_meanings(
    alias: Annotated[str, path_id("STORE")], hygiene: TheHygiene, paging: Paging
) -> PageOf[LabelHygieneResult]:
    """The findings about an alias."""
    return paging.page(hygiene.list_by_alias(alias))


@router.get("/label-aliases/{alias}/canonical")
@allow(READ)
def resolve_alias(alias: Annotated[str, path_id("STORE")], hygiene: TheHygiene) -> Resolved:
    """The canonical label for a label, by the findings that were agreed to; itself where there is none."""
    return Resolved(label=hygiene.resolve(alias))


@router.post("/label-aliases/{alias}/consolidate")
@allow(WRITE)
def consolidate_alias(alias: Annotated[str, path_id("STORE")], hygiene: TheHygiene) -> Written:
    """Give every word with an alias its canonical label; the same request again completes."""
    return Written(count=hygiene.consolidate(alias))


@router.get("/label-descriptions/{label}/aliases")
@allow(READ)
def list_aliases(label: Label, hygiene: TheHygiene, paging: Paging) -> PageOf[LabelHygieneResult]:
    """The findings that lead to a canonical label."""
    return paging.page(hygiene.list_aliases(label))
