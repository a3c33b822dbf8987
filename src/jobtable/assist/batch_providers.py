"""What a provider must offer for batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

from jobtable.assist.assist_settings import AssistSettings
from jobtable.assist.batch_lines import LineResult
from jobtable.assist.providers import ChatRequest, EmbedRequest
from jobtable.errors import SettingsError

if TYPE_CHECKING:
    from jobtable.assist.openai_provider import OpenAiProvider


@dataclass(frozen=True)
class BatchRequest:
    """A batch as it is sent."""

    name: str
    """The same whenever this batch is sent again after a crash, and of no other batch."""
    requests: Mapping[str, ChatRequest | EmbedRequest]
    """By the ids of their lines; all of one kind."""
    since: datetime
    """When it was first sent, at the earliest: what the provider received before is another batch."""


@dataclass(frozen=True)
class BatchState:
    """How far a provider is with a batch."""

    is_over: bool
    done: int = 0
    error: str | None = None
    """Why it was refused or ended before its end."""
    remote: Any = None
    """What the provider needs to read its results."""


class BatchProvider(Protocol):
    """A service that answers batches. It sends each request once: the job asks again."""

    name: str
    kind: str

    def send_batch(self, batch: BatchRequest) -> str:
        """Send a batch and return the provider's id for it, or that of the batch that was already sent."""
        ...

    def look_at_batch(self, remote_id: str) -> BatchState:
        """Return how far it is."""
        ...

    def read_batch(self, state: BatchState, batch: BatchRequest) -> Iterable[LineResult]:
        """Yield the results of a batch that is over; lines without one are left out."""
        ...

    def cancel_batch(self, remote_id: str) -> None:
        """Ask the provider to end a batch early; what is answered stays charged. One that is over stays as it is."""
        ...

    def discard_batch(self, remote_id: str) -> None:
        """Delete the files of a batch at the provider; those that are gone are no error."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


def check_batches(name: str, kind: str) -> None:
    """Raise SettingsError if providers of a kind have no batches."""
    if kind != "openai":
        raise SettingsError(f"provider {name} is of kind {kind}, which has no batches", hint="use one of kind openai")


def open_batch_provider(settings: AssistSettings, name: str) -> BatchProvider:
    """Return a provider's batches; SettingsError if it has none."""
    provider = settings.open_provider(name)
    check_batches(name, provider.kind)
    from jobtable.assist.openai_batch_client import OpenAiBatches  # noqa: PLC0415 - it loads the client

    return OpenAiBatches(cast("OpenAiProvider", provider))
