"""What `job.assist` and `job.embed` do: choose a provider by the settings, ask it, or take the way without a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from jobtable.assist.asking import Asker, Question, question_of
from jobtable.assist.assist_settings import LOCAL, NO_PROVIDER, AssistSettings
from jobtable.assist.embedder import Embedder
from jobtable.assist.ledger import StoreLedger
from jobtable.assist.local_provider import MODEL
from jobtable.assist.no_provider import HINT
from jobtable.assist.prices import PriceTable
from jobtable.assist.providers import Provider
from jobtable.assist.sending import Sender, Source
from jobtable.errors import MissingExtraError, NoModelError, SettingsError, ValueRefusedError
from jobtable.jobs.report.assistant import Asking, Assisted, Embedded, Embedding, Prompt

if TYPE_CHECKING:
    from pydantic import BaseModel

    from jobtable.jobs.report.context import JobContext


class JobAssistant:
    """Asks models on behalf of one run of a job, as the settings of its worker say."""

    def __init__(self, job: JobContext, settings: AssistSettings | None = None) -> None:
        self._job = job
        self._sources = Sources(settings or AssistSettings.load(os.environ, Path.cwd()))
        ledger = job.work.desk(StoreLedger, job.lease)
        sender = Sender(ledger, clock=job.work.clock, should_stop=job.should_stop)
        self._asker = Asker(ledger, sender)
        self._embedder = Embedder(ledger, sender)

    def ask(
        self, purpose: str, prompt: Prompt, *, output: type[BaseModel] | None = None, **how: Unpack[Asking]
    ) -> Assisted[Any]:
        """Ask a model; see the protocol."""
        given: dict[str, Any] = dict(how)
        without, data = given.pop("without", None), given.pop("data", None)
        provider, model = given.pop("provider", None), given.pop("model", None)
        question = question_of(purpose, prompt, output, data, **given)
        source = self._sources.for_questions(provider, model)
        return self._without(question, without) if source is None else self._asker.ask(question, source)

    def _without(self, question: Question, without: Callable[[], Any] | None) -> Assisted[Any]:
        if without is None:
            raise NoModelError(
                f"job {self._job.job_id} asks a model for {question.purpose!r}, and no provider is set", hint=HINT
            )
        value = without()
        output = str if question.shape is None else question.shape.output
        if not isinstance(value, output):
            raise ValueRefusedError(
                f"`without` of {question.purpose!r} must return {output.__name__}, not {type(value).__name__}"
            )
        call = self._asker.skip(question)
        return Assisted(value, was_asked=False, call_ids=(call.call_id,))

    def embed(self, texts: Sequence[str], **how: Unpack[Embedding]) -> Embedded:
        """Return a vector for each text; see the protocol."""
        given: dict[str, Any] = {"cache": "store", "on_progress": self._report, **how}
        source = self._sources.for_vectors(given.pop("provider", None), given.pop("model", None))
        return self._embedder.embed(texts, source, **given)

    def _report(self, done: int, of_all: int) -> None:
        self._job.progress(100 * done / of_all, f"{done:,} of {of_all:,} texts have vectors")


class Sources:
    """The models of the providers that settings name. Each provider is opened once."""

    def __init__(self, settings: AssistSettings) -> None:
        self._settings = settings
        self._prices = PriceTable.load(None if settings.prices is None else Path(settings.prices))
        self._opened: dict[str, Provider] = {}

    def for_questions(self, provider: str | None, model: str | None) -> Source | None:
        """Return what to ask, or None if no provider is set."""
        name = provider or self._settings.provider
        found = self._settings.find(name)
        if found.kind == "none":
            return None
        return self._source(name, model or found.model, "model")

    def for_vectors(self, provider: str | None, model: str | None) -> Source:
        """Return what makes vectors: the provider that is named or set, or the local one; NoModelError without any."""
        name = provider or self._settings.provider_of_vectors(model)
        found = self._settings.find(name)
        if found.kind == "none":
            raise NoModelError(f"provider {NO_PROVIDER} makes no vectors", hint=_VECTORS_HINT)
        try:
            return self._source(name, model or found.embedding_model, "embedding_model")
        except MissingExtraError as error:
            if found.kind != LOCAL:
                raise
            raise NoModelError(
                "no provider of vectors is set, and the local model is not installed", hint=_VECTORS_HINT
            ) from error

    def _source(self, name: str, model: str | None, setting: str) -> Source:
        found = self._settings.find(name)
        if name not in self._opened:
            self._opened[name] = self._settings.open_provider(name)
        if model is None and found.kind == LOCAL:
            model = MODEL
        if model is None:
            hint = f"set assist.providers.{name}.{setting} in jobtable.toml, or name it in the call"
            raise SettingsError(f"provider {name} has no {setting}", hint=hint)
        most = None if found.kind == LOCAL else found.max_concurrent
        return Source(self._opened[name], model, self._prices, found.timeout_seconds, most)


_VECTORS_HINT = (
    "pip install 'jobtable[embeddings]' for the local model, or set embedding_model of a provider in jobtable.toml"
)
