"""The cloud backend: sends requests to DynamoDB, or to anything that speaks its protocol."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from jobtable.dynamodb.wire_client import BODY, ERROR_DETAILS, wire_client, wire_session
from jobtable.errors import (
    AccessDenied,
    BackendUnavailable,
    ConnectionUrlError,
    RequestError,
    RequestRefused,
    request_error,
)
from jobtable.store.backend import Request, Response

# After wire_client, which says what to install where botocore is missing.
from botocore.config import Config  # isort: skip
from botocore import exceptions as aws  # isort: skip
from botocore.parsers import ResponseParserError  # isort: skip

_NO_CREDENTIALS = (
    aws.NoCredentialsError,
    aws.PartialCredentialsError,
    aws.CredentialRetrievalError,
    aws.TokenRetrievalError,
    aws.SSOError,
    aws.LoginError,
)
_NO_ANSWER = (aws.HTTPClientError, aws.ConnectionError, aws.IncompleteReadError, ResponseParserError)


class DynamoDBBackend:
    """DynamoDB in a region, or at `endpoint_url`; credentials and region by AWS's usual rules where none are given.

    A request is sent once: the store knows which ones may be sent again. With `max_attempts` above 1 botocore sends
    again by itself after throttling, lost connections and failures of the service, with growing, jittered pauses;
    a write may then have taken effect the first time. Transactions carry a token, so they take effect once.
    A connection that has died unnoticed is given up after `read_timeout`: the leases of a worker outlive that.
    """

    def __init__(
        self,
        region: str | None,
        *,
        endpoint_url: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        max_attempts: int = 1,
        connect_timeout: float = 5,
        read_timeout: float = 10,
        max_connections: int = 50,
    ) -> None:
        config = Config(
            parameter_validation=False,  # the service judges requests, so every backend refuses the same ones
            retries={"mode": "standard", "total_max_attempts": max_attempts},
            connect_timeout=connect_timeout,
            read_timeout=read_timeout,
            max_pool_connections=max_connections,
            account_id_endpoint_mode="disabled",  # the regional endpoint takes the requests of every account
        )
        with _construction_errors(region, endpoint_url):
            session = wire_session()
            # A server that is not AWS's has no region, but the signature needs one.
            region = region or session.get_config_variable("region") or ("us-east-1" if endpoint_url else None)
            self._clients = [
                wire_client(
                    session,
                    service,
                    config,
                    region_name=region,
                    endpoint_url=endpoint_url,
                    aws_access_key_id=access_key,
                    aws_secret_access_key=secret_key,
                )
                for service in ("dynamodb", "dynamodbstreams")
            ]
        self._endpoint: str = self._clients[0].meta.endpoint_url
        self._methods: dict[str, Callable[..., Response]] = {
            operation: getattr(client, method)
            for client in self._clients
            for method, operation in client.meta.method_to_api_mapping.items()
        }

    def execute(self, operation: str, request: Request) -> Response:
        method = self._methods.get(operation)
        if method is None:
            raise request_error("UnknownOperationException", f"DynamoDB has no operation {operation!r}")
        if operation == "TransactWriteItems" and "ClientRequestToken" not in request:
            request = {**request, "ClientRequestToken": str(uuid.uuid4())}
        with self._request_errors(operation):
            response = method(**{BODY: to_json(request)})
        del response["ResponseMetadata"]
        return response

    def close(self) -> None:
        for client in self._clients:
            client.close()

    @contextmanager
    def _request_errors(self, operation: str) -> Iterator[None]:
        try:
            yield
        except aws.ClientError as error:
            response: Any = error.response
            if ERROR_DETAILS in response["Error"]:
                raise _answered(response) from error
            # The answer is not DynamoDB's: it comes from the service that gives credentials.
            if response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
                raise self._without_answer(operation, error) from error
            raise self._without_credentials(operation, error) from error
        except _NO_CREDENTIALS as error:
            raise self._without_credentials(operation, error) from error
        except _NO_ANSWER as error:
            raise self._without_answer(operation, error) from error
        except aws.BotoCoreError as error:
            message = f"{operation} at {self._endpoint} failed: {error}"
            raise RequestError(message, code=type(error).__name__) from error
        except PydanticSerializationError as error:
            raise RequestRefused(
                f"{operation}: the request is not JSON: {error}", code="SerializationException"
            ) from error

    def _without_answer(self, operation: str, error: Exception) -> BackendUnavailable:
        return BackendUnavailable(f"{operation} at {self._endpoint} returned no usable response: {error}")

    def _without_credentials(self, operation: str, error: Exception) -> AccessDenied:
        return AccessDenied(
            f"there are no usable AWS credentials for {operation} at {self._endpoint}: {error}; set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in with the AWS CLI (a local server takes any)"
        )


def _answered(response: Any) -> RequestError:
    """The service's own error, as WireParser gives it, with its code, message and details."""
    answer = response["Error"]
    failure = request_error(answer["Code"], answer["Message"], answer[ERROR_DETAILS])
    if response["ResponseMetadata"]["HTTPStatusCode"] >= 500 and type(failure) is RequestError:
        return BackendUnavailable(failure.message, code=failure.code, details=failure.details)
    return failure


@contextmanager
def _construction_errors(region: str | None, endpoint_url: str | None) -> Iterator[None]:
    try:
        yield
    except aws.NoRegionError as error:
        raise ConnectionUrlError("no AWS region is set; put it in the URL, or set AWS_REGION") from error
    except (aws.BotoCoreError, ValueError) as error:
        where = endpoint_url or f"region {region!r}"
        raise ConnectionUrlError(f"cannot use DynamoDB at {where}: {error}") from error
