"""Services with OpenAI's API: OpenAI, Azure, vLLM, Ollama, LM Studio and others, by their base URL."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from jobtable.assist.kept_clients import KeptClients
from jobtable.assist.openai_bodies import Dialect, chat_answer, chat_body, embed_answer, embed_body
from jobtable.assist.provider_faults import MALFORMED, fault_of_status, keep_quiet, safe_text, seconds_to_wait
from jobtable.assist.providers import (
    ChatAnswer,
    ChatRequest,
    EmbedAnswer,
    EmbedLimits,
    EmbedRequest,
    Fault,
    ProviderError,
)
from jobtable.errors import MissingExtraError

try:
    import openai
except ImportError as missing:
    raise MissingExtraError("OpenAI's API needs the extra 'assist': pip install 'jobtable[assist]'") from missing

T = TypeVar("T")
BASE_URL = "https://api.openai.com/v1"
_CONNECT_SECONDS = 10.0
_CALL = "jobtable_call"
"""The name under which the service keeps the `call_id` of an answer."""
_UNSENT = frozenset(("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"))
"""What the HTTP client raises before it sends a request: nothing was asked."""


class OpenAiProvider:
    """Sends one request at a time to a service with OpenAI's API. Safe to use from several threads.

    What a model does not take, the service refuses with status 400, free of charge; the request is then sent in another
    dialect, and the dialect that worked is remembered.
    """

    kind = "openai"

    def __init__(
        self,
        name: str,
        *,
        base_url: str = BASE_URL,
        find_key: Callable[[], str | None] = lambda: None,
        key_variable: str | None = None,
        keeps_answers: bool = False,
        embed_limits: EmbedLimits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.base_url = base_url.rstrip("/")
        self.embed_limits = embed_limits or EmbedLimits()
        self._find_key = find_key
        self._key_variable = key_variable
        self._keeps_answers = keeps_answers
        self._clock = clock
        self._dialects: dict[Any, Dialect] = {}
        self._clients = KeptClients(self, partial(_new_client, self.base_url, find_key, is_openai=self._is_openai))

    def chat(self, request: ChatRequest, *, call_id: str, timeout_seconds: float) -> ChatAnswer:
        """Return the answer, or raise ProviderError."""

        def send(dialect: Dialect) -> ChatAnswer:
            body = chat_body(request, dialect)
            create = self.client().chat.completions.with_raw_response.create
            if self._keeps_answers:
                body |= {"store": True, "metadata": {_CALL: call_id}}
            return chat_answer(self._content(create, body, timeout_seconds, call_id=call_id), request)

        topic = (request.model, json.dumps(request.schema, sort_keys=True))
        return self._in_a_dialect(topic, send, _texts_of(request))

    def recall(self, request: ChatRequest, *, call_id: str, timeout_seconds: float) -> ChatAnswer | None:
        """Return the answer that the service keeps of a call; None if it keeps none, or raise ProviderError."""
        if not self._keeps_answers:
            return None
        with self.telling(_texts_of(request), is_free=True):
            find = self.client().chat.completions.with_raw_response.list
            found = self._content(find, {"metadata": {_CALL: call_id}, "limit": 1}, timeout_seconds)
            return chat_answer(found["data"][0], request) if found["data"] else None

    def embed(self, request: EmbedRequest, *, call_id: str, timeout_seconds: float) -> EmbedAnswer:
        """Return the vectors, or raise ProviderError."""

        def send(dialect: Dialect) -> EmbedAnswer:
            create = self.client().embeddings.with_raw_response.create
            content = self._content(create, embed_body(request, dialect), timeout_seconds, call_id=call_id)
            return embed_answer(content, request)

        return self._in_a_dialect((request.model, "embed"), send, request.texts)

    def close(self) -> None:
        """Close the connections."""
        self._clients.close()

    def _in_a_dialect(self, topic: Any, send: Callable[[Dialect], T], texts: Sequence[str]) -> T:
        """Send in the dialect that worked before, or in others as long as the service refuses what belongs to one."""
        dialect = self._dialects.get(topic) or Dialect.usual(is_openai=self._is_openai)
        tried: set[Dialect] = set()
        with self.telling(texts):
            while True:
                try:
                    answered = send(dialect)
                except (openai.BadRequestError, openai.UnprocessableEntityError) as refusal:
                    tried.add(dialect)
                    other = dialect.after(_message_of(refusal))
                    if other is None or other in tried:
                        raise
                    dialect = other
                else:
                    self._dialects[topic] = dialect
                    return answered

    @property
    def _is_openai(self) -> bool:
        return (urlsplit(self.base_url).hostname or "").endswith((".openai.com", ".azure.com"))

    def client(self) -> openai.OpenAI:
        """Return the client, which asks for the key anew for each request; without a key it sends none."""
        return self._clients.get()

    def headers(self, key: str | None = None) -> dict[str, Any]:
        """Return the headers of a request: its idempotency key, and no authorization if no key is set."""
        headers: dict[str, Any] = {"Idempotency-Key": key} if key else {}
        return headers if self._find_key() else {**headers, "Authorization": openai.Omit()}

    def _content(
        self, send: Callable[..., Any], body: Mapping[str, Any], seconds: float, *, call_id: str | None = None
    ) -> Any:
        """Send a request, and return the JSON of its answer with `request_id`."""
        timeout = openai.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
        response = send(**body, extra_headers=self.headers(call_id), timeout=timeout)
        content = json.loads(response.http_response.content)
        if isinstance(content, dict):
            content["request_id"] = response.headers.get("x-request-id")
        return content

    @contextmanager
    def telling(self, texts: Sequence[str] = (), *, is_free: bool = False) -> Iterator[None]:
        """Raise what fails as a ProviderError, without the error of the client: that one knows key and prompt."""
        try:
            with self._translated(texts):
                yield
        except ProviderError as error:
            error.was_billed = error.was_billed and not is_free
            raise

    @contextmanager
    def _translated(self, texts: Sequence[str]) -> Iterator[None]:
        try:
            yield
        except openai.APIStatusError as error:
            raise self._refusal(error, texts) from None
        except openai.APITimeoutError as error:
            sent = _was_sent(error)
            raise self._error("sent no answer in time", Fault.TIMED_OUT, was_billed=sent) from None
        except openai.APIConnectionError as error:
            raise self._unreached(error) from None
        except (*MALFORMED, openai.OpenAIError) as error:
            what = f"sent an answer that is not in the form of OpenAI's API ({type(error).__name__})"
            raise self._error(what, Fault.UNAVAILABLE, was_billed=True) from None

    def _refusal(self, error: openai.APIStatusError, texts: Sequence[str]) -> ProviderError:
        fault = fault_of_status(error.status_code, error.code)
        said = safe_text(_message_of(error), secrets=[self._find_key() or ""], request=texts)
        code = f" {error.code}" if error.code else ""
        pause = seconds_to_wait(error.response.headers, self._clock)
        hint = self._hint_of_key() if fault is Fault.UNAUTHORIZED else None
        return self._error(f"answered {error.status_code}{code}: {said}", fault, retry_after=pause, hint=hint)

    def _hint_of_key(self) -> str:
        if self._key_variable is None:
            return f"name the variable with its key: api_key_env in [assist.providers.{self.name}]"
        state = "check" if self._find_key() else "set"
        return f"{state} the variable {self._key_variable} where the workers run"

    def _unreached(self, error: openai.APIConnectionError) -> ProviderError:
        cause = type(error.__cause__ or error).__name__
        if _was_sent(error):
            return self._error(f"sent no complete answer ({cause})", Fault.UNAVAILABLE, was_billed=True)
        hint = f"check that it runs at base_url, {self.base_url}"
        return self._error(f"was not reached ({cause})", Fault.UNAVAILABLE, hint=hint)

    def _error(self, what: str, fault: Fault, **more: Any) -> ProviderError:
        return ProviderError(f"provider {self.name} {what}", fault=fault, **more)

    def __repr__(self) -> str:
        return f"OpenAiProvider({self.name!r}, base_url={self.base_url!r})"


def _new_client(base_url: str, find_key: Callable[[], str | None], *, is_openai: bool) -> openai.OpenAI:
    """Return a client that asks for the key anew for each request."""
    keep_quiet("openai", "httpx", "httpx2", "httpcore", "httpcore2")
    # The client reads the names of an account with OpenAI from the environment, for whomever it asks.
    names = () if is_openai else ("OpenAI-Organization", "OpenAI-Project")
    headers: dict[str, Any] = dict.fromkeys(names, openai.Omit())
    return openai.OpenAI(base_url=base_url, api_key=lambda: find_key() or "", max_retries=0, default_headers=headers)


def _texts_of(request: ChatRequest) -> list[str]:
    return [str(each["content"]) for each in request.messages]


def _was_sent(error: openai.APIConnectionError) -> bool:
    return type(error.__cause__).__name__ not in _UNSENT


def _message_of(error: openai.APIStatusError) -> str:
    """Return what the service says; servers that are not OpenAI's have other forms."""
    body = error.body
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        found = inner.get("message", inner) if isinstance(inner, Mapping) else inner
        told = found if isinstance(found, str) else json.dumps(found, default=str)
        return f"{told} ({error.param})" if error.param and error.param not in told else told
    return str(body or error.response.reason_phrase)
