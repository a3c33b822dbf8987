"""The Backend protocol: DynamoDB's own requests in, DynamoDB's own responses out."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from pydantic_core import from_json

AttributeValue: TypeAlias = dict[str, Any]
"""One value in wire form: {"S": "text"}, {"N": "1.5"}, {"B": "base64 text"}, {"L": [...]}, {"M": {...}}, ..."""

Item: TypeAlias = dict[str, AttributeValue]
Request: TypeAlias = dict[str, Any]
Response: TypeAlias = dict[str, Any]


class StoreRequest(dict[str, Any]):
    """A request of the typed store, of which a backend may rely on more than on that of a stranger.

    - Its members have the right types and always come in the same order, its limits are kept, and its expressions use
      every placeholder that it defines. Its values are valid and in the form in which DynamoDB gives them back, except
      inside of sets, lists and maps.
    - Its sender can read JSON, and changes nothing in the answer: each item that GetItem or Query answers with may be
      its JSON (bytes), so that a backend that stores items so need not turn them into Python objects. BatchGetItem may
      answer in the same way, with one entry for each key of a table that was processed, in their order: the JSON, or
      None where there is no item. What UpdateItem returns may share values with the request.

    A backend that does not know of this takes the request as any other.
    """

    __slots__ = ()


class EncodedItem(dict[str, AttributeValue]):
    """An item that was made of an entity: its JSON, its size, and of its attributes all but those that are `left_out`.

    Its values are valid and in the form in which DynamoDB gives them back, except those of the `unknown` attributes,
    which do not count in its size. Only a backend that `TakesEncodedItems` is given one.
    """

    __slots__ = ("body", "left_out", "size", "unknown")

    body: bytes
    size: int
    unknown: tuple[str, ...]
    left_out: frozenset[str]

    def lacks(self, looked_at: frozenset[str] | None) -> bool:
        """Whether one of these attributes, which None says are all, may be left out."""
        return looked_at is None or not looked_at.isdisjoint(self.left_out)

    def whole(self) -> Item:
        """The item with all its attributes."""
        item: Item = from_json(self.body)
        return item


class Backend(Protocol):
    """Executes DynamoDB operations.

    Requests and responses have exactly the members of DynamoDB's JSON protocol: operations are named as in
    its API ("PutItem"), numbers are text, and binary values are base64 text. Every backend keeps this contract,
    and `jobtable.testing.contract` checks it:

    - An answer means that it happened: a write that was acknowledged is durable, and seen by every later
      consistent read of any process.
    - One write is atomic with its condition and with every index; a transaction is atomic as a whole.
    - An error is a `RequestError` that carries DynamoDB's code and message. After a retryable one the caller
      cannot know whether the request took effect.
    - The request is not changed and not kept; the response belongs to the caller.
    - Only a `StoreRequest` may be answered with items that are still JSON, or that share something with it.
    - Any thread may call at any time.
    """

    def execute(self, operation: str, request: Request) -> Response:
        """Run one operation, or raise RequestError."""
        ...

    def close(self) -> None:
        """Release what the backend holds; nothing acknowledged is lost. Closing twice is harmless."""
        ...


@runtime_checkable
class TakesEncodedItems(Protocol):
    """A backend that takes an EncodedItem in the place of each item to be put."""

    takes_encoded_items: Literal[True]


@runtime_checkable
class TellsChanges(Protocol):
    """A backend that can tell, for less than a read costs, that nothing was written."""

    def change_mark(self) -> object:
        """A value that differs once anyone has written something; it may also differ without that."""
        ...
