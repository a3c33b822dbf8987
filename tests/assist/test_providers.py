"""What every provider of models promises, through the genuine clients of OpenAI and of Amazon Bedrock."""

from __future__ import annotations

import gc
import itertools
import json
import logging
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, RootModel

from jobtable.assist.bedrock_provider import BedrockProvider
from jobtable.assist.openai_provider import OpenAiProvider
from jobtable.assist.providers import (
    ChatAnswer,
    ChatRequest,
    EmbedAnswer,
    EmbedRequest,
    Fault,
    Provider,
    ProviderError,
    Usage,
)
from jobtable.testing.assist import AssistServer, Reply, failing

SECRET = "sk-planted-secret-0123456789abcdef"
PROMPT = "Which of the two labels fits the comment of the unhappy customer?"


class Label(BaseModel):
    label: Literal["spam", "ham"]
    reason: str = ""
    scores: dict[str, float] = {}


class Labels(RootModel[list[str]]):
    """An answer that is no object."""


@dataclass
class Spoken:
    """A protocol, with a server that speaks it and a provider that asks it."""

    protocol: Literal["openai", "bedrock"]
    server: AssistServer
    provider: OpenAiProvider | BedrockProvider
    model: str
    embedding_model: str
    calls: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def chat(self, **how: Any) -> ChatAnswer:
        messages = how.pop("messages", ({"role": "user", "content": PROMPT},))
        request = ChatRequest(how.pop("model", self.model), messages, **how)
        return self.provider.chat(request, call_id=f"chat-{next(self.calls)}", timeout_seconds=30)

    def embed(self, *texts: str) -> EmbedAnswer:
        request = EmbedRequest(self.embedding_model, texts)
        return self.provider.embed(request, call_id=f"embed-{next(self.calls)}", timeout_seconds=30)

    def fails(self, **how: Any) -> ProviderError:
        with pytest.raises(ProviderError) as raised:
            self.chat(**how)
        return raised.value


def provider_of(protocol: str, url: str, **more: Any) -> OpenAiProvider | BedrockProvider:
    if protocol == "openai":
        return OpenAiProvider("main", base_url=f"{url}/v1", find_key=lambda: SECRET, **more)
    return BedrockProvider("main", region="eu-central-1", base_url=url, **more)


@pytest.fixture(params=["openai", "titan", "cohere"])
def spoken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spoken]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAPLANTED")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    protocol: Literal["openai", "bedrock"] = "openai" if request.param == "openai" else "bedrock"
    vectors = {"titan": "amazon.titan-embed-text-v2:0", "cohere": "eu.cohere.embed-v4:0"}
    with AssistServer(keys=(SECRET, "AKIAPLANTED")) as server:
        provider = provider_of(protocol, server.url)
        with closing(provider):
            yield Spoken(protocol, server, provider, "a-model", vectors.get(request.param, "text-embedding-3-small"))


def test_a_provider_has_its_name_and_its_kind(spoken: Spoken) -> None:
    provider: Provider = spoken.provider

    assert (provider.name, provider.kind) == ("main", spoken.protocol)


def test_a_text_comes_with_its_usage_and_model(spoken: Spoken) -> None:
    spoken.server.script(Reply("Spam.", tokens_in=31, tokens_out=2))

    answered = spoken.chat()

    assert (answered.text, answered.usage, answered.finish) == ("Spam.", Usage(31, 2), "stop")
    assert answered.model.startswith("a-model")
    assert answered.request_id
    (question,) = spoken.server.questions
    assert (question.model, question.prompt, question.key) == ("a-model", PROMPT, "chat-1")
    assert (question.temperature, question.most_tokens) == (0.0, 1024)


def test_messages_arrive_in_their_order(spoken: Spoken) -> None:
    messages = [("system", "Be short."), ("user", "One."), ("assistant", "1"), ("user", "Two."), ("user", "Three.")]

    spoken.chat(messages=tuple({"role": role, "content": content} for role, content in messages))

    (question,) = spoken.server.questions
    received = "\n".join(each["content"] for each in question.messages)
    assert received == "\n".join(content for _, content in messages)


