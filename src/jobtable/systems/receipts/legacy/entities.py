"""The legacy table and the 23 kinds of items in it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from jobtable.jobs.stored.field_types import (
    InstanceJobRecord,
    InstanceRecord,
    JobCheckpointRecord,
    JobDependencyRecord,
    JobLogRecord,
    JobMetricRecord,
    JobRecord,
    JobResourceRecord,
    JobStatusRecord,
    QueueJobRecord,
    QueueRecord,
)
from jobtable.model import Attr, Entity, Index, Key, Stored, Table, Timestamp, default
from jobtable.systems.receipts.entities.record_bases import (
    ImageRecord,
    LetterRecord,
    LineRecord,
    Number,
    ReceiptLetterRecord,
    ReceiptLineRecord,
    ReceiptRecord,
    ReceiptWordRecord,
    WordRecord,
)

MOST_TAG_CHARACTERS = 40

legacy = Table(
    "jobtable-legacy",
    pk="PK",
    sk="SK",
    type_attribute="TYPE",
    indexes=[Index("GSI1", "GSI1PK", "GSI1SK"), Index("GSI2", "GSI2PK", "GSI2SK")],
)


def _as_tag(value: str) -> str:
    tag = value.strip().upper()
    if not 1 <= len(tag) <= MOST_TAG_CHARACTERS:
        raise ValueError(f"a tag must have 1 to {MOST_TAG_CHARACTERS} characters; {value[:60]!r} has {len(tag)}")
    return tag


Tag: TypeAlias = Annotated[str, AfterValidator(_as_tag)]
"""A tag: upper case, at most 40 characters."""


class Image(ImageRecord, table=legacy, type="IMAGE"):
    """A photograph or scan."""

    everywhere = Key("IMAGE", "IMAGE#{image_id}", index="GSI1")


class Line(LineRecord, table=legacy, type="LINE"):
    """A line of text on an image."""

    everywhere = Key("IMAGE", "IMAGE#{image_id}#LINE#{line_id:05d}", index="GSI1")


class Word(WordRecord, table=legacy, type="WORD"):
    """A word of a line of an image, with its tags."""

    tags: Attr[list[Tag]] = default([])


class TagRecord(Entity):
    """A tag of a word."""

    image_id: str
    line_id: Number
    word_id: Number
    tag_name: Stored[Tag]
    timestamp_added: Timestamp


class WordTag(TagRecord, table=legacy, type="WORD_TAG"):
    """A tag of an image's word."""

    key = Key("IMAGE#{image_id}", "LINE#{line_id:05d}#WORD#{word_id:05d}#TAG#{tag_name}")
    by_tag = Key("TAG#{tag_name}", "IMAGE#{image_id}#LINE#{line_id:05d}#WORD#{word_id:05d}", index="GSI1")


class Letter(LetterRecord, table=legacy, type="LETTER"):
    """A letter of a word of an image."""


class Receipt(ReceiptRecord, table=legacy, type="RECEIPT"):
    """A receipt on an image."""

    by_image = Key("IMAGE", "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}", index="GSI1")
    everywhere = Key("RECEIPT", "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}", index="GSI2")


class ReceiptLine(ReceiptLineRecord, table=legacy, type="RECEIPT_LINE"):
    """A line of a receipt."""


class ReceiptWord(ReceiptWordRecord, table=legacy, type="RECEIPT_WORD"):
    """A word of a line of a receipt, with its tags."""

    everywhere = Key(
        "RECEIPT", "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}", index="GSI2"
    )

    tags: Attr[list[Tag]] = default([])


class ReceiptWordTag(TagRecord, table=legacy, type="RECEIPT_WORD_TAG"):
    """A tag of a receipt's word."""

    key = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}#TAG#{tag_name}")
    by_tag = Key(
        "TAG#{tag_name}",
        "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}#TAG#{tag_name}",
        index="GSI1",
    )
    everywhere = Key(
        "RECEIPT",
        "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}#TAG#{tag_name}",
        index="GSI2",
    )

    receipt_id: Number


class ReceiptLetter(ReceiptLetterRecord, table=legacy, type="RECEIPT_LETTER"):
    """A letter of a word of a receipt."""


class GPTRecord(Entity):
    """A query to GPT about a tag of a receipt's word, and the response."""

    image_id: str
    receipt_id: Number
    line_id: Number
    word_id: Number
    tag: Tag
    query: str
    response: str
    timestamp_added: Timestamp


class GPTValidation(GPTRecord, table=legacy, type="GPT_VALIDATION"):
    """GPT was asked whether a tag is correct."""

    key = Key(
        "IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}#TAG#{tag}#QUERY#VALIDATION"
    )


class GPTInitialTagging(GPTRecord, table=legacy, type="GPT_INITIAL_TAGGING"):
    """GPT was asked for the tags of a word."""

    key = Key(
        "IMAGE#{image_id}",
        "RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}#TAG#{tag}#QUERY#INITIAL_TAGGING",
    )


class Job(JobRecord, table=legacy, type="JOB"):
    """A piece of work."""


class JobStatus(JobStatusRecord, table=legacy, type="JOB_STATUS"):
    """One change of a job's status."""


class JobResource(JobResourceRecord, table=legacy, type="JOB_RESOURCE"):
    """A machine or device that a job holds or held."""


class JobMetric(JobMetricRecord, table=legacy, type="JOB_METRIC"):
    """One value of one metric of a job at one instant."""

    by_name = Key("METRIC", "METRIC#{metric_name}", index="GSI1")


class JobCheckpoint(JobCheckpointRecord, table=legacy, type="JOB_CHECKPOINT"):
    """A saved state of a job."""


class JobLog(JobLogRecord, table=legacy, type="JOB_LOG"):
    """A log line of a job."""


class JobDependency(JobDependencyRecord, table=legacy, type="JOB_DEPENDENCY"):
    """A dependency of one job on another."""


class Instance(InstanceRecord, table=legacy, type="INSTANCE"):
    """A machine that runs jobs."""


class InstanceJob(InstanceJobRecord, table=legacy, type="INSTANCE_JOB"):
    """A job that an instance runs or ran."""


class Queue(QueueRecord, table=legacy, type="QUEUE"):
    """A queue of jobs."""


class QueueJob(QueueJobRecord, table=legacy, type="QUEUE_JOB"):
    """A job in a queue."""
