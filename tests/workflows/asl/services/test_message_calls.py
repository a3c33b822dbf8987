"""Messages that states send, and their handlers."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.workflows.asl.services.conftest import Ask

from jobtable.errors import DefinitionError
from jobtable.jobs.engine import Jobs
from jobtable.store import Store
from jobtable.workflows import message_handlers
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.message_handlers import Message, MessageHandlers, message_handler

SEND, PUBLISH = "sqs:sendMessage", "sns:publish"
URL = "https://sqs.us-east-1.amazonaws.com/000000000000/inbox"
TOPIC = "arn:aws:sns:us-east-1:000000000000:inbox"


@pytest.fixture
def inbox(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """What the handler of `inbox` received."""
    monkeypatch.setattr(message_handlers, "_REGISTERED", {})
    received: list[Message] = []

    @message_handler("inbox")
    def receive(message: Message, _: Jobs) -> None:
        received.append(message)
        if message.body == "refuse":
            raise RuntimeError("no room")

    return received


@pytest.mark.parametrize("url", [URL, "inbox"])
def test_a_message_reaches_the_handler_of_its_queue(ask: Ask, inbox: list[Message], url: str) -> None:
    answer = ask(SEND, QueueUrl=url, MessageBody="hello")
    (message,) = inbox
    assert answer == {"MD5OfMessageBody": "5d41402abc4b2a76b9719d911017c592", "MessageId": message.message_id}
    assert (message.source, message.body, message.subject) == (url, "hello", None)


def test_a_notification_reaches_the_handler_of_its_topic(ask: Ask, inbox: list[Message]) -> None:
    attributes = {"color": {"DataType": "String", "StringValue": "red"}}
    answer = ask(PUBLISH, TopicArn=TOPIC, Message={"q": "why?"}, Subject="Ask", MessageAttributes=attributes)
    (message,) = inbox
    assert answer == {"MessageId": message.message_id}
    assert (message.source, message.body, message.subject) == (TOPIC, '{"q":"why?"}', "Ask")
    assert message.attributes == attributes


def test_a_repeated_delivery_has_the_same_id_and_another_visit_another_one(ask: Ask, inbox: list[Message]) -> None:
    for visit in (1, 1, 2):
        ask(SEND, visit=visit, QueueUrl=URL, MessageBody="hello")
    first, repeated, other = (message.message_id for message in inbox)
    assert first == repeated != other


@pytest.mark.parametrize(
    ("resource", "arguments", "error", "cause"),
    [
        (SEND, {"QueueUrl": "none", "MessageBody": "x"}, "SQS.QueueDoesNotExistException", "@message_handler('none')"),
        (PUBLISH, {"TopicArn": "a:none", "Message": "x"}, "SNS.NotFoundException", "@message_handler('none')"),
        (SEND, {"QueueUrl": URL, "MessageBody": "refuse"}, "SQS.AmazonSQSException", "RuntimeError: no room"),
        (PUBLISH, {"TopicArn": TOPIC, "Message": "refuse"}, "SNS.AmazonSNSException", "RuntimeError: no room"),
        (SEND, {"QueueUrl": URL, "MessageBody": "x" * 262_145}, "SQS.AmazonSQSException", "more than 262144 bytes"),
        (SEND, {"QueueUrl": URL}, "States.Runtime", "The field 'MessageBody' is required but was missing"),
        (PUBLISH, {"Message": "x"}, "States.Runtime", "The field 'TopicArn' is required but was missing"),
        (SEND, {"QueueUrl": URL, "MessageBody": "x", "MessageAttributes": []}, None, None),
        (SEND, {"QueueUrl": URL, "MessageBody": "x", "MessageAttributes": "x"}, "States.Runtime", "must be an OBJECT"),
    ],
)
def test_failures(
    ask: Ask, inbox: list[Message], resource: str, arguments: dict[str, object], error: str | None, cause: str | None
) -> None:
    if error is None or cause is None:
        ask(resource, **arguments)
        assert inbox[0].attributes == {}
        return
    with pytest.raises(StateFault) as caught:
        ask(resource, **arguments)
    assert caught.value.error == error
    assert cause in caught.value.cause


@pytest.mark.usefixtures("inbox")
def test_a_queue_has_one_handler() -> None:
    with pytest.raises(DefinitionError, match="the messages to inbox go to"):

        @message_handler("inbox")
        def other(message: Message, jobs: Jobs) -> None: ...


@pytest.mark.usefixtures("inbox")
def test_another_process_imports_a_published_handler(
    ask: Ask, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("letters.py").write_text(
        "from jobtable.workflows.message_handlers import message_handler\n"
        "seen = []\n"
        "@message_handler('letters')\n"
        "def keep(message, jobs):\n"
        "    seen.append(message.body)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import_module("letters")
    MessageHandlers(store).publish()
    message_handlers._REGISTERED.clear()
    del sys.modules["letters"]
    ask(SEND, QueueUrl="letters", MessageBody="hello")
    assert sys.modules["letters"].seen == ["hello"]
    message_handlers._REGISTERED.clear()
    with pytest.raises(StateFault, match="no longer registers the handler of messages to letters"):
        ask(SEND, QueueUrl="letters", MessageBody="hello")
    del sys.modules["letters"]
