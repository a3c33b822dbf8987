"""Rules: which apply to a stage, in which order, and counters that stay right when one is switched."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.systems.journeys.access_patterns import START, rule
from tests.systems.journeys.stages import script
from tests.systems.journeys.worlds import World, stage

from jobtable.errors import AlreadyExistsError, ConflictError, NotFoundError
from jobtable.systems.journeys.entities import SecondBrainRule
from jobtable.systems.journeys.parts import Priority, RuleScope, RuleStatus, RuleType
from jobtable.systems.journeys.rules import add_rule, applicable, change_rule_status


def made(
    index: int,
    *,
    stage_id: str = "one",
    priority: Priority = Priority.MEDIUM,
    scope: RuleScope = RuleScope.STAGE,
    status: RuleStatus = RuleStatus.ACTIVE,
    stages: tuple[str, ...] = (),
) -> SecondBrainRule:
    plain = rule("J1", stage_id, index, priority)
    metadata = plain.metadata.replace(applicable_stages=list(stages))
    return plain.replace(scope=scope, status=status, metadata=metadata)


def test_rules_apply_by_scope_stages_and_status_in_rank_order() -> None:
    rules = [
        made(1),
        made(2, priority=Priority.CRITICAL),
        made(3, stage_id="two"),
        made(4, stage_id="two", stages=("one", "two"), priority=Priority.HIGH),
        made(5, stage_id="two", scope=RuleScope.GLOBAL, priority=Priority.LOW),
        made(6, stage_id="two", scope=RuleScope.PROJECT, stages=("two",)),
        made(7, status=RuleStatus.INACTIVE),
        made(8, status=RuleStatus.DEPRECATED),
    ]
    assert [found.index for found in applicable(rules, stage("J1", 1, "one"))] == [2, 4, 1, 5]
    assert [found.index for found in applicable(rules, stage("J1", 2, "two"))] == [4, 3, 6, 5]
    assert applicable(rules, stage("J1", 1, "one"), RuleType.VALIDATION_RULES) == []
    assert applicable(rules, stage("J1", 1, "one").replace(second_brain_enabled=False)) == []


@given(st.lists(st.tuples(st.sampled_from(Priority), st.integers(0, 999)), max_size=20))
def test_the_order_is_that_of_ranks(given_rules: list[tuple[Priority, int]]) -> None:
    rules = [made(index, priority=priority) for priority, index in given_rules]
    found = [(each.priority.rank, each.index) for each in applicable(rules, stage("J1", 1, "one"))]
    assert found == sorted((priority.rank, index) for priority, index in given_rules)


def test_a_stage_sees_the_rules_that_apply_to_it(world: World) -> None:
    for each in (made(1, priority=Priority.LOW), made(2, priority=Priority.HIGH), made(3, stage_id="two")):
        add_rule(world.jobs.store, each)
    seen: list[list[int]] = []
    script(one__first=lambda step: seen.append([each.index for each in step.rules()]))
    world.runner.run("J1")
    world.work()
    assert seen == [[2, 1]]
    world.check_sums()


def test_counters_follow_the_rules(world: World) -> None:
    store = world.jobs.store
    add_rule(store, made(1))
    add_rule(store, made(2, status=RuleStatus.INACTIVE))
    with pytest.raises(AlreadyExistsError, match="one-medium-1"):
        add_rule(store, made(1))
    with pytest.raises(NotFoundError, match="to journey J9"):
        add_rule(store, made(1).replace(journey_id="J9"))
    changed = change_rule_status(store, made(1), RuleStatus.DEPRECATED, START)
    assert changed.status is RuleStatus.DEPRECATED
    with pytest.raises(ConflictError, match="changed meanwhile"):
        change_rule_status(store, made(1), RuleStatus.INACTIVE, START)
    assert (world.journey().aggregates.total_rules, world.journey().aggregates.active_rules) == (2, 0)
    world.check_sums()


def test_of_many_who_switch_a_rule_one_does(world: World) -> None:
    add_rule(world.jobs.store, made(1))

    def switch(_: int) -> bool:
        try:
            change_rule_status(world.jobs.store, made(1), RuleStatus.INACTIVE, START)
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(switch, range(8))) == 1
    world.check_sums()
