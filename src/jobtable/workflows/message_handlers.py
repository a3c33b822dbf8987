"""Handlers of messages: who receives what `sqs:sendMessage` and `sns:publish` send."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from jobtable.errors import DefinitionError
from jobtable.jobs.engine import Jobs
from jobtable.model import Attr, Entity, Key
from jobtable.store import Store
from jobtable.workflows.function_records import import_registered
from jobtable.workflows.table_and_queues import workflows


@dataclass(frozen=True)
class Message:
    """What was sent to a queue or topic. After a crash the same message may be delivered again, with the same id."""

    message_id: str
    source: str
    """The URL of the queue or the ARN of the topic, as the state names it."""
    body: str
    """A text, or JSON as text if the state sends another value."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """The message attributes in AWS's form: `{"color": {"DataType": "String", "StringValue": "red"}}`."""
    subject: str | None = None
    """Of a notification."""


Handler: TypeAlias = Callable[[Message, Jobs], None]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True)
class MessageHandler:
    """A registered handler."""

    name: str
    path: str
    """`module:name`, by which a worker imports it."""
    handler: Handler


_REGISTERED: dict[str, MessageHandler] = {}


def message_handler(name: str) -> Callable[[H], H]:
    """Register a function as the handler of the queue or topic of that name, and return it unchanged.

    If it raises, the state that sent the message fails, and may be retried.
    """

    def register(marked: H) -> H:
        registered = MessageHandler(name, f"{marked.__module__}:{marked.__qualname__}", marked)
        other = _REGISTERED.get(name)
        if other is not None and other.path != registered.path:
            raise DefinitionError(
                f"the messages to {name} go to {other.path} and cannot also go to {registered.path}; pass another name"
            )
        _REGISTERED[name] = registered
        return marked

    return register


def name_of_source(source: str) -> str:
    """Return the name of a queue or topic: the last part of its URL or ARN."""
    return source.rpartition("/")[2].rpartition(":")[2]


INBOX = "jobtable-inbox"
_RECEIVE = "jobtable.inbox.question_messages:receive"


def _to_inbox(name: str) -> MessageHandler:
    """Return the handler that asks people; it is loaded by its name, because workflows know no inbox."""
    receive: Handler = pkgutil.resolve_name(_RECEIVE)
    return MessageHandler(name, _RECEIVE, receive)


class MessageHandlerRecord(Entity, table=workflows, type="MESSAGE_HANDLER"):
    """The module that registers a handler of messages."""

    key = Key("MESSAGE_HANDLER", "MESSAGE_HANDLER#{name}")

    name: str
    path: Attr[str]


class MessageHandlers:
    """The handlers of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def publish(self) -> None:
        """Record all handlers that this process has registered, so that every worker finds them."""
        known = {record.name: record.path for record in self._store.query(MessageHandlerRecord.key())}
        changed = [each for each in _REGISTERED.values() if known.get(each.name) != each.path]
        self._store.batch_put(MessageHandlerRecord(name=each.name, path=each.path) for each in changed)

    def find(self, name: str) -> MessageHandler | None:
        """Return a handler, importing the module that registers it; None if nobody has registered it.

        What no user handles goes into the inbox of people, if its name ends with `jobtable-inbox`.
        """
        if (found := _REGISTERED.get(name)) is not None:
            return found
        record = self._store.find(MessageHandlerRecord.key(name=name))
        if record is None:
            return _to_inbox(name) if name.endswith(INBOX) else None
        return import_registered("handler of messages to", name, record.path, _REGISTERED.get)
