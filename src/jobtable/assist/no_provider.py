"""The provider where none is set: it asks nobody."""

from __future__ import annotations

from typing import NoReturn

from jobtable.assist.providers import ChatAnswer, ChatRequest, EmbedAnswer, EmbedLimits, EmbedRequest
from jobtable.errors import NoModelError

HINT = "set [assist] provider in jobtable.toml, or JOBTABLE_ASSIST_PROVIDER"


class NoProvider:
    """Refuses every request, and sends nothing."""

    kind = "none"
    embed_limits = EmbedLimits()

    def __init__(self, name: str = "none") -> None:
        self.name = name

    def chat(self, request: ChatRequest, *, call_id: str, timeout_seconds: float) -> ChatAnswer:
        self._refuse()

    def recall(self, request: ChatRequest, *, call_id: str, timeout_seconds: float) -> ChatAnswer | None:
        return None

    def embed(self, request: EmbedRequest, *, call_id: str, timeout_seconds: float) -> EmbedAnswer:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NoModelError("no provider of models is set", hint=HINT)
