"""Amazon Bedrock's runtime API: `converse` for texts, `invoke` for vectors of Titan and Cohere."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any

from jobtable.testing.assist.bedrock_checks import (
    BedrockRefusal,
    Fault,
    check_credentials,
    converse_question,
    invoke_question,
    scripted_refusal,
)
from jobtable.testing.assist.replies import Question, Reply, Trouble, counted_tokens
from jobtable.testing.assist.scripted_service import LOST, Request, Response, Service, delivered

_STOPS = {"stop": "end_turn", "length": "max_tokens", "refused": "content_filtered"}


class BedrockApi:
    """Answers as Bedrock does, which has no idempotency keys: each answer is charged."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def respond(self, request: Request) -> Response:
        """Answer one request below /model."""
        try:
            check_credentials(request, self._service.options.keys)
            return self._routed(request)
        except BedrockRefusal as refusal:
            return refusal.response()

    def _routed(self, request: Request) -> Response:
        found = re.fullmatch("/model/(.+)/(converse|invoke)", request.path)
        if request.method != "POST" or found is None:
            raise BedrockRefusal(Fault(404, "UnknownOperationException", "The operation does not exist."))
        model, options = found[1], self._service.options
        if options.models is not None and model not in options.models:
            raise scripted_refusal(Trouble.UNKNOWN_MODEL)
        try:
            body = json.loads(request.body)
        except ValueError:
            raise BedrockRefusal(Fault(400, "SerializationException", "The body is not valid JSON.")) from None
        if found[2] == "converse":
            return self._answer(converse_question(body, model, options), body)
        return self._answer(invoke_question(body, model), body)

    def _answer(self, question: Question, body: Mapping[str, Any]) -> Response:
        service = self._service
        reply = service.reply_to(question)
        service.wait_as_told(reply)
        if reply.loses == "request":
            return LOST
        if reply.trouble is not None:
            raise scripted_refusal(Trouble(reply.trouble), reply)
        if question.kind == "chat":
            made, tokens = self._conversed(question, reply, body)
        else:
            made, tokens = self._embedded(question, reply, body)
        service.charge(question, *tokens)
        headers = {"x-amzn-RequestId": str(uuid.uuid4())}
        if question.kind == "embed" and reply.has_usage:
            headers["X-Amzn-Bedrock-Input-Token-Count"] = str(tokens[0])
        return delivered(made, reply, headers)

    def _conversed(
        self, question: Question, reply: Reply, body: Mapping[str, Any]
    ) -> tuple[dict[str, Any], tuple[int, int]]:
        text = self._service.text_of(question, reply)
        tokens = counted_tokens(question, reply, text)
        content: dict[str, Any] = {"text": text}
        stop = _STOPS[reply.finish]
        given = _object_in(text) if question.schema is not None and reply.finish == "stop" else None
        if given is not None:
            name = body["toolConfig"]["tools"][0]["toolSpec"]["name"]
            content = {"toolUse": {"toolUseId": "tooluse_1", "name": name, "input": given}}
            stop = "tool_use"
        made: dict[str, Any] = {
            "output": {"message": {"role": "assistant", "content": [content]}},
            "stopReason": stop,
            "metrics": {"latencyMs": 1},
        }
        if reply.has_usage:
            made["usage"] = {"inputTokens": tokens[0], "outputTokens": tokens[1], "totalTokens": sum(tokens)}
        return made, tokens

    def _embedded(
        self, question: Question, reply: Reply, body: Mapping[str, Any]
    ) -> tuple[dict[str, Any], tuple[int, int]]:
        vectors = self._service.vectors_of(question, reply)
        tokens = counted_tokens(question, reply, "")
        if "inputText" in body:
            return {"embedding": vectors[0] if vectors else None, "inputTextTokenCount": tokens[0]}, tokens
        made: dict[str, Any] = {"id": str(uuid.uuid4()), "texts": list(question.texts)}
        if body.get("embedding_types"):
            return {**made, "response_type": "embeddings_by_type", "embeddings": {"float": vectors}}, tokens
        return {**made, "response_type": "embeddings_floats", "embeddings": vectors}, tokens


def _object_in(text: str) -> dict[str, Any] | None:
    """Return the input of a tool, or None if the model wrote something else than an object: that stays a text."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
