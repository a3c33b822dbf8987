"""Models of Amazon Bedrock: texts by `converse`, vectors of Titan and Cohere by `invoke_model`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from jobtable.assist.bedrock_bodies import (
    MOST_TEXTS,
    Dialect,
    chat_answer,
    chat_body,
    embed_body,
    takes_many_texts,
    vectors_in,
)
from jobtable.assist.kept_clients import KeptClients
from jobtable.assist.provider_faults import MALFORMED, fault_of_status, keep_quiet, safe_text, seconds_to_wait
from jobtable.assist.providers import (
    ChatAnswer,
    ChatRequest,
    EmbedAnswer,
    EmbedLimits,
    EmbedRequest,
    Fault,
    ProviderError,
    Usage,
    checked_vectors,
    estimated_tokens,
)
from jobtable.errors import MissingExtraError

try:
    from boto3.session import Session
    from botocore import exceptions as aws
    from botocore.config import Config
except ImportError as missing:
    raise MissingExtraError("Amazon Bedrock needs the extra 'aws': pip install 'jobtable[aws]'") from missing

T = TypeVar("T")
_CONNECT_SECONDS = 10.0
_FAULTS = {
    "ThrottlingException": Fault.RATE_LIMITED,
    "ModelNotReadyException": Fault.UNAVAILABLE,
    "ModelErrorException": Fault.UNAVAILABLE,
    "ModelTimeoutException": Fault.TIMED_OUT,
    "ServiceQuotaExceededException": Fault.OUT_OF_CREDIT,
    "ExpiredTokenException": Fault.UNAUTHORIZED,
}
"""What the codes mean that say more than their status."""
_WITHOUT_CREDENTIALS = (
    aws.NoCredentialsError,
    aws.PartialCredentialsError,
    aws.CredentialRetrievalError,
    aws.NoAuthTokenError,
    aws.SSOError,
    aws.ProfileNotFound,
)
_UNREACHED = (aws.EndpointConnectionError, aws.ConnectTimeoutError, aws.ProxyConnectionError, aws.SSLError)


class BedrockProvider:
    """Sends one request at a time to Bedrock, with the credentials that AWS's usual rules find.

    Bedrock has no idempotency keys: an answer that was made but not recorded, because its worker died meanwhile, is
    paid for again. The `call_id` is in the metadata of each request, which AWS writes to its invocation logs.
    """

    kind = "bedrock"

    def __init__(
        self,
        name: str,
        *,
        region: str | None = None,
        base_url: str | None = None,
        embedding_model: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.embed_limits = EmbedLimits(texts=MOST_TEXTS if takes_many_texts(embedding_model or "") else 1)
        self._region = region
        self._base_url = base_url
        self._clock = clock
        self._dialects: dict[str, Dialect] = {}
        self._clients: KeptClients[Any] = KeptClients(self, partial(_new_client, region, base_url))

    def chat(self, request: ChatRequest, *, call_id: str, timeout_seconds: float) -> ChatAnswer:
        """Return the answer, or raise ProviderError."""
        texts = [str(each["content"]) for each in request.messages]
        dialect = self._dialects.get(request.model, Dialect())
        tried: set[Dialect] = set()
        with self._told(texts):
            client = self._clients.get(timeout_seconds)
            while True:
                try:
                    answered = client.converse(**chat_body(request, dialect, call_id))
                except aws.ClientError as refusal:
                    tried.add(dialect)
                    other = dialect.after(*_code_and_message(refusal))
                    if other is None or other in tried:
                        raise
                    dialect = other
                else:
                    self._dialects[request.model] = dialect
                    return chat_answer(answered, request)

    def recall(self, request: ChatRequest, *, call_id: str, timeout_seconds: float) -> ChatAnswer | None:
        """Return None: Bedrock keeps no answers."""
        return None

    def embed(self, request: EmbedRequest, *, call_id: str, timeout_seconds: float) -> EmbedAnswer:
        """Return the vectors, or raise ProviderError. Titan is asked once for each text."""
        if takes_many_texts(request.model):
            return self._embed(request, timeout_seconds)
        answers: list[EmbedAnswer] = []
        for text in request.texts:
            try:
                answers.append(self._embed(EmbedRequest(request.model, (text,)), timeout_seconds))
            except ProviderError as error:
                error.was_billed = error.was_billed or bool(answers)
                raise
        with self._told(request.texts):
            return EmbedAnswer(
                vectors=checked_vectors(tuple(list(each.vectors[0]) for each in answers), len(request.texts)),
                usage=sum((each.usage for each in answers), Usage()),
                model=request.model,
                request_id=answers[-1].request_id,
            )

    def close(self) -> None:
        """Close the connections."""
        self._clients.close()

    def _embed(self, request: EmbedRequest, seconds: float) -> EmbedAnswer:
        with self._told(request.texts):
            body = json.dumps(embed_body(request))
            answered = self._clients.get(seconds).invoke_model(
                modelId=request.model, body=body, contentType="application/json", accept="application/json"
            )
            vectors, counted = vectors_in(json.loads(answered["body"].read()), len(request.texts))
            about = answered["ResponseMetadata"]
            tokens = counted or int(about["HTTPHeaders"].get("x-amzn-bedrock-input-token-count", 0))
            estimated = Usage(estimated_tokens(*request.texts), is_estimated=True)
            usage = Usage(tokens) if tokens else estimated
            return EmbedAnswer(vectors, usage, request.model, about.get("RequestId"))

    @contextmanager
    def _told(self, texts: Sequence[str]) -> Iterator[None]:
        """Raise what fails as a ProviderError, without the error of the client: that one knows the prompt."""
        try:
            yield
        except aws.ClientError as error:
            raise self._refusal(error, texts) from None
        except aws.ReadTimeoutError:
            raise self._error("sent no answer in time", Fault.TIMED_OUT, was_billed=True) from None
        except _UNREACHED as error:
            hint = "check its region" + (f" and base_url, {self._base_url}" if self._base_url else "")
            raise self._error(f"was not reached ({_name(error)})", Fault.UNAVAILABLE, hint=hint) from None
        except _WITHOUT_CREDENTIALS as error:
            hint = "AWS's usual rules find them: environment, profile, role"
            raise self._error(f"has no credentials ({_name(error)})", Fault.UNAUTHORIZED, hint=hint) from None
        except aws.NoRegionError:
            hint = f"set region in [assist.providers.{self.name}]"
            raise self._error("has no region", Fault.REFUSED, hint=hint) from None
        except aws.ParamValidationError:
            raise self._error("takes no such request", Fault.REFUSED) from None
        except (aws.HTTPClientError, aws.IncompleteReadError, aws.BotoCoreError) as error:
            raise self._error(f"sent no complete answer ({_name(error)})", Fault.UNAVAILABLE, was_billed=True) from None
        except MALFORMED as error:
            what = f"sent an answer that is not in the form of its API ({_name(error)})"
            raise self._error(what, Fault.UNAVAILABLE, was_billed=True) from None

    def _refusal(self, error: aws.ClientError, texts: Sequence[str]) -> ProviderError:
        code, message = _code_and_message(error)
        about: Mapping[str, Any] = error.response.get("ResponseMetadata", {})
        fault = _FAULTS.get(code) or fault_of_status(about.get("HTTPStatusCode", 500), code)
        pause = seconds_to_wait(about.get("HTTPHeaders", {}), self._clock)
        hint = "check the AWS credentials and the access to the model" if fault is Fault.UNAUTHORIZED else None
        said = safe_text(message, secrets=(), request=texts)
        return self._error(f"answered {code}: {said}", fault, retry_after=pause, hint=hint)

    def _error(self, what: str, fault: Fault, **more: Any) -> ProviderError:
        return ProviderError(f"provider {self.name} {what}", fault=fault, **more)

    def __repr__(self) -> str:
        return f"BedrockProvider({self.name!r}, region={self._region!r})"


def _new_client(region: str | None, base_url: str | None, seconds: float) -> Any:
    """Return a client with a timeout, which botocore fixes when it makes one."""
    keep_quiet("botocore", "boto3", "urllib3")
    config = Config(
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=min(seconds, _CONNECT_SECONDS),
        read_timeout=seconds,
    )
    made: Any = Session(region_name=region).client("bedrock-runtime", endpoint_url=base_url, config=config)
    return made


def _name(error: Exception) -> str:
    return type(error).__name__


def _code_and_message(error: aws.ClientError) -> tuple[str, str]:
    found = error.response.get("Error", {})
    return found.get("Code", "Unknown"), found.get("Message", "")
