"""What Amazon Bedrock checks of a request, and its errors, in their shape and with their codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jobtable.testing.assist.replies import Question, Reply, Trouble
from jobtable.testing.assist.scripted_service import Options, Request, Response

_MOST_TEXTS = 96
_MOST_CHARACTERS = 2048
_TITAN_KEYS = frozenset(("inputText", "dimensions", "normalize", "embeddingTypes"))
_COHERE_KEYS = frozenset(("texts", "input_type", "truncate", "embedding_types", "output_dimension"))


class Fault(NamedTuple):
    """An error of Bedrock: its status, its code and its text."""

    status: int
    code: str
    message: str


class BedrockRefusal(Exception):
    """The request is refused, with Bedrock's words."""

    def __init__(self, fault: Fault, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.headers = headers or {}

    garbled: bytes | None = None
    """Sent in place of the body."""

    def response(self) -> Response:
        kind = f"{self.fault.code}:http://internal.amazon.com/coral/com.amazon.bedrock/"
        headers = {"x-amzn-ErrorType": kind, **self.headers}
        body = json.dumps({"message": self.fault.message}).encode()
        return Response(self.fault.status, body, headers, garbled=self.garbled)


_FAULTS = {
    Trouble.RATE_LIMITED: Fault(429, "ThrottlingException", "Too many requests, please wait before trying again."),
    Trouble.OVERLOADED: Fault(503, "ServiceUnavailableException", "Bedrock is unable to process your request."),
    Trouble.BROKEN: Fault(500, "InternalServerException", "The system encountered an unexpected error."),
    Trouble.TIMED_OUT: Fault(408, "ModelTimeoutException", "Model has timed out in processing the request."),
    Trouble.UNAUTHORIZED: Fault(
        403, "UnrecognizedClientException", "The security token included in the request is invalid."
    ),
    Trouble.FORBIDDEN: Fault(
        403, "AccessDeniedException", "You don't have access to the model with the specified model ID."
    ),
    Trouble.UNKNOWN_MODEL: Fault(400, "ValidationException", "The provided model identifier is invalid."),
    Trouble.REFUSED: Fault(400, "ValidationException", "The request is invalid."),
    Trouble.TOO_LONG: Fault(400, "ValidationException", "Input is too long for requested model."),
    Trouble.OUT_OF_CREDIT: Fault(
        400, "ServiceQuotaExceededException", "Your request exceeds the service quota for your account."
    ),
}


def scripted_refusal(trouble: Trouble, reply: Reply | None = None) -> BedrockRefusal:
    """Return the error for a trouble, as a reply wants it."""
    fault = _FAULTS[trouble]
    if reply is None:
        return BedrockRefusal(fault)
    pause = {} if reply.retry_after is None else {"retry-after": f"{reply.retry_after:g}"}
    refusal = BedrockRefusal(fault._replace(message=reply.message or fault.message), {**pause, **reply.headers})
    refusal.garbled = None if reply.body is None else reply.body.encode()
    return refusal


def check_credentials(request: Request, keys: tuple[str, ...] | None) -> None:
    """Refuse a request without a signature, or of an unknown access key."""
    given = request.headers.get("authorization", "")
    found = re.match(r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/[^/]+/bedrock/aws4_request, ", given)
    key = found[1] if found else given.removeprefix("Bearer ") if given.startswith("Bearer ") else None
    if key is None:
        raise BedrockRefusal(Fault(403, "MissingAuthenticationTokenException", "Missing Authentication Token"))
    if keys is not None and key not in keys:
        raise scripted_refusal(Trouble.UNAUTHORIZED)


def converse_question(body: Mapping[str, Any], model: str, options: Options) -> Question:
    """Return the question that a valid body asks; BedrockRefusal otherwise."""
    settings = body.get("inferenceConfig") or {}
    temperature, most = settings.get("temperature"), settings.get("maxTokens")
    if temperature is not None and not 0 <= temperature <= 1:
        raise _invalid("The value at inferenceConfig.temperature must be between 0 and 1.")
    if temperature is not None and "temperature" in options.lacks:
        raise _invalid("The model returned the following errors: `temperature` is deprecated for this model.")
    if most is not None and most < 1:
        raise _invalid("Value '0' at 'inferenceConfig.maxTokens' failed to satisfy constraint: minimum 1.")
    system = [{"role": "system", "content": each["text"]} for each in body.get("system") or ()]
    question = Question(
        kind="chat",
        protocol="bedrock",
        model=model,
        messages=(*system, *_messages(body)),
        schema=_schema(body.get("toolConfig"), options),
        temperature=temperature,
        most_tokens=most,
        key=(body.get("requestMetadata") or {}).get("call_id"),
    )
    if question.tokens > options.most_tokens:
        raise scripted_refusal(Trouble.TOO_LONG)
    return question


def invoke_question(body: Mapping[str, Any], model: str) -> Question:
    """Return the question of texts for vectors; BedrockRefusal otherwise."""
    if "amazon.titan-embed" in model:
        _check_keys(body, _TITAN_KEYS, ("inputText",))
        texts = (body["inputText"],)
    elif "cohere.embed" in model:
        _check_keys(body, _COHERE_KEYS, ("texts", "input_type"))
        texts = tuple(body["texts"])
        if not 1 <= len(texts) <= _MOST_TEXTS:
            raise _malformed(f"#/texts: expected maximum item count: {_MOST_TEXTS}, found: {len(texts)}")
        if max(map(len, texts)) > _MOST_CHARACTERS:
            raise _malformed(f"#/texts/0: expected maxLength: {_MOST_CHARACTERS}, actual: {max(map(len, texts))}")
    else:
        raise scripted_refusal(Trouble.UNKNOWN_MODEL)
    if not all(texts):
        raise _malformed("expected minLength: 1, actual: 0")
    return Question(kind="embed", protocol="bedrock", model=model, texts=texts)


def _invalid(message: str) -> BedrockRefusal:
    return BedrockRefusal(Fault(400, "ValidationException", message))


def _malformed(fault: str) -> BedrockRefusal:
    return _invalid(f"Malformed input request: {fault}, please reformat your input and try again.")


def _check_keys(body: Mapping[str, Any], known: frozenset[str], required: tuple[str, ...]) -> None:
    for name in required:
        if name not in body:
            raise _malformed(f"#: required key [{name}] not found")
    for name in sorted(body.keys() - known):
        raise _malformed(f"#: extraneous key [{name}] is not permitted")


def _messages(body: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    messages = body.get("messages") or []
    if not messages or messages[0]["role"] != "user":
        raise _invalid(
            "A conversation must start with a user message. Try again with a conversation that starts with a user "
            "message."
        )
    for number, each in enumerate(messages):
        if each["role"] != ("user", "assistant")[number % 2]:
            raise _invalid(
                "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
                "between user and assistant roles and try again."
            )
        for part, block in enumerate(each["content"]):
            if not block.get("text", "").strip():
                raise _invalid(
                    f"The text field in the ContentBlock object at messages.{number}.content.{part} is blank. "
                    "Add text to the text field, and try again."
                )
        yield {"role": each["role"], "content": "\n".join(block["text"] for block in each["content"])}


def _schema(tools: Any, options: Options) -> Any:
    """Return the schema of the tool that has to be used."""
    if not tools:
        return None
    if "tools" in options.lacks:
        raise _invalid("This model doesn't support tool use.")
    specs = {each["toolSpec"]["name"]: each["toolSpec"]["inputSchema"]["json"] for each in tools["tools"]}
    for number, (name, schema) in enumerate(specs.items()):
        at = f"toolConfig.tools.{number}.toolSpec"
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
            raise _invalid(f"Value '{name}' at '{at}.name' failed to satisfy constraint: [a-zA-Z0-9_-]+")
        if schema.get("type") != "object":
            raise _invalid(f"The value at {at}.inputSchema.json.type must be one of the following: object.")
    choice = tools.get("toolChoice") or {"auto": {}}
    for kind in ("tool", "any"):
        if kind in choice and "tool_choice" in options.lacks:
            raise _invalid(
                f"This model doesn't support the toolConfig.toolChoice.{kind} field. "
                f"Remove toolConfig.toolChoice.{kind} and try again."
            )
    name = choice.get("tool", {}).get("name", next(iter(specs)))
    if name not in specs:
        raise _invalid(f"The tool {name} in toolChoice is not one of the tools.")
    return specs[name]
