"""A job with five calls, one of which was refused and sent back, and its child, over two days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from jobtable.assist.batch_submission import Batches
from jobtable.assist.costs import AssistReads
from jobtable.assist.entities import (
    OWN_JOBS,
    AssistBatch,
    AssistCall,
    AssistCost,
    AssistTotal,
    AssistVectors,
    BatchLines,
    BatchStatus,
    CallStatus,
)
from jobtable.assist.vectors import SharedVectors
from jobtable.jobs.stored.entities import main
from jobtable.model import Entity
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from tests.access_patterns import Question, World
from tests.access_patterns.jobs import at
from tests.running import jobs_in_memory

FIRST, SECOND = date(2025, 11, 1), date(2025, 11, 2)


def call(number: int, **changes: Any) -> AssistCall:
    """An answered call, which began so many seconds after the start."""
    values: dict[str, Any] = {
        "job_id": "job-1",
        "call_id": f"chat-{9 - number}",  # ids are hashes: they are not in the order of time
        "root_job_id": "job-1",
        "system": OWN_JOBS,
        "date": FIRST,
        "purpose": "label",
        "kind": "chat",
        "provider": "openai",
        "model": "small",
        "request_sha256": f"{number:064x}",
        "request_key": f"jobs/job-1/assist/chat-{9 - number}.request.json",
        "started_at": at(number),
        "status": CallStatus.ANSWERED,
        "tokens_in": 10,
        "tokens_out": 1,
        "cost_nanodollars": 100,
        "price_version": "2025-11-01",
    }
    return AssistCall(**{**values, **changes})


def items() -> Iterator[Entity]:
    """The world."""
    yield call(1, cache="store")
    yield call(2, status=CallStatus.REFUSED)
    yield call(3)
    yield call(4, follows="chat-7", attempt=2)
    yield call(5, date=SECOND)
    yield call(6, job_id="job-2")
    yield AssistTotal(job_id="job-1", scope="job", calls=5, tokens_in=50, tokens_out=5, cost_nanodollars=500)
    yield AssistTotal(job_id="job-1", scope="tree", calls=6, tokens_in=60, tokens_out=6, cost_nanodollars=600)
    for day, calls in ((FIRST, 5), (SECOND, 1)):
        yield AssistCost(
            date=day, system=OWN_JOBS, purpose="label", provider="openai", model="small", calls=calls, tokens_in=calls
        )

    for number in (1, 2):
        yield AssistVectors(
            job_id=f"job-{number}",
            call_id="embed-1",
            provider="openai",
            model="vectors",
            created_at=at(number),
            dimensions=8,
            digests=bytes(16),
        )
    yield BatchLines(
        job_id="job-1",
        purpose="label",
        kind="chat",
        provider="openai",
        model="small",
        lines_key="jobs/job-1/assist/lines.jsonl",
        line_count=8,
        created_at=at(1),
    )
    for number, status in ((1, BatchStatus.COMPLETED), (2, BatchStatus.SUBMITTED)):
        yield AssistBatch(
            job_id="job-1", number=number, first_line=4 * number - 4, line_count=4, status=status, created_at=at(number)
        )


def _batches(store: Store) -> Batches:
    return Batches(jobs_in_memory(store))


def _reads(store: Store) -> AssistReads:
    return AssistReads(store, MemoryObjectStore(store.clock))


def _next_try(store: Store) -> list[str]:
    found = _reads(store).find_next_try(call(2))
    return [found.call_id] if found else []


def _totals(store: Store) -> list[int]:
    found = (_reads(store).find_total("job-1", "job"), _reads(store).find_total("job-1", "tree"))
    return [total.calls for total in found if total]


WORLD = World(
    name="assist",
    tables=(main,),
    items=items,
    questions={
        ("assist", "Calls of a job"): Question(
            lambda s: [each.call_id for each in _reads(s).list_calls("job-1", newest_first=True)],
            ["chat-4", "chat-5", "chat-6", "chat-7", "chat-8"],
        ),
        ("assist", "Calls of a day"): Question(
            lambda s: [f"{each.job_id} {each.call_id}" for each in _reads(s).list_calls_of_day(FIRST)],
            ["job-1 chat-8", "job-1 chat-7", "job-1 chat-6", "job-1 chat-5", "job-2 chat-3"],
        ),
        ("assist", "Vectors that a model has made"): Question(
            lambda s: [
                each.job_id for each in SharedVectors(s, MemoryObjectStore(s.clock), "openai", "vectors").list_batches()
            ],
            ["job-2", "job-1"],
        ),
        ("assist", "Get what a batch job sends"): Question(lambda s: [_batches(s).get_lines("job-1").line_count], [8]),
        ("assist", "List the batches of a job"): Question(
            lambda s: [each.number for each in _batches(s).list_batches("job-1")], [1, 2]
        ),
        ("assist", "List batches of models by status"): Question(
            lambda s: [each.number for each in _batches(s).list_by_status(BatchStatus.SUBMITTED)], [2]
        ),
        ("assist", "Get a call"): Question(lambda s: [_reads(s).get_call("job-1", "chat-8").started_at], [at(1)]),
        ("assist", "Answers to a request that other jobs may reuse"): Question(
            lambda s: [each.call_id for each in _reads(s).list_reusable_answers(f"{1:064x}")], ["chat-8"]
        ),
        ("assist", "The next try after a refused answer"): Question(_next_try, ["chat-5"]),
        ("assist", "What a job, or its tree, has used of models"): Question(_totals, [5, 6]),
        ("assist", "What models cost from day to day"): Question(
            lambda s: [(each.date, each.calls) for each in _reads(s).list_costs(FIRST, SECOND)],
            [(FIRST, 5), (SECOND, 1)],
        ),
    },
)
