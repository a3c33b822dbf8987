"""What stands in the place of a key or an entity and is neither is refused in words, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.samples import Comment, Job, JobMetric, Status, main

from jobtable import connect
from jobtable.errors import RequestRefused, TransactionFailedError, ValueRefusedError
from jobtable.model import Attr, Entity, Key, Table, camel_case, default, unchanged
from jobtable.store import Store

JOB = Job(job_id="1", created_at=datetime(2025, 11, 1, tzinfo=UTC), created_by="ann")
READS: list[Callable[[Store, Any], object]] = [
    Store.get,
    Store.find,
    Store.query,
    Store.collection,
    Store.count,
    Store.get_together,
    lambda store, given: store.values(given, Job.status),
    lambda store, given: store.batch_get([given]),
]
WRITES: list[Callable[[Store, Any], object]] = [
    Store.add,
    Store.put,
    Store.delete,
    lambda store, given: store.update(given, Job.attempts.set(1)),
    lambda store, given: store.batch_put([given]),
    lambda store, given: store.batch_delete([given]),
]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Job, r"the class Job selects nothing; write Job.key\(job_id=...\), or store.scan\(Job\) for all of them"),
        (JOB, r"got a whole Job instead of its key; write Job.key\(job_id=...\)"),
        (Job.key, r"Job.key\(job_id\) selects nothing yet; call it with its fields, Job.key\(job_id=...\)"),
        ("42", r"'42' is neither a selection, as in Job.key\(job_id=...\), nor an entity"),
    ],
    ids=["class", "entity", "key", "text"],
)
def test_a_read_says_how_its_selection_is_written(
    read: Callable[[Store, Any], object], given: object, told: str
) -> None:
    with connect("memory:") as store:
        store.tables.create(main)
        with pytest.raises(TypeError, match=told):
            read(store, given)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("given", ["42", {"job_id": "42"}], ids=["text", "dictionary"])
def test_a_write_says_what_it_takes(write: Callable[[Store, Any], object], given: object) -> None:
    with connect("memory:") as store:
        store.tables.create(main)
        with pytest.raises(TypeError, match="is neither a selection"):
            write(store, given)


def test_a_key_takes_its_fields_by_name() -> None:
    key: Any = Job.key
    with pytest.raises(TypeError, match=r"Job.key\(job_id\) takes its fields by name; write Job.key\(job_id=...\)"):
        key("42")


@pytest.mark.parametrize("verb", [Store.get, Store.find, Store.delete])
def test_a_key_of_an_index_names_no_item(verb: Callable[[Store, Any], object]) -> None:
    told = r"Job.by_status\(.*\) is a key of the index GSI1; query it, or name one item by Job.key\(job_id=...\)"
    with connect("memory:") as store, pytest.raises(ValueRefusedError, match=told):
        verb(store, Job.by_status(status="PENDING", created_at=JOB.created_at))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda job: job.titel, "Job has no field 'titel'"),
        (lambda job: "a" in job.tags, r"write Job.tags.contains\('a'\)"),
        (lambda job: job.priority > 1 & job.attempts < 5, r"as in \(Job.x > 1\) & \(Job.y < 2\)"),
        (lambda job: job.queue | job.priority == 3, "put each comparison in parentheses"),
        (lambda job: job.limits.memory_mb, r"write Job.limits\['memory_mb'\] for a value inside the field"),
        (lambda job: job.status.name, "'Attribute' object has no attribute 'name'$"),
    ],
    ids=["field", "in", "and", "or", "inside", "nothing inside"],
)
def test_a_field_says_how_it_is_used(wrong: Callable[[Any], object], told: str) -> None:
    with pytest.raises((TypeError, AttributeError), match=told):
        wrong(Job)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: Job.priority.between(30, 4), r"Job\.priority cannot be between 30 and 4; put the lower end first"),
        (lambda: Job.queue.between("b", "a"), r"Job\.queue cannot be between 'b' and 'a'"),
        (
            lambda: Job.status.between(Status.RUNNING, Status.DONE),
            r"between <Status.RUNNING: 'RUNNING'> and <Status.DONE",
        ),
        (lambda: Job.job_config["x"].between(b"\xff", b"\x01"), r"Job\.job_config\['x'\] cannot be between"),
    ],
    ids=["number", "text", "enum", "binary"],
)
def test_the_lower_end_comes_first(wrong: Callable[[], object], told: str) -> None:
    with pytest.raises(ValueRefusedError, match=told):
        wrong()


def test_the_lower_end_may_be_that_of_a_field() -> None:
    upper: Any = Job.attempts
    with connect("memory:") as store:
        store.tables.create(main)
        store.put(JOB.replace(priority=3, attempts=4))
        assert store.count(Job.by_user(created_by="ann"), where=Job.priority.between(3, upper)) == 1
        assert store.count(Job.by_user(created_by="ann"), where=Job.priority.between(3, 3)) == 1


def test_the_lower_end_of_a_range_of_keys_comes_first() -> None:
    earlier = JOB.created_at - timedelta(days=1)
    with connect("memory:") as store:
        jobs, told = Job.by_user(created_by="ann"), "created_at cannot be between .* and .*; put the lower end first"
        with pytest.raises(ValueRefusedError, match=told):
            store.query(jobs, between=(JOB.created_at, earlier))
        with pytest.raises(ValueRefusedError, match="comment_id cannot be between 10 and 9; put the lower end first"):
            store.query(Comment.key(job_id="1"), between=(10, 9))


METRIC = JobMetric(job_id="1", metric_name="loss", timestamp=JOB.created_at, value=0.5)
OF_ANOTHER: Any = JobMetric.value
WITH_A_FOREIGN_FIELD: list[Callable[[Store], object]] = [
    lambda store: store.put(JOB, when=OF_ANOTHER > 1),
    lambda store: store.put(JOB, when=unchanged(METRIC, OF_ANOTHER)),
    lambda store: store.put(JOB, when=unchanged(JOB, OF_ANOTHER)),
    lambda store: store.delete(JOB, when=(Job.attempts == 1) | ~(OF_ANOTHER.size() > 1)),
    lambda store: store.update(JOB, Job.attempts.set(1), when=Job.attempts < OF_ANOTHER),
    lambda store: store.update(JOB, OF_ANOTHER.set(1)),
    lambda store: store.query(Job.by_user(created_by="ann"), where=OF_ANOTHER.exists()),
    lambda store: store.count(Job.by_user(created_by="ann"), where=OF_ANOTHER.is_in(1, 2)),
    lambda store: store.values(Job.by_user(created_by="ann"), OF_ANOTHER),
    lambda store: store.values(Job.by_user(created_by="ann"), Job.status, where=OF_ANOTHER.between(1, 2)),
    lambda store: store.scan(Job, where=OF_ANOTHER == 1),
    lambda store: store.transaction().check(JOB, OF_ANOTHER == 1),
]


@pytest.mark.parametrize("act", WITH_A_FOREIGN_FIELD)
def test_a_field_of_another_entity_is_refused(act: Callable[[Store], object]) -> None:
    told = r"JobMetric\.value is not a field of Job, which has no field of that name"
    with connect("memory:") as store, pytest.raises(ValueRefusedError, match=told):
        act(store)


def test_a_field_of_another_entity_is_told_from_one_of_the_same_name() -> None:
    of_comment: Any = Comment.created_at
    told = r"Comment\.created_at is not a field of Job; write Job\.created_at"
    with connect("memory:") as store, pytest.raises(ValueRefusedError, match=told):
        store.put(JOB, when=of_comment == JOB.created_at)


def test_the_fields_of_an_entity_are_also_those_of_one_that_derives_from_it() -> None:
    plans = Table("plans", pk="PK", type_attribute="TYPE")

    class Plan(Entity, table=plans, type="PLAN"):
        key = Key("PLAN#{plan_id}")
        plan_id: str
        state: Attr[str] = default("new")
        step_count: Attr[int] = default(1)

    class TrialPlan(Plan, table=plans, type="TRIAL_PLAN", alias=camel_case):
        key = Key("TRIAL#{plan_id}")

    with connect("memory:") as store:
        store.tables.create(plans)
        trial = TrialPlan(plan_id="1")
        store.put(trial, when=Plan.state.missing())
        assert store.update(trial, Plan.state.set("old"), when=Plan.state == "new").state == "old"
        assert store.count(TrialPlan.key(plan_id="1"), where=Plan.state == "old") == 1
        # Its items call this one stepCount.
        told = r"Plan\.step_count is not a field of TrialPlan; write TrialPlan\.step_count"
        with pytest.raises(ValueRefusedError, match=told):
            store.put(trial, when=Plan.step_count == 2)
        with pytest.raises(ValueRefusedError, match=r"TrialPlan\.state is not a field of Plan"):
            store.put(Plan(plan_id="1"), when=TrialPlan.state == "new")


def test_a_class_of_the_same_name_is_told_by_its_module() -> None:
    def declared() -> Any:
        class Job(Entity, table=Table("other-jobs", pk="job_id")):
            job_id: str

        return Job

    told = rf"Job\.job_id is not a field of Job of {Job.__module__}"
    with connect("memory:") as store, pytest.raises(ValueRefusedError, match=told):
        store.put(JOB, when=declared().job_id == "1")


@pytest.mark.parametrize("given", [Job.attempts == 1, "attempts", {"attempts": 1}], ids=["condition", "name", "dict"])
def test_an_update_says_how_a_change_is_written(given: Any) -> None:
    with connect("memory:") as store, pytest.raises(TypeError, match=r"is not a change; write it as Job\.status\.set"):
        store.update(Job.key(job_id="1"), Job.priority.set(1), given)


def test_only_a_set_has_elements_to_discard() -> None:
    with pytest.raises(ValueRefusedError, match=r"Job\.history is not a set, so nothing can be removed from it"):
        Job.history.discard(["x"])


def test_a_selection_shows_how_it_was_written() -> None:
    assert repr(Job.by_status(status="RUNNING")) == "Job.by_status(status=<Status.RUNNING: 'RUNNING'>)"
    assert repr(Job.key(job_id="a#b")) == "Job.key(job_id='a#b')"


def test_a_field_is_changed_once_in_an_update() -> None:
    with connect("memory:") as store, pytest.raises(ValueRefusedError, match=r"Job\.attempts is changed twice"):
        store.update(Job.key(job_id="1"), Job.attempts.set(1), Job.attempts.increment())


def test_a_transaction_says_what_was_in_its_way() -> None:
    with connect("memory:") as store:
        store.tables.create(main)
        store.add(JOB)
        tx = store.transaction()
        tx.add(JOB)
        tx.update(Job.key(job_id="2"), Job.attempts.set(1))
        tx.put(JOB.replace(job_id="3"), when=Job.attempts == 7)
        with pytest.raises(TransactionFailedError) as raised:
            tx.commit()
    assert str(raised.value).split(" could not ")[1].split("; ") == [
        "add Job PK='JOB#1' SK='JOB': it already exists",
        "update Job PK='JOB#2' SK='JOB': it does not exist",
        "put Job PK='JOB#3' SK='JOB': its condition is not met",
    ]


def test_a_transaction_names_the_item_that_it_would_write_twice() -> None:
    with connect("memory:") as store:
        store.tables.create(main)
        tx = store.transaction()
        tx.put(JOB)
        tx.put(JOB.replace(job_id="2"))
        tx.delete(JOB)
        with pytest.raises(RequestRefused, match="put Job PK='JOB#1' SK='JOB', delete Job PK='JOB#1' SK='JOB'"):
            tx.commit()


def test_a_transaction_takes_nothing_more_when_it_is_committed() -> None:
    with connect("memory:") as store:
        store.tables.create(main)
        with store.transaction() as tx:
            tx.put(JOB)
        with pytest.raises(
            ValueRefusedError, match=r"cannot update Job PK='JOB#1' .*already committed; start a new one"
        ):
            tx.update(Job.key(job_id="1"), Job.attempts.set(5))


def test_a_query_is_no_answer_to_whether_it_finds_anything() -> None:
    with connect("memory:") as store:
        store.tables.create(main)
        query = store.query(Job.key(job_id="1"))
        with pytest.raises(TypeError, match=r"use \.first\(\), which returns None if nothing matches"):
            assert not query
        assert query.first() is None
