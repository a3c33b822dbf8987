"""DynamoDB's HTTP API over any backend: `Server` listens, `DynamoDbProtocol` answers, `SignatureCheck` guards."""

from jobtable.embedded.server.listener import MOST_FILES, Server
from jobtable.embedded.server.protocol import DynamoDbProtocol
from jobtable.embedded.server.sigv4 import SignatureCheck

__all__ = ["MOST_FILES", "DynamoDbProtocol", "Server", "SignatureCheck"]
