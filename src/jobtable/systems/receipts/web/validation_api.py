"""Analyses and validations of receipts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from pydantic import Field

from jobtable.errors import ValueRefusedError
from jobtable.systems.receipts.analyses import AnalysisService, Timed
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
from jobtable.systems.receipts.web.api import ImageId, Number
from jobtable.web.api.parts import Body, NewestFirst, Written, api_router, with_kind
from jobtable.web.dependencies import Instant, PageOf, Paging, TheStore, path_id
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.idempotency import HEADER, CreationRoute

router = api_router("validations")
creation = api_router("validations", CreationRoute)

FieldName = Annotated[str, path_id("total")]
Status = Annotated[str, Query(min_length=1, max_length=200, examples=["INVALID"])]
_RECEIPT = "/images/{image_id}/receipts/{receipt_id}"


async def _analyses(store: TheStore) -> AnalysisService:
    return AnalysisService(store)


async def _validation(store: TheStore) -> ValidationService:
    return ValidationService(store, store.clock)


TheAnalyses = Annotated[AnalysisService, Depends(_analyses)]
TheValidation = Annotated[ValidationService, Depends(_validation)]


class NewValidation(Body):
    """A validation to begin."""

    version: str = Field(min_length=1, max_length=100, examples=["1.0"])


class FindingBody(Body):
    """Something that was found about a field."""

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


@router.put("/analyses/labels")
@allow(WRITE)
def keep_label_analysis(analysis: ReceiptLabelAnalysis, analyses: TheAnalyses) -> ReceiptLabelAnalysis:
    """Store the labels that a model gives to a receipt's words, in place of an older analysis."""
    analyses.keep(analysis)
    return analysis


@router.put("/analyses/structure")
@allow(WRITE)
def keep_structure_analysis(analysis: ReceiptStructureAnalysis, analyses: TheAnalyses) -> ReceiptStructureAnalysis:
    """Store the sections that a model sees in a receipt, in place of an older analysis."""
    analyses.keep(analysis)
    return analysis


@router.put("/analyses/line-items")
@allow(WRITE)
def keep_line_item_analysis(analysis: ReceiptLineItemAnalysis, analyses: TheAnalyses) -> ReceiptLineItemAnalysis:
    """Store what was bought, in place of an older analysis."""
    analyses.keep(analysis)
    return analysis


def _add_list(path: str, name: str, kind: type[Timed], what: str) -> None:
    """The list of one kind over all receipts."""
    page = PageOf[kind]  # type: ignore[valid-type]  # a type made at run time

    @router.get(f"/analyses/{path}", name=name, response_model=page, description=f"{what}, in order of time.")
    @allow(READ)
    def list_by_time(
        analyses: TheAnalyses,
        paging: Paging,
        after: Annotated[Instant | None, Query(description="Only analyses behind this instant.")] = None,
        newest_first: NewestFirst = False,
    ) -> Any:
        return paging.page(analyses.list_by_time(kind, after=after, newest_first=newest_first))


_add_list("labels", "list_label_analyses", ReceiptLabelAnalysis, "The label analyses of all receipts")
_add_list("structure", "list_structure_analyses", ReceiptStructureAnalysis, "The structure analyses of all receipts")
_add_list("line-items", "list_line_item_analyses", ReceiptLineItemAnalysis, "The line-item analyses of all receipts")
_add_list("validations", "list_validations_by_time", ReceiptValidationSummary, "The validations of all receipts")
_add_list(
    "validation-fields",
    "list_validated_fields_by_time",
    ReceiptValidationCategory,
    "How the fields of all receipts stand",
)
_add_list(
    "validation-results", "list_validation_results_by_time", ReceiptValidationResult, "The results of all validations"
)
_add_list(
    "second-passes",
    "list_second_passes_by_time",
    ReceiptChatGPTValidation,
    "The second passes over the validations of all receipts",
)


@router.get(_RECEIPT + "/analyses/labels")
@allow(READ)
def get_label_analysis(image_id: ImageId, receipt_id: Number, analyses: TheAnalyses) -> ReceiptLabelAnalysis:
    """The labels that a model gives to a receipt's words."""
    return analyses.get(ReceiptLabelAnalysis, image_id, receipt_id)


@router.get(_RECEIPT + "/analyses/structure")
@allow(READ)
def get_structure_analysis(image_id: ImageId, receipt_id: Number, analyses: TheAnalyses) -> ReceiptStructureAnalysis:
    """The sections that a model sees in a receipt."""
    return analyses.get(ReceiptStructureAnalysis, image_id, receipt_id)


@router.get(_RECEIPT + "/analyses/line-items")
@allow(READ)
def get_line_item_analysis(image_id: ImageId, receipt_id: Number, analyses: TheAnalyses) -> ReceiptLineItemAnalysis:
    """What was bought."""
    return analyses.get(ReceiptLineItemAnalysis, image_id, receipt_id)


@router.get(_RECEIPT + "/analyses")
@allow(READ)
def list_analyses_of_receipt(image_id: ImageId, receipt_id: Number, analyses: TheAnalyses) -> list[dict[str, Any]]:
    """All that analyses and validations have to say of a receipt, each with the name of its kind as `entity`."""
    return [with_kind(each) for each in analyses.list_of_receipt(image_id, receipt_id)]


