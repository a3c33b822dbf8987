"""Two entities whose ids never meet may have keys of one form: neither is taken for the other where they do meet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import (
    ConditionFailedError,
    ItemShapeError,
    NotFoundError,
    TransactionFailedError,
    ValueRefusedError,
)
from jobtable.model import Attr, Entity, Key, Table
from jobtable.store import Store

table = Table("shared", pk="PK", sk="SK", type_attribute="TYPE")


class Run(Entity, table=table, type="RUN"):
    """A run."""

    key = Key("{run_id}", "metadata")

    run_id: str
    steps: Attr[int]


class Question(Entity, table=table, type="QUESTION", shares_keys_with=(Run,)):
    """A question to a person."""

    key = Key("{question_id}", "metadata")

    question_id: str
    text: Attr[str]


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(table)
        store.put(Question(question_id="1", text="Is it?"))
        store.put(Run(run_id="2", steps=3))
        yield store


def test_what_belongs_to_the_other_is_not_there(store: Store) -> None:
    assert store.find(Run.key(run_id="1")) is None
    with pytest.raises(NotFoundError, match="there is no run 1"):
        store.get(Run.key(run_id="1"))
    assert store.batch_get([Run.key(run_id="1"), Run.key(run_id="2")]) == [None, Run(run_id="2", steps=3)]
    assert store.get_together(Run.key(run_id="1"), Run.key(run_id="2")) == (None, Run(run_id="2", steps=3))


def test_what_belongs_to_the_other_is_not_changed(store: Store) -> None:
    with pytest.raises(ConditionFailedError) as refused:
        store.update(Run.key(run_id="1"), Run.steps.set(9))
    assert refused.value.current == Question(question_id="1", text="Is it?")
    with pytest.raises(ConditionFailedError):
        store.put(Run(run_id="1", steps=9))
    with pytest.raises(NotFoundError):
        store.update(Run.key(run_id="3"), Run.steps.set(9))
    assert store.get(Question.key(question_id="1")).text == "Is it?"


def test_what_belongs_to_the_other_is_not_deleted(store: Store) -> None:
    assert not store.delete(Run.key(run_id="1"))
    with pytest.raises(ConditionFailedError):
        store.delete(Run.key(run_id="1"), when=Run.steps == 3)
    with pytest.raises(TransactionFailedError, match=r"delete Run PK=.1. "), store.transaction() as tx:
        tx.delete(Run.key(run_id="1"))
    with pytest.raises(ValueRefusedError, match="delete it on its own"):
        store.batch_delete([Run.key(run_id="1")])
    assert store.get(Question.key(question_id="1")).text == "Is it?"
    assert store.delete(Run.key(run_id="2"))
    assert not store.delete(Run.key(run_id="2"))
    with store.transaction() as tx:
        tx.delete(Run.key(run_id="2"))


def test_what_is_of_no_known_kind_is_an_error(store: Store) -> None:
    item = {"PK": {"S": "4"}, "SK": {"S": "metadata"}, "TYPE": {"S": "STRANGE"}}
    store.backend.execute("PutItem", {"TableName": table.name, "Item": item})
    with pytest.raises(ItemShapeError):
        store.find(Run.key(run_id="4"))
