"""The creation of a journey with its stages and rules: one transaction, or several with a marker to resume from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from jobtable.errors import AlreadyExistsError, ConflictError, TransactionFailedError, ValueRefusedError
from jobtable.store import Store
from jobtable.store.transactions import MOST_ACTIONS, packed
from jobtable.systems.journeys.entities import Journey, SecondBrainRule, StageDefinition
from jobtable.systems.journeys.parts import Creation, RuleStatus

Belonging = StageDefinition | SecondBrainRule
_MOST_AT_ONCE = MOST_ACTIONS - 1
"""Items per transaction, beside its write to the journey."""
DELETION = "deletion"
"""The fingerprint in the marker of a journey that is being deleted."""


def incomplete(journey_id: str) -> ConflictError:
    """Return the error for an operation on a journey that has a marker."""
    return ConflictError(f"journey {journey_id} is incomplete; finish its creation, import or deletion first")


def create(store: Store, journey: Journey, stages: Sequence[StageDefinition], rules: Sequence[SecondBrainRule]) -> None:
    """Store a new journey with what belongs to it, or raise AlreadyExistsError.

    Up to 99 stages and rules of at most 2 MB are one transaction. More are created in parts; until the last one, the
    journey's `creation` counts them. The same call again resumes an interrupted creation.
    """
    items: list[Belonging] = [*stages, *rules]
    if stranger := next((item for item in items if item.journey_id != journey.journey_id), None):
        raise ValueRefusedError(f"{stranger!r:.200} belongs to journey {stranger.journey_id}, not {journey.journey_id}")
    counts = {stage.stage_id: 0 for stage in stages}
    if len(counts) < len(stages):
        names = ", ".join(stage.stage_id for stage in stages)
        raise ValueRefusedError(f"journey {journey.journey_id} has two stages with the same id: {names}")
    active = sum(rule.status is RuleStatus.ACTIVE for rule in rules)
    aggregates = journey.aggregates.replace(total_rules=len(rules), active_rules=active)
    journey = journey.replace(aggregates=aggregates, execution_counts=counts)
    first = next(packed(items, _MOST_AT_ONCE), [])
    if len(first) == len(items):
        _add_first(store, journey, items)
        return
    plan = _fingerprint(journey, items)
    done = _begin(store, journey, first, Creation(done=len(first), total=len(items), fingerprint=plan))
    while done < len(items):
        done = _go_on(store, journey, items, plan, done)


def _fingerprint(journey: Journey, items: Sequence[Belonging]) -> str:
    """Identify what is created, so that only a creation of the same items resumes."""
    digest = hashlib.sha256(journey.model_dump_json(exclude={"creation"}).encode())
    for item in items:
        digest.update(item.model_dump_json().encode())
    return digest.hexdigest()


def _add_first(store: Store, journey: Journey, items: Sequence[Belonging]) -> None:
    try:
        with store.transaction() as tx:
            tx.add(journey)
            for item in items:
                tx.add(item)
    except TransactionFailedError as error:
        if any(isinstance(failure.current, Journey) for failure in error.failures):
            raise AlreadyExistsError(f"journey {journey.journey_id} already exists") from error
        raise _meaning_of(error, f"cannot create journey {journey.journey_id}") from error


def _begin(store: Store, journey: Journey, first: Sequence[Belonging], marker: Creation) -> int:
    """Create the first part, or find how far an interrupted creation of the same items got."""
    try:
        _add_first(store, journey.replace(creation=marker), first)
    except AlreadyExistsError:
        there = store.find(Journey.key(journey_id=journey.journey_id))
        if there is None or there.creation is None or there.creation.fingerprint != marker.fingerprint:
            raise
        return there.creation.done
    return marker.done


def _go_on(store: Store, journey: Journey, items: Sequence[Belonging], plan: str, done: int) -> int:
    part = next(packed(items[done:], _MOST_AT_ONCE))
    until = done + len(part)
    marker = Creation(done=until, total=len(items), fingerprint=plan) if until < len(items) else None
    try:
        with store.transaction() as tx:
            tx.update(
                Journey.key(journey_id=journey.journey_id),
                Journey.creation.set(marker),
                when=Journey.creation["done"] == done,
            )
            for item in part:
                tx.add(item)
    except TransactionFailedError as error:
        raise _meaning_of(error, f"cannot continue the creation of journey {journey.journey_id}") from error
    return until


def _meaning_of(error: TransactionFailedError, message: str) -> ConflictError:
    if any(failure.code == "ConditionalCheckFailed" for failure in error.failures):
        return AlreadyExistsError(f"{message}: {error}")
    return error
