"""Daily metrics: a recount of the executions, the same whenever they are computed."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.systems.albums.access_patterns import DURABLE, START, STEP, execution

from jobtable.embedded import EmbeddedBackend
from jobtable.store import Store
from jobtable.systems.albums.entities import Execution, ExecutionStatus, WorkflowType, workflows
from jobtable.systems.albums.metrics import compute_and_compare, compute_metrics, count_executions, count_if_few
from jobtable.systems.albums.service import AlbumWorkflows

DAY = START.date()
MIDNIGHT = START.replace(hour=0)


def test_both_types_are_counted_and_compared(each_store: Store) -> None:
    each_store.tables.create(workflows)
    for number, status in enumerate(ExecutionStatus):
        one = execution(f"e-{number}", STEP, number, status)
        has_ended = status in (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED)
        each_store.add(one.replace(duration_ms=1000 * number if has_ended else None, estimated_cost=0.001))
    compared = compute_and_compare(each_store, DAY)
    found = compared.step_functions
    assert found is not None
    assert (found.execution_count, found.success_count, found.failure_count) == (4, 1, 1)
    assert (found.avg_duration_ms, found.total_cost, found.avg_cost_per_execution) == (2500, 0.004, 0.001)
    assert compared.durable_functions is not None
    assert compared.durable_functions.execution_count == 0
    assert compute_and_compare(each_store, DAY) == compared
    assert list(AlbumWorkflows(each_store).list_metrics(STEP)) == [found]


def test_an_execution_that_ends_while_it_is_counted_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = AlbumWorkflows.list_executions_by_status
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(workflows)
        running = execution("e", STEP, 0, ExecutionStatus.RUNNING)
        store.add(running)

        def end_behind(records: AlbumWorkflows, *selected: Any, **span: Any) -> list[Execution]:
            found = list(listed(records, *selected, **span))
            store.put(running.replace(status=ExecutionStatus.COMPLETED, estimated_cost=0.5))
            return found

        monkeypatch.setattr(AlbumWorkflows, "list_executions_by_status", end_behind)
        counted = compute_metrics(store, DAY, STEP)
        assert (counted.execution_count, counted.success_count, counted.total_cost) == (1, 1, 0.5)


executions = st.lists(
    st.tuples(
        st.sampled_from(list(WorkflowType)),
        st.sampled_from(list(ExecutionStatus)),
        st.integers(-36 * 3600 * 10**6, 36 * 3600 * 10**6),
        st.integers(0, 10**7) | st.none(),
        st.integers(0, 10**7).map(lambda millionths: millionths / 1_000_000) | st.none(),
    ),
    max_size=12,
)


@settings(max_examples=25)
@given(executions, st.integers(-2, 2))
def test_metrics_equal_a_recount(
    given_ones: list[tuple[WorkflowType, ExecutionStatus, int, int, float]], days: int
) -> None:
    day = DAY + timedelta(days=days)
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(workflows)
        stored: list[Execution] = []
        for number, (workflow_type, status, microseconds, duration, cost) in enumerate(given_ones):
            created = MIDNIGHT + timedelta(microseconds=microseconds)
            one = execution(f"e-{number}", workflow_type, 0, status)
            stored.append(one.replace(created_at=created, duration_ms=duration, estimated_cost=cost))
        for one in stored:
            store.put(one)
        for workflow_type in (STEP, DURABLE):
            found = compute_metrics(store, day, workflow_type)
            chosen = [e for e in stored if e.workflow_type == workflow_type and e.created_at.date() == day]
            assert found.execution_count == len(chosen)
            assert found.success_count == sum(e.status is ExecutionStatus.COMPLETED for e in chosen)
            assert found.failure_count == sum(e.status is ExecutionStatus.FAILED for e in chosen)
            assert found.total_cost == pytest.approx(sum(e.estimated_cost or 0 for e in chosen))
            durations = [e.duration_ms for e in chosen if e.duration_ms is not None]
            assert found.avg_duration_ms == pytest.approx(sum(durations) / max(1, len(durations)), abs=0.001)
            assert compute_metrics(store, day, workflow_type) == found
            assert AlbumWorkflows(store).get_metrics(day, workflow_type) == found


def test_a_day_is_counted_for_a_page_only_if_it_has_few_executions(each_store: Store) -> None:
    each_store.tables.create(workflows)
    for number in range(3):
        each_store.put(execution(f"e{number}", STEP, number))
    assert count_if_few(each_store, DAY, STEP, most=3) == count_executions(each_store, DAY, STEP)
    assert count_if_few(each_store, DAY, STEP, most=2) is None


def test_metrics_of_a_day_without_executions_are_zero(each_store: Store) -> None:
    each_store.tables.create(workflows)
    for day in (date(1999, 1, 1), date.min, date.max):
        found = compute_metrics(each_store, day, STEP)
        assert (found.execution_count, found.avg_duration_ms, found.avg_cost_per_execution) == (0, 0, 0)
