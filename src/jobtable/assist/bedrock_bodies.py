"""Requests and answers in the form of Amazon Bedrock's API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from jobtable.assist.answer_schemas import as_object, instruction, unfenced, unwrapped
from jobtable.assist.providers import ChatAnswer, ChatRequest, EmbedRequest, Usage, checked_vectors, estimated_tokens

_FINISHES = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "refused",
    "content_filtered": "refused",
}
_COHERE = "cohere.embed"
MOST_TEXTS = 96
"""How many texts Cohere's models take at once; Titan takes one."""


@dataclass(frozen=True)
class Dialect:
    """Which parts of `converse` a model takes."""

    structure: Literal["tool", "any", "words"] = "tool"
    """How it is told the form of its answer: by the tool it has to use, by that it has to use one, or in words."""
    has_temperature: bool = True

    def after(self, code: str, message: str) -> Dialect | None:
        """Return a dialect without what Bedrock refused; None if that is no matter of dialect."""
        said = message.lower()
        if code != "ValidationException":
            return None
        if "temperature" in said and self.has_temperature:
            return replace(self, has_temperature=False)
        if "tool" not in said or self.structure == "words":
            return None
        is_choice = "toolchoice" in said and self.structure == "tool"
        return replace(self, structure="any" if is_choice else "words")


def chat_body(request: ChatRequest, dialect: Dialect, call_id: str) -> dict[str, Any]:
    """Return the parameters of `converse`."""
    settings: dict[str, Any] = {"maxTokens": request.max_output_tokens}
    if dialect.has_temperature:
        settings["temperature"] = request.temperature
    system = [{"text": str(each["content"])} for each in request.messages if each["role"] == "system"]
    body: dict[str, Any] = {
        "modelId": request.model,
        "messages": _alternating(request),
        "inferenceConfig": settings,
        "requestMetadata": {"call_id": call_id},
    }
    if request.schema is not None:
        schema = as_object(request.schema)
        if dialect.structure == "words":
            system.append({"text": instruction(schema)})
        else:
            name = re.sub(r"[^a-zA-Z0-9_-]+", "_", request.schema_name)[:64] or "answer"
            spec = {"name": name, "description": "Takes your answer.", "inputSchema": {"json": schema}}
            choice = {"tool": {"name": name}} if dialect.structure == "tool" else {"any": {}}
            body["toolConfig"] = {"tools": [{"toolSpec": spec}], "toolChoice": choice}
    return {**body, "system": system} if system else body


def _alternating(request: ChatRequest) -> list[dict[str, Any]]:
    """Return the messages but for the system's; Bedrock wants those of one role in a row as one."""
    made: list[dict[str, Any]] = []
    for each in request.messages:
        if each["role"] == "system":
            continue
        block = {"text": str(each["content"])}
        if made and made[-1]["role"] == each["role"]:
            made[-1]["content"].append(block)
        else:
            made.append({"role": each["role"], "content": [block]})
    return made


def chat_answer(answered: Mapping[str, Any], request: ChatRequest) -> ChatAnswer:
    """Return the answer in a response; KeyError and its like if there is none."""
    blocks = answered["output"]["message"]["content"]
    used = next((each["toolUse"]["input"] for each in blocks if "toolUse" in each), None)
    text = "".join(each["text"] for each in blocks if "text" in each)
    if request.schema is not None:
        text = json.dumps(used, ensure_ascii=False) if used is not None else unfenced(text)
        text = unwrapped(text, request.schema)
    sent = [str(each["content"]) for each in request.messages]
    return ChatAnswer(
        text=text,
        usage=_usage(answered) or Usage(estimated_tokens(*sent), estimated_tokens(text), is_estimated=True),
        model=request.model,
        finish=_FINISHES.get(answered.get("stopReason", ""), "stop"),
        request_id=answered["ResponseMetadata"].get("RequestId"),
    )


def _usage(answered: Mapping[str, Any]) -> Usage | None:
    counted = answered.get("usage") or {}
    return Usage(counted["inputTokens"], counted.get("outputTokens", 0)) if "inputTokens" in counted else None


def takes_many_texts(model: str) -> bool:
    """Return whether a model makes the vectors of several texts at once."""
    return _COHERE in model


def embed_body(request: EmbedRequest) -> dict[str, Any]:
    """Return what is sent for vectors."""
    if takes_many_texts(request.model):
        return {
            "texts": list(request.texts),
            "input_type": "clustering",
            "truncate": "NONE",
            "embedding_types": ["float"],
        }
    return {"inputText": request.texts[0]}


def vectors_in(content: Mapping[str, Any], count: int) -> tuple[tuple[list[float], ...], int]:
    """Return the vectors in a response and the tokens it counts; ValueError and its like if they are not as many."""
    found: Any = content["embeddings"] if "embeddings" in content else [content["embedding"]]
    given = found["float"] if isinstance(found, Mapping) else found
    vectors = tuple([float(part) for part in each] for each in given)
    return checked_vectors(vectors, count), content.get("inputTextTokenCount") or 0
