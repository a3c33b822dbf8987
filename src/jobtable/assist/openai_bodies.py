"""Requests and answers in the form of OpenAI's API, and the dialects of those who speak it."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from jobtable.assist.answer_schemas import as_object, instruction, strict_schema, unfenced, unwrapped
from jobtable.assist.providers import (
    ChatAnswer,
    ChatRequest,
    EmbedAnswer,
    EmbedRequest,
    Usage,
    checked_vectors,
    estimated_tokens,
)

_FINISHES = {"length": "length", "content_filter": "refused"}
_ABOUT_STRUCTURE = re.compile("response_format|json_schema|json_object|structured|guided|grammar|schema")
_ABOUT_TOKENS = re.compile("max_(completion_)?tokens")


@dataclass(frozen=True)
class Dialect:
    """Which parts of OpenAI's API a model takes."""

    structure: Literal["strict", "schema", "json", "words"] = "strict"
    """How it is told the form of its answer."""
    tokens_name: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    has_temperature: bool = True
    has_packed_vectors: bool = True

    @staticmethod
    def usual(*, is_openai: bool) -> Dialect:
        """Return the dialect to start with: services other than OpenAI may ignore the newer name of the limit."""
        return Dialect() if is_openai else Dialect(tokens_name="max_tokens")

    def after(self, refusal: str) -> Dialect | None:
        """Return a dialect without what a service refused; None if that is no matter of dialect."""
        said = refusal.lower()
        if "temperature" in said and self.has_temperature:
            return replace(self, has_temperature=False)
        if "encoding_format" in said and self.has_packed_vectors:
            return replace(self, has_packed_vectors=False)
        if _ABOUT_TOKENS.search(said):
            is_newer = self.tokens_name == "max_completion_tokens"
            return replace(self, tokens_name="max_tokens" if is_newer else "max_completion_tokens")
        if not _ABOUT_STRUCTURE.search(said) or self.structure == "words":
            return None
        if self.structure == "strict" and "invalid schema" in said:
            return replace(self, structure="schema")
        return replace(self, structure="words" if self.structure == "json" else "json")


def chat_body(request: ChatRequest, dialect: Dialect) -> dict[str, Any]:
    """Return what is sent for a text."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [dict(each) for each in request.messages],
        dialect.tokens_name: request.max_output_tokens,
    }
    if dialect.has_temperature:
        body["temperature"] = request.temperature
    if request.schema is None:
        return body
    schema = as_object(request.schema)
    if dialect.structure in ("json", "words"):
        body["messages"].append({"role": "system", "content": instruction(schema)})
    if dialect.structure == "json":
        body["response_format"] = {"type": "json_object"}
    elif dialect.structure != "words":
        strict = strict_schema(schema) if dialect.structure == "strict" else None
        name = re.sub(r"[^a-zA-Z0-9_-]+", "_", request.schema_name)[:64] or "answer"
        form = {"name": name, "schema": strict or schema, "strict": strict is not None}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    return body


def chat_answer(content: Mapping[str, Any], request: ChatRequest) -> ChatAnswer:
    """Return the answer in a body; KeyError and its like if there is none."""
    choice = content["choices"][0]
    message = choice["message"]
    text, finish = message.get("content") or "", _FINISHES.get(choice.get("finish_reason"), "stop")
    if message.get("refusal"):
        text, finish = message["refusal"], "refused"
    elif request.schema is not None:
        text = unwrapped(unfenced(text), request.schema)
    if not isinstance(text, str):
        raise TypeError("the content is not a text")
    sent = [str(each["content"]) for each in request.messages]
    return ChatAnswer(
        text=text,
        usage=_usage(content) or Usage(estimated_tokens(*sent), estimated_tokens(text), is_estimated=True),
        model=str(content.get("model") or request.model),
        finish=finish,
        request_id=content.get("request_id"),
    )


def embed_body(request: EmbedRequest, dialect: Dialect) -> dict[str, Any]:
    """Return what is sent for vectors."""
    form = "base64" if dialect.has_packed_vectors else "float"
    return {"model": request.model, "input": list(request.texts), "encoding_format": form}


def embed_answer(content: Mapping[str, Any], request: EmbedRequest) -> EmbedAnswer:
    """Return the vectors in a body; ValueError and its like if they are not one for each text."""
    data = sorted(content["data"], key=lambda each: each["index"])
    vectors = tuple(_vector(each["embedding"]) for each in data)
    return EmbedAnswer(
        vectors=checked_vectors(vectors, len(request.texts)),
        usage=_usage(content) or Usage(estimated_tokens(*request.texts), is_estimated=True),
        model=str(content.get("model") or request.model),
        request_id=content.get("request_id"),
    )


def _vector(given: Any) -> list[float]:
    if isinstance(given, str):
        packed = base64.b64decode(given, validate=True)
        return list(struct.unpack(f"<{len(packed) // 4}f", packed))
    return [float(each) for each in given]


def _usage(content: Mapping[str, Any]) -> Usage | None:
    counted = content.get("usage")
    if not isinstance(counted, Mapping) or not isinstance(counted.get("prompt_tokens"), int):
        return None
    return Usage(counted["prompt_tokens"], counted.get("completion_tokens") or 0)
