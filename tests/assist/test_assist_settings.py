"""The settings of assistants: from the file and the environment, without keys, and with the place of each error."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from jobtable.assist.assist_settings import AssistSettings, ProviderSettings
from jobtable.assist.providers import ChatRequest
from jobtable.errors import MissingExtraError, NoModelError, NotFoundError, SettingsError
from jobtable.settings import resolve

GUIDE = Path(__file__).parents[2] / "docs/guides/providers.md"
SECRET = "sk-this-is-a-planted-secret-0123456789"
TWO = """
slots = 2

[assist]
provider = "main"

[assist.providers.main]
kind = "openai"
model = "gpt-4.1-mini"
max_concurrent = 3

[assist.providers.near]
kind = "openai"
base_url = "http://localhost:11434/v1"
model = "llama3.2"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jobtable.toml"


def loaded(file: Path, content: str, **environment: str) -> AssistSettings:
    file.write_text(content)
    return AssistSettings.load(environment, file.parent)


def test_without_a_setting_nobody_is_asked(tmp_path: Path) -> None:
    settings = AssistSettings.load({"OPENAI_API_KEY": SECRET}, tmp_path)

    provider = settings.open_provider()
    assert (provider.kind, settings.find().kind) == ("none", "none")
    with pytest.raises(NoModelError, match=r"no provider of models is set; set .* provider in jobtable.toml"):
        provider.chat(ChatRequest("m", ()), call_id="c", timeout_seconds=1)


def test_providers_are_read_from_the_file_beside_the_other_settings(file: Path) -> None:
    settings = loaded(file, TWO)

    assert (settings.provider, settings.find().model, settings.find().max_concurrent) == ("main", "gpt-4.1-mini", 3)
    assert settings.find("near").base_url == "http://localhost:11434/v1"
    assert resolve({}, {}, file.parent).settings.slots == 2
    with pytest.raises(NotFoundError, match="there is no provider of models far; add"):
        settings.find("far")


def test_a_variable_chooses_the_provider(file: Path) -> None:
    assert loaded(file, TWO, JOBTABLE_ASSIST_PROVIDER="near").find().model == "llama3.2"
    assert loaded(file, TWO, JOBTABLE_ASSIST_PROVIDER="none").open_provider().kind == "none"
    with pytest.raises(SettingsError, match="JOBTABLE_ASSIST_PROVIDER: there is no provider 'far'; providers are main"):
        loaded(file, TWO, JOBTABLE_ASSIST_PROVIDER="far")


def test_the_key_of_openai_is_for_openai_alone(file: Path) -> None:
    settings = loaded(file, TWO + 'api_key_env = "NEAR_KEY"')

    assert settings.find("main").key_variable == "OPENAI_API_KEY"
    assert settings.find("near").key_variable == "NEAR_KEY"
    assert loaded(file, TWO).find("near").key_variable is None


def test_no_setting_shows_a_key(file: Path) -> None:
    settings = loaded(file, TWO, OPENAI_API_KEY=SECRET)
    provider = settings.open_provider()

    shown = f"{settings!r} {settings} {settings.model_dump_json()} {provider!r} {vars(settings)}"
    assert SECRET not in shown


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("assist = 3", "assist: write a table, as in [assist]"),
        (
            '[assist]\nprovidr = "x"',
            "assist.providr: unknown setting; settings are provider, emb",
        ),
        ('[assist]\nprovider = "far"', "assist.provider: there is no provider 'far'; providers are none"),
        ('[assist]\nembedding_provider = "far"', "assist.embedding_provider: there is no provider 'far'"),
        ("[assist.providers.x]", "assist.providers.x.kind: invalid value: field required"),
        (
            '[assist.providers.x]\nkind = "grok"',
            "assist.providers.x.kind: invalid value 'grok': input should be",
        ),
        (
            '[assist.providers.x]\nkind = "openai"\nmodle = "m"',
            "assist.providers.x.modle: unknown setting; settings",
        ),
        (
            '[assist.providers.x]\nkind = "openai"\nmax_concurrent = 0',
            "assist.providers.x.max_concurrent: invalid value 0: input should be greater than or equal to 1",
        ),
        (
            '[assist.providers.x]\nkind = "openai"\nbase_url = "localhost:1234"',
            "assist.providers.x.base_url: must be like https://host/v1, not 'localhost:1234'",
        ),
        (
            '[assist.providers.none]\nkind = "openai"',
            "assist.providers.none.kind: a provider named 'none' can only be of kind 'none', not 'openai'",
        ),
        ('[assist.providers."A b"]\nkind = "openai"', "assist.providers.A b: a name has lower-case letters"),
    ],
)
def test_what_is_invalid_is_told_with_its_place(file: Path, content: str, said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        loaded(file, content)

    assert said in str(raised.value)
    assert str(file) in str(raised.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            f'api_key = "{SECRET}"',
            "providers.x.api_key is a secret, which does not belong in this file; put",
        ),
        (f'openai_token = "{SECRET}"', "providers.x.openai_token is a secret"),
        (
            f'api_key_env = "{SECRET}"',
            "providers.x.api_key_env is not the name of an environment variable; put",
        ),
        (f'base_url = "https://me:{SECRET}@host/v1"', "providers.x.base_url has a name or a password before the host"),
        (f'timeout_seconds = "{SECRET}"', "providers.x.timeout_seconds: invalid value: input should be a valid number"),
        (f'model = ["{SECRET}"]', "providers.x.model: invalid value: input should be a valid string"),
    ],
)
def test_a_key_in_the_file_is_refused_and_not_repeated(file: Path, line: str, said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        loaded(file, f'[assist.providers.x]\nkind = "openai"\n{line}')

    assert said in str(raised.value)
    assert SECRET not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_a_client_that_is_not_installed_is_named_with_what_to_install(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = loaded(file, TWO)
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.delitem(sys.modules, "jobtable.assist.openai_provider", raising=False)

    with pytest.raises(MissingExtraError, match=r"pip install 'jobtable\[assist\]'"):
        settings.open_provider()


@pytest.mark.parametrize("content", re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL))
def test_the_examples_of_the_guide_are_valid(file: Path, content: str) -> None:
    settings = loaded(file, content)

    provider = settings.open_provider()
    assert (provider.name, provider.kind) == (settings.provider, settings.find().kind)
    assert settings.find().model
    assert settings.find().key_variable or settings.find().base_url or provider.kind == "bedrock"


def test_the_example_of_tests_in_the_guide_runs() -> None:
    namespace: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(compile(block, "documentation", "exec", dont_inherit=True), namespace)

    assert (namespace["refused"].fault, namespace["refused"].retry_after) == ("rate_limited", 0.1)
    assert namespace["answer"].text == '{"label": "spam"}'
    assert len(namespace["charged"]) == 1


def test_every_setting_is_documented() -> None:
    page = (GUIDE.parent.parent / "reference/settings.md").read_text()

    for model in (AssistSettings, ProviderSettings):
        for name, field in model.model_fields.items():
            assert name == "providers" or f"| `{name}` | " in page
            assert (field.description or "") in page
