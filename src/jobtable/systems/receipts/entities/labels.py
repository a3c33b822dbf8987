"""Labels of words, fields and merchants of receipts, aliases of labels, and cached answers of a places service."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.field_types import Count
from jobtable.model import Attr, Entity, Json, Key, Name, Part, Stored, Timestamp, default
from jobtable.systems.receipts.entities.record_bases import Confidence, Number


class ValidationStatus(StrEnum):
    """The statuses that this package writes. Fields accept any text, because other programs may write their own."""

    NONE = "NONE"
    PENDING = "PENDING"
    VALID = "VALID"
    INVALID = "INVALID"
    NEEDS_REVIEW = "NEEDS_REVIEW"


class ReceiptRef(Part):
    """A reference to a receipt."""

    image_id: str
    receipt_id: Number


class ReceiptMetadata(Entity, table=main, type="RECEIPT_METADATA"):
    """The merchant of a receipt, how it was found, and how reliable the match is."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#METADATA")
    by_merchant = Key("MERCHANT#{merchant_name}", "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}#METADATA", index="GSI1")
    by_confidence = Key("MERCHANT_VALIDATION", "CONFIDENCE#{match_confidence:1.}", index="GSI2")

    image_id: str
    receipt_id: Number
    place_id: str | None = None
    merchant_name: Attr[str]
    merchant_category: Attr[str | None] = default(None)
    address: Attr[str | None] = default(None)
    phone_number: Attr[str | None] = default(None)
    match_confidence: Attr[Confidence]
    matched_fields: list[str] = []
    validated_by: Attr[str | None] = default(None)
    timestamp: Timestamp
    reasoning: Attr[str | None] = default(None)


class ReceiptWordLabel(Entity, table=main, type="RECEIPT_WORD_LABEL"):
    """A label of a receipt's word, and its validation status."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}#LABEL#{label}")
    by_label = Key(
        "LABEL#{label}", "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}", index="GSI1"
    )
    everywhere = Key(
        "RECEIPT", "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}", index="GSI2"
    )
    by_status = Key(
        "VALIDATION_STATUS#{validation_status}",
        "RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}#LABEL#{label}",
        index="GSI3",
    )

    image_id: str
    receipt_id: Number
    line_id: Number
    word_id: Number
    label: str
    reasoning: Attr[str | None] = default(None)
    timestamp_added: Timestamp
    validation_status: Attr[str] = default(ValidationStatus.NONE.value)
    label_consolidated_from: str | None = None
    label_proposed_by: str | None = None


class FieldWord(Part):
    """A word that belongs to a field."""

    word_id: Number
    line_id: Number
    label: str


class ReceiptField(Entity, table=main, type="RECEIPT_FIELD"):
    """The words of a receipt that make up one field, such as its date or total."""

    key = Key("FIELD#{field_type}", "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}")
    by_receipt = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#FIELD#{field_type}", index="GSI1")

    field_type: str
    image_id: str
    receipt_id: Number
    words: list[FieldWord]
    reasoning: str | None = None
    timestamp_added: Timestamp


class LabelHygieneResult(Entity, table=main, type="LABEL_HYGIENE_RESULT"):
    """A finding that a label is an alias of a canonical one."""

    key = Key("LABEL_HYGIENE#{hygiene_id}", "FROM#{alias}#TO#{canonical_label}")
    by_alias = Key("ALIAS#{alias}", "TO#{canonical_label}", index="GSI1")
    by_canonical_label = Key("CANONICAL_LABEL#{canonical_label}", "ALIAS#{alias}", index="GSI2")

    hygiene_id: str
    alias: str
    canonical_label: str
    reasoning: str | None = None
    gpt_agreed: Attr[bool]
    source_batch_id: str | None = None
    example_ids: list[str] = []
    image_id: str | None = None
    receipt_id: Number | None = None
    timestamp: Timestamp


class LabelMetadata(Entity, table=main, type="LABEL_METADATA"):
    """A canonical label, its meaning and its aliases."""

    key = Key("LABEL#{label}", "METADATA")
    by_label = Key("LABEL#{label}", "METADATA", index="GSI1")
    by_target = Key("LABEL_TARGET#{label_target}", "LABEL#{label}", index="GSI2")

    label: str
    status: Attr[str]
    aliases: Attr[list[str]] = default([])
    description: Attr[str | None] = default(None)
    schema_version: int = 1
    last_updated: Attr[Timestamp]
    label_target: Attr[str | None] = default(None)
    receipt_refs: Attr[list[ReceiptRef]] = default([])


class PlacesCache(Entity, table=main, type="PLACES_CACHE"):
    """The cached answer to one search. A hit updates `last_updated`, which orders answers by their last use."""

    key = Key("PLACES#{search_type}", "VALUE#{search_value}")
    by_place = Key("PLACE_ID", "PLACE_ID#{place_id}", index="GSI1")
    by_use = Key("LAST_USED", "{last_updated}", index="GSI2")

    search_type: Stored[str]
    search_value: Stored[str]
    place_id: str
    places_response: Json
    last_updated: Attr[Timestamp]
    query_count: Attr[Count] = default(0)
    validation_status: Attr[str | None] = default(None)
    normalized_value: str | None = None
    value_hash: str | None = None
    time_to_live: Annotated[Attr[int | None], Name("TimeToLive")] = default(None)
