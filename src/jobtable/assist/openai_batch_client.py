"""Batches of an OpenAI-compatible service: a file of requests, answered within a day."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import openai

from jobtable.assist.batch_lines import LineResult
from jobtable.assist.batch_providers import BatchProvider, BatchRequest, BatchState
from jobtable.assist.openai_bodies import Dialect, chat_answer, chat_body, embed_answer, embed_body
from jobtable.assist.openai_provider import OpenAiProvider
from jobtable.assist.provider_faults import MALFORMED, fault_of_status
from jobtable.assist.providers import RETRYABLE, ChatRequest, EmbedRequest

if TYPE_CHECKING:
    from openai.types import Batch

_NAME = "jobtable_batch"
"""The member of a batch's metadata with our name for it."""
_CLOCKS_DIFFER = timedelta(hours=1)
_OVER = ("completed", "expired", "cancelled", "failed")
_CHAT: Final = "/v1/chat/completions"
_EMBED: Final = "/v1/embeddings"
_DIALECT = Dialect()


class OpenAiBatches(BatchProvider):
    """The batches of one configured provider."""

    def __init__(self, provider: OpenAiProvider) -> None:
        self.name = provider.name
        self.kind = provider.kind
        self._provider = provider
        self._client = provider.client()

    def close(self) -> None:
        self._provider.close()

    def send_batch(self, batch: BatchRequest) -> str:
        with self._provider.telling():
            sent = self._find(batch)
            if sent is not None:
                return sent.id
            first = next(iter(batch.requests.values()))
            created = self._client.batches.create(
                input_file_id=self._uploaded(batch),
                endpoint=_CHAT if isinstance(first, ChatRequest) else _EMBED,
                completion_window="24h",
                metadata={_NAME: batch.name},
                extra_headers=self._provider.headers(batch.name),
            )
            return created.id

    def _find(self, batch: BatchRequest) -> Batch | None:
        """Return a batch that was created before a crash; the service lists the newest first."""
        oldest = (batch.since - _CLOCKS_DIFFER).timestamp()
        for each in self._client.batches.list(limit=100, extra_headers=self._provider.headers()):
            if each.created_at < oldest:
                return None
            if (each.metadata or {}).get(_NAME) == batch.name:
                return each
        return None

    def _uploaded(self, batch: BatchRequest) -> str:
        """Upload the requests, or find the file that was uploaded before a crash; return its id."""
        name, content = f"{batch.name}.jsonl", _file_of(batch)
        oldest = (batch.since - _CLOCKS_DIFFER).timestamp()
        for each in self._client.files.list(
            purpose="batch", order="desc", limit=1000, extra_headers=self._provider.headers()
        ):
            if each.created_at < oldest:
                break
            if each.filename == name and each.bytes == len(content):
                return each.id
        return self._client.files.create(
            file=(name, io.BytesIO(content)), purpose="batch", extra_headers=self._provider.headers()
        ).id

    def look_at_batch(self, remote_id: str) -> BatchState:
        with self._provider.telling():
            found = self._client.batches.retrieve(remote_id, extra_headers=self._provider.headers())
        counts = found.request_counts
        return BatchState(
            is_over=found.status in _OVER,
            done=0 if counts is None else counts.completed + counts.failed,
            error=_why_not(found),
            remote=found,
        )

    def read_batch(self, state: BatchState, batch: BatchRequest) -> Iterable[LineResult]:
        found: Batch = state.remote
        with self._provider.telling():
            for file_id in filter(None, (found.output_file_id, found.error_file_id)):
                for line in self._client.files.content(file_id, extra_headers=self._provider.headers()).iter_lines():
                    result = _result(json.loads(line), batch) if line.strip() else None
                    if result is not None:
                        yield result

    def cancel_batch(self, remote_id: str) -> None:
        with self._provider.telling(), contextlib.suppress(openai.ConflictError):
            self._client.batches.cancel(remote_id, extra_headers=self._provider.headers())

    def discard_batch(self, remote_id: str) -> None:
        with self._provider.telling():
            found = self._client.batches.retrieve(remote_id, extra_headers=self._provider.headers())
            for file_id in filter(None, (found.input_file_id, found.output_file_id, found.error_file_id)):
                with contextlib.suppress(openai.NotFoundError):
                    self._client.files.delete(file_id, extra_headers=self._provider.headers())


def _file_of(batch: BatchRequest) -> bytes:
    lines = [_line_of(line_id, request) for line_id, request in batch.requests.items()]
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)


def _line_of(line_id: str, request: ChatRequest | EmbedRequest) -> dict[str, Any]:
    is_chat = isinstance(request, ChatRequest)
    body = chat_body(request, _DIALECT) if isinstance(request, ChatRequest) else embed_body(request, _DIALECT)
    return {"custom_id": line_id, "method": "POST", "url": _CHAT if is_chat else _EMBED, "body": body}


def _why_not(batch: Batch) -> str | None:
    if batch.status in ("expired", "cancelled"):
        return f"the batch {'expired' if batch.status == 'expired' else 'was cancelled'} at the provider"
    if batch.status != "failed":
        return None
    errors = (batch.errors.data if batch.errors else None) or []
    told = "; ".join(f"line {each.line}: {each.message}" if each.line else str(each.message) for each in errors[:5])
    return told or "the batch failed at the provider, which does not say why"


def _result(line: Mapping[str, Any], batch: BatchRequest) -> LineResult | None:
    """Return the result in one line of an output or error file; None for a line that was not sent."""
    line_id = str(line.get("custom_id"))
    request = batch.requests.get(line_id)
    if request is None:
        return None
    response = line.get("response")
    if not isinstance(response, Mapping):
        error = line.get("error") or {}
        told = str(error.get("message") or error.get("code") or "the provider returned no answer")
        return LineResult(line_id, error=told, may_succeed=True)
    content, status = response.get("body") or {}, int(response.get("status_code") or 0)
    if status != HTTPStatus.OK:
        told = str((content.get("error") or {}).get("message") or f"the provider answered {status}")
        return LineResult(line_id, error=told, may_succeed=fault_of_status(status, None) in RETRYABLE)
    try:
        if isinstance(request, ChatRequest):
            return LineResult(line_id, chat_answer(content, request))
        return LineResult(line_id, embed_answer(content, request))
    except MALFORMED as error:
        told = f"its answer is not in the form of OpenAI's API ({type(error).__name__})"
        return LineResult(line_id, error=told, may_succeed=True)
