"""What OpenAI checks of a request for a text or for vectors, before it charges anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jobtable.testing.assist.openai_refusals import Refusal, missing, unknown_model, wrong_type
from jobtable.testing.assist.replies import Question
from jobtable.testing.assist.scripted_service import Options

_KNOWN_OF_CHAT = (
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages "
    "metadata modalities model n parallel_tool_calls prediction presence_penalty prompt_cache_key reasoning_effort "
    "response_format safety_identifier seed service_tier stop store stream stream_options temperature tool_choice "
    "tools top_logprobs top_p user verbosity web_search_options"
)
_CHAT_PARAMETERS = frozenset(_KNOWN_OF_CHAT.split())
_EMBED_PARAMETERS = frozenset(("dimensions", "encoding_format", "input", "model", "user"))
_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_MOST_INPUTS = 2048


def chat_question(body: Mapping[str, Any], options: Options, key: str | None) -> Question:
    """Return the question that a valid body asks; Refusal otherwise."""
    model = _model(body, _CHAT_PARAMETERS, options)
    messages = tuple(_messages(body))
    if body.get("stream"):
        raise Refusal("This server does not stream.", param="stream", code="unsupported_value")
    _check_number(body, "temperature", 0, 2)
    if "temperature" in options.lacks and body.get("temperature", 1) != 1:
        raise Refusal(
            f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. "
            "Only the default (1) value is supported.",
            param="temperature",
            code="unsupported_value",
        )
    question = Question(
        kind="chat",
        protocol="openai",
        model=model,
        messages=messages,
        schema=_schema(body, messages, options) or _schema_of_tool(body),
        temperature=body.get("temperature"),
        most_tokens=_most_tokens(body, options),
        key=key,
    )
    if question.tokens > options.most_tokens:
        raise Refusal(
            f"This model's maximum context length is {options.most_tokens} tokens. However, your messages resulted in "
            f"{question.tokens} tokens. Please reduce the length of the messages.",
            param="messages",
            code="context_length_exceeded",
        )
    return question


def embed_question(body: Mapping[str, Any], options: Options, key: str | None) -> Question:
    """Return the question that a valid body asks; Refusal otherwise."""
    model = _model(body, _EMBED_PARAMETERS, options)
    given = body.get("input")
    if given is None:
        raise missing("input")
    texts = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else None
    if texts is None or not all(isinstance(each, str) for each in texts):
        raise wrong_type("input", "a string or an array of strings", given)
    if not texts or not all(texts):
        raise Refusal("'$.input' is invalid. Please check the API reference.", param="input")
    if len(texts) > _MOST_INPUTS:
        raise Refusal(
            f"Invalid 'input': array too long. Expected an array with maximum length {_MOST_INPUTS}, but got an array "
            f"with length {len(texts)} instead.",
            param="input",
            code="array_above_max_length",
        )
    if body.get("encoding_format", "float") not in ("float", "base64"):
        raise Refusal("Invalid value for 'encoding_format'.", param="encoding_format", code="invalid_value")
    return Question(kind="embed", protocol="openai", model=model, texts=texts, key=key)


def _model(body: Mapping[str, Any], parameters: frozenset[str], options: Options) -> str:
    unknown = sorted(body.keys() - parameters)
    if unknown:
        raise Refusal(f"Unrecognized request argument supplied: {unknown[0]}")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise Refusal("you must provide a model parameter")
    if options.models is not None and model not in options.models:
        raise unknown_model(model)
    return model


def _messages(body: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    messages = body.get("messages")
    if messages is None:
        raise missing("messages")
    if not isinstance(messages, list):
        raise wrong_type("messages", "an array of objects", messages)
    if not messages:
        raise Refusal(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            param="messages",
            code="empty_array",
        )
    for number, each in enumerate(messages):
        at = f"messages[{number}]"
        if not isinstance(each, dict):
            raise wrong_type(at, "an object", each)
        if each.get("role") not in _ROLES:
            raise Refusal(
                f"Invalid value: '{each.get('role')}'. Supported values are: {', '.join(map(repr, _ROLES))}.",
                param=f"{at}.role",
                code="invalid_value",
            )
        yield {"role": each["role"], "content": _content(each, at)}


def _content(message: Mapping[str, Any], at: str) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "".join(part["text"] for part in content)
    raise wrong_type(f"{at}.content", "one of a string or array of objects", content)


def _check_number(body: Mapping[str, Any], name: str, least: float, most: float) -> None:
    value = body.get(name)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(name, "a decimal", value)
    if not least <= value <= most:
        side, word, code = (
            (">=", "below minimum", "below_min") if value < least else ("<=", "above maximum", "above_max")
        )
        bound = least if value < least else most
        raise Refusal(
            f"Invalid '{name}': decimal {word} value. Expected a value {side} {bound}, but got {value} instead.",
            param=name,
            code=f"decimal_{code}_value",
        )


def _most_tokens(body: Mapping[str, Any], options: Options) -> int | None:
    names = [name for name in ("max_tokens", "max_completion_tokens") if body.get(name) is not None]
    if len(names) > 1:
        raise Refusal("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    for name in names:
        if name in options.lacks:
            other = "max_tokens" if name == "max_completion_tokens" else "max_completion_tokens"
            raise Refusal(
                f"Unsupported parameter: '{name}' is not supported with this model. Use '{other}' instead.",
                param=name,
                code="unsupported_parameter",
            )
        value = body[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_type(name, "an integer", value)
        if value < 1:
            raise Refusal(
                f"Invalid '{name}': integer below minimum value. Expected a value >= 1, but got {value} instead.",
                param=name,
                code="integer_below_min_value",
            )
        return value
    return None


def _schema(body: Mapping[str, Any], messages: tuple[Mapping[str, str], ...], options: Options) -> Any:
    wanted = body.get("response_format")
    if wanted is None:
        return None
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind not in ("text", "json_object", "json_schema"):
        raise Refusal(
            f"Invalid value: '{kind}'. Supported values are: 'json_object', 'json_schema', and 'text'.",
            param="response_format.type",
            code="invalid_value",
        )
    if kind in options.lacks:
        raise Refusal(
            f"Invalid parameter: 'response_format' of type '{kind}' is not supported with this model.",
            param="response_format",
        )
    if kind == "json_object" and not any("json" in each["content"].lower() for each in messages):
        raise Refusal(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
            param="messages",
        )
    return _checked_schema(wanted.get("json_schema")) if kind == "json_schema" else None


def _checked_schema(given: Any) -> Any:
    at = "response_format.json_schema"
    if not isinstance(given, dict):
        raise missing(at)
    name = given.get("name")
    if name is None:
        raise missing(f"{at}.name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise Refusal(
            f"Invalid '{at}.name': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            param=f"{at}.name",
            code="invalid_value",
        )
    schema = given.get("schema")
    if not isinstance(schema, dict):
        raise missing(f"{at}.schema")
    _check_schema(schema, name, is_strict=bool(given.get("strict")))
    return schema


def _check_schema(schema: Mapping[str, Any], name: str, *, is_strict: bool) -> None:
    def refuse(fault: str) -> Refusal:
        return Refusal(
            f"Invalid schema for response_format '{name}': {fault}", param="response_format", code="invalid_json_schema"
        )

    if schema.get("type") != "object":
        raise refuse(f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'.")
    for where, part in _parts(schema, ()) if is_strict else ():
        context = f"In context={where!r}, "
        if part.get("type") == "object":
            if part.get("additionalProperties") is not False:
                raise refuse(f"{context}'additionalProperties' is required to be supplied and to be false.")
            unlisted = sorted(part.get("properties", {}).keys() - set(part.get("required", ())))
            if unlisted:
                raise refuse(
                    f"{context}'required' is required to be supplied and to be an array including every key in "
                    f"properties. Missing '{unlisted[0]}'."
                )
        for keyword in ("default", "allOf", "oneOf", "not", "if", "patternProperties", "uniqueItems", "prefixItems"):
            if keyword in part:
                raise refuse(f"{context}'{keyword}' is not permitted.")
        if "$ref" in part and len(part) > 1:
            others = ", ".join(sorted(repr(each) for each in part if each != "$ref"))
            raise refuse(f"{context}$ref cannot have keywords {{{others}}}.")


def _parts(schema: Mapping[str, Any], where: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield a schema and all schemas within it."""
    yield where, schema
    for holder in ("properties", "$defs"):
        for name, part in schema.get(holder, {}).items():
            yield from _parts(part, (*where, holder, name))
    if isinstance(schema.get("items"), dict):
        yield from _parts(schema["items"], (*where, "items"))
    for number, part in enumerate(schema.get("anyOf", ())):
        yield from _parts(part, (*where, "anyOf", str(number)))


def _schema_of_tool(body: Mapping[str, Any]) -> Any:
    """Return the schema of the function that the request wants called."""
    tools = {each.get("function", {}).get("name"): each["function"] for each in body.get("tools") or () if each}
    choice = body.get("tool_choice")
    if not isinstance(choice, dict):
        return None
    name = choice.get("function", {}).get("name")
    if name not in tools:
        raise Refusal(f"Tool choice '{name}' not found in 'tools' parameter.", param="tool_choice")
    return tools[name].get("parameters", {"type": "object"})
