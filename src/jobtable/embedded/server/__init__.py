"""AWS's HTTP APIs: `Server` listens, an `Endpoint` chooses the protocol that answers, `SignatureCheck` guards."""

from jobtable.embedded.server.endpoint import Endpoint, Service
from jobtable.embedded.server.lambda_functions import LambdaProtocol
from jobtable.embedded.server.listener import MOST_FILES, Server
from jobtable.embedded.server.protocol import DynamoDbProtocol
from jobtable.embedded.server.sigv4 import SignatureCheck
from jobtable.embedded.server.step_functions import StepFunctionsProtocol

__all__ = [
    "MOST_FILES",
    "DynamoDbProtocol",
    "Endpoint",
    "LambdaProtocol",
    "Server",
    "Service",
    "SignatureCheck",
    "StepFunctionsProtocol",
]
