"""Tables, created from their declaration, compared with what is deployed, and deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from jobtable.errors import (
    BackendUnavailable,
    ConditionalCheckFailed,
    RequestError,
    RequestRefused,
    TableInUse,
    TableNotFound,
)
from jobtable.model.table import Index, Table
from jobtable.store import requests
from jobtable.store.backend import Item, Request
from jobtable.store.collections import Undeclared, entity_of
from jobtable.store.scans import Scan

if TYPE_CHECKING:
    from jobtable.store.store import Store

_LONGEST_WAIT_SECONDS = 600.0
_NO_BACKUPS_YET = "ContinuousBackupsUnavailableException"
"""What DynamoDB says of a table that was created a moment ago."""
_USABLE = ("ACTIVE", "UPDATING")
_WRITERS = 16
"""How many items get keys at once: one after the other, each would wait for the network, or for the disk."""
_MOST_WAITING = 100
"""Items that are read ahead: they may be large."""
_STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


def create_request(table: Table, name: str) -> Request:
    """Return the CreateTable request of a declaration."""
    request: Request = {
        "TableName": name,
        "AttributeDefinitions": _definitions(table.key_types()),
        "KeySchema": key_schema(table.primary[:1], table.primary[1:]),
        "BillingMode": "PAY_PER_REQUEST",
    }
    if table.indexes:
        request["GlobalSecondaryIndexes"] = [index_request(index) for index in table.indexes.values()]
    if table.stream:
        request["StreamSpecification"] = dict(_STREAM)  # a copy: a deployment takes a member out of it
    return request


def index_request(index: Index) -> Request:
    """Return an index in the form of CreateTable and UpdateTable."""
    projection: Request = {"ProjectionType": index.projection}
    if isinstance(index.projection, tuple):
        projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.projection)}
    return {
        "IndexName": index.name,
        "KeySchema": key_schema(index.partition, index.sort),
        "Projection": projection,
    }


def _definitions(types: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def key_schema(partition: tuple[str, ...], sort: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the KeySchema of a table or an index, as in requests and descriptions."""
    hashes = [{"AttributeName": name, "KeyType": "HASH"} for name in partition]
    return hashes + [{"AttributeName": name, "KeyType": "RANGE"} for name in sort]


