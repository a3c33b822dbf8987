"""The provider that runs in the worker itself: vectors of all-MiniLM-L6-v2, free, and sent to nobody."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from jobtable.assist.providers import (
    ChatAnswer,
    ChatRequest,
    EmbedAnswer,
    EmbedLimits,
    EmbedRequest,
    Fault,
    ProviderError,
    Usage,
)

if TYPE_CHECKING:
    from jobtable.assist.minilm.sentence_model import MiniLm

MODEL = "all-MiniLM-L6-v2"


class LocalProvider:
    """Makes vectors in this process. MissingExtraError without the extra `embeddings`."""

    kind = "local"
    embed_limits = EmbedLimits(texts=256, tokens=2_000_000)
    """A killed job loses at most one batch: some seconds."""

    def __init__(self, name: str = "local") -> None:
        self.name = name
        import_module("jobtable.assist.minilm.sentence_model")  # the model itself is loaded when it is used

    def chat(self, request: ChatRequest, *, call_id: str, timeout_seconds: float) -> ChatAnswer:
        raise ProviderError("the local provider makes vectors and answers no questions", fault=Fault.REFUSED)

    def recall(self, request: ChatRequest, *, call_id: str, timeout_seconds: float) -> ChatAnswer | None:
        return None

    def embed(self, request: EmbedRequest, *, call_id: str, timeout_seconds: float) -> EmbedAnswer:
        if request.model != MODEL:
            raise ProviderError(
                f"the local provider has the model {MODEL} only, not {request.model}", fault=Fault.REFUSED
            )
        vectors, tokens = _model().embed(request.texts)
        return EmbedAnswer(tuple(vectors), Usage(tokens), MODEL)


def _model() -> MiniLm:
    from jobtable.assist.minilm.sentence_model import shared_model  # noqa: PLC0415 - large, and an extra

    return shared_model()