def test_an_answer_in_a_form_is_json_of_its_schema(spoken: Spoken) -> None:
    answered = spoken.chat(schema=Label.model_json_schema(), schema_name="Label[int] of a comment")

    assert Label.model_validate_json(answered.text).label == "spam"
    assert spoken.server.questions[0].schema is not None


def test_an_answer_that_is_no_object_is_wrapped_for_the_service_alone(spoken: Spoken) -> None:
    answered = spoken.chat(schema=Labels.model_json_schema())

    assert Labels.model_validate_json(answered.text).root == ["x"]


def test_an_invalid_answer_is_returned_as_it_is(spoken: Spoken) -> None:
    for bad in ("I am no JSON.", "[1, 2]", '{"label": 3}', '{"label": "sp', "{}", "null", "x" * 10_000_000):
        spoken.server.script(Reply(bad))
        answered = spoken.chat(schema=Label.model_json_schema())
        assert answered.text == bad


def test_the_end_says_why(spoken: Spoken) -> None:
    spoken.server.script(Reply('{"label": "sp', finish="length"), Reply("I'd rather not.", finish="refused"))

    cut, refused = (spoken.chat(schema=Label.model_json_schema()) for _ in range(2))

    assert (cut.text, cut.finish) == ('{"label": "sp', "length")
    assert (refused.text, refused.finish) == ("I'd rather not.", "refused")


def test_what_the_service_does_not_count_is_estimated(spoken: Spoken) -> None:
    spoken.server.script(Reply("x" * 400, has_usage=False), Reply(has_usage=False))

    assert spoken.chat().usage == Usage(17, 100, is_estimated=True)
    assert spoken.embed("abcdefgh").usage.tokens_in == 2
    spoken.server.script(Reply("\ud800", has_usage=False))
    assert spoken.chat().usage == Usage(17, 1, is_estimated=True)


def test_vectors_come_in_the_order_of_the_texts(spoken: Spoken) -> None:
    answered = spoken.embed("one", "two", "one")

    one, two, again = answered.vectors
    assert list(one) == list(again) != list(two)
    assert len(one) == spoken.server.options.dimensions
    assert answered.usage == Usage(3)
    assert sum(each.tokens_in for each in spoken.server.charges) == 3


@pytest.mark.parametrize(
    "vectors",
    [
        [],
        [[0.5]],
        [[0.5], [0.5, 0.5]],
        [[0.5], [0.5, 0.5], [0.5]],
        [[], []],
        [[float("nan")], [0.5]],
        [["much"], [0.5]],
    ],
    ids=["none", "fewer", "of two lengths", "more", "empty", "not finite", "text"],
)
def test_vectors_that_cannot_be_right_are_no_answer(spoken: Spoken, vectors: list[Any]) -> None:
    if "titan" in spoken.embedding_model:  # it makes one vector at a time
        spoken.server.script(*(Reply(vectors=[each]) for each in vectors or [None]))
    else:
        spoken.server.script(Reply(vectors=vectors))

    with pytest.raises(ProviderError) as raised:
        spoken.embed("one", "two")

    assert (raised.value.fault, raised.value.was_billed) == (Fault.UNAVAILABLE, True)


