"""The rules of the example, and the few sentences that its stages understand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

from jobtable.systems.journeys.entities import SecondBrainRule
from jobtable.systems.journeys.parts import Priority, RuleMetadata, RuleScope, RuleType

_SENTENCES = {
    "table": re.compile(r"Map '(?P<name>[^']+)' table to TMF '(?P<meaning>[^']+)'"),
    "field": re.compile(r"Map '(?P<name>[^']+)' field to TMF '(?P<meaning>[^']+)'"),
    "drop": re.compile(r"Drop tables? '(?P<name>[^']+)'"),
    "read": re.compile(r"Read '(?P<name>[^']+)' as (?P<meaning>cents|yes or no|a time)"),
    "require": re.compile(r"Require '(?P<name>[^']+)'"),
    "match": re.compile(r"Match '(?P<name>[^']+)' with '(?P<meaning>[^']+)'"),
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "cents": lambda value: f"{Decimal(value) / 100:.2f}" if isinstance(value, int) else value,
    "yes or no": lambda value: {"Y": True, "N": False}.get(value, value),
    "a time": lambda value: value.replace(" ", "T") if isinstance(value, str) else value,
}


@dataclass(frozen=True)
class RuleBook:
    """What the rules say; of two rules about the same thing, the more urgent one counts."""

    tables: dict[str, str]
    """Target names of tables."""
    fields: dict[str, str]
    """Target names of fields, by `field` or `table.field`."""
    dropped: tuple[str, ...]
    """Patterns of tables to drop."""
    readings: dict[str, str]
    """How to interpret the values of fields."""
    required: tuple[str, ...]
    """Target fields that every document with such a field in its mapping must have."""
    patterns: dict[str, str]
    """Regular expressions for target fields."""
    unknown: tuple[str, ...]
    """Ids of rules with an unknown text."""

    def target_of(self, table: str, column: str) -> str | None:
        """Return the target name of a column by a rule."""
        return self.fields.get(f"{table}.{column}", self.fields.get(column))

    def is_dropped(self, table: str) -> bool:
        """Return whether a rule drops a table."""
        return any(fnmatchcase(table, pattern) for pattern in self.dropped)


def read_rules(rules: Iterable[SecondBrainRule]) -> RuleBook:
    """Read the texts of rules, most urgent first."""
    said: dict[str, dict[str, str]] = {kind: {} for kind in _SENTENCES}
    unknown = []
    for rule in rules:
        is_understood = False
        for kind, sentence in _SENTENCES.items():
            for found in sentence.finditer(rule.content):
                said[kind].setdefault(found["name"], found.groupdict().get("meaning", ""))
                is_understood = True
        if not is_understood:
            unknown.append(rule.rule_id)
    return RuleBook(
        tables=said["table"],
        fields=said["field"],
        dropped=tuple(said["drop"]),
        readings=said["read"],
        required=tuple(said["require"]),
        patterns=said["match"],
        unknown=tuple(unknown),
    )


def interpret(reading: str | None, value: Any) -> Any:
    """Interpret a value by a reading."""
    return value if reading is None or value is None else _READERS[reading](value)


_RULES: dict[tuple[str, RuleType], list[tuple[Priority, str, str]]] = {
    ("tmf_mapping", RuleType.FIELD_MAPPING): [
        (Priority.CRITICAL, "SKU", "Map 'sku' field to TMF 'productCode'"),
        (Priority.HIGH, "Offerings", "Map 'product' table to TMF 'productOffering'"),
        (
            Priority.HIGH,
            "Prices",
            "Map 'product_price' table to TMF 'productOfferingPrice'; Map 'amount_cents' field to TMF 'price'",
        ),
        (
            Priority.MEDIUM,
            "Names",
            "Map 'prod_name' field to TMF 'name'; Map 'cat_name' field to TMF 'name'; "
            "Map 'sup_name' field to TMF 'name'; Map 'descr' field to TMF 'description'",
        ),
        (
            Priority.MEDIUM,
            "Relationships",
            "Map 'product_rel' table to TMF 'productOfferingRelationship'; Map 'is_active' field to TMF 'isSellable'",
        ),
    ],
    ("data_migration", RuleType.DATA_INTERPRETATION): [
        (
            Priority.HIGH,
            "Values",
            "Read 'amount_cents' as cents; Read 'is_active' as yes or no; Read 'created_ts' as a time",
        )
    ],
    ("stripped_schema", RuleType.DATA_INTERPRETATION): [
        (Priority.HIGH, "Leftovers", "Drop tables 'tmp_*'; Drop table 'schema_version'")
    ],
    ("verification_validation", RuleType.VALIDATION_RULES): [
        (Priority.CRITICAL, "Codes", "Require 'productCode'; Match 'productCode' with '[A-Z]{3}-[0-9]{6}'")
    ],
}
_ALSO_IN = {"data_migration": ["verification_validation"]}
"""Other stages to which the rules of a stage apply."""


def example_rules(journey_id: str, created_by: str, created_at: datetime) -> list[SecondBrainRule]:
    """Return the rules for a journey of a product catalogue."""
    every = [(*of, *rule) for of, rules in _RULES.items() for rule in rules]
    return [
        SecondBrainRule(
            rule_id=f"rule-{stage_id}-{rule_type.value}-{index:03d}",
            journey_id=journey_id,
            stage_id=stage_id,
            index=index,
            title=title,
            type=rule_type,
            priority=priority,
            scope=RuleScope.STAGE,
            content=content,
            metadata=RuleMetadata(
                created_by=created_by,
                tags=[stage_id, rule_type.value, priority.value],
                applicable_stages=[stage_id, *_ALSO_IN.get(stage_id, [])],
            ),
            created_at=created_at,
            updated_at=created_at,
        )
        for index, (stage_id, rule_type, priority, title, content) in enumerate(every, start=1)
    ]
