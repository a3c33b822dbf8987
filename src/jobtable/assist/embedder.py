"""Vectors of texts: in batches, each text once, and those that are known already without asking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jobtable.assist.asking import most_tokens, request_text, valid_text
from jobtable.assist.entities import AssistCall
from jobtable.assist.providers import EmbedAnswer, EmbedLimits, EmbedRequest, Fault, ProviderError, Usage
from jobtable.assist.sending import Sender, Source
from jobtable.assist.vectors import LARGEST, digest_of, packed, recorded_vectors, split_vectors, unpacked
from jobtable.assist.verbs import CallPlan, Ledger
from jobtable.jobs.report.assistant import Cache, Embedded

PURPOSE = "embed"


class Embedder:
    """Makes the vectors of one run of a job. What a killed run has made is found by the next one."""

    def __init__(self, ledger: Ledger, sender: Sender) -> None:
        self._ledger = ledger
        self._sender = sender

    def embed(
        self, texts: Sequence[str], source: Source, *, cache: Cache, on_progress: Callable[[int, int], None]
    ) -> Embedded:
        """Return a vector for each text."""
        digests = {valid_text(text, f"text {number}"): digest_of(text) for number, text in enumerate(texts, start=1)}
        known: dict[bytes, list[float]] = {}
        if cache == "store" and texts:
            found = self._ledger.find_vectors(source.provider.name, source.model, [*digests.values()])
            known = {digest: unpacked(vector) for digest, vector in found.items()}
        missing = [text for text, digest in digests.items() if digest not in known]
        done, cost = len(digests) - len(missing), 0
        if known:
            on_progress(done, len(digests))
        for batch in _batches(missing, source.provider.embed_limits):
            vectors, batch_cost = self._make(batch, source, cache)
            known |= vectors
            cost += batch_cost
            done += len(batch)
            on_progress(done, len(digests))
        vectors_in_order = [known[digests[text]] for text in texts]
        dimensions = len(vectors_in_order[0]) if texts else 0
        return Embedded(vectors_in_order, source.provider.name, source.model, dimensions, cost)

    def _make(self, batch: Sequence[str], source: Source, cache: Cache) -> tuple[dict[bytes, list[float]], int]:
        """Return the vectors of a batch by the digests of its texts, and what they cost."""
        request = EmbedRequest(source.model, tuple(batch))
        plan = CallPlan(
            purpose=PURPOSE,
            kind="embed",
            provider=source.provider.name,
            model=source.model,
            request=request_text(source.provider.name, request),
            most_usage=Usage(sum(map(most_tokens, batch))),
            cache=cache,
            price=source.prices.find(source.provider.kind, source.model),
        )
        made = self._sender.make(plan, source, _Vectors(source, request))
        digests = [digest_of(text) for text in batch]
        if cache == "store" and made.call.reused_from is None:
            self._ledger.share(made.call, digests, len(made.answer.vectors[0]))
        # The same numbers as those that are recorded, also if the provider returned more digits.
        vectors = [unpacked(packed(vector)) for vector in made.answer.vectors]
        return dict(zip(digests, vectors, strict=True)), made.call.cost_nanodollars


def _batches(texts: Sequence[str], limits: EmbedLimits) -> Iterator[list[str]]:
    batch: list[str] = []
    tokens = 0
    for text in texts:
        size = most_tokens(text)
        if batch and (len(batch) >= limits.texts or tokens + size > limits.tokens):
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += size
    if batch:
        yield batch


@dataclass(frozen=True)
class _Vectors:
    """Vectors are recorded as 32-bit floats in one text, which is a quarter of their JSON."""

    source: Source
    request: EmbedRequest

    def ask(self, key: str) -> EmbedAnswer:
        answer = self.source.provider.embed(self.request, call_id=key, timeout_seconds=self.source.timeout_seconds)
        _check(answer, len(self.request.texts))
        return answer

    def recall(self, key: str) -> EmbedAnswer | None:
        return None  # no service keeps vectors

    def recorded(self, answer: EmbedAnswer) -> Any:
        return recorded_vectors(answer.vectors)

    def restored(self, call: AssistCall, recorded: Any) -> EmbedAnswer:
        vectors = tuple(map(unpacked, split_vectors(recorded)))
        return EmbedAnswer(vectors, Usage(call.tokens_in, call.tokens_out), call.answered_by or call.model)


def _check(answer: EmbedAnswer, count: int) -> None:
    """Raise ProviderError unless there is one vector of finite numbers for each text, all of the same length."""
    lengths = {len(vector) for vector in answer.vectors}
    if len(answer.vectors) != count:
        fault = f"{len(answer.vectors)} vectors for {count} texts"
    elif len(lengths) != 1 or not min(lengths):
        fault = f"vectors of {', '.join(map(str, sorted(lengths)))} numbers"
    elif not all(abs(number) <= LARGEST for vector in answer.vectors for number in vector):
        fault = "a vector with a number that no 32-bit float can hold"
    else:
        return
    raise ProviderError(f"model {answer.model} returned {fault}", fault=Fault.REFUSED, was_billed=True)
