"""Batch jobs, against the scripted service: what half failed is sent again, and nothing is paid for twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from jobtable.assist.batch_lines import BatchLine, LineResult
from jobtable.assist.batch_submission import Batches, NewBatch
from jobtable.assist.entities import AssistBatch, AssistTotal, BatchLines, BatchStatus
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import SettingsError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job, main
from jobtable.jobs.stored.field_types import Status
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.testing import FakeClock
from jobtable.testing.assist import AssistServer, Question, Reply, failing
from tests.assist.batch_runs import configure, run_once, run_to_end
from tests.assist.ledgers import check_totals
from tests.interruptions import dies_after


class Label(BaseModel):
    """What a word is."""

    label: str


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AssistServer]:
    with AssistServer() as running:
        configure(running, tmp_path)
        monkeypatch.chdir(tmp_path)
        yield running


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    clock = FakeClock()
    with Store(EmbeddedBackend(None, clock=clock), clock=clock) as store:
        store.tables.create(main)
        yield Jobs(store, MemoryObjectStore(clock), clock=clock)


def new_batch(texts: Sequence[str] = ("one", "two", "three"), **given: Any) -> NewBatch:
    lines = [BatchLine(f"line-{number}", text, {"word": text}) for number, text in enumerate(texts, start=1)]
    known = {"name": "label words", "purpose": "label", "kind": "chat", "lines": lines, "job_id": "job-1"}
    return NewBatch(**{**known, **given})


def submit(jobs: Jobs, **given: Any) -> Job:
    return Batches(jobs).submit(new_batch(**given))


def outputs(jobs: Jobs) -> dict[str, Any]:
    return {line.line_id: result.output for line, result in Batches(jobs).read_results("job-1")}


def charged(server: AssistServer) -> Counter[str]:
    return Counter(f"{charge.custom_id}" for charge in server.charges)


def test_lines_are_answered_while_no_worker_waits(jobs: Jobs, server: AssistServer) -> None:
    """A batch is sent, the job is suspended while the provider works, and each line has its answer at the end."""
    submit(jobs)
    waiting = run_once(jobs)
    assert (waiting.status, waiting.instance_id) == (Status.PENDING, None)
    (batch,) = Batches(jobs).list_by_status(BatchStatus.SUBMITTED)
    assert batch.remote_id is not None
    jobs.clock.advance(61)  # type: ignore[attr-defined]
    ended = run_to_end(jobs)
    assert ended.result == {"lines": 3, "answered": 3, "batches": 1}
    assert charged(server) == {"line-1": 1, "line-2": 1, "line-3": 1}
    assert list(outputs(jobs)) == ["line-1", "line-2", "line-3"]
    assert [line.about for line, _ in Batches(jobs).read_results("job-1")] == [
        {"word": w} for w in ("one", "two", "three")
    ]
    check_totals(jobs)


def test_a_batch_costs_the_batch_price(jobs: Jobs, server: AssistServer) -> None:
    """The cost is that of the tokens on the provider's bill, at half the price."""
    submit(jobs)
    run_to_end(jobs)
    total = jobs.store.get(AssistTotal.key(job_id="job-1", scope="job"))
    tokens_in = sum(charge.tokens_in for charge in server.charges)
    tokens_out = sum(charge.tokens_out for charge in server.charges)
    assert (total.tokens_in, total.tokens_out) == (tokens_in, tokens_out)
    assert total.cost_nanodollars == tokens_in * 500 + tokens_out * 1000
    assert total.reserved_nanodollars == 0


def test_what_half_failed_is_finished_by_a_second_batch(jobs: Jobs, server: AssistServer) -> None:
    """Lines that met a failing service go into another batch, alone; those that were answered are not sent again."""
    failures = iter([failing("overloaded"), failing("broken")])

    def script(question: Question) -> Reply | None:
        return next(failures, None) if question.prompt in ("two", "four") else None

    with AssistServer(script) as other:
        configure(other, Path())
        submit(jobs, texts=("one", "two", "three", "four"))
        ended = run_to_end(jobs)
        assert ended.result == {"lines": 4, "answered": 4, "batches": 2}
        assert charged(other) == {f"line-{number}": 1 for number in (1, 2, 3, 4)}
    first, second = Batches(jobs).list_batches("job-1")
    assert (first.answered, first.failed, second.retry_of, second.line_count) == (2, 2, 1, 2)
    assert list(outputs(jobs)) == ["line-1", "line-2", "line-3", "line-4"]
    check_totals(jobs)


