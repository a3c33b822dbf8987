"""The successor of each kind of legacy item in the main table."""

from __future__ import annotations

from typing import Any

from jobtable.jobs.stored import entities as jobs
from jobtable.jobs.stored.entities import main
from jobtable.model import Entity
from jobtable.store import Item
from jobtable.systems.receipts import entities as receipts
from jobtable.systems.receipts.legacy import entities as old
from jobtable.systems.receipts.legacy.entities import legacy

PROPOSED_BY = "LEGACY_TAG"
"""The proposer of a label that was a tag."""

_SUCCESSORS: dict[type[Entity], type[Entity]] = {
    old.Image: receipts.Image,
    old.Line: receipts.Line,
    old.Word: receipts.Word,
    old.Letter: receipts.Letter,
    old.Receipt: receipts.Receipt,
    old.ReceiptLine: receipts.ReceiptLine,
    old.ReceiptWord: receipts.ReceiptWord,
    old.ReceiptLetter: receipts.ReceiptLetter,
    old.ReceiptWordTag: receipts.ReceiptWordLabel,
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
    "WORD_TAG": "the main table has labels only for the words of receipts",
    "GPT_VALIDATION": "the main table keeps no queries and responses for single words",
    "GPT_INITIAL_TAGGING": "the main table keeps no queries and responses for single words",
}
"""Why some kinds have no successor."""

_RESERVED = {*main.key_types(), *filter(None, [main.type_attribute, main.ttl])}
"""Attributes with a meaning in the main table, which undeclared attributes of legacy items must not overwrite."""


def kind_of(item: Item) -> str:
    """Return the type of a legacy item; if it names none, the one whose keys it has, or ""."""
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
    """Return the successor of a legacy item, or None if the main table has none."""
    undeclared = {name: value for name, value in (entity._undeclared or {}).items() if name not in _RESERVED}
    if isinstance(entity, old.ReceiptWordTag):
        changed: dict[str, Any] = {"label": entity.tag_name, "label_proposed_by": PROPOSED_BY}
    else:
        changed = {"job_count": 0} if isinstance(entity, old.Queue) else {}  # it counts entries as they are added
    kind = _SUCCESSORS.get(type(entity))
    if kind is None:
        return None
    common = {name: getattr(entity, name) for name in type(entity).model_fields if name in kind.model_fields}
    return kind(**common | changed).with_undeclared(undeclared)
