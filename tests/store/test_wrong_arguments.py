"""What stands in the place of a key or an entity and is neither is refused in words, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.samples import Job, main

from jobtable import connect
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
