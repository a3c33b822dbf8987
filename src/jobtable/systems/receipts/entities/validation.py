"""The validation of a receipt: a summary, categories, their results, and second passes."""

from __future__ import annotations

from enum import StrEnum

from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Count
from jobtable.model import Attr, Json, Key, Part, Timestamp, default
from jobtable.systems.receipts.entities.analyses import ReceiptAnalysis
from jobtable.systems.receipts.entities.record_bases import Number


class ResultType(StrEnum):
    """The kind of a validation result."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    SUCCESS = "success"


class FieldSummary(Part):
    """A category as the summary shows it."""

    status: str
    count: Count
    has_errors: bool
    has_warnings: bool


class ResultSummary(Part):
    """The number of results of each type in a category."""

    error_count: Count = 0
    warning_count: Count = 0
    info_count: Count = 0
    success_count: Count = 0

    @property
    def total(self) -> int:
        """The number of all results."""
        return self.error_count + self.warning_count + self.info_count + self.success_count


class ReceiptValidationSummary(ReceiptAnalysis, table=main, type="RECEIPT_VALIDATION_SUMMARY"):
    """Whether a receipt is valid, with the status of each category."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#ANALYSIS#VALIDATION")
    by_time = Key("ANALYSIS_TYPE", "VALIDATION#{validation_timestamp}", index="GSI1")
    by_status = Key("VALIDATION_STATUS#{overall_status}", "TIMESTAMP#{validation_timestamp}", index="GSI3")

    overall_status: Attr[str]
    overall_reasoning: Attr[str | None] = default(None)
    validation_timestamp: Timestamp
    version: str
    field_summary: Attr[dict[str, FieldSummary]] = default({})
    deleted_at: Attr[Timestamp | None] = default(None)
    """When its deletion started. Nothing is added to it after that."""


class ReceiptValidationCategory(ReceiptAnalysis, table=main, type="RECEIPT_VALIDATION_CATEGORY"):
    """The status of one field of a receipt."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#ANALYSIS#VALIDATION#CATEGORY#{field_name}")
    by_time = Key("ANALYSIS_TYPE", "VALIDATION#{validation_timestamp}#CATEGORY#{field_name}", index="GSI1")
    by_status = Key("FIELD_STATUS#{field_name}#{status}", "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}", index="GSI3")

    field_name: str
    validation_timestamp: Timestamp
    field_category: str
    status: Attr[str]
    reasoning: Attr[str | None] = default(None)
    result_summary: Attr[ResultSummary] = default(ResultSummary())
    unfinished: Attr[dict[str, list[int]] | None] = default(None)
    """Unfinished calls that add findings, each with the first index of every step that is stored."""
    finished: Attr[dict[str, list[int]] | None] = default(None)
    """The latest finished calls with an id, in the same form."""
    next_index: Attr[Number | None] = default(None)
    """Set when a result is removed: the lowest index that was never used. No index is used twice."""


class ReceiptValidationResult(ReceiptAnalysis, table=main, type="RECEIPT_VALIDATION_RESULT"):
    """One finding about one field of a receipt."""

    key = Key(
        "IMAGE#{image_id}",
        "RECEIPT#{receipt_id:05d}#ANALYSIS#VALIDATION#CATEGORY#{field_name}#RESULT#{result_index:05d}",
    )
    by_time = Key("ANALYSIS_TYPE", "VALIDATION#{validation_timestamp}#CATEGORY#{field_name}#RESULT", index="GSI1")
    by_result_type = Key(
        "RESULT_TYPE#{type}", "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}#CATEGORY#{field_name}", index="GSI3"
    )

    field_name: str
    result_index: Number
    validation_timestamp: Timestamp
    type: ResultType
    message: str
    reasoning: str | None = None
    field: str | None = None
    expected_value: Json = None
    actual_value: Json = None


class Correction(Part):
    """A value that the second pass corrected."""

    field_name: str
    original_value: Json = None
    corrected_value: Json = None
    explanation: str | None = None


class ReceiptChatGPTValidation(ReceiptAnalysis, table=main, type="RECEIPT_CHATGPT_VALIDATION"):
    """A second pass over a validation, which may revise its status."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#ANALYSIS#VALIDATION#CHATGPT#{timestamp}")
    by_time = Key("ANALYSIS_TYPE", "VALIDATION_CHATGPT#{timestamp}", index="GSI1")
    by_status = Key("VALIDATION_STATUS#{revised_status}", "CHATGPT#{timestamp}", index="GSI3")

    timestamp: Timestamp
    original_status: str
    revised_status: str
    reasoning: str | None = None
    corrections: list[Correction] = []
    prompt: str | None = None
    response: str | None = None
