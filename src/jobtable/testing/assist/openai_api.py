"""OpenAI's HTTP API: chat completions, embeddings, models and stored completions."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any

from jobtable.testing.assist.openai_checks import chat_question, embed_question
from jobtable.testing.assist.openai_refusals import Refusal, scripted_refusal
from jobtable.testing.assist.replies import Question, Reply, count_tokens
from jobtable.testing.assist.service import Request, Response, Service

_FINISHES = {"stop": "stop", "length": "length", "refused": "content_filter"}


class OpenAiApi:
    """Answers as OpenAI does. A key that was answered gets the same answer, and nothing is charged for it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._answered: dict[str, tuple[str, Response]] = {}
        self._locks: dict[str, RLock] = defaultdict(RLock)
        self._stored: list[dict[str, Any]] = []

    def respond(self, request: Request) -> Response:
        """Answer one request below /v1."""
        try:
            self._check_key(request)
            return self._routed(request)
        except Refusal as refusal:
            return refusal.response()

    def answer(self, question: Question, body: Mapping[str, Any]) -> Response:
        """Answer a valid question as the script says, and charge it; Refusal if the script says so."""
        service = self._service
        reply = service.reply_to(question)
        service.wait_as_told(reply)
        if reply.loses == "request":
            return Response(200, b"", is_lost=True)
        if reply.trouble is not None:
            raise scripted_refusal(reply)
        made, tokens = (self._chat if question.kind == "chat" else self._embed)(question, reply, body)
        service.charge(question, *tokens)
        return delivered(made, reply)

    def _check_key(self, request: Request) -> None:
        keys = self._service.options.keys
        if keys is None:
            return
        kind, _, key = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not key:
            raise Refusal("You didn't provide an API key.", status=401)
        if key not in keys:
            # The genuine service masks the middle; others repeat the whole key, so this one does.
            raise Refusal(f"Incorrect API key provided: {key}.", code="invalid_api_key", status=401)

    def _routed(self, request: Request) -> Response:
        known: dict[tuple[str, str], Callable[[Request], Response]] = {
            ("POST", "/v1/chat/completions"): lambda each: self._ask(each, chat_question),
            ("POST", "/v1/embeddings"): lambda each: self._ask(each, embed_question),
            ("GET", "/v1/chat/completions"): self._list_stored,
            ("GET", "/v1/models"): self._list_models,
        }
        handler = known.get((request.method, request.path))
        if handler is None:
            raise Refusal(f"Invalid URL ({request.method} {request.path})", status=404)
        return handler(request)

    def _ask(self, request: Request, question_of: Callable[..., Question]) -> Response:
        body = parsed(request)
        question = question_of(body, self._service.options, request.key)
        return self.once(request, lambda: self.answer(question, body))

    def once(self, request: Request, act: Callable[[], Response]) -> Response:
        """Do what a request asks, or return what was answered to its key; concurrent requests of a key wait."""
        if request.key is None:
            return act()
        print_ = hashlib.sha256(request.path.encode() + b"\0" + request.body).hexdigest()
        with self._locks[request.key]:
            if request.key in self._answered:
                before, response = self._answered[request.key]
                if before != print_:
                    raise Refusal(
                        "Keys for idempotent requests can only be used with the same parameters they were first used "
                        "with.",
                        code="idempotency_error",
                        status=409,
                    )
                return response
            response = act()
            if not (response.is_lost and not response.body):
                self._answered[request.key] = print_, Response(response.status, response.body, response.headers)
            return response

    def _chat(self, question: Question, reply: Reply, body: Mapping[str, Any]) -> tuple[Any, tuple[int, int]]:
        text = self._service.text_of(question, reply)
        tokens = _counted(question, reply, text)
        is_call = isinstance(body.get("tool_choice"), dict)
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if reply.finish == "refused":
            message |= {"content": None, "refusal": reply.text or "I'm sorry, I can't assist with that."}
        elif is_call:
            called = {"name": body["tool_choice"]["function"]["name"], "arguments": text}
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": called}]}
        made: dict[str, Any] = {
            "id": f"chatcmpl-{_hex(text.encode())}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": f"{question.model}-2026-01-01",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISHES[reply.finish]}],
            "usage": _usage(tokens, "prompt_tokens", "completion_tokens"),
        }
        if not reply.has_usage:
            del made["usage"]
        if body.get("store"):
            with self._service.lock:
                self._stored.append({**made, "metadata": body.get("metadata") or {}})
        return made, tokens

    def _embed(self, question: Question, reply: Reply, body: Mapping[str, Any]) -> tuple[Any, tuple[int, int]]:
        vectors = self._service.vectors_of(question, reply)
        tokens = _counted(question, reply, "")
        is_packed = body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": number, "embedding": _packed(vector) if is_packed else vector}
            for number, vector in enumerate(vectors)
        ]
        made = {"object": "list", "data": data, "model": question.model, "usage": _usage(tokens, "prompt_tokens")}
        if not reply.has_usage:
            del made["usage"]
        return made, tokens

    def _list_stored(self, request: Request) -> Response:
        wanted = {
            name.removeprefix("metadata[").removesuffix("]"): values[0]
            for name, values in request.query.items()
            if name.startswith("metadata[")
        }
        with self._service.lock:
            found = [each for each in self._stored if wanted.items() <= each["metadata"].items()]
        return listed(found)

    def _list_models(self, request: Request) -> Response:
        models = self._service.options.models or ()
        return listed([{"id": each, "object": "model", "created": 0, "owned_by": "test"} for each in models])


def delivered(made: Any, reply: Reply) -> Response:
    """Return an answer, and how its delivery fails."""
    body = json.dumps(made).encode()
    return Response(
        200,
        body,
        {"x-request-id": f"req_{_hex(body)}", **reply.headers},
        garbled=None if reply.body is None else reply.body.encode(),
        cut_after=reply.cut_after,
        is_lost=reply.loses == "answer",
    )


def parsed(request: Request) -> dict[str, Any]:
    """Return the object in a body; Refusal otherwise."""
    try:
        body = json.loads(request.body)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise Refusal(
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP "
            "library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
        )
    return body


def listed(found: list[dict[str, Any]]) -> Response:
    """Return a whole list as one page."""
    ends = {"first_id": found[0]["id"], "last_id": found[-1]["id"]} if found else {"first_id": None, "last_id": None}
    return Response(200, json.dumps({"object": "list", "data": found, **ends, "has_more": False}).encode())


def _counted(question: Question, reply: Reply, text: str) -> tuple[int, int]:
    tokens_in = question.tokens if reply.tokens_in is None else reply.tokens_in
    return tokens_in, count_tokens(text) if reply.tokens_out is None else reply.tokens_out


def _usage(tokens: tuple[int, int], *names: str) -> dict[str, int]:
    return {**dict(zip(names, tokens, strict=False)), "total_tokens": sum(tokens)}


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _hex(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]
