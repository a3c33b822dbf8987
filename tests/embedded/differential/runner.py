"""Asks both peers the same requests, one after the other, and stops at the first difference."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.embedded.differential.cases import Case
from tests.embedded.differential.comparison import TABLE_OPERATIONS, normal, settled
from tests.embedded.differential.known import known_difference, removing_updates
from tests.embedded.differential.known_older import has_default_action
from tests.embedded.differential.known_statements import has_statement_twice, known_in_statement
from tests.embedded.differential.mutations import mutated
from tests.embedded.differential.peers import Answer, Peer
from tests.embedded.differential.requests import Step, step
from tests.embedded.differential.streams import StreamReader
from tests.embedded.differential.table_requests import MADE_TABLES, table_step
from tests.embedded.differential.tables import TABLE_OF, TABLES


@dataclass(frozen=True)
class Difference:
    """The steps up to the first unlisted difference, and the two answers to the last one."""

    steps: tuple[Step, ...]
    case: Case

    def __str__(self) -> str:
        lines = ["The embedded engine and DynamoDB Local differ. The steps, as (operation, request):"]
        lines += [f"  {number}. {operation} {json.dumps(sent)}" for number, (operation, sent) in enumerate(self.steps)]
        for name, answer in (("embedded", self.case.embedded), ("local", self.case.local)):
            lines.append(f"{name}: {answer.code or 'ok'} {answer.message} {json.dumps(answer.body)}")
        return "\n".join(lines)


def sequence(seeds: list[int]) -> list[Step]:
    """One step per seed: a request, a broken request, or an earlier one again."""
    steps: list[Step] = []
    for seed in seeds:
        rng = Random(seed)
        chance = rng.random()
        if steps and chance < 0.05:
            steps.append(rng.choice(steps))
        elif chance < 0.3:
            steps.append(mutated(rng, step(rng)))
        else:
            steps.append(step(rng))
    return steps


def table_sequence(seeds: list[int]) -> list[Step]:
    """One step per seed: a request about tables, or a broken one."""
    steps: list[Step] = []
    for seed in seeds:
        rng = Random(seed)
        made = table_step(rng)
        steps.append(mutated(rng, made) if rng.random() < 0.1 else made)
    return steps


class SideBySide:
    """Both peers with the five tables in them."""

    def __init__(self, embedded: Peer, local: Peer) -> None:
        self._peers = (embedded, local)
        self._run_numbers = itertools.count(time.time_ns())
        self.steps_compared = 0
        self._has_stuck_table = False
        self.listed: Counter[str] = Counter()
        for peer in self._peers:
            for table in TABLES:
                made = peer.ask("CreateTable", table.definition())
                if made.code is not None:
                    raise RuntimeError(f"The table {table.name} cannot be made: {made.code} {made.message}")
        streamed = [table for table in TABLES if table.stream is not None]
        self._streams = {table.name: tuple(StreamReader(peer, table) for peer in self._peers) for table in streamed}

    def compare(self, steps: list[Step]) -> Difference | None:
        """Run the steps on empty tables; None when no answer, and nothing of the final content, differs unlisted."""
        if self._has_stuck_table and any(operation in TABLE_OPERATIONS for operation, _ in steps):
            return None
        run_number = next(self._run_numbers)
        done: list[Step] = []
        try:
            for operation, request in steps:
                self.steps_compared += 1
                done.append((operation, request))
                case = self._differing(operation, _own_token(request, run_number))
                if operation == "UpdateTable" and not self._are_indexes_settled():
                    return None
                if self._has_made_of_nothing(operation, request):
                    self.listed["removal from nothing"] += 1
                    return None
                if has_default_action(operation, request):
                    self.listed["default action"] += 1
                    return None
                if has_statement_twice(operation, request):
                    self.listed["statement twice"] += 1
                    return None
                if case is None:
                    continue
                known = known_in_statement(case) or known_difference(case)
                if known is None:
                    return Difference(tuple(done), case)
                self.listed[known.name] += 1
                if (case.embedded.code is None) != (case.local.code is None):
                    return None  # One of them did what the other refused: from here on they may differ in anything.
            return self._differing_content(tuple(steps)) or self._differing_changes(tuple(steps))
        finally:
            self._clear()

    def _differing(self, operation: str, request: dict[str, Any]) -> Case | None:
        embedded, local = (settled(peer, operation, request) for peer in self._peers)
        return None if embedded == local else Case(operation, request, embedded, local)

    def _has_made_of_nothing(self, operation: str, request: dict[str, Any]) -> bool:
        """Whether DynamoDB Local has made an item for an update that only removes, which the service does not."""
        if operation not in ("UpdateItem", "TransactWriteItems"):
            return False
        try:
            keys = [{name: one[name] for name in ("TableName", "Key")} for one in removing_updates(operation, request)]
        except (KeyError, TypeError, AttributeError):
            return False  # It was no valid request, and has done nothing.
        embedded, _ = self._peers
        return any(
            self._differing("GetItem", key) is not None and "Item" not in embedded.ask("GetItem", key).body
            for key in keys
        )

    def _differing_content(self, steps: tuple[Step, ...]) -> Difference | None:
        for table in TABLES:
            for index_name in (None, *(index.name for index in table.indexes)):
                request = {"TableName": table.name} | ({} if index_name is None else {"IndexName": index_name})
                case = self._differing("Scan", request)
                if case is not None:
                    return Difference((*steps, ("Scan", request)), case)
        return None

    def _differing_changes(self, steps: tuple[Step, ...]) -> Difference | None:
        for name, readers in self._streams.items():
            embedded, local = (Answer(normal(reader.changes())) for reader in readers)
            if embedded != local:
                request = {"table": name}
                return Difference((*steps, ("GetRecords", request)), Case("GetRecords", request, embedded, local))
        return None

    def _are_indexes_settled(self) -> bool:
        """Wait for DynamoDB Local, which makes and removes indexes in the background, and at times never ends."""
        deadline = time.monotonic() + 0.5
        for peer, name in itertools.product(self._peers, MADE_TABLES):
            while "ING" in _index_states(peer, name):
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.01)
        return True

    def _remove(self, peer: Peer, name: str) -> None:
        """Delete a table. DynamoDB Local keeps one whose index it never finishes: no more tables are compared then."""
        for _ in range(20):
            peer.ask("UpdateTable", {"TableName": name, "DeletionProtectionEnabled": False})
            if peer.ask("DeleteTable", {"TableName": name}).code is None:
                return
            time.sleep(0.05)
        self._has_stuck_table = True

    def _clear(self) -> None:
        for peer in self._peers:
            for name in set(peer.ask("ListTables", {}).body["TableNames"]) - set(TABLE_OF):
                if not self._has_stuck_table:
                    self._remove(peer, name)
        for peer, table in itertools.product(self._peers, TABLES):
            names = [name for name, _ in table.key_parts]
            for item in peer.ask("Scan", {"TableName": table.name}).body["Items"]:
                key = {name: item[name] for name in names}
                peer.ask("DeleteItem", {"TableName": table.name, "Key": key})
        for reader in itertools.chain.from_iterable(self._streams.values()):
            reader.changes()


def _index_states(peer: Peer, table_name: str) -> str:
    described = peer.ask("DescribeTable", {"TableName": table_name}).body.get("Table", {})
    return " ".join(index["IndexStatus"] for index in described.get("GlobalSecondaryIndexes", []))


def _own_token(request: dict[str, Any], run_number: int) -> dict[str, Any]:
    """Tokens live for ten minutes: each run takes its own, so that no run sees those of another."""
    token = request.get("ClientRequestToken")
    if isinstance(token, str) and token.startswith("@"):
        return request | {"ClientRequestToken": f"{token}-{run_number}"}
    return request