class Tables:
    """The tables of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, *tables: Table) -> None:
        """Create the missing tables, and wait until they can be used.

        On existing ones, switch on time to live and recovery if declared but off: an earlier call may have been
        interrupted.
        """
        for table in tables:
            is_new = not self._is_there(table)
            if is_new:
                with suppress(TableInUse):  # another process was faster
                    self._execute("CreateTable", create_request(table, self._store.table_name(table)))
            self._wait_until_active(table, is_new=is_new)
            self._set_up(table)

    def update(self, table: Table, tell: Callable[[str], object] = lambda _: None) -> list[str]:
        """Add what is declared but not deployed: indexes, a stream, time to live, recovery; return what, in words.

        Afterwards everything can be used, and a new index contains the stored items, because `rekey` runs first: it
        reads the whole table. Nothing is removed, and what requires a new table stays as it is. May be repeated after
        an interruption. Each slow step is announced, in words, before it starts.
        """
        name = self._store.table_name(table)
        self._wait_until_active(table)
        deployed = self.describe(table)
        there = {index["IndexName"] for index in deployed.get("GlobalSecondaryIndexes", ())}
        new = [index for index in table.indexes.values() if index.name not in there]
        items = f"items: {deployed['ItemCount']:,}"
        keys = [(entity, key) for entity in table.entities.values() for key in entity.indexes.values()]
        if any(key.index in new and entity.made_parts(key) for entity, key in keys):
            tell(f"{name}: giving items the keys of new indexes ({items}) ...")
            self.rekey(table)
        added = []
        for index in new:
            tell(f"{name}: filling the index {index.name} ({items}) ...")
            added.append(self._add_index(table, index))
        if table.stream and not deployed.get("StreamSpecification", {}).get("StreamEnabled"):
            self._execute("UpdateTable", {"TableName": name, "StreamSpecification": _STREAM})
            self._wait_until_active(table)
            added.append("a stream")
        return added + self._set_up(table)

    def rekey(self, table: Table) -> int:
        """Give stored items the index keys that follow from their fields; return how many changed.

        Items that were stored before a key was declared lack it. Reads the whole table; others may write meanwhile.
        """
        store = self._store
        request = {"TableName": store.table_name(table), "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"}
        scan = Scan(lambda operation, request: store.ask(operation, request, "tables.rekey"), request, segments=1)
        items, rekeyed = iter(scan), 0
        with ThreadPoolExecutor(_WRITERS) as writers:
            while some := list(islice(items, _MOST_WAITING)):
                rekeyed += sum(writers.map(partial(_is_rekeyed, store, table), some))
        return rekeyed

    def delete(self, *tables: Table) -> None:
        """Delete the tables with all their items; a missing table is not an error."""
        for table in tables:
            try:
                self._execute("DeleteTable", {"TableName": self._store.table_name(table)})
            except TableNotFound:
                continue
            self._wait_until_gone(table)

    def describe(self, table: Table) -> dict[str, Any]:
        """Return the backend's description of a table, or raise TableNotFound."""
        response = self._execute("DescribeTable", {"TableName": self._store.table_name(table)})
        description: dict[str, Any] = response["Table"]
        return description

    def names(self) -> list[str]:
        """Return the names of all tables with the store's prefix, without the prefix."""
        names: list[str] = []
        request: Request = {}
        while True:
            response = self._execute("ListTables", request)
            names += response["TableNames"]
            if "LastEvaluatedTableName" not in response:
                break
            request["ExclusiveStartTableName"] = response["LastEvaluatedTableName"]
        prefix = self._store.prefix
        return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]

    def differences(self, table: Table) -> list[str]:
        """Return the differences between the declaration and what is deployed, in words; empty if there are none.

        Includes what exists but cannot be used yet, such as an index that is still being filled.
        """
        name = self._store.table_name(table)
        try:
            deployed = self.describe(table)
        except TableNotFound:
            return [f"table {name} is declared, but not deployed"]
        if deployed["TableStatus"] == "CREATING":  # Then DynamoDB tells no more of a table that is being restored.
            return _unusable(f"table {name}", "used", "CREATING")
        wanted = create_request(table, name)
        return [
            *_unusable(f"table {name}", "used", deployed["TableStatus"]),
            *_key_differences(f"table {name}", wanted, deployed),
            *_type_differences(wanted, deployed),
            *_index_differences(wanted, deployed),
            *self._setting_differences(table, name, deployed),
        ]

    def _setting_differences(self, table: Table, name: str, deployed: dict[str, Any]) -> list[str]:
        found = []
        ttl = self._time_to_live(name)
        if ttl != table.ttl:
            found.append(f"time to live is declared on {table.ttl or 'no attribute'}, but deployed on {ttl or 'none'}")
        streams = deployed.get("StreamSpecification", {}).get("StreamEnabled", False)
        if streams != table.stream:
            there, missing = ("declared", "deployed") if table.stream else ("deployed", "declared")
            found.append(f"a stream is {there}, but not {missing}")
        if table.recovery and self._is_recoverable(name) is False:
            found.append("point-in-time recovery is declared, but not deployed")
        return found

    def _set_up(self, table: Table) -> list[str]:
        """Switch on what cannot be said when a table is created; gives what was off, in words."""
        name = self._store.table_name(table)
        done = []
        if table.ttl is not None and self._time_to_live(name) is None:
            self._let_expire(name, table.ttl)
            done.append(f"time to live on {table.ttl}")
        if table.recovery and self._is_recoverable(name) is False:
            self._let_recover(name)
            done.append("point-in-time recovery")
        return done

    def _add_index(self, table: Table, index: Index) -> str:
        types = table.key_types()
        request = {
            "TableName": self._store.table_name(table),
            "AttributeDefinitions": _definitions({name: types[name] for name in index.attributes}),
            "GlobalSecondaryIndexUpdates": [{"Create": index_request(index)}],
        }
        self._execute("UpdateTable", request)
        self._wait_until_active(table)
        return f"index {index.name}"

    def _let_expire(self, name: str, attribute: str) -> None:
        setting = {"Enabled": True, "AttributeName": attribute}
        try:
            self._execute("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": setting})
        except RequestRefused:
            if self._time_to_live(name) != attribute:  # else another process was faster
                raise

    def _let_recover(self, name: str) -> None:
        setting = {"PointInTimeRecoveryEnabled": True}
        request = {"TableName": name, "PointInTimeRecoverySpecification": setting}

        def enable() -> str | None:
            try:
                self._execute("UpdateContinuousBackups", request)
            except RequestError as error:
                if error.code != _NO_BACKUPS_YET:
                    raise
                return f"could not enable point-in-time recovery of table {name} ({error.message})"
            return None

        self._wait_until_done(enable)

    def _is_recoverable(self, name: str) -> bool | None:
        """Whether a table can be had as it was; None where the backend knows no backups, as DynamoDB Local."""
        try:
            described = self._execute("DescribeContinuousBackups", {"TableName": name})["ContinuousBackupsDescription"]
        except RequestRefused as error:
            if error.code != "UnknownOperationException":
                raise
            return None
        status: str = described.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus", "DISABLED")
        return status == "ENABLED"

    def _is_there(self, table: Table) -> bool:
        try:
            self.describe(table)
        except TableNotFound:
            return False
        return True

    def _time_to_live(self, name: str) -> str | None:
        described = self._execute("DescribeTimeToLive", {"TableName": name})["TimeToLiveDescription"]
        enabled = described.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
        attribute: str | None = described.get("AttributeName") if enabled else None
        return attribute

    def _wait_until_active(self, table: Table, *, is_new: bool = False) -> None:
        """Wait until a table can be used; one that is new may not be shown at first."""

        def look() -> str | None:
            try:
                described = self.describe(table)
            except TableNotFound:
                if not is_new:
                    raise
                return f"table {self._store.table_name(table)} was created, but is not visible"
            # An index has no state of its own while its table is restored.
            indexes = (i.get("IndexStatus", "CREATING") for i in described.get("GlobalSecondaryIndexes", []))
            states = [described["TableStatus"], *indexes]
            is_active = set(states) == {"ACTIVE"}
            return None if is_active else f"table {described['TableName']} is still {', '.join(states)}"

        self._wait_until_done(look)

    def _wait_until_gone(self, table: Table) -> None:
        def look() -> str | None:
            try:
                described = self.describe(table)
            except TableNotFound:
                return None
            return f"table {described['TableName']} is still {described['TableStatus']}"

        self._wait_until_done(look)

    def _wait_until_done(self, look: Callable[[], str | None]) -> None:
        """Look until nothing is left to wait for; BackendUnavailable says what is left after ten minutes."""
        deadline = self._store.clock.monotonic() + _LONGEST_WAIT_SECONDS
        while (left := look()) is not None:
            if self._store.clock.monotonic() > deadline:
                raise BackendUnavailable(f"{left} after {_LONGEST_WAIT_SECONDS:.0f} seconds")
            self._store.clock.sleep(0.5)

    def _execute(self, operation: str, request: Request) -> dict[str, Any]:
        return self._store.ask(operation, request, f"tables.{operation}", repeatable=False)


