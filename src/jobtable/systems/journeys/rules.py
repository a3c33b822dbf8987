"""Second Brain rules: which of them apply to a stage, and changes that keep the journey's counts right."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from jobtable.errors import AlreadyExistsError, ConflictError, NotFoundError, TransactionFailedError
from jobtable.store import Store
from jobtable.systems.journeys.creation import incomplete
from jobtable.systems.journeys.entities import Journey, SecondBrainRule, StageDefinition
from jobtable.systems.journeys.parts import RuleScope, RuleStatus, RuleType


def applicable(
    rules: Iterable[SecondBrainRule], stage: StageDefinition, rule_type: RuleType | None = None
) -> list[SecondBrainRule]:
    """Return the active rules that apply to a stage, by priority (critical first) and then by index."""
    if not stage.second_brain_enabled:
        return []
    found = [rule for rule in rules if _applies(rule, stage.stage_id) and rule_type in (None, rule.type)]
    return sorted(found, key=lambda rule: (rule.priority.rank, rule.index, rule.stage_id, rule.rule_id))


def _applies(rule: SecondBrainRule, stage_id: str) -> bool:
    if rule.status is not RuleStatus.ACTIVE:
        return False
    named = rule.metadata.applicable_stages
    if rule.scope is RuleScope.STAGE:
        return stage_id == rule.stage_id or stage_id in named
    return not named or stage_id in named


def add_rule(store: Store, rule: SecondBrainRule) -> None:
    """Store a new rule and count it.

    AlreadyExistsError for a known rule, NotFoundError for an unknown journey, ConflictError for an incomplete one.
    """
    active = 1 if rule.status is RuleStatus.ACTIVE else 0
    try:
        with store.transaction() as tx:
            tx.update(
                Journey.key(journey_id=rule.journey_id),
                Journey.aggregates["total_rules"].increment(1),
                Journey.aggregates["active_rules"].increment(active),
                Journey.updated_at.set(rule.created_at),
                when=Journey.creation.missing(),
            )
            tx.add(rule)
    except TransactionFailedError as error:
        journey = next((failure for failure in error.failures if failure.index == 0), None)
        if journey is not None and journey.current is not None:
            raise incomplete(rule.journey_id) from error
        kind = AlreadyExistsError if journey is None else NotFoundError
        raise kind(f"cannot add rule {rule.rule_id} to journey {rule.journey_id}: {error}") from error


def change_rule_status(store: Store, rule: SecondBrainRule, status: RuleStatus, now: datetime) -> SecondBrainRule:
    """Switch a rule on or off and count it, in one transaction; ConflictError after a concurrent change."""
    by = (status is RuleStatus.ACTIVE) - (rule.status is RuleStatus.ACTIVE)
    journey_id = rule.journey_id
    try:
        with store.transaction() as tx:
            counted = Journey.aggregates["active_rules"].increment(by)
            tx.update(Journey.key(journey_id=journey_id), counted, Journey.updated_at.set(now))
            changes = (SecondBrainRule.status.set(status), SecondBrainRule.updated_at.set(now))
            tx.update(rule, *changes, when=SecondBrainRule.status == rule.status)
    except TransactionFailedError as error:
        raise ConflictError(f"rule {rule.rule_id} of journey {journey_id} changed meanwhile: {error}") from error
    return rule.replace(status=status, updated_at=now)