@pytest.mark.parametrize(
    ("trouble", "fault", "is_retryable"),
    [
        ("rate_limited", Fault.RATE_LIMITED, True),
        ("overloaded", Fault.UNAVAILABLE, True),
        ("broken", Fault.UNAVAILABLE, True),
        ("timed_out", Fault.TIMED_OUT, True),
        ("unauthorized", Fault.UNAUTHORIZED, False),
        ("forbidden", Fault.UNAUTHORIZED, False),
        ("unknown_model", Fault.REFUSED, False),
        ("refused", Fault.REFUSED, False),
        ("too_long", Fault.REFUSED, False),
        ("out_of_credit", Fault.OUT_OF_CREDIT, False),
    ],
)
def test_each_trouble_is_its_fault_and_is_asked_once(
    spoken: Spoken, trouble: str, fault: Fault, is_retryable: bool
) -> None:
    spoken.server.script(failing(trouble))

    error = spoken.fails()

    assert (error.fault, error.is_retryable, error.was_billed) == (fault, is_retryable, False)
    assert str(error).startswith("provider main answered ")
    assert len(spoken.server.requests) == 1
    assert spoken.server.charges == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:12 GMT"}, 12.0),
        ({"retry-after": "Wed, 31 Dec 2025 23:59:50 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"x-ratelimit-reset-requests": "1m30s", "x-ratelimit-remaining-requests": "0"}, 90.0),
        ({"x-ratelimit-reset-tokens": "250ms", "x-ratelimit-remaining-tokens": "0"}, 0.25),
        (
            {
                "x-ratelimit-reset-requests": "20ms",
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-reset-tokens": "6s",
                "x-ratelimit-remaining-tokens": "0",
            },
            6.0,
        ),
        ({"x-ratelimit-reset-requests": "tomorrow"}, None),
        ({}, None),
    ],
)
def test_the_service_says_how_long_to_wait(spoken: Spoken, headers: dict[str, str], seconds: float | None) -> None:
    new_year = 1767225600.0
    provider = provider_of(spoken.protocol, spoken.server.url, clock=lambda: new_year)
    spoken.server.script(Reply(trouble="rate_limited", headers=headers))

    with closing(provider), pytest.raises(ProviderError) as raised:
        provider.chat(ChatRequest("a-model", ({"role": "user", "content": "x"},)), call_id="c", timeout_seconds=30)

    assert raised.value.retry_after == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("bytes_sent", [0, 1, 40])
def test_an_answer_that_is_cut_may_have_been_paid_for(spoken: Spoken, bytes_sent: int) -> None:
    spoken.server.script(Reply("paid", cut_after=bytes_sent))

    error = spoken.fails()

    assert (error.fault, error.was_billed, error.is_retryable) == (Fault.UNAVAILABLE, True, True)
    assert len(spoken.server.charges) == 1


@pytest.mark.parametrize("loses", ["request", "answer"])
def test_a_connection_that_breaks_without_an_answer_may_have_cost_something(spoken: Spoken, loses: Any) -> None:
    spoken.server.script(Reply("paid", loses=loses))

    error = spoken.fails()

    assert (error.fault, error.was_billed) == (Fault.UNAVAILABLE, True)
    assert len(spoken.server.charges) == (loses == "answer")


@pytest.mark.parametrize(
    "body",
    [
        "{nope",
        "",
        "[]",
        "null",
        "{}",
        '{"choices": []}',
        '{"choices": [{"message": {"content": 3}}]}',
        '{"choices": [3], "output": {"message": {"content": [3]}}}',
        '{"output": {"message": {}}}',
        "[" * 100_000,
        "<html>Bad gateway</html>",
    ],
    ids=lambda body: str(body)[:20],
)
def test_a_body_that_is_no_answer_may_have_been_paid_for(spoken: Spoken, body: str) -> None:
    spoken.server.script(Reply(body=body))

    error = spoken.fails()

    assert (error.fault, error.was_billed, error.is_retryable) == (Fault.UNAVAILABLE, True, True)


def test_an_answer_that_takes_too_long_is_given_up(spoken: Spoken) -> None:
    spoken.server.script(Reply("late", held="gate"))

    with pytest.raises(ProviderError) as raised:
        spoken.provider.chat(
            ChatRequest("a-model", ({"role": "user", "content": "x"},)), call_id="c", timeout_seconds=0.3
        )
    spoken.server.release("gate")

    assert (raised.value.fault, raised.value.was_billed) == (Fault.TIMED_OUT, True)


def test_a_service_that_does_not_run_costs_nothing(spoken: Spoken) -> None:
    with socket.socket() as taken:  # bound, but it does not listen
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        provider = provider_of(spoken.protocol, url)
        with closing(provider), pytest.raises(ProviderError, match="was not reached") as raised:
            provider.chat(ChatRequest("m", ({"role": "user", "content": "x"},)), call_id="c", timeout_seconds=30)

    assert (raised.value.fault, raised.value.was_billed) == (Fault.UNAVAILABLE, False)
    assert url in str(raised.value)