def _is_rekeyed(store: Store, table: Table, item: Item | None) -> bool:
    """Give one item its keys, as it is now if somebody changes it meanwhile; says whether it had others."""
    on_table = {"TableName": store.table_name(table), "ReturnConsumedCapacity": "TOTAL"}
    while item:
        entity = entity_of(table, item)
        members = None if isinstance(entity, Undeclared) else requests.rekey(entity, item)
        if members is None:
            return False
        request = {**on_table, **members, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        try:
            store.ask("UpdateItem", request, "tables.rekey", writes=True)
        except ConditionalCheckFailed as error:
            item = error.details.get("Item")
        else:
            return True
    return False


def _unusable(what: str, use: str, status: str) -> list[str]:
    return [] if status in _USABLE else [f"{what} cannot be {use}: it is {status}"]


def _key_differences(what: str, wanted: dict[str, Any], deployed: dict[str, Any]) -> list[str]:
    def keys(described: dict[str, Any]) -> str:
        return ", ".join(f"{key['AttributeName']} ({key['KeyType']})" for key in described["KeySchema"])

    if keys(wanted) == keys(deployed):
        return []
    return [f"{what}: its key is declared as {keys(wanted)}, but deployed as {keys(deployed)}"]


def _type_differences(wanted: dict[str, Any], deployed: dict[str, Any]) -> list[str]:
    there = {d["AttributeName"]: d["AttributeType"] for d in deployed["AttributeDefinitions"]}
    return [
        f"{d['AttributeName']} is declared as {d['AttributeType']}, but deployed as {there[d['AttributeName']]}"
        for d in wanted["AttributeDefinitions"]
        if there.get(d["AttributeName"], d["AttributeType"]) != d["AttributeType"]
    ]


def _index_differences(wanted: dict[str, Any], deployed: dict[str, Any]) -> list[str]:
    declared = {index["IndexName"]: index for index in wanted.get("GlobalSecondaryIndexes", [])}
    there = {index["IndexName"]: index for index in deployed.get("GlobalSecondaryIndexes", [])}
    found = [f"index {name} is declared, but not deployed" for name in declared.keys() - there.keys()]
    found += [f"index {name} is deployed, but not declared" for name in there.keys() - declared.keys()]
    for name in declared.keys() & there.keys():
        found += _unusable(f"index {name}", "read", there[name]["IndexStatus"])
        found += _key_differences(f"index {name}", declared[name], there[name])
        found += _projection_differences(name, declared[name]["Projection"], there[name]["Projection"])
    return sorted(found)


def _projection_differences(name: str, wanted: dict[str, Any], deployed: dict[str, Any]) -> list[str]:
    def words(projection: dict[str, Any]) -> str:
        return " ".join([projection["ProjectionType"], *sorted(projection.get("NonKeyAttributes", []))])

    if words(wanted) == words(deployed):
        return []
    return [f"index {name}: it is declared to project {words(wanted)}, but deployed with {words(deployed)}"]
