"""The scripted server answers as the services do: their clients understand it, and it counts what it charges."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

from jobtable.testing.assist import AssistProcess, AssistServer, Question, Reply, failing

SCHEMA = {
    "type": "object",
    "properties": {"label": {"enum": ["spam", "ham"]}, "scores": {"type": "array", "items": {"$ref": "#/$defs/Score"}}},
    "required": ["label", "scores"],
    "additionalProperties": False,
    "$defs": {"Score": {"type": "number", "minimum": 2}},
}


@pytest.fixture
def server() -> Iterator[AssistServer]:
    with AssistServer() as running:
        yield running


def client_of(server: AssistServer | AssistProcess, key: str = "a key") -> openai.OpenAI:
    return openai.OpenAI(base_url=server.openai_url, api_key=key, max_retries=0)


def chat(server: AssistServer | AssistProcess, prompt: str = "hello", *, key: str | None = None, **more: Any) -> str:
    """Ask with the genuine client; return the text of the answer."""
    headers = {"Idempotency-Key": key} if key else {}
    with client_of(server) as client:
        answered = client.chat.completions.create(
            model="a-model", messages=[{"role": "user", "content": prompt}], extra_headers=headers, **more
        )
    return str(answered.choices[0].message.content)


def test_it_replies_in_order_and_then_with_what_fits(server: AssistServer) -> None:
    server.script(Reply("one"), Reply("two"))

    assert [chat(server), chat(server), chat(server)] == ["one", "two", "You said: hello"]
    assert [each.tokens_out for each in server.charges] == [1, 1, 4]


def test_a_function_decides_by_the_question() -> None:
    def reply(question: Question) -> Reply | None:
        return Reply(question.prompt.upper()) if question.model == "a-model" else None

    with AssistServer(reply) as server:
        assert chat(server, "loud") == "LOUD"


def test_an_answer_of_a_schema_has_its_shape(server: AssistServer) -> None:
    wanted = {"name": "labels", "schema": SCHEMA, "strict": True}

    answered = chat(server, response_format={"type": "json_schema", "json_schema": wanted})

    assert answered == '{"label": "spam", "scores": [2]}'


def test_a_function_that_must_be_called_gets_the_answer_as_its_arguments(server: AssistServer) -> None:
    with client_of(server) as client:
        answered = client.chat.completions.create(
            model="a-model",
            messages=[{"role": "user", "content": "hello"}],
            tools=[{"type": "function", "function": {"name": "label", "parameters": SCHEMA}}],
            tool_choice={"type": "function", "function": {"name": "label"}},
        )

    called: Any = (answered.choices[0].message.tool_calls or [])[0]
    assert (called.function.name, called.function.arguments) == ("label", '{"label": "spam", "scores": [2]}')


@pytest.mark.parametrize(
    ("trouble", "error", "code"),
    [
        ("rate_limited", openai.RateLimitError, "rate_limit_exceeded"),
        ("out_of_credit", openai.RateLimitError, "insufficient_quota"),
        ("overloaded", openai.InternalServerError, None),
        ("unauthorized", openai.AuthenticationError, "invalid_api_key"),
        ("unknown_model", openai.NotFoundError, "model_not_found"),
        ("too_long", openai.BadRequestError, "context_length_exceeded"),
    ],
)
def test_troubles_have_the_status_and_code_of_the_service(
    server: AssistServer, trouble: str, error: type[openai.APIStatusError], code: str | None
) -> None:
    server.script(failing(trouble, retry_after=1.5))

    with pytest.raises(error) as caught:
        chat(server)

    assert (caught.value.code, caught.value.response.headers["retry-after"]) == (code, "1.5")
    assert server.charges == []


def test_a_key_that_was_answered_is_not_charged_again(server: AssistServer) -> None:
    server.script(failing("overloaded"), Reply("once"), Reply("twice"))

    with pytest.raises(openai.InternalServerError):
        chat(server, key="k1")
    assert [chat(server, key="k1"), chat(server, key="k1"), chat(server, key="k2")] == ["once", "once", "twice"]
    assert [each.key for each in server.charges] == ["k1", "k2"]
    with pytest.raises(openai.ConflictError):
        chat(server, "another prompt", key="k1")


@pytest.mark.parametrize("lost", [Reply("paid", cut_after=30), Reply("paid", loses="answer")], ids=["cut", "lost"])
def test_an_answer_that_is_lost_on_its_way_was_charged_and_is_remembered(server: AssistServer, lost: Reply) -> None:
    server.script(lost)

    with pytest.raises(openai.APIConnectionError):
        chat(server, key="k1")

    assert [each.key for each in server.charges] == ["k1"]
    assert (chat(server, key="k1"), len(server.charges)) == ("paid", 1)


def test_a_request_that_is_lost_costs_nothing(server: AssistServer) -> None:
    server.script(Reply(loses="request"))

    with pytest.raises(openai.APIConnectionError):
        chat(server, key="k1")

    assert server.charges == []


def test_requests_of_one_key_at_once_are_charged_once(server: AssistServer) -> None:
    server.script(Reply("slow", held="gate"))
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(chat, server, key="k1") for _ in range(4)]
        while len(server.requests) < 4:
            time.sleep(0.01)
        server.release("gate")

    assert ({each.result() for each in asked}, len(server.charges)) == ({"slow"}, 1)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"messages": []}, "empty_array"),
        ({"temperature": 3}, "decimal_above_max_value"),
        ({"max_tokens": 0}, "integer_below_min_value"),
        ({"messages": [{"role": "boss", "content": "x"}]}, "invalid_value"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}}, "invalid_value"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {
                        "name": "x",
                        "strict": True,
                        "schema": {"type": "object", "properties": {"a": {"type": "string"}}},
                    },
                }
            },
            "invalid_json_schema",
        ),
        ({"extra_body": {"surprise": 1}}, None),
    ],
)
def test_an_invalid_request_is_refused_with_the_code_of_the_service(
    server: AssistServer, changed: dict[str, Any], code: str | None
) -> None:
    plain: dict[str, Any] = {"model": "a-model", "messages": [{"role": "user", "content": "hello"}]}

    with client_of(server) as client, pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**plain | changed)

    assert (caught.value.code, server.questions) == (code, [])


def test_a_service_may_lack_what_others_have(server: AssistServer) -> None:
    server.options.lacks = frozenset(("json_schema", "temperature", "max_tokens"))

    form = {"type": "json_schema"}
    refusals: tuple[dict[str, Any], ...] = ({"temperature": 0}, {"max_tokens": 5}, {"response_format": form})
    for refused in refusals:
        with pytest.raises(openai.BadRequestError):
            chat(server, **refused)
    assert chat(server, temperature=1, max_completion_tokens=5) == "You said: hello"


def test_only_its_keys_and_models_are_accepted() -> None:
    with AssistServer(keys=("right",), models=("a-model",)) as server:
        with client_of(server, "wrong") as client, pytest.raises(openai.AuthenticationError):
            client.models.list()
        with client_of(server, "right") as client:
            assert [each.id for each in client.models.list()] == ["a-model"]
            with pytest.raises(openai.NotFoundError):
                client.embeddings.create(model="another", input="x")


def test_equal_texts_have_equal_vectors(server: AssistServer) -> None:
    with client_of(server) as client:
        first = client.embeddings.create(model="v", input=["a", "b", "a"])
        plain = client.embeddings.create(model="v", input="a", encoding_format="float")

    one, two, three = (each.embedding for each in first.data)
    assert one == three != two
    assert plain.data[0].embedding == pytest.approx(one, abs=1e-6)
    assert sum(each * each for each in one) == pytest.approx(1, abs=1e-6)


def test_stored_completions_are_found_by_their_metadata(server: AssistServer) -> None:
    for number in range(3):
        chat(server, f"{number}", store=True, metadata={"call": f"c{number}"})
    with client_of(server) as client:
        found = [each.choices[0].message.content for each in client.chat.completions.list(metadata={"call": "c1"})]

    assert found == ["You said: 1"]


def test_a_server_of_its_own_survives_its_client() -> None:
    code = (
        "import openai, sys; openai.OpenAI(base_url=sys.argv[1], api_key='k', max_retries=0).chat.completions.create("
        "model='a-model', messages=[{'role': 'user', 'content': 'x'}], extra_headers={'Idempotency-Key': 'k1'})"
    )
    with AssistProcess([Reply("paid", held="gate")]) as server:
        client = subprocess.Popen([sys.executable, "-c", code, server.openai_url], start_new_session=True)
        while not server.questions:
            assert client.poll() is None
            time.sleep(0.01)
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()
        server.release("gate")

        assert chat(server, "x", key="k1") == "paid"
        assert [each.key for each in server.charges] == ["k1"]


def test_a_script_that_fails_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    def reply(question: Question) -> Reply:
        raise LookupError(f"no reply to {question.prompt}")

    with AssistServer(reply) as server, pytest.raises(openai.APIConnectionError):
        chat(server)

    assert "LookupError: no reply to hello" in capfd.readouterr().err


def test_it_runs_as_a_command_with_a_list_of_replies(tmp_path: Path) -> None:
    (tmp_path / "replies.json").write_text('[{"text": "one"}, {"trouble": "overloaded", "retry_after": 2}]')
    command = [sys.executable, "-m", "jobtable.testing.assist", "--port", "0", "--script"]
    with subprocess.Popen([*command, str(tmp_path / "replies.json")], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with openai.OpenAI(base_url=f"{address}/v1", api_key="a key", max_retries=0) as client:
            answered = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
            with pytest.raises(openai.InternalServerError):
                client.embeddings.create(model="m", input="x")
        process.terminate()

    assert answered.choices[0].message.content == "one"
    assert process.returncode == -signal.SIGTERM


def test_a_script_can_be_a_file(tmp_path: Path) -> None:
    code = "from jobtable.testing.assist import Reply\n\ndef reply(question):\n    return Reply(question.prompt * 2)\n"
    (tmp_path / "script.py").write_text(code)
    with AssistProcess(tmp_path / "script.py", dimensions=3) as server:
        assert chat(server, "ab") == "abab"
        with client_of(server) as client:
            assert len(client.embeddings.create(model="v", input="a").data[0].embedding) == 3
