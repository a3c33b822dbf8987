"""What the server is asked, and what a test lets it reply, in the terms of no protocol."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias


class Trouble(StrEnum):
    """An error of the service; each protocol has its own status, code and text for it."""

    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    """Status 503."""
    BROKEN = "broken"
    """Status 500."""
    TIMED_OUT = "timed_out"
    """The service itself gave up."""
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    UNKNOWN_MODEL = "unknown_model"
    REFUSED = "refused"
    """The request is invalid."""
    TOO_LONG = "too_long"
    OUT_OF_CREDIT = "out_of_credit"


@dataclass(frozen=True)
class Question:
    """A request for a text or for vectors, over whichever protocol it came."""

    kind: Literal["chat", "embed"]
    protocol: Literal["openai", "bedrock"]
    model: str
    messages: tuple[Mapping[str, str], ...] = ()
    """`{"role": ..., "content": text}`; a system prompt comes first."""
    texts: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    """Of the JSON that the answer must be."""
    temperature: float | None = None
    most_tokens: int | None = None
    key: str | None = None
    """The request's Idempotency-Key; over Bedrock, which has none, the call_id of its requestMetadata."""
    batch_id: str | None = None
    custom_id: str | None = None
    """Of the line in a batch."""

    @property
    def prompt(self) -> str:
        """The last message."""
        return self.messages[-1]["content"] if self.messages else ""

    @property
    def tokens(self) -> int:
        return sum(count_tokens(text) for text in (*self.texts, *(each["content"] for each in self.messages)))


@dataclass(frozen=True)
class Reply:
    """What becomes of one request. All fields are plain, so that a script can be a JSON file."""

    text: str | None = None
    """The answer of a chat; None for one that fits the question."""
    vectors: list[list[float]] | None = None
    """None for vectors made from the texts."""
    finish: Literal["stop", "length", "refused"] = "stop"
    tokens_in: int | None = None
    tokens_out: int | None = None
    has_usage: bool = True
    trouble: Trouble | str | None = None
    """The error to answer with; nothing is charged."""
    message: str | None = None
    """The text of that error."""
    retry_after: float | None = None
    body: str | None = None
    """Sent in place of the body, as a proxy may. The answer is charged, and remembered as it was."""
    delay_seconds: float = 0.0
    held: str | None = None
    """The name under which the server holds the answer back until `release(name)`; it is charged when it arrives."""
    cut_after: int | None = None
    """How many bytes of the body are sent before the connection closes. The answer is charged."""
    loses: Literal["request", "answer"] | None = None
    """Close the connection without a byte: before the request counts, or after its answer was charged."""
    headers: Mapping[str, str] = field(default_factory=dict)


_MOST_DEPTH = 3
"""Lists of a schema that refers to itself are empty below it."""

Script: TypeAlias = Callable[[Question], Reply | None]
"""Returns what becomes of a question; None for an answer that fits."""


def failing(trouble: Trouble | str, *, retry_after: float | None = None, message: str | None = None) -> Reply:
    """Reply with an error of the service."""
    return Reply(trouble=Trouble(trouble), retry_after=retry_after, message=message)


def count_tokens(text: str) -> int:
    """Count a token for every four characters, as this server does."""
    return (len(text) + 3) // 4


def counted_tokens(question: Question, reply: Reply, text: str) -> tuple[int, int]:
    """Return the tokens that a question and its answer use, unless the reply says otherwise."""
    tokens_in = question.tokens if reply.tokens_in is None else reply.tokens_in
    return tokens_in, count_tokens(text) if reply.tokens_out is None else reply.tokens_out


def fitting_text(question: Question) -> str:
    """Return a text that answers the question formally: JSON of its schema, or one that repeats its prompt."""
    if question.schema is not None:
        return json.dumps(instance_of(question.schema, question.schema))
    return f"You said: {question.prompt}"


def fitting_vectors(texts: tuple[str, ...], dimensions: int) -> list[list[float]]:
    """Return a vector of length 1 for each text; equal texts have equal vectors."""
    return [_vector_of(text, dimensions) for text in texts]


def _vector_of(text: str, dimensions: int) -> list[float]:
    stream = hashlib.shake_256(text.encode()).digest(2 * dimensions)
    raw = [int.from_bytes(stream[at : at + 2], "big") / 65535 - 0.5 for at in range(0, 2 * dimensions, 2)]
    length = math.sqrt(sum(each * each for each in raw)) or 1.0
    return [each / length for each in raw]


def instance_of(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a small value that has the shape of a JSON schema, as pydantic writes them."""
    if "$ref" in schema:
        target: Any = root
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target[part]
        return instance_of(target, root, depth + 1)
    for chosen in ("const", "default"):
        if chosen in schema:
            return schema[chosen]
    if "enum" in schema:
        return schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return instance_of(schema[several][0], root, depth)
    return _plain_instance(schema, root, depth)


def _plain_instance(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        wanted = schema.get("required", ())
        parts = {name: part for name, part in schema.get("properties", {}).items() if name in wanted}
        return {name: instance_of(part, root, depth) for name, part in parts.items()}
    if kind == "array":
        least = schema.get("minItems", 1 if depth < _MOST_DEPTH else 0)
        return [instance_of(schema.get("items", {"type": "string"}), root, depth) for _ in range(least)]
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    return {"string": "x" * max(1, schema.get("minLength", 1)), "boolean": True, "null": None}[kind]
