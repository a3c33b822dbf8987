"""Albums: the bounds of their schemas, tokens that are never stored, and order across workflow types."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError
from tests.systems.albums.access_patterns import DURABLE, STEP, album, at, execution, metrics, task

from jobtable.errors import ConditionFailedError, NotFoundError
from jobtable.inbox.answer_tokens import token_digest
from jobtable.store import Store
from jobtable.systems.albums.entities import (
    Album,
    AlbumData,
    Execution,
    ExecutionStatus,
    TaskStatus,
    ValidationTask,
    workflows,
)
from jobtable.systems.albums.service import AlbumWorkflows


@pytest.fixture
def verbs(each_store: Store) -> AlbumWorkflows:
    each_store.tables.create(workflows)
    return AlbumWorkflows(each_store, make_token=lambda: "the token")


@pytest.mark.parametrize(
    ("field", "wrong", "right"),
    [
        ("album_name", "", "x"),
        ("album_name", "x" * 201, "x" * 200),
        ("artist", "", "x"),
        ("artist", "x" * 201, "x" * 200),
        ("year", 1899, 1900),
        ("year", 2101, 2100),
        ("price_estimate", 0, 0.01),
        ("price_confidence", -0.01, 0),
        ("price_confidence", 1.01, 1),
        ("album_index", -1, 0),
        ("workflow_type", "something", "durable-functions"),
    ],
)
def test_albums_keep_within_the_bounds_of_the_schema(field: str, wrong: Any, right: Any) -> None:
    good = album("exec-1", 1)
    assert getattr(good.replace(**{field: right}), field) == right
    with pytest.raises(ValidationError, match=field):
        good.replace(**{field: wrong})


def test_executions_keep_within_the_bounds_of_the_schema() -> None:
    good = execution("exec-1", STEP, 0)
    for field, wrong in (("status", "paused"), ("image_s3_key", ""), ("execution_id", "")):
        with pytest.raises(ValidationError, match=field):
            good.replace(**{field: wrong})
    with pytest.raises(ValidationError):
        AlbumData(album_index=1, album_name="x", artist="y", year=1)


def test_a_token_is_given_once_and_never_stored(verbs: AlbumWorkflows, each_store: Store) -> None:
    assert verbs.create_task(task("task-1", STEP, 0)) == "the token"
    item = ValidationTask.__schema__.codec.encode(verbs.get_task("task-1"))
    assert item["taskToken"] == {"S": token_digest("the token")}
    assert task("t", STEP, 0).replace(token_sha256="readable").token_sha256 == token_digest("readable")


def test_tokens_are_random(verbs: AlbumWorkflows, each_store: Store) -> None:
    with_defaults = AlbumWorkflows(each_store)
    tokens = {with_defaults.create_task(task(f"task-{number}", STEP, 0)) for number in range(10)}
    assert len(tokens) == 10
    assert all(len(token) >= 43 for token in tokens)


def test_a_task_never_takes_the_place_of_an_execution(verbs: AlbumWorkflows, each_store: Store) -> None:
    verbs.add_execution(execution("same", STEP, 0))
    with pytest.raises(ConditionFailedError):
        each_store.put(task("same", STEP, 0))
    assert isinstance(verbs.get_execution("same"), Execution)


def test_tasks_of_any_workflow_come_in_one_order(verbs: AlbumWorkflows) -> None:
    for number in range(20):
        verbs.create_task(task(f"task-{number}", (STEP, DURABLE)[number % 2], 20 - number))
    assert [each.created_at for each in verbs.list_pending_tasks()] == [at(minute) for minute in range(1, 21)]
    assert list(verbs.list_tasks(TaskStatus.COMPLETED)) == []
    assert [each.created_at for each in verbs.list_pending_tasks(limit=3)] == [at(minute) for minute in range(1, 4)]


def test_the_newest_executions_of_any_kind_come_in_one_order(verbs: AlbumWorkflows) -> None:
    for number in range(6):
        verbs.add_execution(execution(f"exec-{number}", (STEP, DURABLE)[number % 2], number))
    newest = [each.execution_id for each in verbs.list_newest_executions(limit=3)]
    assert newest == ["exec-5", "exec-4", "exec-3"]
    assert [each.execution_id for each in verbs.list_newest_executions(STEP, limit=2)] == ["exec-4", "exec-2"]
    assert verbs.list_newest_executions(status=ExecutionStatus.FAILED, limit=9) == []


def test_an_execution_that_ends_while_they_are_listed_is_listed_once(
    verbs: AlbumWorkflows, each_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    verbs.add_execution(execution("exec-1", STEP, 0))
    query = each_store.query

    def end_what_is_found(*asked: Any, **more: Any) -> list[Any]:
        found = list(query(*asked, **more))
        for each in found:
            each_store.update(each, Execution.status.set(ExecutionStatus.COMPLETED))
        return found

    monkeypatch.setattr(each_store, "query", end_what_is_found)
    assert [each.status for each in verbs.list_newest_executions(limit=9)] == [ExecutionStatus.COMPLETED]


def test_albums_come_by_index_from_table_and_index(verbs: AlbumWorkflows) -> None:
    verbs.put_albums(album("exec-1", index) for index in (11, 2, 1, 10, 9, 100))
    expected = [1, 2, 9, 10, 11, 100]
    assert [each.album_index for each in verbs.list_albums("exec-1")] == expected
    assert [each.album_index for each in verbs.list_workflow_albums(STEP, "exec-1")] == expected
    assert verbs.find_workflow_album(DURABLE, "exec-1", 1) is None


def test_comparison_says_where_a_type_has_no_metrics(verbs: AlbumWorkflows) -> None:
    verbs.put_metrics(metrics(15, STEP))
    found = verbs.compare_metrics(date(2025, 1, 15))
    assert found.step_functions == metrics(15, STEP)
    assert found.durable_functions is None


def test_an_execution_that_is_not_there_is_named(verbs: AlbumWorkflows) -> None:
    verbs.put_albums([album("exec-1", 1)])
    with pytest.raises(NotFoundError, match="exec-1"):
        verbs.get_execution_with_albums("exec-1")


def test_what_indexes_sort_by_follows_the_fields_it_comes_from() -> None:
    assert album("exec-1", 3).replace(album_index=4).sort_value == 4
    assert execution("exec-1", STEP, 0).sort_value == 0
    assert metrics(15, STEP).status == "daily"
    assert metrics(15, STEP).replace(period="weekly").status == "weekly"


@pytest.mark.parametrize("created", ["2025-01-15T10:30:00Z", "2025-01-15T10:30:00.000000Z"])
def test_an_item_that_was_stored_without_a_sort_value_stays_so(created: str) -> None:
    codec = Album.__schema__.codec
    item = codec.encode(album("exec-1", 3))
    assert item.pop("sortValue") == {"N": "3"}
    written = codec.encode(codec.decode({**item, "createdAt": {"S": created}}))
    assert written == {**item, "createdAt": {"S": "2025-01-15T10:30:00.000000Z"}}
