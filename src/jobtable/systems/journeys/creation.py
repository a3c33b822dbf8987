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
_PART = MOST_ACTIONS - 1
"""How many items a transaction creates at most beside its write to the journey."""


DELETION = "deletion"
"""The fingerprint in the mark of a journey that is being deleted."""


def incomplete(journey_id: str) -> ConflictError:
    """Why nothing begins in a journey that has a mark."""
    return ConflictError(f"journey {journey_id} is not there completely: finish its creation, import or deletion first")


def create(store: Store, journey: Journey, stages: Sequence[StageDefinition], rules: Sequence[SecondBrainRule]) -> None:
    """Store a new journey with what belongs to it, or raise AlreadyExistsError.

    Up to 99 stages and rules, of 2 MB together, are one transaction. More are created in parts; until the last, the
    journey's `creation` says how many are there. An interrupted creation goes on when it is called again with the same
    items.
    """
    items: list[Belonging] = [*stages, *rules]
    _refuse_strangers(journey, items)
    _refuse_namesakes(journey, stages)
    journey = _counted(journey, stages, rules)
    first = next(packed(items, _PART), [])
    if len(first) == len(items):
        _add_first(store, journey, items)
        return
    plan = _fingerprint(journey, items)
    done = _begin(store, journey, first, Creation(done=len(first), total=len(items), fingerprint=plan))
    while done < len(items):
        done = _go_on(store, journey, items, plan, done)


def _refuse_strangers(journey: Journey, items: Sequence[Belonging]) -> None:
    stranger = next((item for item in items if item.journey_id != journey.journey_id), None)
    if stranger is not None:
        raise ValueRefusedError(f"{stranger!r:.200} belongs to journey {stranger.journey_id}, not {journey.journey_id}")


def _refuse_namesakes(journey: Journey, stages: Sequence[StageDefinition]) -> None:
    names = [stage.stage_id for stage in stages]
    if len(set(names)) < len(names):
        raise ValueRefusedError(f"journey {journey.journey_id} has two stages of one id: {', '.join(names)}")


def _counted(journey: Journey, stages: Sequence[StageDefinition], rules: Sequence[SecondBrainRule]) -> Journey:
    """The journey with its counters as they are at the start."""
    aggregates = journey.aggregates.replace(
        total_rules=len(rules), active_rules=sum(rule.status is RuleStatus.ACTIVE for rule in rules)
    )
    return journey.replace(aggregates=aggregates, execution_counts={stage.stage_id: 0 for stage in stages})


def _fingerprint(journey: Journey, items: Sequence[Belonging]) -> str:
    """Tells whether a creation that goes on is of the same items as the one that began."""
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
            raise AlreadyExistsError(f"journey {journey.journey_id} is there already") from error
        raise _understood(error, f"cannot create journey {journey.journey_id}") from error


def _begin(store: Store, journey: Journey, first: Sequence[Belonging], marker: Creation) -> int:
    """Create the first part, or find out how far an interrupted creation of the same items has come."""
    try:
        _add_first(store, journey.replace(creation=marker), first)
    except AlreadyExistsError:
        there = store.find(Journey.key(journey_id=journey.journey_id))
        if there is None or there.creation is None or there.creation.fingerprint != marker.fingerprint:
            raise
        return there.creation.done
    return marker.done


def _go_on(store: Store, journey: Journey, items: Sequence[Belonging], plan: str, done: int) -> int:
    part = next(packed(items[done:], _PART))
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
        raise _understood(error, f"cannot go on with the creation of journey {journey.journey_id}") from error
    return until


def _understood(error: TransactionFailedError, message: str) -> ConflictError:
    """What a failed creation means: something is there already, or something cannot be stored."""
    if any(failure.code == "ConditionalCheckFailed" for failure in error.failures):
        return AlreadyExistsError(f"{message}: {error}")
    return error
