"""What is told of providers: their settings, without keys, and why one cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobtable.assist.provider_states import provider_states
from jobtable.errors import SettingsError

SECRET = "sk-this-is-a-secret"
SETTINGS = """
[assist]
provider = "openai"
embedding_provider = "vllm"

[assist.providers.vllm]
kind = "openai"
base_url = "http://127.0.0.1:8000/v1"
model = "qwen3"
max_concurrent = 2

[assist.providers.openai]
kind = "openai"
model = "gpt-5-mini"

[assist.providers.azure]
kind = "openai"
base_url = "https://example.openai.azure.com/openai/v1"
api_key_env = "AZURE_KEY"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobtable.toml").write_text(SETTINGS)
    return tmp_path


def test_without_settings_nobody_is_asked_and_vectors_are_made_here(tmp_path: Path) -> None:
    states = provider_states({"OPENAI_API_KEY": SECRET}, tmp_path)
    assert [(each.name, each.kind, each.is_asked, each.makes_vectors, each.problem) for each in states] == [
        ("none", "none", True, False, None),
        ("local", "local", False, True, None),
    ]


def test_each_provider_says_what_it_is_for_and_what_it_lacks(folder: Path) -> None:
    states = provider_states({"OPENAI_API_KEY": SECRET, "AZURE_KEY": ""}, folder)
    assert [(each.name, each.is_asked, each.makes_vectors, each.problem) for each in states] == [
        ("openai", True, False, None),
        ("vllm", False, True, None),
        ("azure", False, False, "the variable AZURE_KEY is not set here"),
    ]
    assert (states[1].base_url, states[1].model, states[1].max_concurrent) == ("http://127.0.0.1:8000/v1", "qwen3", 2)
    assert SECRET not in str(states)


def test_openai_itself_needs_its_key(folder: Path) -> None:
    assert provider_states({}, folder)[0].problem == "the variable OPENAI_API_KEY is not set here"


def test_the_variable_names_the_provider_that_is_asked(folder: Path) -> None:
    states = provider_states({"JOBTABLE_ASSIST_PROVIDER": "none"}, folder)
    assert [each.name for each in states] == ["none", "vllm", "openai", "azure"]
    assert [each.name for each in states if each.is_asked] == ["none"]


def test_settings_that_are_wrong_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "jobtable.toml").write_text('[assist]\nprovider = "gone"\n')
    with pytest.raises(SettingsError, match="there is no provider 'gone'"):
        provider_states({}, tmp_path)
