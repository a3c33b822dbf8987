"""The six stages of a journey that is created without stages of its own."""

from __future__ import annotations

from datetime import datetime

from jobtable.systems.journeys.entities import StageDefinition
from jobtable.systems.journeys.parts import RuleType, StepDefinition


def _step(step_id: str, minutes: int, description: str, *, ai: bool = False) -> StepDefinition:
    name = step_id.replace("_", " ").title()
    return StepDefinition(
        step_id=step_id, name=name, description=description, ai_assisted=ai, estimated_duration=f"{minutes}m"
    )


_STAGES: list[tuple[str, str, str, int, list[RuleType], list[StepDefinition]]] = [
    (
        "raw_analysis",
        "Raw Analysis",
        "Analyze source schema and extract metadata",
        30,
        [RuleType.FIELD_MAPPING, RuleType.DATA_INTERPRETATION],
        [
            _step("schema_extraction", 10, "Extract schema from source database", ai=True),
            _step("metadata_analysis", 15, "Analyze table relationships and constraints", ai=True),
            _step("data_profiling", 5, "Profile data patterns and quality"),
        ],
    ),
    (
        "stripped_schema",
        "Stripped Schema",
        "Extract and clean schema structure",
        20,
        [RuleType.DATA_INTERPRETATION],
        [
            _step("schema_cleaning", 10, "Drop what is technical or unused", ai=True),
            _step("structure_normalization", 10, "Bring names and types into one form"),
        ],
    ),
    (
        "tmf_mapping",
        "TMF Mapping",
        "Map to TMF API specifications",
        45,
        [RuleType.FIELD_MAPPING, RuleType.CONTEXTUAL_RECOMMENDATIONS, RuleType.BUSINESS_LOGIC],
        [
            _step("field_mapping", 30, "Map source fields to fields of the TMF API by the rules", ai=True),
            _step("mapping_validation", 15, "Check the mapping against the specification"),
        ],
    ),
    (
        "migration_planning",
        "Migration Planning",
        "Plan data migration strategy",
        25,
        [RuleType.CONTEXTUAL_RECOMMENDATIONS],
        [
            _step("dependency_analysis", 10, "Order the tables by their foreign keys"),
            _step("batch_planning", 15, "Divide each table into batches", ai=True),
        ],
    ),
    (
        "data_migration",
        "Data Migration",
        "Execute data transformation",
        60,
        [RuleType.DATA_INTERPRETATION, RuleType.BUSINESS_LOGIC],
        [
            _step("data_extraction", 20, "Read the source in batches"),
            _step("data_transformation", 25, "Apply mapping and rules to each record", ai=True),
            _step("data_loading", 15, "Write the documents of the target"),
        ],
    ),
    (
        "verification_validation",
        "Verification and Validation",
        "Validate transformed data",
        30,
        [RuleType.VALIDATION_RULES, RuleType.COMPLIANCE_CHECK],
        [
            _step("count_verification", 10, "Compare the counts and checksums of source and target"),
            _step("rule_validation", 15, "Check the target against the validation rules", ai=True),
            _step("final_report", 5, "Sum up what was transformed and what was not"),
        ],
    ),
]


def default_stages(journey_id: str, created_at: datetime) -> list[StageDefinition]:
    """Return the six stages of a new journey, in order."""
    return [
        StageDefinition(
            journey_id=journey_id,
            stage_id=stage_id,
            name=name,
            description=description,
            order=order,
            estimated_duration=f"{minutes}m",
            rule_types=rule_types,
            steps=steps,
            created_at=created_at,
            updated_at=created_at,
        )
        for order, (stage_id, name, description, minutes, rule_types, steps) in enumerate(_STAGES, start=1)
    ]
