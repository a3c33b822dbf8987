"""Writes that happen together or not at all."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from jobtable.errors import (
    RequestRefused,
    TransactionCanceled,
    TransactionConflict,
    TransactionFailedError,
    ValueRefusedError,
)
from jobtable.model.conditions import Condition
from jobtable.model.entity import Entity
from jobtable.model.expressions import Update
from jobtable.model.selection import Selection
from jobtable.store import requests
from jobtable.store.backend import Request, StoreRequest
from jobtable.store.collections import entity_of, own_entity
from jobtable.store.requests import Target, Write
from jobtable.store.sizes import item_size

if TYPE_CHECKING:
    from jobtable.store.store import Store

E = TypeVar("E", bound=Entity)
T = TypeVar("T")
MOST_ACTIONS = 100
PACKED_BYTES = 2_000_000
"""What one transaction touches, by estimates. DynamoDB allows 4 MB, and counts an item that is changed as a whole."""
_ACTION = {
    "add": "Put",
    "put": "Put",
    "update": "Update",
    "upsert": "Update",
    "delete": "Delete",
    "check": "ConditionCheck",
}
_PASSING = {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
"""Reasons that say nothing of the items: the same transaction may succeed when it is sent again."""


@dataclass(frozen=True)
class Failure:
    """An action of a transaction whose condition failed."""

    verb: str
    entity: str
    action: str
    """The verb, the entity and its key, for messages."""
    index: int
    code: str
    message: str
    current: Any
    """The entity under the key, if a condition failed."""


class Transaction:
    """Collects writes with the verbs of the store and commits them when its block ends without an exception."""

    def __init__(self, store: Store, token: str | None = None) -> None:
        self._store = store
        self._token = token or str(uuid.uuid4())
        self._writes: list[Write] = []
        self._kinds: dict[str, None] = {}
        self._is_committed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()

    def __len__(self) -> int:
        return len(self._writes)

    def add(self, entity: Entity) -> None:
        """Store a new item."""
        self._take(requests.put(entity, None, verb="add", is_encoded=self._store.takes_encoded_items))

    def put(self, entity: Entity, *, when: Condition | bool | None = None) -> None:
        """Store a whole item."""
        self._take(requests.put(entity, when, is_encoded=self._store.takes_encoded_items))

    def update(self, target: Target, *updates: Update, when: Condition | bool | None = None) -> None:
        """Change attributes of an existing item."""
        self._take(requests.update(target, updates, when))

    def upsert(self, selection: Selection[Any], *updates: Update, when: Condition | bool | None = None) -> None:
        """Change attributes of an item, or create it from the changes."""
        self._take(requests.upsert(selection, updates, when))

    def delete(self, target: Target, *, when: Condition | bool | None = None) -> None:
        """Delete an item."""
        self._take(requests.delete(target, when))

    def check(self, target: Target, when: Condition | bool) -> None:
        """Change nothing, but require that this condition holds."""
        self._take(requests.check(target, when))

    def commit(self) -> None:
        """Do all of it, or raise TransactionFailedError and do nothing; resend after a lost answer.

        Raises TransactionConflict if concurrent writes kept changing the items: it may be committed again.
        """
        if self._writes:
            try:
                self._store.backoff.retry(self._send, _is_passing)
            except TransactionCanceled as error:
                failed = self._failed(error)
                raise (TransactionConflict(str(failed)) if _is_passing(error) else failed) from error
        self._is_committed = True

    def _send(self) -> None:
        try:
            self._store.ask("TransactWriteItems", self._request(), f"transaction.{'+'.join(self._kinds)}", writes=True)
        except RequestRefused as error:
            if not (twice := self._writes_to_one_item()):
                raise
            raise RequestRefused(f"{error.message}: {', '.join(twice)}", code=error.code) from error

    def _writes_to_one_item(self) -> list[str]:
        """The writes to the first item that has several, for a message."""
        by_item: dict[str, list[str]] = {}
        for write in self._writes:
            by_item.setdefault(f"{write.schema.table.name} {write.key}", []).append(write.describe())
        return next((writes for writes in by_item.values() if len(writes) > 1), [])

    def _take(self, write: Write) -> None:
        if self._is_committed:
            raise ValueRefusedError(f"cannot {write.describe()}: the transaction is already committed; start a new one")
        if len(self._writes) == MOST_ACTIONS:
            raise ValueRefusedError(
                f"a transaction has at most {MOST_ACTIONS} actions; {write.describe()} is one too many"
            )
        self._writes.append(write)
        self._kinds[write.schema.name] = None

    def _request(self) -> Request:
        actions = [
            {
                _ACTION[write.verb]: {
                    "TableName": self._store.table_name(write.schema.table),
                    **write.members,
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            }
            for write in self._writes
        ]
        return StoreRequest(TransactItems=actions, ClientRequestToken=self._token, ReturnConsumedCapacity="TOTAL")

    def _failed(self, error: TransactionCanceled) -> TransactionFailedError:
        failures = []
        reasons = error.details.get("CancellationReasons", [])
        for index, (write, reason) in enumerate(zip(self._writes, reasons, strict=False)):
            if reason.get("Code", "None") == "None":
                continue
            item = reason.get("Item")
            current = entity_of(write.schema.table, item) if item else None
            what = write.verb, write.schema.name, write.describe()
            failures.append(Failure(*what, index, reason["Code"], reason.get("Message", ""), current))
        reasons = "; ".join(f"{failure.action}: {_why(failure)}" for failure in failures) or error.message
        return TransactionFailedError(f"the transaction changed nothing; could not {reasons}", tuple(failures))


def _why(failure: Failure) -> str:
    """Return why an action failed: its code, or better words."""
    if failure.code != "ConditionalCheckFailed":
        return failure.code
    if failure.verb == "add":
        return "it already exists"
    if failure.verb == "update" and failure.current is None:
        return "it does not exist"
    return "its condition is not met"


def _is_passing(error: Exception) -> bool:
    """Whether the same transaction may succeed when it is sent again."""
    if not isinstance(error, TransactionCanceled):
        return False
    codes = {reason.get("Code", "None") for reason in error.details.get("CancellationReasons", [])} - {"None"}
    return bool(codes) and codes <= _PASSING


def transact_get(store: Store, selections: Sequence[Selection[Any]]) -> tuple[Any, ...]:
    """Return the entities under several keys as of one instant."""
    if not 1 <= len(selections) <= MOST_ACTIONS:
        raise ValueRefusedError(f"a consistent read takes 1 to {MOST_ACTIONS} keys, not {len(selections)}")
    gets = [
        {"Get": {"TableName": store.table_name(requests.selected(s).table), "Key": requests.key_of(s)}}
        for s in selections
    ]
    request = {"TransactItems": gets, "ReturnConsumedCapacity": "TOTAL"}
    pattern = "+".join(dict.fromkeys(s.entity.__schema__.name for s in selections))
    try:
        response = store.backoff.retry(
            lambda: store.ask("TransactGetItems", request, f"get_together.{pattern}"), _is_passing
        )
    except TransactionCanceled as error:
        if not _is_passing(error):
            raise
        raise TransactionConflict("other writers kept changing the items; try again") from error
    pairs = zip(selections, response["Responses"], strict=True)
    return tuple(own_entity(s.entity.__schema__, r["Item"]) if r.get("Item") else None for s, r in pairs)


def packed(entities: Iterable[E], most: int) -> Iterator[list[E]]:
    """Yield the entities in groups that each fit into one transaction."""
    return grouped(entities, most, lambda entity: item_size(type(entity).__schema__.codec.encode(entity)))


def grouped(things: Iterable[T], most: int, size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield anything in groups of limited length that each fit into one transaction by their sizes."""
    group: list[T] = []
    size = 0
    for thing in things:
        of_thing = size_of(thing)
        if group and (len(group) == most or size + of_thing > PACKED_BYTES):
            yield group
            group, size = [], 0
        group.append(thing)
        size += of_thing
    if group:
        yield group
