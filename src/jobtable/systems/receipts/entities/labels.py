"""Labels of words, the merchants and fields of receipts, and how labels are kept clean."""

from __future__ import annotations

from enum import StrEnum

from jobtable.jobs.stored.entities import main
from jobtable.model import Attr, Entity, Key, Part, Timestamp, default
from jobtable.systems.receipts.geometry import Confidence
from jobtable.systems.receipts.records import Number


class ValidationStatus(StrEnum):
    """The states that this package writes. Other programs may have their own, so fields hold any text."""

    NONE = "NONE"
    PENDING = "PENDING"
    VALID = "VALID"
    INVALID = "INVALID"
    NEEDS_REVIEW = "NEEDS_REVIEW"


class ReceiptRef(Part):
    """Names a receipt."""

    image_id: str
    receipt_id: Number


class ReceiptMetadata(Entity, table=main, type="RECEIPT_METADATA"):
    """The merchant of a receipt, how it was found and how sure that is."""

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
    """A label of a receipt's word, and whether it has been found right."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}#LABEL#{label}")
    by_label = Key(
        "LABEL#{label}",
        "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}",
        index="GSI1",
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
    """A finding that one label is only another name for a canonical one."""

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
    """A canonical label: what it means, and the other names that it goes by."""

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
