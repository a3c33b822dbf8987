"""What stands in the place of a key or an entity and is neither is refused in words, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.samples import Job, main

from jobtable import connect
from jobtable.errors import RequestRefused, TransactionFailedError, ValueRefusedError
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
        (Job, r"the class Job selects nothing: write Job.key\(job_id=...\), or store.scan\(Job\) for all of them"),
        (JOB, r"a whole Job is given where its key is wanted: write Job.key\(job_id=...\)"),
        (Job.key, r"Job.key\(job_id\) selects nothing yet: call it with its fields, Job.key\(job_id=...\)"),
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
    with pytest.raises(TypeError, match=r"Job.key\(job_id\) takes its fields by name: write Job.key\(job_id=...\)"):
        key("42")


@pytest.mark.parametrize("verb", [Store.get, Store.find, Store.delete])
def test_a_key_of_an_index_names_no_item(verb: Callable[[Store, Any], object]) -> None:
    told = r"Job.by_status\(.*\) is a key of the index GSI1: query it, or name one item by Job.key\(job_id=...\)"
    with connect("memory:") as store, pytest.raises(ValueRefusedError, match=told):
        verb(store, Job.by_status(status="PENDING", created_at=JOB.created_at))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda job: job.titel, "Job has no field 'titel'"),
        (lambda job: "a" in job.tags, r"write Job.tags.contains\('a'\)"),
        (lambda job: job.priority > 1 & job.attempts < 5, r"write \(Job.x > 1\) & \(Job.y < 2\)"),
        (lambda job: job.queue | job.priority == 3, "put each comparison into brackets"),
        (lambda job: job.limits.memory_mb, r"what is inside of a field is written Job.limits\['memory_mb'\]"),
        (lambda job: job.status.name, "'Attribute' object has no attribute 'name'$"),
    ],
    ids=["field", "in", "and", "or", "inside", "nothing inside"],
)
def test_a_field_says_how_it_is_used(wrong: Callable[[Any], object], told: str) -> None:
    with pytest.raises((TypeError, AttributeError), match=told):
        wrong(Job)


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
    assert str(raised.value).split(" it was not possible to ")[1].split("; ") == [
        "add Job PK='JOB#1' SK='JOB': it is there already",
        "update Job PK='JOB#2' SK='JOB': it is not there",
        "put Job PK='JOB#3' SK='JOB': its condition does not hold",
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
