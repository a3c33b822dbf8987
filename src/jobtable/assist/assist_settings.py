"""Which models may be asked: the table `assist` of jobtable.toml, and JOBTABLE_ASSIST_PROVIDER."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from jobtable.assist.providers import Provider
from jobtable.errors import SettingsError, missing
from jobtable.settings import section

PROVIDER_VARIABLE = "JOBTABLE_ASSIST_PROVIDER"
NO_PROVIDER = "none"
LOCAL = "local"
"""The provider of vectors that needs no settings."""
_OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://[^/?#\s]+(/[^?#\s]*)?")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")

Kind: TypeAlias = Literal["openai", "bedrock", "local", "none"]
_Text: TypeAlias = Annotated[str, Field(min_length=1)]


class ProviderSettings(BaseModel):
    """One service, as `[assist.providers.NAME]` describes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Annotated[Kind, Field(description="`openai` for every service with OpenAI's API, `bedrock`, `local`.")]
    base_url: Annotated[
        _Text | None, Field(description="Address of the service, if it is not OpenAI's or AWS's own.")
    ] = None
    model: Annotated[_Text | None, Field(description="Model that is asked if a task names none.")] = None
    embedding_model: Annotated[_Text | None, Field(description="Model that makes vectors if a task names none.")] = None
    api_key_env: Annotated[
        _Text | None,
        Field(description=f"Name of the variable with the key; `{_OPENAI_KEY_VARIABLE}` for OpenAI itself."),
    ] = None
    keep_answers: Annotated[
        bool,
        Field(
            description="Let OpenAI keep answers for 30 days: one that was lost in a crash is fetched, not paid again."
        ),
    ] = False
    region: Annotated[_Text | None, Field(description="AWS region of Bedrock; by default AWS's own rules.")] = None
    max_concurrent: Annotated[
        int, Field(ge=1, le=1000, description="How many requests all workers of a store may have open at once.")
    ] = 8
    timeout_seconds: Annotated[float, Field(gt=0, le=3600, description="How long one answer may take.")] = 120.0

    @property
    def key_variable(self) -> str | None:
        """The variable that has the key: OpenAI's own is for OpenAI alone, so that nobody else is sent its key."""
        is_openai = self.kind == "openai" and self.base_url is None
        return self.api_key_env or (_OPENAI_KEY_VARIABLE if is_openai else None)