def test_an_expired_batch_is_finished_by_another(jobs: Jobs, server: AssistServer) -> None:
    """What was not done within the provider's day is sent again."""
    server.options.lines_until_expiry = 1
    submit(jobs)
    run_once(jobs)
    jobs.clock.advance(61)  # type: ignore[attr-defined]
    while len(list(Batches(jobs).list_batches("job-1"))) == 1:
        run_once(jobs)
        jobs.clock.advance(61)  # type: ignore[attr-defined]
    server.options.lines_until_expiry = None
    assert run_to_end(jobs).result["answered"] == 3
    assert charged(server) == {"line-1": 1, "line-2": 1, "line-3": 1}


def test_an_invalid_answer_is_sent_back_with_its_fault(jobs: Jobs, server: AssistServer) -> None:
    """An answer of another shape is no result: the line is asked again, with what was wrong."""

    def script(question: Question) -> Reply | None:
        is_first = question.prompt == "two"
        return Reply(text='{"label": 3}' if is_first else '{"label": "NUMBER"}')

    with AssistServer(script) as other:
        configure(other, Path())
        submit(jobs, texts=("one", "two"), output=Label)
        assert run_to_end(jobs).result == {"lines": 2, "answered": 2, "batches": 2}
        again = [each for each in other.questions if each.custom_id == "line-2"][-1]
        assert "label: " in again.prompt
        assert [each["role"] for each in again.messages if each["role"] != "system"] == ["user", "assistant", "user"]
    assert outputs(jobs) == {"line-1": {"label": "NUMBER"}, "line-2": {"label": "NUMBER"}}


def test_lines_without_a_valid_answer_fail_the_job(jobs: Jobs, server: AssistServer) -> None:
    """After the last round the job fails and says how many lines have no answer; the others keep theirs."""

    def script(question: Question) -> Reply | None:
        return Reply(text="no" if question.messages[0]["content"] == "two" else '{"label": "X"}')

    with AssistServer(script) as other:
        configure(other, Path())
        submit(jobs, texts=("one", "two"), output=Label, most_rounds=2)
        ended = run_to_end(jobs)
    assert ended.status is Status.FAILED
    assert "1 of 2 lines have no valid answer after round 2: it is not JSON" in str(ended.message)
    assert outputs(jobs) == {"line-1": {"label": "X"}, "line-2": None}


def test_a_refused_batch_fails_the_job_with_the_reason(jobs: Jobs, server: AssistServer) -> None:
    """A batch that the provider refuses as a whole costs nothing, and the job says why it failed."""
    server.script(failing("out_of_credit"), operation="batches.create")
    submit(jobs)
    ended = run_to_end(jobs)
    (batch,) = Batches(jobs).list_batches("job-1")
    assert (ended.status, batch.status) == (Status.FAILED, BatchStatus.FAILED)
    assert batch.error is not None
    assert batch.error in str(ended.message)
    assert not server.charges
    check_totals(jobs)


def test_lines_that_can_never_succeed_are_not_sent_again(jobs: Jobs, server: AssistServer) -> None:
    """A line that the provider refuses for good is given up at once, with the reason."""
    server.options.models = ("another",)
    submit(jobs)
    ended = run_to_end(jobs)
    assert (ended.status, ended.result["batches"]) == (Status.FAILED, 1)
    assert "small" in str(ended.message)
    assert not server.charges


def test_vectors_come_from_batches_too(jobs: Jobs, server: AssistServer) -> None:
    """A batch of texts to embed returns a vector for each."""
    submit(jobs, kind="embed")
    run_to_end(jobs)
    assert {len(vector) for vector in outputs(jobs).values()} == {server.options.dimensions}


def test_a_budget_stops_a_batch_before_it_is_sent(jobs: Jobs, server: AssistServer) -> None:
    """A batch that might cost more than the job may spend is never sent."""
    submit(jobs, max_cost=0.000001)
    with pytest.raises(Exception, match="budget"):
        run_once(jobs)
    assert not server.charges
    assert not any(request.path.endswith("/batches") and request.method == "POST" for request in server.requests)


def test_files_are_deleted_at_the_provider(jobs: Jobs, server: AssistServer) -> None:
    """When its results are recorded, nothing of a batch stays at the provider but its name."""
    submit(jobs)
    run_to_end(jobs)
    deleted = [request for request in server.requests if request.method == "DELETE"]
    assert len(deleted) == 2


def test_a_job_that_ends_early_keeps_what_was_answered(jobs: Jobs, server: AssistServer) -> None:
    """Its batch is cancelled at the provider; what that had answered by then is charged, recorded and kept."""
    server.options.polls_of_batch = 3
    submit(jobs)
    run_once(jobs)
    jobs.clock.advance(61)  # type: ignore[attr-defined]
    run_once(jobs)  # a line is answered
    Batches(jobs).end_early("job-1")
    ended = run_to_end(jobs)
    assert (ended.status, ended.result["answered"]) == (Status.STOPPED, len(server.charges))
    assert 0 < len(server.charges) < 3
    assert len([output for output in outputs(jobs).values() if output is not None]) == len(server.charges)
    check_totals(jobs)


