"""A botocore client that carries DynamoDB's JSON as it is.

botocore does what it is good at: credentials, endpoints, signatures, connections and retries. Its own translation
between Python values and JSON is switched off at the two places that it offers for that, because a `Backend`
speaks JSON already: the events around a call replace the request's body, and the session's parser factory
replaces the parser.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from jobtable.errors import ConnectionUrlError

try:
    from botocore.parsers import ResponseParserError, ResponseParserFactory
    from botocore.session import Session
except ImportError as error:
    raise ConnectionUrlError("DynamoDB needs boto3: pip install 'jobtable[aws]'") from error

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from botocore.config import Config
    from botocore.model import OperationModel

BODY = "Body"
"""The one parameter of every call of a wire client: the request as JSON bytes."""

ERROR_DETAILS = "Details"
"""Where a failed call's response holds what the error sent along besides its code and message."""


class WireParser:
    """Gives a response's JSON as it stands."""

    def parse(self, response: dict[str, Any], _shape: object) -> dict[str, Any]:
        status: int = response["status_code"]
        metadata = {"HTTPStatusCode": status, "HTTPHeaders": response["headers"]}
        checksum = response["headers"].get("x-amz-crc32")
        if checksum is not None and checksum != str(zlib.crc32(response["body"])):
            raise ResponseParserError("the response was damaged in transit: its checksum does not match its bytes")
        if status >= 300:
            return {"Error": _error(response["body"], status), "ResponseMetadata": metadata}
        try:
            parsed = from_json(response["body"] or b"{}")
        except ValueError as error:
            raise ResponseParserError(f"the response is not JSON: {error}") from error
        if not isinstance(parsed, dict):
            raise ResponseParserError(f"the response is not a JSON object, but a {type(parsed).__name__}")
        parsed["ResponseMetadata"] = metadata
        return parsed


def _error(body: bytes, status: int) -> dict[str, Any]:
    try:
        members = from_json(body)
    except ValueError:
        members = None  # a proxy or a wrong server answered: there is nothing but the status
    if not isinstance(members, dict) or not isinstance(members.get("__type"), str):
        return {"Code": f"HTTP{status}", "Message": body[:300].decode(errors="replace"), ERROR_DETAILS: {}}
    code: str = members.pop("__type")
    messages = [members.pop(name, None) for name in ("message", "Message")]
    return {
        "Code": code.rpartition("#")[2],
        "Message": next((message for message in messages if message is not None), ""),
        ERROR_DETAILS: members,
    }


class WireParserFactory(ResponseParserFactory):
    """Gives the wire parser to DynamoDB's protocol; others (a credential provider's calls) keep botocore's own."""

    def create_parser(self, protocol_name: str) -> Any:
        return WireParser() if protocol_name == "json" else super().create_parser(protocol_name)


def wire_session() -> Session:
    """A botocore session whose DynamoDB clients give responses in wire form."""
    session = Session()
    session.register_component("response_parser_factory", WireParserFactory())
    return session


def wire_client(session: Session, service: str, config: Config, **options: Any) -> BaseClient:
    """A client whose methods take `BODY` alone and send it unchanged."""
    client: BaseClient = session.create_client(service, config=config, **options)
    client.meta.events.register("provide-client-params", _take_body)
    client.meta.events.register("before-call", _send_body)
    return client


def _take_body(params: dict[str, Any], model: OperationModel, context: dict[str, Any], **_: object) -> None:
    context["jobtable_body"] = params.pop(BODY)
    if model.name in ("BatchGetItem", "BatchWriteItem"):
        params["RequestItems"] = {}  # the rules that choose the endpoint look for the tables of a batch there


def _send_body(params: dict[str, Any], context: dict[str, Any], **_: object) -> None:
    params["body"] = context["jobtable_body"]
