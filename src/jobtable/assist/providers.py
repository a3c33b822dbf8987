"""Providers: what can be asked of a model, whoever runs it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from jobtable.errors import AssistError


@dataclass(frozen=True)
class Usage:
    """Tokens that a request used, as the provider counts them."""

    tokens_in: int = 0
    tokens_out: int = 0
    is_estimated: bool = False
    """Whether the provider counted nothing, so that they were estimated from the lengths of the texts."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            is_estimated=self.is_estimated or other.is_estimated,
        )


def estimated_tokens(*texts: str) -> int:
    """Estimate the tokens of texts: one for every four bytes, which is about right for English."""
    return sum((len(text.encode("utf-8", "replace")) + 3) // 4 for text in texts)


def checked_vectors(vectors: tuple[list[float], ...], count: int) -> tuple[list[float], ...]:
    """Return vectors if there are so many, of finite numbers, and all of one length."""
    if len(vectors) != count or len({len(each) for each in vectors}) != 1 or not vectors[0]:
        raise ValueError("there is not one vector of the same length for each text")
    if not all(math.isfinite(number) for each in vectors for number in each):
        raise ValueError("a vector has a part that is not a finite number")
    return vectors


@dataclass(frozen=True)
class ChatRequest:
    """One request for a text. Equal requests have equal hashes, by which answers are found."""

    model: str
    messages: tuple[Mapping[str, Any], ...]
    """`{"role": ..., "content": text}`, in order."""
    schema: Mapping[str, Any] | None = None
    """The JSON schema of the answer; None for free text."""
    schema_name: str = "answer"
    temperature: float = 0.0
    max_output_tokens: int = 1024


@dataclass(frozen=True)
class EmbedRequest:
    """One request for the vectors of texts."""

    model: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class ChatAnswer:
    """The text that a model returned, which nobody has checked yet."""

    text: str
    usage: Usage
    model: str
    """The model that answered, as the provider names it."""
    finish: str = "stop"
    """Why it ended: `stop`, `length` (cut at max_output_tokens), `refused` (a content filter or a refusal)."""
    request_id: str | None = None


@dataclass(frozen=True)
class EmbedAnswer:
    """One vector for each text, in order."""

    vectors: tuple[Sequence[float], ...]
    usage: Usage
    model: str
    request_id: str | None = None


class Fault(StrEnum):
    """What went wrong at a provider."""

    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    """It failed, is overloaded, or sent no complete answer."""
    TIMED_OUT = "timed_out"
    UNAUTHORIZED = "unauthorized"
    REFUSED = "refused"
    """The request is invalid, too long, or names an unknown model."""
    OUT_OF_CREDIT = "out_of_credit"


RETRYABLE = frozenset({Fault.RATE_LIMITED, Fault.UNAVAILABLE, Fault.TIMED_OUT})


class ProviderError(AssistError):
    """A provider did not answer. Its text never holds a secret or a prompt."""

    def __init__(
        self,
        message: str,
        *,
        fault: Fault,
        retry_after: float | None = None,
        was_billed: bool = False,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault
        self.retry_after = retry_after
        """The seconds after which the provider wants to be asked again, if it says so."""
        self.was_billed = was_billed
        """Whether the request may have cost something nevertheless, as an answer cut on its way does."""

    @property
    def is_retryable(self) -> bool:
        return self.fault in RETRYABLE


@dataclass(frozen=True)
class EmbedLimits:
    """How much one request for vectors may have."""

    texts: int = 256
    tokens: int = 100_000


class Provider(Protocol):
    """A service that answers. It sends one request and neither retries nor records: that is done once, for all."""

    name: str
    """As the settings name it."""
    kind: str
    """`openai`, `bedrock`, `local` or `none`."""
    embed_limits: EmbedLimits

    def chat(self, request: ChatRequest, *, call_id: str, timeout_seconds: float) -> ChatAnswer:
        """Return the answer, or raise ProviderError.

        `call_id` begins with the id of the call, and is the same whenever that is sent again after a crash; a service
        with idempotency keys then returns the answer that it has already made, and charges nothing.
        """
        ...

    def recall(self, request: ChatRequest, *, call_id: str, timeout_seconds: float) -> ChatAnswer | None:
        """Return the answer that the service keeps of a call which was sent before; None if it keeps none.

        Asked before a call is sent again whose answer may have been made and lost. It costs nothing.
        """
        ...

    def embed(self, request: EmbedRequest, *, call_id: str, timeout_seconds: float) -> EmbedAnswer:
        """Return the vectors, or raise ProviderError; `call_id` as for chat."""
        ...