class AssistSettings(BaseModel):
    """Which service is asked, and how. Keys are no part of it: they are read from the environment when used."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: Annotated[str, Field(description="Name of the provider to ask; `none` asks nobody.")] = NO_PROVIDER
    embedding_provider: Annotated[
        _Text | None, Field(description="Name of the provider of vectors, if it is another one.")
    ] = None
    prices: Annotated[
        str | None, Field(description="File with your own prices, which win over those of the package.")
    ] = None
    providers: dict[str, ProviderSettings] = {}

    _environment: Mapping[str, str] = PrivateAttr(default_factory=lambda: os.environ)

    @staticmethod
    def load(environment: Mapping[str, str], folder: Path) -> AssistSettings:
        """Return the settings of a folder's jobtable.toml; SettingsError with the place of what is invalid.

        Nothing is asked unless a provider is named: a key in the environment alone configures nothing.
        """
        place, given = section("assist", environment, folder)
        _refuse_secrets(place, given)
        named = environment.get(PROVIDER_VARIABLE)
        settings = _checked(place, {**given, **({"provider": named} if named else {})})
        settings._environment = environment
        _check_names(place, settings, PROVIDER_VARIABLE if named else f"{place}.provider")
        return settings

    def find(self, name: str | None = None) -> ProviderSettings:
        """Return the settings of a provider, by default of the one that is asked; NotFoundError if it has none."""
        name = name or self.provider
        if name in self.providers:
            return self.providers[name]
        if name in (NO_PROVIDER, LOCAL):
            return ProviderSettings(kind="none" if name == NO_PROVIDER else "local")
        raise missing("provider of models", name, hint=f"add [assist.providers.{name}] to jobtable.toml")

    def provider_of_vectors(self, model: str | None = None) -> str:
        """Return the name of the provider of vectors: that which is set, or the local one if it has no model for it."""
        if self.embedding_provider is not None:
            return self.embedding_provider
        usual = self.find()
        has_model = usual.kind == LOCAL or (usual.kind != NO_PROVIDER and (model or usual.embedding_model) is not None)
        return self.provider if has_model else LOCAL

    def open_provider(self, name: str | None = None) -> Provider:
        """Return a provider, by default the one that is asked; MissingExtraError if its client is not installed."""
        name = name or self.provider
        found = self.find(name)
        if found.kind == "openai":
            return self._open_openai(name, found)
        if found.kind == "none":
            from jobtable.assist.no_provider import NoProvider  # noqa: PLC0415 - each kind loads its own client

            return NoProvider(name)
        if found.kind == "bedrock":
            from jobtable.assist.bedrock_provider import BedrockProvider  # noqa: PLC0415 - the same

            return BedrockProvider(
                name, region=found.region, base_url=found.base_url, embedding_model=found.embedding_model
            )
        from jobtable.assist.local_provider import LocalProvider  # noqa: PLC0415 - the same

        return LocalProvider(name)

    def _open_openai(self, name: str, found: ProviderSettings) -> Provider:
        from jobtable.assist.openai_provider import BASE_URL, OpenAiProvider  # noqa: PLC0415 - loads the client

        variable, environment = found.key_variable, self._environment

        def find_key() -> str | None:
            return environment.get(variable) if variable else None

        return OpenAiProvider(
            name,
            base_url=found.base_url or BASE_URL,
            find_key=find_key,
            key_variable=variable,
            keeps_answers=found.keep_answers,
        )


def _refuse_secrets(place: str, given: Mapping[str, Any]) -> None:
    """Refuse keys that are written into the file, without repeating them."""
    providers = given.get("providers", {})
    for name, each in providers.items() if isinstance(providers, dict) else ():
        at = f"{place}.providers.{name}"
        for field, value in each.items() if isinstance(each, dict) else ():
            is_named = field == "api_key_env"
            if is_named and isinstance(value, str) and not _VARIABLE.fullmatch(value):
                raise _literal_key(f"{at}.{field}", "is not the name of an environment variable")
            if not is_named and field not in ProviderSettings.model_fields and _SECRET.search(field):
                raise _literal_key(f"{at}.{field}", "is a secret, which does not belong in this file")
        if isinstance(each, dict) and "@" in str(each.get("base_url", "")):
            raise _literal_key(f"{at}.base_url", "has a name or a password before the host")


def _literal_key(at: str, fault: str) -> SettingsError:
    return SettingsError(
        f"{at} {fault}; put the key into a variable where the workers run, and name that variable: "
        f'api_key_env = "{_OPENAI_KEY_VARIABLE}"'
    )


def _checked(place: str, given: Mapping[str, Any]) -> AssistSettings:
    try:
        return AssistSettings.model_validate(given)
    except ValidationError as error:
        problem = error.errors()[0]
        at = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = ", ".join((ProviderSettings if len(problem["loc"]) > 1 else AssistSettings).model_fields)
            raise SettingsError(f"{place}.{at}: unknown setting; settings are {known}") from None
        # A text is repeated only where nobody puts a key by mistake.
        is_shown = problem["type"] == "literal_error" or not isinstance(problem["input"], str | dict | list)
        value = f" {problem['input']!r}" if is_shown else ""
        raise SettingsError(f"{place}.{at}: invalid value{value}: {problem['msg'].lower()}") from None


def _check_names(place: str, settings: AssistSettings, source: str) -> None:
    for name, each in settings.providers.items():
        at = f"{place}.providers.{name}"
        if not _NAME.fullmatch(name):
            raise SettingsError(f"{at}: a name has lower-case letters, digits, - and _, and at most 63 of them")
        if name in (NO_PROVIDER, LOCAL) and each.kind != name:
            raise SettingsError(f"{at}.kind: a provider named {name!r} can only be of kind {name!r}, not {each.kind!r}")
        if each.base_url is not None and not _ADDRESS.fullmatch(each.base_url):
            raise SettingsError(f"{at}.base_url: must be like https://host/v1, not {each.base_url!r}")
    for name, where in _chosen(settings, source, place):
        if name not in settings.providers and name not in (NO_PROVIDER, LOCAL):
            known = ", ".join((*settings.providers, NO_PROVIDER))
            raise SettingsError(f"{where}: there is no provider {name!r}; providers are {known}")


def _chosen(settings: AssistSettings, source: str, place: str) -> Iterator[tuple[str, str]]:
    yield settings.provider, source
    if settings.embedding_provider is not None:
        yield settings.embedding_provider, f"{place}.embedding_provider"
