"""DynamoDB's HTTP API over any backend: `Server` listens, `DynamoDbProtocol` answers, `SignatureCheck` guards."""

from jobtable.embedded.server.listener import Server
from jobtable.embedded.server.protocol import DynamoDbProtocol
from jobtable.embedded.server.sigv4 import SignatureCheck

__all__ = ["DynamoDbProtocol", "Server", "SignatureCheck"]
