"""Answers to questions in OpenAI's form, and the bodies of its lists."""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import Iterable, Mapping
from typing import Any

from jobtable.testing.assist.openai_refusals import scripted_refusal
from jobtable.testing.assist.replies import Question, Reply, counted_tokens
from jobtable.testing.assist.scripted_service import LOST, Response, Service, delivered, digest

_FINISHES = {"stop": "stop", "length": "length", "refused": "content_filter"}


def answer(service: Service, question: Question, body: Mapping[str, Any]) -> Response:
    """Answer a valid question as the script says, and charge it; Refusal if the script says so."""
    reply = service.reply_to(question)
    service.wait_as_told(reply)
    if reply.loses == "request":
        return LOST
    if reply.trouble is not None:
        raise scripted_refusal(reply)
    made, tokens = (_chat if question.kind == "chat" else _embed)(service, question, reply, body)
    service.charge(question, *tokens)
    return delivered(made, reply)


def page(found: Iterable[dict[str, Any]], query: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the part of a list that a query wants: `limit` of them after the one named."""
    every = list(found)
    ids = [each["id"] for each in every]
    after = query.get("after", [None])[0]
    start = ids.index(after) + 1 if after in ids else 0
    shown = every[start : start + int(query.get("limit", ["20"])[0])]
    ends = {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {"first_id": None, "last_id": None}
    return {"object": "list", "data": shown, **ends, "has_more": start + len(shown) < len(every)}


def _chat(service: Service, question: Question, reply: Reply, body: Mapping[str, Any]) -> tuple[Any, tuple[int, int]]:
    text = service.text_of(question, reply)
    tokens = counted_tokens(question, reply, text)
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if reply.finish == "refused":
        message |= {"content": None, "refusal": reply.text or "I'm sorry, I can't assist with that."}
    elif isinstance(body.get("tool_choice"), dict):
        called = {"name": body["tool_choice"]["function"]["name"], "arguments": text}
        message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": called}]}
    made: dict[str, Any] = {
        "id": "chatcmpl-" + digest(text.encode("utf-8", "surrogatepass")),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": f"{question.model}-2026-01-01",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISHES[reply.finish]}],
        **_usage(reply, tokens, "prompt_tokens", "completion_tokens"),
    }
    if body.get("store"):
        service.stored.append({**made, "metadata": body.get("metadata") or {}})
    return made, tokens


def _embed(service: Service, question: Question, reply: Reply, body: Mapping[str, Any]) -> tuple[Any, tuple[int, int]]:
    vectors = service.vectors_of(question, reply)
    tokens = counted_tokens(question, reply, "")
    is_packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": number, "embedding": _packed(vector) if is_packed else vector}
        for number, vector in enumerate(vectors)
    ]
    made = {"object": "list", "data": data, "model": question.model, **_usage(reply, tokens, "prompt_tokens")}
    return made, tokens


def _usage(reply: Reply, tokens: tuple[int, int], *names: str) -> dict[str, dict[str, int]]:
    counts = {**dict(zip(names, tokens, strict=False)), "total_tokens": sum(tokens)}
    return {"usage": counts} if reply.has_usage else {}


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
