"""The six stages that a journey has unless it is given others."""

from __future__ import annotations

from datetime import datetime

from jobtable.systems.journeys.entities import StageDefinition
from jobtable.systems.journeys.parts import RuleType, StepDefinition

_STAGES: list[tuple[str, str, str, str, list[RuleType], list[StepDefinition]]] = [
    (
        "raw_analysis",
        "Raw Analysis",
        "Analyze source schema and extract metadata",
        "30m",
        [RuleType.FIELD_MAPPING, RuleType.DATA_INTERPRETATION],
        [
            StepDefinition(
                step_id="schema_extraction",
                name="Schema Extraction",
                description="Extract schema from source database",
                ai_assisted=True,
                estimated_duration="10m",
            ),
            StepDefinition(
                step_id="metadata_analysis",
                name="Metadata Analysis",
                description="Analyze table relationships and constraints",
                ai_assisted=True,
                estimated_duration="15m",
            ),
            StepDefinition(
                step_id="data_profiling",
                name="Data Profiling",
                description="Profile data patterns and quality",
                estimated_duration="5m",
            ),
        ],
    ),
    (
        "stripped_schema",
        "Stripped Schema",
        "Extract and clean schema structure",
        "20m",
        [RuleType.DATA_INTERPRETATION],
        [
            StepDefinition(
                step_id="schema_cleaning",
                name="Schema Cleaning",
                description="Drop what is technical or unused",
                ai_assisted=True,
                estimated_duration="10m",
            ),
            StepDefinition(
                step_id="structure_normalization",
                name="Structure Normalization",
                description="Bring names and types into one form",
                estimated_duration="10m",
            ),
        ],
    ),
    (
        "tmf_mapping",
        "TMF Mapping",
        "Map to TMF API specifications",
        "45m",
        [RuleType.FIELD_MAPPING, RuleType.CONTEXTUAL_RECOMMENDATIONS, RuleType.BUSINESS_LOGIC],
        [
            StepDefinition(
                step_id="field_mapping",
                name="Field Mapping",
                description="Map source fields to fields of the TMF API by the rules",
                ai_assisted=True,
                estimated_duration="30m",
            ),
            StepDefinition(
                step_id="mapping_validation",
                name="Mapping Validation",
                description="Check the mapping against the specification",
                estimated_duration="15m",
            ),
        ],
    ),
    (
        "migration_planning",
        "Migration Planning",
        "Plan data migration strategy",
        "25m",
        [RuleType.CONTEXTUAL_RECOMMENDATIONS],
        [
            StepDefinition(
                step_id="dependency_analysis",
                name="Dependency Analysis",
                description="Order the tables by their foreign keys",
                estimated_duration="10m",
            ),
            StepDefinition(
                step_id="batch_planning",
                name="Batch Planning",
                description="Divide each table into batches",
                ai_assisted=True,
                estimated_duration="15m",
            ),
        ],
    ),
    (
        "data_migration",
        "Data Migration",
        "Execute data transformation",
        "60m",
        [RuleType.DATA_INTERPRETATION, RuleType.BUSINESS_LOGIC],
        [
            StepDefinition(
                step_id="data_extraction",
                name="Data Extraction",
                description="Read the source in batches",
                estimated_duration="20m",
            ),
            StepDefinition(
                step_id="data_transformation",
                name="Data Transformation",
                description="Apply mapping and rules to each record",
                ai_assisted=True,
                estimated_duration="25m",
            ),
            StepDefinition(
                step_id="data_loading",
                name="Data Loading",
                description="Write the documents of the target",
                estimated_duration="15m",
            ),
        ],
    ),
    (
        "verification_validation",
        "Verification and Validation",
        "Validate transformed data",
        "30m",
        [RuleType.VALIDATION_RULES, RuleType.COMPLIANCE_CHECK],
        [
            StepDefinition(
                step_id="count_verification",
                name="Count Verification",
                description="Compare the counts and checksums of source and target",
                estimated_duration="10m",
            ),
            StepDefinition(
                step_id="rule_validation",
                name="Rule Validation",
                description="Check the target against the validation rules",
                ai_assisted=True,
                estimated_duration="15m",
            ),
            StepDefinition(
                step_id="final_report",
                name="Final Report",
                description="Sum up what was transformed and what was not",
                estimated_duration="5m",
            ),
        ],
    ),
]


def default_stages(journey_id: str, created_at: datetime) -> list[StageDefinition]:
    """The six stages of a journey, in order."""
    return [
        StageDefinition(
            journey_id=journey_id,
            stage_id=stage_id,
            name=name,
            description=description,
            order=order,
            estimated_duration=duration,
            rule_types=rule_types,
            steps=steps,
            created_at=created_at,
            updated_at=created_at,
        )
        for order, (stage_id, name, description, duration, rule_types, steps) in enumerate(_STAGES, start=1)
    ]
