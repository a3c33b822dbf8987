"""What only Amazon Bedrock has: AWS's credentials and regions, tools, and no keys of requests."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import BaseModel

from jobtable.assist.assist_settings import AssistSettings
from jobtable.assist.bedrock_provider import BedrockProvider
from jobtable.assist.providers import ChatAnswer, ChatRequest, EmbedRequest, Fault, ProviderError
from jobtable.testing.assist import AssistServer, Reply, failing

SECRET = "IQoJb3JpZ2luX2VjEPLANTEDSESSIONTOKEN0123456789"
MESSAGES = ({"role": "user", "content": "Which label?"},)


class Label(BaseModel):
    label: str


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AssistServer]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    monkeypatch.setenv("AWS_SESSION_TOKEN", SECRET)
    with AssistServer() as running:
        yield running


@pytest.fixture
def provider(server: AssistServer) -> Iterator[BedrockProvider]:
    with closing(BedrockProvider("main", region="eu-central-1", base_url=server.url)) as opened:
        yield opened


def ask(provider: BedrockProvider, *, form: type[BaseModel] | None = None, call_id: str = "c1") -> ChatAnswer:
    request = ChatRequest("anthropic.claude", MESSAGES, schema=form.model_json_schema() if form else None)
    return provider.chat(request, call_id=call_id, timeout_seconds=30)


def test_a_form_is_the_tool_that_the_model_has_to_use(server: AssistServer, provider: BedrockProvider) -> None:
    assert json.loads(ask(provider, form=Label).text) == {"label": "x"}

    sent = json.loads(server.requests[0].body)
    assert sent["toolConfig"]["toolChoice"] == {"tool": {"name": "answer"}}
    assert sent["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"] == Label.model_json_schema()


def test_a_model_that_cannot_be_forced_is_asked_in_words(server: AssistServer, provider: BedrockProvider) -> None:
    server.options.lacks = frozenset(("tool_choice",))
    server.script(Reply('{"label": "ham"}'))

    assert ask(provider, form=Label).text == '{"label": "ham"}'
    assert len(server.requests) == 3


def test_each_answer_is_charged_and_named_by_its_call(server: AssistServer, provider: BedrockProvider) -> None:
    for _ in range(2):
        ask(provider, call_id="chat-7")

    assert [each.key for each in server.charges] == ["chat-7", "chat-7"]


def test_titan_that_fails_on_the_way_may_have_cost_something(server: AssistServer, provider: BedrockProvider) -> None:
    server.script(Reply(), failing("rate_limited"))

    with pytest.raises(ProviderError) as raised:
        provider.embed(EmbedRequest("amazon.titan-embed-text-v2:0", ("a", "b")), call_id="c", timeout_seconds=30)

    assert (raised.value.fault, raised.value.was_billed) == (Fault.RATE_LIMITED, True)


def test_a_model_that_makes_no_vectors_is_refused(provider: BedrockProvider) -> None:
    with pytest.raises(ProviderError, match="The provided model identifier is invalid") as raised:
        provider.embed(EmbedRequest("anthropic.claude", ("a",)), call_id="c", timeout_seconds=30)

    assert raised.value.fault is Fault.REFUSED


def test_settings_say_the_region_and_the_address(tmp_path: Path, server: AssistServer) -> None:
    lines = f'[assist.providers.aws]\nkind = "bedrock"\nregion = "eu-west-1"\nbase_url = "{server.url}"'
    (tmp_path / "jobtable.toml").write_text(lines)
    provider = AssistSettings.load({}, tmp_path).open_provider("aws")

    assert isinstance(provider, BedrockProvider)
    with closing(provider):
        assert ask(provider).text == "You said: Which label?"
    assert "/eu-west-1/bedrock/aws4_request" in server.requests[0].headers["authorization"]


def test_credentials_and_a_region_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))

    with pytest.raises(ProviderError, match=r"has no region; set region in \[assist.providers.main\]") as raised:
        ask(BedrockProvider("main"))
    assert raised.value.fault is Fault.REFUSED
    with (
        closing(BedrockProvider("main", region="eu-central-1", base_url="http://127.0.0.1:9")) as provider,
        pytest.raises(ProviderError, match=r"has no credentials .*; AWS's usual rules find them") as raised,
    ):
        ask(provider)
    assert raised.value.fault is Fault.UNAUTHORIZED


def test_the_token_of_a_session_reaches_neither_logs_nor_errors(
    server: AssistServer, provider: BedrockProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script(failing("unauthorized", message=f"The security token {SECRET} is expired"))

    with pytest.raises(ProviderError, match=r"The security token \*\*\* is expired"):
        ask(provider)

    assert server.requests[0].headers["x-amz-security-token"] == SECRET
    assert SECRET not in "\n".join(f"{each.getMessage()} {each.args}" for each in caplog.records)
