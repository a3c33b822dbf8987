"""The items of receipts in the main table."""

# ruff: noqa: I001 - a name imported as itself is exported; isort would write a statement for each

from jobtable.systems.receipts.entities.analyses import (
    AnalysisMetadata as AnalysisMetadata,
    FoundLabel as FoundLabel,
    LineItem as LineItem,
    Pattern as Pattern,
    Price as Price,
    ProcessingEvent as ProcessingEvent,
    ProcessingMetrics as ProcessingMetrics,
    Quantity as Quantity,
    ReceiptAnalysis as ReceiptAnalysis,
    ReceiptLabelAnalysis as ReceiptLabelAnalysis,
    ReceiptLineItemAnalysis as ReceiptLineItemAnalysis,
    ReceiptStructureAnalysis as ReceiptStructureAnalysis,
    Section as Section,
    SourceInformation as SourceInformation,
)
from jobtable.systems.receipts.entities.model_batches import (
    BatchResult as BatchResult,
    BatchSummary as BatchSummary,
    CompletionBatchResult as CompletionBatchResult,
    EmbeddingBatchResult as EmbeddingBatchResult,
)
from jobtable.systems.receipts.entities.labels import (
    FieldWord as FieldWord,
    LabelHygieneResult as LabelHygieneResult,
    LabelMetadata as LabelMetadata,
    PlacesCache as PlacesCache,
    ReceiptField as ReceiptField,
    ReceiptMetadata as ReceiptMetadata,
    ReceiptRef as ReceiptRef,
    ReceiptWordLabel as ReceiptWordLabel,
    ValidationStatus as ValidationStatus,
)
from jobtable.systems.receipts.entities.ocr import (
    Image as Image,
    ImageChange as ImageChange,
    Letter as Letter,
    Line as Line,
    Receipt as Receipt,
    ReceiptLetter as ReceiptLetter,
    ReceiptLine as ReceiptLine,
    ReceiptWord as ReceiptWord,
    Word as Word,
)
from jobtable.systems.receipts.entities.validation import (
    Correction as Correction,
    FieldSummary as FieldSummary,
    ReceiptChatGPTValidation as ReceiptChatGPTValidation,
    ReceiptValidationCategory as ReceiptValidationCategory,
    ReceiptValidationResult as ReceiptValidationResult,
    ReceiptValidationSummary as ReceiptValidationSummary,
    ResultSummary as ResultSummary,
    ResultType as ResultType,
)
