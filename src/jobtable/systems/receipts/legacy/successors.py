"""What each kind of legacy item becomes in the main table."""

from __future__ import annotations

from jobtable.jobs.stored import entities as jobs
from jobtable.jobs.stored.entities import main
from jobtable.model import Entity
from jobtable.store import Item
from jobtable.systems.receipts import entities as receipts
from jobtable.systems.receipts.legacy import entities as old
from jobtable.systems.receipts.legacy.entities import legacy

PROPOSED_BY = "LEGACY_TAG"
"""Who proposed a label that was a tag."""

_SUCCESSORS: dict[type[Entity], type[Entity]] = {
    old.Image: receipts.Image,
    old.Line: receipts.Line,
    old.Word: receipts.Word,
    old.Letter: receipts.Letter,
    old.Receipt: receipts.Receipt,
    old.ReceiptLine: receipts.ReceiptLine,
    old.ReceiptWord: receipts.ReceiptWord,
    old.ReceiptLetter: receipts.ReceiptLetter,
    old.Job: jobs.Job,
    old.JobStatus: jobs.JobStatus,
    old.JobResource: jobs.JobResource,
    old.JobMetric: jobs.JobMetric,
    old.JobCheckpoint: jobs.JobCheckpoint,
    old.JobLog: jobs.JobLog,
    old.JobDependency: jobs.JobDependency,
    old.Instance: jobs.Instance,
    old.InstanceJob: jobs.InstanceJob,
    old.Queue: jobs.Queue,
    old.QueueJob: jobs.QueueJob,
}

WITHOUT_SUCCESSOR = {
    "WORD_TAG": "the main table has labels for the words of receipts only",
    "GPT_VALIDATION": "the main table keeps no query and response of a single word",
    "GPT_INITIAL_TAGGING": "the main table keeps no query and response of a single word",
}
"""Why some kinds become nothing."""

_RESERVED = {*main.key_types(), *filter(None, [main.type_attribute, main.ttl])}
"""Attributes that mean something in the main table, and are not carried over from items that do not declare them."""


def kind_of(item: Item) -> str:
    """The type of a legacy item, or, where it says none, the one whose keys it has; "" where there is none."""
    stated = item.get("TYPE", {}).get("S")
    if stated is not None:
        return str(stated)
    fitting = (schema.type_name for schema in legacy.entities.values() if _has_keys_of(item, schema.type_name))
    return next(fitting, "")


def _has_keys_of(item: Item, kind: str) -> bool:
    for part in legacy.entities[kind].primary.parts:
        if part.template is not None:
            try:
                part.template.parse(item.get(part.attribute, {}).get("S", ""))
            except ValueError:
                return False
    return True


def successor(entity: Entity) -> Entity | None:
    """What a legacy item becomes, or None where the main table has no place for it."""
    undeclared = {name: value for name, value in (entity._undeclared or {}).items() if name not in _RESERVED}
    if isinstance(entity, old.ReceiptWordTag):
        label = receipts.ReceiptWordLabel(
            image_id=entity.image_id,
            receipt_id=entity.receipt_id,
            line_id=entity.line_id,
            word_id=entity.word_id,
            label=entity.tag_name,
            timestamp_added=entity.timestamp_added,
            label_proposed_by=PROPOSED_BY,
        )
        return label.with_undeclared(undeclared)
    kind = _SUCCESSORS.get(type(entity))
    if kind is None:
        return None
    common = {name: getattr(entity, name) for name in type(entity).model_fields if name in kind.model_fields}
    if isinstance(entity, old.Queue):
        common["job_count"] = 0  # it counts those that come into it in the main table
    return kind(**common).with_undeclared(undeclared)
