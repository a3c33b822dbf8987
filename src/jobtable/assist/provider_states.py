"""Which models may be asked here, and why one cannot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from jobtable.assist.assist_settings import NO_PROVIDER, AssistSettings, Kind
from jobtable.errors import SettingsError


class ProviderState(BaseModel):
    """A provider as the settings describe it, without its key."""

    name: str
    kind: Kind
    is_asked: bool
    """Whether it answers tasks that name no provider."""
    makes_vectors: bool
    """Whether it makes the vectors of tasks that name no provider."""
    model: str | None
    embedding_model: str | None
    base_url: str | None
    region: str | None
    max_concurrent: int
    timeout_seconds: float
    problem: str | None
    """Why it cannot be used where these settings are read; None if nothing is known against it. It was not asked."""


def provider_states(environment: Mapping[str, str], folder: Path) -> list[ProviderState]:
    """Return the providers of a folder's settings, that which is asked first; SettingsError if they are invalid."""
    settings = AssistSettings.load(environment, folder)
    of_vectors = settings.provider_of_vectors()
    names = dict.fromkeys((settings.provider, of_vectors, *settings.providers))
    return [_state(settings, name, name == of_vectors, environment) for name in names]


def _state(settings: AssistSettings, name: str, makes_vectors: bool, environment: Mapping[str, str]) -> ProviderState:
    found = settings.find(name)
    return ProviderState(
        **found.model_dump(exclude={"api_key_env"}),
        name=name,
        is_asked=name == settings.provider,
        makes_vectors=makes_vectors and name != NO_PROVIDER,
        problem=_problem(settings, name, environment),
    )


def _problem(settings: AssistSettings, name: str, environment: Mapping[str, str]) -> str | None:
    try:
        settings.open_provider(name)
    except SettingsError as error:  # its client is not installed, as a rule
        return str(error)
    variable = settings.find(name).key_variable
    if variable is not None and not environment.get(variable):
        return f"the variable {variable} is not set here"
    return None