def test_what_a_model_lacks_is_left_out_and_remembered(spoken: Spoken) -> None:
    spoken.server.options.lacks = frozenset(
        ("json_schema", "json_object", "temperature", "max_tokens", "tools", "tool_choice")
    )
    spoken.server.script(Reply('Sure:\n```json\n{"label": "ham"}\n```'), Reply('```json\n{"label": "ham"}\n```'))

    with_words, fenced = (spoken.chat(schema=Label.model_json_schema()) for _ in range(2))

    assert with_words.text.startswith("Sure")
    assert fenced.text == '{"label": "ham"}'
    last = spoken.server.requests[-1]
    assert json.loads(last.body).get("temperature") is None
    assert len(spoken.server.questions) == len(spoken.server.charges) == 2
    assert len(spoken.server.requests) <= 7
    before = len(spoken.server.requests)
    spoken.chat(schema=Label.model_json_schema())
    assert len(spoken.server.requests) == before + 1
    system = "\n".join(each["content"] for each in spoken.server.questions[-1].messages if each["role"] == "system")
    assert "valid under this JSON schema" in system
    assert '"label"' in system


def test_a_request_that_is_refused_for_itself_is_sent_once(spoken: Spoken) -> None:
    spoken.server.script(failing("refused", message="I do not like your schema, temperature, max_tokens and tools"))
    spoken.server.script(*[failing("refused", message="still not") for _ in range(9)])

    error = spoken.fails(schema=Label.model_json_schema())

    assert (error.fault, str(error).endswith("still not")) == (Fault.REFUSED, True)
    assert len(spoken.server.requests) == 2


def test_errors_repeat_neither_secrets_nor_prompts(spoken: Spoken) -> None:
    told = [
        f"your key {SECRET} is bad",
        "your key sk-proj-****************9xYz is bad",
        f"cannot parse: {PROMPT[5:40]}",
        "é" * 5000,
    ]
    spoken.server.script(*(failing("refused", message=each) for each in told))

    errors = [str(spoken.fails()) for _ in told]

    if spoken.protocol == "openai":  # Bedrock's client never sends its secret
        assert errors[0].endswith("your key *** is bad")
    assert errors[1].endswith("your key *** is bad")
    assert errors[2].endswith("(its message repeats the request and is left out)")
    assert len(errors[3]) < 600


def test_the_connections_of_a_provider_are_closed_with_it(spoken: Spoken, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = provider_of(spoken.protocol, spoken.server.url)
    provider.chat(ChatRequest("a-model", ({"role": "user", "content": "x"},)), call_id="c1", timeout_seconds=30)
    (client,) = provider._clients._kept.values()
    closed: list[Any] = []
    close = client.close
    monkeypatch.setattr(client, "close", lambda: closed.append(close()))

    del provider
    gc.collect()

    assert len(closed) == 1


FORK = """
import os, sys
from jobtable.assist.providers import ChatRequest
from tests.assist.test_providers import provider_of

provider = provider_of(sys.argv[1], sys.argv[2])
request = ChatRequest("a-model", ({"role": "user", "content": "x"},))
provider.chat(request, call_id="parent", timeout_seconds=30)
child = os.fork()
provider.chat(request, call_id="child" if child == 0 else "parent again", timeout_seconds=30)
if child:
    assert os.waitpid(child, 0)[1] == 0
    provider.chat(request, call_id="parent at last", timeout_seconds=30)
"""


def test_no_connection_crosses_a_fork(spoken: Spoken) -> None:
    command = [sys.executable, "-c", FORK, spoken.protocol, spoken.server.url]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])

    assert sorted(str(each.key) for each in spoken.server.charges) == [
        "child",
        "parent",
        "parent again",
        "parent at last",
    ]
    # The parent's connection lasted through it all, and the child had one of its own.
    assert len({each.connection for each in spoken.server.requests}) == 2


def test_a_planted_secret_is_nowhere_to_be_read(spoken: Spoken, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen = [repr(spoken.provider), str(spoken.provider)]
    spoken.server.script(Reply("fine"), failing("unauthorized", message=f"bad key: {SECRET}"), Reply(cut_after=10))
    spoken.server.script(Reply(body="{"), failing("broken"))

    seen.append(repr(spoken.chat()))
    for _ in range(4):
        try:
            spoken.chat()
        except ProviderError as error:
            seen += [repr(error), str(vars(error)), "".join(traceback.format_exception(error))]

    assert len(seen) == 3 + 4 * 3
    logged = "\n".join(f"{each.getMessage()} {each.args}" for each in caplog.records)
    assert SECRET not in "\n".join(seen) + logged
