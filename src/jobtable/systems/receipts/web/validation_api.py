"""Analyses and validations of receipts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import Field

from jobtable.errors import ValueRefusedError
from jobtable.systems.receipts.analyses import A, AnalysisService, Timed
from jobtable.systems.receipts.entities import (
    ReceiptChatGPTValidation,
    ReceiptLabelAnalysis,
    ReceiptLineItemAnalysis,
    ReceiptStructureAnalysis,
    ReceiptValidationCategory,
    ReceiptValidationResult,
    ReceiptValidationSummary,
    ResultType,
)
from jobtable.systems.receipts.validation import Finding, ValidationService
from jobtable.systems.receipts.web.api import RECEIPT, RECEIPT_PATH, ImageId, Number, on_store
from jobtable.web.api.route_parts import Body, NewestFirst, api_router, with_kind
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import HEADER, CreationRoute
from jobtable.web.injection import Instant, PageOf, Paging, path_id

router = api_router("validations")
creation = api_router("validations", CreationRoute)

FieldName = Annotated[str, path_id("total")]
TheAnalyses = Annotated[AnalysisService, on_store(AnalysisService)]
TheValidation = Annotated[ValidationService, on_store(ValidationService)]


class NewValidation(Body):
    """A validation to start."""

    version: str = Field(min_length=1, max_length=100, examples=["1.0"])


class FindingBody(Body):
    """A finding about a field."""

    type: ResultType
    message: str = Field(max_length=10_000)
    reasoning: str | None = Field(None, max_length=10_000)
    field: str | None = Field(None, max_length=200)
    expected_value: Any = None
    actual_value: Any = None


class FindingsBody(Body):
    """Findings about one field."""

    findings: list[FindingBody] = Field(max_length=500)
    field_category: str | None = Field(None, min_length=1, max_length=200)


# --- analyses -------------------------------------------------------------------------------------------------------


def _add_analysis(path: str, kind: type[A], name: str, what: str) -> None:
    """Add the routes that store and return one kind of analysis."""
    keep = (f"keep_{name}", f"PUT /analyses/{path}", AnalysisService.keep)
    add_verbs(router, TheAnalyses, {"analysis": kind, "return": kind}, keep)

    @router.get(
        f"{RECEIPT_PATH}/analyses/{path}", name=f"get_{name}", response_model=kind, description=f"Return {what}."
    )
    @allow(READ)
    def get(image_id: ImageId, receipt_id: Number, analyses: TheAnalyses) -> Any:
        return analyses.get(kind, image_id, receipt_id)


_add_analysis("labels", ReceiptLabelAnalysis, "label_analysis", "the labels that a model assigns to a receipt's words")
_add_analysis("structure", ReceiptStructureAnalysis, "structure_analysis", "the sections of a receipt")
_add_analysis("line-items", ReceiptLineItemAnalysis, "line_item_analysis", "the items of a receipt")


def _add_list(path: str, kind: type[Timed], name: str, what: str) -> None:
    page = PageOf[kind]  # type: ignore[valid-type]  # a type made at run time

    @router.get(f"/analyses/{path}", name=name, response_model=page, description=f"List {what} by time.")
    @allow(READ)
    def list_by_time(
        analyses: TheAnalyses,
        paging: Paging,
        after: Annotated[Instant | None, Query(description="Only analyses after this time.")] = None,
        newest_first: NewestFirst = False,
    ) -> Any:
        return paging.page(analyses.list_by_time(kind, after=after, newest_first=newest_first))


_VALIDATION = "validations of all receipts"
_add_list("labels", ReceiptLabelAnalysis, "list_label_analyses", "the label analyses of all receipts")
_add_list("structure", ReceiptStructureAnalysis, "list_structure_analyses", "the structure analyses of all receipts")
_add_list("line-items", ReceiptLineItemAnalysis, "list_line_item_analyses", "the line-item analyses of all receipts")
_add_list("validations", ReceiptValidationSummary, "list_validations_by_time", f"the {_VALIDATION}")
_add_list(
    "validation-fields", ReceiptValidationCategory, "list_validated_fields_by_time", f"the categories of {_VALIDATION}"
)
_add_list(
    "validation-results", ReceiptValidationResult, "list_validation_results_by_time", f"the results of {_VALIDATION}"
)
_add_list(
    "second-passes", ReceiptChatGPTValidation, "list_second_passes_by_time", f"the second passes over {_VALIDATION}"
)


@router.get(RECEIPT_PATH + "/analyses")
@allow(READ)
def list_analyses_of_receipt(image_id: ImageId, receipt_id: Number, analyses: TheAnalyses) -> list[dict[str, Any]]:
    """List all analyses and validations of a receipt; each names its kind as `entity`."""
    return [with_kind(each) for each in analyses.list_of_receipt(image_id, receipt_id)]


# --- validations ----------------------------------------------------------------------------------------------------


@creation.post(RECEIPT_PATH + "/validation/categories/{field_name}/results", status_code=201)
@allow(WRITE)
def add_findings(
    image_id: ImageId,
    receipt_id: Number,
    field_name: FieldName,
    body: FindingsBody,
    validation: TheValidation,
    request: Request,
) -> list[ReceiptValidationResult]:
    """Store findings about a field, and update its category and the summary."""
    findings = [Finding(**dict(each)) for each in body.findings]
    call_id = request.headers.get(HEADER)
    return validation.add_findings(
        image_id, receipt_id, field_name, findings, field_category=body.field_category, call_id=call_id
    )


@creation.post(RECEIPT_PATH + "/validation/second-passes", status_code=201)
@allow(WRITE)
def add_second_pass(
    image_id: ImageId, receipt_id: Number, second: ReceiptChatGPTValidation, validation: TheValidation
) -> ReceiptValidationSummary:
    """Store a second pass and give the summary its revised status."""
    if (second.image_id, second.receipt_id) != (image_id, receipt_id):
        raise ValueRefusedError(f"the second pass names receipt {second.receipt_id} of image {second.image_id}")
    return validation.second_pass(second)


start = (
    "start_validation",
    f"POST {RECEIPT_PATH}/validation 201",
    ValidationService.start,
    NewValidation,
)
add_verbs(creation, TheValidation, RECEIPT, start)
_STATUS = Annotated[str, Query(min_length=1, max_length=200, examples=["INVALID"])]
add_verbs(
    router,
    TheValidation,
    RECEIPT | {"field_name": FieldName, "result_index": Number, "status": _STATUS},
    ("get_validation", f"GET {RECEIPT_PATH}/validation", ValidationService.get_summary),
    ("delete_validation", f"DELETE {RECEIPT_PATH}/validation", ValidationService.delete),
    ("list_categories", f"GET {RECEIPT_PATH}/validation/categories", ValidationService.list_categories),
    (
        "list_results",
        f"GET {RECEIPT_PATH}/validation/categories/{{field_name}}/results",
        ValidationService.list_results,
    ),
    (
        "remove_result",
        f"DELETE {RECEIPT_PATH}/validation/categories/{{field_name}}/results/{{result_index}}",
        ValidationService.remove_result,
    ),
    ("list_second_passes", f"GET {RECEIPT_PATH}/validation/second-passes", ValidationService.list_second_passes),
    ("list_validations", "GET /validations", ValidationService.list_by_status),
    ("list_second_passes_by_status", "GET /validations/second-passes", ValidationService.list_second_passes_by_status),
    ("list_by_field_status", "GET /validations/fields/{field_name}", ValidationService.list_by_field_status),
    ("list_by_result_type", "GET /validations/results/{result_type}", ValidationService.list_by_result_type),
)
