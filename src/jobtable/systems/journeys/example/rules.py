"""The rules that the bundled journey comes with."""

from __future__ import annotations

from datetime import datetime

from jobtable.systems.journeys.entities import SecondBrainRule
from jobtable.systems.journeys.parts import Priority, RuleMetadata, RuleScope, RuleType

_RULES: list[tuple[str, RuleType, Priority, str, str, list[str]]] = [
    ("tmf_mapping", RuleType.FIELD_MAPPING, Priority.CRITICAL, "SKU", "Map 'sku' field to TMF 'productCode'", []),
    (
        "tmf_mapping",
        RuleType.FIELD_MAPPING,
        Priority.HIGH,
        "Offerings",
        "Map 'product' table to TMF 'productOffering'",
        [],
    ),
    (
        "tmf_mapping",
        RuleType.FIELD_MAPPING,
        Priority.HIGH,
        "Prices",
        "Map 'product_price' table to TMF 'productOfferingPrice'; Map 'amount_cents' field to TMF 'price'",
        [],
    ),
    (
        "tmf_mapping",
        RuleType.FIELD_MAPPING,
        Priority.MEDIUM,
        "Names",
        "Map 'prod_name' field to TMF 'name'; Map 'cat_name' field to TMF 'name'; Map 'sup_name' field to TMF 'name'; "
        "Map 'descr' field to TMF 'description'",
        [],
    ),
    (
        "tmf_mapping",
        RuleType.FIELD_MAPPING,
        Priority.MEDIUM,
        "Relationships",
        "Map 'product_rel' table to TMF 'productOfferingRelationship'; Map 'is_active' field to TMF 'isSellable'",
        [],
    ),
    (
        "data_migration",
        RuleType.DATA_INTERPRETATION,
        Priority.HIGH,
        "Values",
        "Read 'amount_cents' as cents; Read 'is_active' as yes or no; Read 'created_ts' as a time",
        ["data_migration", "verification_validation"],
    ),
    (
        "stripped_schema",
        RuleType.DATA_INTERPRETATION,
        Priority.HIGH,
        "Leftovers",
        "Drop tables 'tmp_*'; Drop table 'schema_version'",
        [],
    ),
    (
        "verification_validation",
        RuleType.VALIDATION_RULES,
        Priority.CRITICAL,
        "Codes",
        "Require 'productCode'; Match 'productCode' with '[A-Z]{3}-[0-9]{6}'",
        [],
    ),
]


def example_rules(journey_id: str, created_by: str, created_at: datetime) -> list[SecondBrainRule]:
    """The rules of a product catalogue's journey."""
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
                applicable_stages=applicable or [stage_id],
            ),
            created_at=created_at,
            updated_at=created_at,
        )
        for index, (stage_id, rule_type, priority, title, content, applicable) in enumerate(_RULES, start=1)
    ]