def test_a_job_that_ends_before_it_began_sends_nothing(jobs: Jobs, server: AssistServer) -> None:
    """What was not sent is not sent any more."""
    submit(jobs)
    Batches(jobs).end_early("job-1")
    assert run_to_end(jobs).status is Status.STOPPED
    assert not any(request.method == "POST" for request in server.requests)


@pytest.mark.parametrize(
    "lines", [[], [BatchLine("a", "x"), BatchLine("a", "y")], [BatchLine("", "x")], [BatchLine("i" * 201, "x")]]
)
def test_lines_that_cannot_be_told_apart_are_refused(jobs: Jobs, server: AssistServer, lines: list[BatchLine]) -> None:
    """Ids of lines are unique, not empty and not endless; a batch has lines."""
    with pytest.raises(ValueRefusedError):
        submit(jobs, lines=lines)
    assert jobs.store.find(BatchLines.key(job_id="job-1")) is None


# --- kills ------------------------------------------------------------------------------------------------------------


class _Keeper:
    """Records batches in its own form, in a class variable that the tests clear."""

    batches: list[tuple[int, str]] = []
    results: dict[str, Any] = {}

    def __init__(self, jobs: Jobs, lines: BatchLines) -> None:
        assert lines.job_id == "job-1"

    def keep_batch(self, batch: AssistBatch, lines: Sequence[BatchLine]) -> None:
        _Keeper.batches.append((batch.number, batch.status))

    def keep_results(self, batch: AssistBatch, results: Sequence[tuple[BatchLine, LineResult]]) -> None:
        _Keeper.results.update((line.line_id, result.output) for line, result in results)


def test_killed_at_any_write_nothing_is_lost_or_paid_for_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies before any of its writes is followed by another one that ends the batch, at the same cost."""
    monkeypatch.chdir(tmp_path)
    for writes in count():
        clock = FakeClock()
        with AssistServer() as server, Store(EmbeddedBackend(None, clock=clock), clock=clock) as store:
            configure(server, tmp_path)
            store.tables.create(main)
            jobs = Jobs(store, MemoryObjectStore(clock), clock=clock)
            _Keeper.results.clear()
            submit(jobs, keeper=f"{__name__}:_Keeper")
            if not dies_after(store, jobs.objects, writes, _run_all):
                assert writes > 10
                return
            clock.advance(120)
            _recover(jobs)
            assert _ended(jobs).result == {"lines": 3, "answered": 3, "batches": 1}, writes
            assert charged(server) == {"line-1": 1, "line-2": 1, "line-3": 1}, writes
            assert _Keeper.results == outputs(jobs)
            check_totals(jobs)


def _ended(jobs: Jobs) -> Job:
    job = jobs.store.get(Job.key(job_id="job-1"))
    return job if job.is_final else run_to_end(jobs)


def _run_all(store: Store, objects: Any) -> None:
    run_to_end(Jobs(store, objects, clock=store.clock))


def _recover(jobs: Jobs) -> None:
    """Take the job from the worker that died."""
    observer = jobs.observer()
    observer.recover()
    jobs.clock.advance(120)  # type: ignore[attr-defined]
    observer.recover()


@pytest.mark.parametrize("operation", ["files.create", "batches.create"])
def test_an_answer_of_the_provider_that_is_lost_costs_nothing(operation: str, jobs: Jobs, server: AssistServer) -> None:
    """A file that was uploaded, or a batch that was created, is found again when nobody heard of it."""
    server.script(Reply(loses="answer"), operation=operation)
    submit(jobs)
    assert run_to_end(jobs).result == {"lines": 3, "answered": 3, "batches": 1}
    assert charged(server) == {"line-1": 1, "line-2": 1, "line-3": 1}
    check_totals(jobs)


@pytest.mark.parametrize(
    ("given", "told"),
    [({"provider": "none"}, "no batches"), ({"provider": "there", "kind": "embed"}, "embedding_model")],
)
def test_a_batch_that_cannot_be_sent_is_refused_at_once(
    given: dict[str, Any], told: str, jobs: Jobs, server: AssistServer
) -> None:
    """Providers without batches, and batches without a model, are refused where they are submitted."""
    settings = Path("jobtable.toml")
    settings.write_text(settings.read_text().replace('embedding_model = "small"', ""))
    with pytest.raises(SettingsError, match=told):
        submit(jobs, **given)
