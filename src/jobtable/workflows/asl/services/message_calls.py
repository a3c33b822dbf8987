"""SQS and SNS: a message goes to the registered handler of its queue or topic, before the state goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from jobtable.errors import DefinitionError, kind_and_text
from jobtable.jobs.engine import Jobs
from jobtable.workflows.asl.interpreter.strand import dump
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.run import CallService, Json
from jobtable.workflows.asl.services.service_faults import (
    members_of_request,
    optimized_fault,
    required_text,
    unusable_parameters,
)
from jobtable.workflows.message_handlers import Message, MessageHandlers, name_of_source

_MOST_BYTES = 262_144


def send_message(jobs: Jobs, handlers: MessageHandlers, command: CallService, message_id: str) -> Json:
    """Deliver what `sqs:sendMessage` sends."""
    arguments = members_of_request(command)
    body = _text(arguments, "MessageBody")
    url = required_text(arguments, "QueueUrl")
    message = Message(message_id, url, body, _attributes(arguments))
    _deliver(jobs, handlers, command, message)
    return {"MD5OfMessageBody": hashlib.md5(body.encode(), usedforsecurity=False).hexdigest(), "MessageId": message_id}


def publish(jobs: Jobs, handlers: MessageHandlers, command: CallService, message_id: str) -> Json:
    """Deliver what `sns:publish` sends."""
    arguments = members_of_request(command)
    body = _text(arguments, "Message")
    topic = required_text(arguments, "TopicArn" if arguments.get("TargetArn") is None else "TargetArn")
    subject = None if arguments.get("Subject") is None else required_text(arguments, "Subject")
    _deliver(jobs, handlers, command, Message(message_id, topic, body, _attributes(arguments), subject))
    return {"MessageId": message_id}


def _deliver(jobs: Jobs, handlers: MessageHandlers, command: CallService, message: Message) -> None:
    name = name_of_source(message.source)
    if len(message.body.encode()) > _MOST_BYTES:
        raise _fault(command, "InvalidParameterValue", f"The message has more than {_MOST_BYTES} bytes", message)
    try:
        found = handlers.find(name)
    except DefinitionError as error:
        raise _fault(command, "InternalError", str(error), message) from error
    if found is None:
        what = f"nobody handles the messages to {name}; register a handler with @message_handler({name!r})"
        raise _missing(command, what, message)
    try:
        found.handler(message, jobs)
    except Exception as error:  # whatever a user's handler raises is the failure of the state
        raise _fault(command, "InternalError", f"{found.path} raised {kind_and_text(error)}", message) from error


def _missing(command: CallService, what: str, message: Message) -> StateFault:
    if command.service == "sqs":
        text = f"The specified queue does not exist: {what}"
        code = "AWS.SimpleQueueService.NonExistentQueue"
        return optimized_fault("SQS.QueueDoesNotExistException", "AmazonSQS", code, text, message.message_id)
    text = f"Topic does not exist: {what}"
    return optimized_fault("SNS.NotFoundException", "AmazonSNS", "NotFound", text, message.message_id, 404)


def _fault(command: CallService, code: str, text: str, message: Message) -> StateFault:
    service = command.service.upper()
    status = 500 if code == "InternalError" else 400
    return optimized_fault(
        f"{service}.Amazon{service}Exception", f"Amazon{service}", code, text, message.message_id, status
    )


def _text(arguments: Mapping[str, Json], name: str) -> str:
    """Return the body of a message: a text as it is, another value as JSON."""
    value = arguments.get(name)
    if value is None:
        raise unusable_parameters(arguments, f"The field '{name}' is required but was missing")
    return value if isinstance(value, str) else dump(value)


def _attributes(arguments: Mapping[str, Json]) -> dict[str, Json]:
    value = arguments.get("MessageAttributes") or {}
    if not isinstance(value, dict):
        raise unusable_parameters(arguments, "The value for the field 'MessageAttributes' must be an OBJECT")
    return value
