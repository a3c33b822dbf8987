"""What the streams of the tables say about a sequence of requests."""

from __future__ import annotations

import json
from typing import Any

from tests.embedded.differential.peers import Answer, Peer
from tests.embedded.differential.tables import Table

_MEMBERS = ("Keys", "NewImage", "OldImage", "StreamViewType")


def _with_empty_maps(node: Any) -> Any:
    """DynamoDB Local leaves the type out of an empty map inside a document: {} for {"M": {}}."""
    if isinstance(node, list):
        return [{"M": {}} if element == {} else _with_empty_maps(element) for element in node]
    if isinstance(node, dict):
        return {
            name: {"M": {}} if content == {} and name != "M" else _with_empty_maps(content)
            for name, content in node.items()
        }
    return node


class StreamReader:
    """Reads a table's stream of one peer, from when it is made."""

    def __init__(self, peer: Peer, table: Table) -> None:
        self._peer = peer
        self._arn: str = self._ask("DescribeTable", {"TableName": table.name})["Table"]["LatestStreamArn"]
        self._last_seen: str | None = None

    def changes(self) -> dict[str, list[Any]]:
        """What happened to each item since the last call, in order."""
        found: dict[str, list[Any]] = {}
        while records := self._ask("GetRecords", {"ShardIterator": self._iterator()})["Records"]:
            for record in records:
                content = {name: _with_empty_maps(record["dynamodb"].get(name)) for name in _MEMBERS}
                key = json.dumps(content["Keys"], sort_keys=True)
                found.setdefault(key, []).append({"eventName": record["eventName"], **content})
            self._last_seen = records[-1]["dynamodb"]["SequenceNumber"]
        return found

    def _iterator(self) -> str:
        """Always a new one: DynamoDB Local takes iterators that have read nothing for trimmed ones after a while."""
        shards = self._ask("DescribeStream", {"StreamArn": self._arn})["StreamDescription"]["Shards"]
        position = {"StreamArn": self._arn, "ShardId": shards[-1]["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        if self._last_seen is not None:
            position |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": self._last_seen}
        iterator: str = self._ask("GetShardIterator", position)["ShardIterator"]
        return iterator

    def _ask(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        answer: Answer = self._peer.ask(operation, request)
        if answer.code is not None:
            raise RuntimeError(f"{operation} of {type(self._peer).__name__} failed: {answer.code} {answer.message}")
        return answer.body
