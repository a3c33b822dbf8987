"""The Backend protocol: DynamoDB's own requests and responses."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from pydantic_core import from_json

AttributeValue: TypeAlias = dict[str, Any]
"""One value in wire form: {"S": "text"}, {"N": "1.5"}, {"B": "base64 text"}, {"L": [...]}, {"M": {...}}, ..."""

Item: TypeAlias = dict[str, AttributeValue]
Request: TypeAlias = dict[str, Any]
Response: TypeAlias = dict[str, Any]


class StoreRequest(dict[str, Any]):
    """A request of the typed store, about which a backend may assume more than about other requests.

    - Its members have the right types and a fixed order, it is within the limits, and its expressions use every
      placeholder that it defines. Its values are valid and in the form in which DynamoDB returns them, except inside
      sets, lists and maps.
    - Its sender can read JSON and does not change the answer: each item that GetItem or Query returns may be its JSON
      (bytes), so a backend that stores JSON need not build Python objects. BatchGetItem may answer in the same way,
      with one entry for each processed key of a table, in order: the JSON, or None for a missing item. What UpdateItem
      returns may share values with the request.

    A backend that does not know this class handles it like any other request.
    """

    __slots__ = ()


class EncodedItem(dict[str, AttributeValue]):
    """An item made from an entity: its JSON, its size, and all its attributes except those `left_out`.

    Its values are valid and in the form in which DynamoDB returns them, except those of the `unknown` attributes, which
    do not count in its size. Only a backend that `TakesEncodedItems` receives one.
    """

    __slots__ = ("body", "left_out", "size", "unknown")

    body: bytes
    size: int
    unknown: tuple[str, ...]
    left_out: frozenset[str]

    def lacks(self, looked_at: frozenset[str] | None) -> bool:
        """Return whether one of these attributes (None means all) may be left out."""
        return looked_at is None or not looked_at.isdisjoint(self.left_out)

    def whole(self) -> Item:
        """Return the item with all its attributes."""
        item: Item = from_json(self.body)
        return item


class Backend(Protocol):
    """Executes DynamoDB operations.

    Requests and responses have exactly the members of DynamoDB's JSON protocol: operations are named as in its API
    ("PutItem"), numbers are text, and binary values are base64 text. Every backend keeps this contract, and
    `jobtable.testing.contract` checks it:

    - An acknowledged write is durable, and visible to every later consistent read of any process.
    - One write is atomic with its condition and with every index; a transaction is atomic as a whole.
    - An error is a `RequestError` with DynamoDB's code and message. After a retryable one the caller cannot know
      whether the request took effect.
    - The request is neither changed nor kept; the response belongs to the caller.
    - Only the answer to a `StoreRequest` may contain items that are still JSON, or share values with the request.
    - Any thread may call at any time.
    """

    def execute(self, operation: str, request: Request) -> Response:
        """Execute one operation, or raise RequestError."""
        ...

    def close(self) -> None:
        """Release all resources; nothing acknowledged is lost. Closing twice is harmless."""
        ...


@runtime_checkable
class TakesEncodedItems(Protocol):
    """A backend that accepts an EncodedItem in place of each item to put."""

    takes_encoded_items: Literal[True]


@runtime_checkable
class TellsChanges(Protocol):
    """A backend that can tell, more cheaply than by a read, that nothing was written."""

    def change_mark(self) -> object:
        """Return a value that differs after any write; it may also differ without one."""
        ...