# --- the validation of one receipt ----------------------------------------------------------------------------------


@creation.post(_RECEIPT + "/validation", status_code=201)
@allow(WRITE)
def start_validation(
    image_id: ImageId, receipt_id: Number, body: NewValidation, validation: TheValidation
) -> ReceiptValidationSummary:
    """Begin the validation of a receipt."""
    return validation.start(image_id, receipt_id, version=body.version)


@router.get(_RECEIPT + "/validation")
@allow(READ)
def get_validation(image_id: ImageId, receipt_id: Number, validation: TheValidation) -> ReceiptValidationSummary:
    """How a receipt's validation stands."""
    return validation.get_summary(image_id, receipt_id)


@router.delete(_RECEIPT + "/validation")
@allow(WRITE)
def delete_validation(image_id: ImageId, receipt_id: Number, validation: TheValidation) -> Written:
    """Delete a receipt's validation with all its parts, so that another can begin; gives the number of items."""
    return Written(count=validation.delete(image_id, receipt_id))


@router.get(_RECEIPT + "/validation/categories")
@allow(READ)
def list_categories(
    image_id: ImageId, receipt_id: Number, validation: TheValidation, paging: Paging
) -> PageOf[ReceiptValidationCategory]:
    """The categories of a receipt's validation."""
    return paging.page(validation.list_categories(image_id, receipt_id))


@creation.post(_RECEIPT + "/validation/categories/{field_name}/results", status_code=201)
@allow(WRITE)
def add_findings(
    image_id: ImageId,
    receipt_id: Number,
    field_name: FieldName,
    body: FindingsBody,
    validation: TheValidation,
    request: Request,
) -> list[ReceiptValidationResult]:
    """Store findings about a field, and bring its category and the summary into step."""
    findings = [Finding(**each.model_dump()) for each in body.findings]
    return validation.add_findings(
        image_id,
        receipt_id,
        field_name,
        findings,
        field_category=body.field_category,
        call_id=request.headers.get(HEADER),
    )


@router.get(_RECEIPT + "/validation/categories/{field_name}/results")
@allow(READ)
def list_results(
    image_id: ImageId, receipt_id: Number, field_name: FieldName, validation: TheValidation, paging: Paging
) -> PageOf[ReceiptValidationResult]:
    """The results of one category, in order."""
    return paging.page(validation.list_results(image_id, receipt_id, field_name))


@router.delete(_RECEIPT + "/validation/categories/{field_name}/results/{result_index}", status_code=204)
@allow(WRITE)
def remove_result(
    image_id: ImageId, receipt_id: Number, field_name: FieldName, result_index: Number, validation: TheValidation
) -> Response:
    """Take a result back, and bring its category and the summary into step."""
    validation.remove_result(image_id, receipt_id, field_name, result_index)
    return Response(status_code=204)


@creation.post(_RECEIPT + "/validation/second-passes", status_code=201)
@allow(WRITE)
def add_second_pass(
    image_id: ImageId, receipt_id: Number, second: ReceiptChatGPTValidation, validation: TheValidation
) -> ReceiptValidationSummary:
    """Store a second pass; the summary takes its revised status."""
    if (second.image_id, second.receipt_id) != (image_id, receipt_id):
        raise ValueRefusedError(f"the second pass is over {second.image_id} {second.receipt_id}, not this receipt")
    return validation.second_pass(second)


@router.get(_RECEIPT + "/validation/second-passes")
@allow(READ)
def list_second_passes(
    image_id: ImageId, receipt_id: Number, validation: TheValidation, paging: Paging
) -> PageOf[ReceiptChatGPTValidation]:
    """The second passes over a receipt's validation, the oldest first."""
    return paging.page(validation.list_second_passes(image_id, receipt_id))


# --- over all receipts ----------------------------------------------------------------------------------------------


@router.get("/validations")
@allow(READ)
def list_validations(status: Status, validation: TheValidation, paging: Paging) -> PageOf[ReceiptValidationSummary]:
    """The validations in a status, the oldest first."""
    return paging.page(validation.list_by_status(status))


@router.get("/validations/second-passes")
@allow(READ)
def list_second_passes_by_status(
    status: Status, validation: TheValidation, paging: Paging
) -> PageOf[ReceiptChatGPTValidation]:
    """The second passes that gave a status, the oldest first."""
    return paging.page(validation.list_second_passes_by_status(status))


@router.get("/validations/fields/{field_name}")
@allow(READ)
def list_by_field_status(
    field_name: FieldName, status: Status, validation: TheValidation, paging: Paging
) -> PageOf[ReceiptValidationCategory]:
    """Where a field has a status, over all receipts."""
    return paging.page(validation.list_by_field_status(field_name, status))


@router.get("/validations/results/{result_type}")
@allow(READ)
def list_by_result_type(
    result_type: ResultType, validation: TheValidation, paging: Paging
) -> PageOf[ReceiptValidationResult]:
    """The results of a type, over all receipts."""
    return paging.page(validation.list_by_result_type(result_type))
