"""What models find on a receipt: the labels of its words, its sections, its line items."""

from __future__ import annotations

from decimal import Decimal

from jobtable.jobs.stored.entities import main
from jobtable.model import Entity, Json, Key, Part, Timestamp
from jobtable.systems.receipts.entities.record_bases import BoundingBox, Number


class ProcessingMetrics(Part):
    """The cost of an analysis."""

    processing_time_ms: float | None = None
    api_calls: int | None = None


class ProcessingEvent(Part):
    """An event in the history of an analysis."""

    event_type: str
    timestamp: Timestamp
    description: str | None = None
    model_version: str | None = None


class SourceInformation(Part):
    """The model, algorithm and configuration that made an analysis."""

    model_name: str | None = None
    model_version: str | None = None
    algorithm: str | None = None
    configuration: dict[str, Json] = {}


class AnalysisMetadata(Part):
    """The origin of an analysis."""

    processing_metrics: ProcessingMetrics = ProcessingMetrics()
    processing_history: list[ProcessingEvent] = []
    source_information: SourceInformation = SourceInformation()


class ReceiptAnalysis(Entity):
    """The fields that every analysis of a receipt shares."""

    image_id: str
    receipt_id: Number
    metadata: AnalysisMetadata = AnalysisMetadata()


class FoundLabel(Part):
    """A label that an analysis assigns to a word."""

    label_type: str
    line_id: Number
    word_id: Number
    text: str
    reasoning: str | None = None
    bounding_box: BoundingBox | None = None


class ReceiptLabelAnalysis(ReceiptAnalysis, table=main, type="RECEIPT_LABEL_ANALYSIS"):
    """The labels that a model assigns to a receipt's words."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#ANALYSIS#LABELS")
    by_time = Key("ANALYSIS_TYPE", "LABELS#{timestamp_added}", index="GSI1")

    labels: list[FoundLabel]
    timestamp_added: Timestamp
    version: str
    overall_reasoning: str | None = None


class Pattern(Part):
    """A pattern by which a model recognised a section."""

    pattern_type: str
    description: str
    metadata: dict[str, Json] = {}


class Section(Part):
    """A section of a receipt."""

    name: str
    line_ids: list[Number]
    reasoning: str | None = None
    spatial_patterns: list[Pattern] = []
    content_patterns: list[Pattern] = []


class ReceiptStructureAnalysis(ReceiptAnalysis, table=main, type="RECEIPT_STRUCTURE_ANALYSIS"):
    """The sections that a model recognised in a receipt."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#ANALYSIS#STRUCTURE")
    by_time = Key("ANALYSIS_TYPE", "STRUCTURE#{timestamp_added}", index="GSI1")

    sections: list[Section]
    overall_reasoning: str | None = None
    timestamp_added: Timestamp
    version: str


class Quantity(Part):
    """An amount and its unit."""

    amount: Decimal
    unit: str | None = None


class Price(Part):
    """The price of one unit and of all of them."""

    unit_price: Decimal | None = None
    extended_price: Decimal | None = None


class LineItem(Part):
    """An item that was bought."""

    description: str
    quantity: Quantity | None = None
    price: Price | None = None
    line_ids: list[Number] = []
    reasoning: str | None = None


class ReceiptLineItemAnalysis(ReceiptAnalysis, table=main, type="RECEIPT_LINE_ITEM_ANALYSIS"):
    """The items that were bought, and whether their prices add up to the total."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#ANALYSIS#LINE_ITEMS")
    by_time = Key("ANALYSIS_TYPE", "LINE_ITEMS#{timestamp_added}", index="GSI1")

    items: list[LineItem]
    subtotal: Decimal | None = None
    tax: Decimal | None = None
    total: Decimal | None = None
    total_found: bool
    discrepancies: list[str] = []
    reasoning: str | None = None
    timestamp_added: Timestamp
    version: str
