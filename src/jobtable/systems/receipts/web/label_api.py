"""Labels of receipts' words, the fields and merchants derived from them, and aliases of labels."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body as JsonBody
from fastapi import Query
from pydantic import BaseModel, Field

from jobtable.systems.receipts.entities import ReceiptWordLabel
from jobtable.systems.receipts.labels import LabelHygieneService, LabelService
from jobtable.systems.receipts.web.api import RECEIPT, RECEIPT_PATH, on_store
from jobtable.web.api.route_parts import Body, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, allow
from jobtable.web.injection import PageOf, Paging, path_id

router = api_router("labels")

TheLabels = Annotated[LabelService, on_store(LabelService)]
TheHygiene = Annotated[LabelHygieneService, on_store(LabelHygieneService)]
Label = Annotated[str, path_id("MERCHANT_NAME")]
Alias = Annotated[str, path_id("STORE")]
Share = Annotated[float, Query(ge=0, le=1)]


class MoveBody(Body):
    """Labels as they were read, and their new validation status."""

    labels: list[ReceiptWordLabel] = Field(max_length=500)
    status: str = Field(min_length=1, max_length=100, examples=["VALID"])
    reasoning: str | None = Field(None, max_length=10_000)


class RelabelBody(Body):
    """A label as it was read, and the name of the one that replaces it."""

    label: ReceiptWordLabel
    name: str = Field(min_length=1, max_length=200, examples=["GRAND_TOTAL"])


class CanonicalLabel(BaseModel):
    """The canonical name of a label."""

    label: str


@router.get("/labels")
@allow(READ)
def list_labels(
    service: TheLabels,
    paging: Paging,
    label: Annotated[str | None, Query(min_length=1, description="Only this label.")] = None,
    status: Annotated[str | None, Query(min_length=1, description="Only in this validation status.")] = None,
) -> PageOf[ReceiptWordLabel]:
    """List the labels of all receipts, optionally of one name or in one status. With both, the status is ignored."""
    if label is not None:
        return paging.page(service.list_by_label(label))
    return paging.page(service.list_everywhere() if status is None else service.list_by_status(status))


@router.get("/label-aliases/{alias}/canonical")
@allow(READ)
def resolve_alias(alias: Alias, hygiene: TheHygiene) -> CanonicalLabel:
    """Return the canonical label for a label according to the agreed findings, or the label itself."""
    return CanonicalLabel(label=hygiene.resolve(alias))


add_verbs(
    router,
    TheLabels,
    RECEIPT
    | {
        "labels": Annotated[list[ReceiptWordLabel], JsonBody(max_length=1000)],
        "field_type": Annotated[str, path_id("DATE")],
        "merchant_name": Annotated[str, path_id("Corner Shop")],
        "lowest": Share,
        "highest": Share,
    },
    ("add_labels", "PUT /labels", LabelService.add),
    ("move_labels", "POST /labels/move", LabelService.move, MoveBody),
    ("relabel", "POST /labels/relabel", LabelService.relabel, RelabelBody),
    ("list_labels_of_receipt", f"GET {RECEIPT_PATH}/labels", LabelService.list_by_receipt),
    ("list_fields_of_receipt", f"GET {RECEIPT_PATH}/fields", LabelService.list_fields),
    ("keep_field", "PUT /receipt-fields", LabelService.keep_field),
    ("list_field", "GET /receipt-fields/{field_type}", LabelService.list_by_field),
    ("keep_merchant", "PUT /merchants", LabelService.keep_merchant),
    ("list_merchants", "GET /merchants", LabelService.list_by_confidence),
    ("list_receipts_of_merchant", "GET /merchants/{merchant_name}", LabelService.list_by_merchant),
)
add_verbs(
    router,
    TheHygiene,
    {"label": Label, "canonical_label": Label, "alias": Alias, "label_target": Annotated[str, path_id("merchant")]},
    ("describe_label", "PUT /label-descriptions", LabelHygieneService.describe),
    ("get_description", "GET /label-descriptions/{label}", LabelHygieneService.find_description),
    ("list_aliases", "GET /label-descriptions/{canonical_label}/aliases", LabelHygieneService.list_aliases),
    ("list_labels_of_target", "GET /label-targets/{label_target}", LabelHygieneService.list_by_target),
    ("record_alias", "PUT /label-aliases", LabelHygieneService.record),
    ("list_meanings", "GET /label-aliases/{alias}", LabelHygieneService.list_by_alias),
    ("consolidate_alias", "POST /label-aliases/{alias}/consolidate", LabelHygieneService.consolidate),
)
