"""What only services with OpenAI's API have: keys of requests, dialects, and no key for those who need none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from jobtable.assist.assist_settings import AssistSettings
from jobtable.assist.openai_bodies import Dialect
from jobtable.assist.openai_provider import OpenAiProvider
from jobtable.assist.providers import ChatRequest, EmbedRequest, Fault, ProviderError
from jobtable.testing.assist import AssistServer, Reply, failing

PROMPT = ChatRequest("a-model", ({"role": "user", "content": "Which label?"},))


class Label(BaseModel):
    label: str


class Tree(BaseModel):
    """A form that refers to itself, with a default and a constraint."""

    name: str = "none"
    label: Label | None = None
    children: list[Tree] = []


class Open(BaseModel):
    """A form with names that nobody knows beforehand."""

    counts: dict[str, int]


@pytest.fixture
def server() -> Iterator[AssistServer]:
    with AssistServer() as running:
        yield running


@pytest.fixture
def provider(server: AssistServer) -> Iterator[OpenAiProvider]:
    with closing(OpenAiProvider("main", base_url=server.openai_url)) as opened:
        yield opened


def ask(provider: Any, call_id: str = "c1", form: type[BaseModel] | None = None) -> str:
    schema = form.model_json_schema() if form else None
    request = ChatRequest(PROMPT.model, PROMPT.messages, schema=schema, schema_name=form.__name__ if form else "answer")
    return str(provider.chat(request, call_id=call_id, timeout_seconds=30).text)


def form_sent(server: AssistServer) -> Any:
    return json.loads(server.requests[-1].body)["response_format"]["json_schema"]


def test_the_same_call_is_not_charged_twice_also_by_another_process(server: AssistServer) -> None:
    server.script(Reply("paid", cut_after=9))
    with closing(OpenAiProvider("main", base_url=server.openai_url)) as killed, pytest.raises(ProviderError):
        ask(killed)
    with closing(OpenAiProvider("main", base_url=server.openai_url)) as another:
        assert ask(another) == "paid"

    assert [each.key for each in server.charges] == ["c1"]


def test_another_process_finds_the_answer_though_it_has_to_learn_the_dialect_again(server: AssistServer) -> None:
    server.options.lacks = frozenset(("json_schema", "temperature"))
    answers = set()
    for _ in range(2):
        with closing(OpenAiProvider("main", base_url=server.openai_url)) as provider:
            answers.add(ask(provider, form=Label))

    assert (len(answers), len(server.charges)) == (1, 1)


def test_an_answer_that_was_lost_is_fetched_where_the_service_keeps_it(server: AssistServer) -> None:
    server.script(Reply('```json\n{"label": "ham"}\n```', loses="answer"), Reply("another"))
    schema = Label.model_json_schema()
    request = ChatRequest("a-model", PROMPT.messages, schema=schema)
    with closing(OpenAiProvider("main", base_url=server.openai_url, keeps_answers=True)) as provider:
        with pytest.raises(ProviderError):
            provider.chat(request, call_id="c1", timeout_seconds=30)
        provider.chat(request, call_id="c2", timeout_seconds=30)
        found, missing = (provider.recall(request, call_id=each, timeout_seconds=30) for each in ("c1", "c3"))

    assert found is not None
    assert (found.text, missing) == ('{"label": "ham"}', None)
    assert found.usage.tokens_out == server.charges[0].tokens_out
    assert len(server.charges) == 2


def test_nothing_is_kept_at_a_service_unless_the_settings_want_it(
    server: AssistServer, provider: OpenAiProvider
) -> None:
    ask(provider)

    assert provider.recall(PROMPT, call_id="c1", timeout_seconds=30) is None
    assert "store" not in json.loads(server.requests[0].body)
    assert len(server.requests) == 1


def test_a_form_is_sent_as_the_service_can_enforce_it(server: AssistServer, provider: OpenAiProvider) -> None:
    answered = Tree.model_validate_json(ask(provider, "c1", Tree))

    assert (answered.name, answered.label) == ("x", Label(label="x"))
    sent = form_sent(server)
    assert (sent["name"], sent["strict"]) == ("Tree", True)


def test_a_form_that_no_service_can_enforce_is_sent_as_it_is(server: AssistServer, provider: OpenAiProvider) -> None:
    ask(provider, "c1", Open)

    assert form_sent(server) == {"name": "Open", "strict": False, "schema": Open.model_json_schema()}


def test_a_form_that_the_service_finds_invalid_is_sent_without_its_strictness(
    server: AssistServer, provider: OpenAiProvider
) -> None:
    server.script(failing("refused", message="Invalid schema for response_format 'Label': too deep."))

    ask(provider, "c1", Label)

    assert form_sent(server)["strict"] is False


def test_openai_itself_is_sent_the_newer_name_of_the_limit_and_others_the_older_one() -> None:
    assert Dialect.usual(is_openai=True).tokens_name == "max_completion_tokens"
    assert Dialect.usual(is_openai=False).tokens_name == "max_tokens"


def test_the_limit_of_an_answer_is_sent_by_the_name_that_the_model_knows(
    server: AssistServer, provider: OpenAiProvider
) -> None:
    server.options.lacks = frozenset(("max_tokens",))

    ask(provider)

    assert (server.questions[-1].most_tokens, len(server.requests)) == (1024, 2)


def test_vectors_are_taken_unpacked_from_services_that_do_not_pack(
    server: AssistServer, provider: OpenAiProvider
) -> None:
    server.script(failing("refused", message="encoding_format base64 is not supported"))

    answered = provider.embed(EmbedRequest("m", ("a",)), call_id="c", timeout_seconds=30)

    assert len(answered.vectors[0]) == 8
    assert json.loads(server.requests[-1].body)["encoding_format"] == "float"


def test_a_service_without_keys_is_sent_none(
    server: AssistServer, provider: OpenAiProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "OPENAI_WEBHOOK_SECRET"):
        monkeypatch.setenv(name, "planted")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://example.com/v1")

    ask(provider)

    headers = server.requests[0].headers
    assert "authorization" not in headers
    assert "planted" not in str(headers)


def test_the_key_is_read_when_it_is_used(tmp_path: Path) -> None:
    environment = {"MY_KEY": "first"}
    with AssistServer(keys=("second",)) as server:
        lines = f'[assist.providers.main]\nkind = "openai"\nbase_url = "{server.openai_url}"\napi_key_env = "MY_KEY"'
        (tmp_path / "jobtable.toml").write_text(lines)
        provider = AssistSettings.load(environment, tmp_path).open_provider("main")
        assert isinstance(provider, OpenAiProvider)
        with closing(provider):
            with pytest.raises(ProviderError, match=r"key provided: \*\*\*; check the variable MY_KEY") as raised:
                ask(provider)
            environment["MY_KEY"] = "second"
            assert ask(provider).startswith("You said")
            del environment["MY_KEY"]
            with pytest.raises(ProviderError, match="set the variable MY_KEY where the workers run"):
                ask(provider, "c2")

    assert raised.value.fault is Fault.UNAUTHORIZED


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"detail": [{"loc": ["body", "messages"], "msg": "too long"}]}', '"too long"'),
        ('{"error": "model not loaded"}', "model not loaded"),
        ('{"message": "no such model", "type": "NotFound"}', "no such model"),
        ("<html><h1>Bad   gateway</h1></html>", "<html><h1>Bad gateway</h1></html>"),
        ("", "Bad Request"),
    ],
)
def test_errors_of_other_forms_are_understood(
    server: AssistServer, provider: OpenAiProvider, body: str, said: str
) -> None:
    server.script(Reply(trouble="refused", body=body))

    with pytest.raises(ProviderError) as raised:
        ask(provider)

    assert said in str(raised.value)
    assert raised.value.fault is Fault.REFUSED
