"""What is read of calls and costs, from records as the ledger writes them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.app import Services
from jobtable.assist.costs import Used, used_by
from jobtable.assist.entities import AssistCost, AssistTotal, CallStatus
from jobtable.assist.prices import rough_dollars
from jobtable.assist.recount import Difference, Recount
from jobtable.errors import NotFoundError, ValueRefusedError
from jobtable.jobs.submit.definition import NewJob
from tests.access_patterns.assist import FIRST, SECOND, call

NUMBERS = st.integers(0, 10**12)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "status": st.sampled_from(CallStatus),
            "tokens_in": NUMBERS,
            "tokens_out": NUMBERS,
            "cost_nanodollars": NUMBERS,
            "price_version": st.sampled_from([None, "2025-11-01"]),
            "reused_from": st.sampled_from([None, None, "job-0/chat-0"]),
            "reserved_tokens": NUMBERS,
            "reserved_nanodollars": NUMBERS,
            "date": st.sampled_from([FIRST, SECOND]),
            "model": st.sampled_from(["small", "large"]),
            "is_of_child": st.booleans(),
        }
    ),
    max_size=12,
)
MEASURES = ["calls", "failed_calls", "unpriced_calls", "tokens_in", "tokens_out", "cost_nanodollars"]


@pytest.fixture
def services() -> Iterator[Services]:
    with Services.open("memory:") as opened:
        yield opened


def add_costs(services: Services, *costs: dict[str, Any]) -> None:
    known = {"date": FIRST, "system": "jobs", "purpose": "label", "provider": "openai", "model": "small"}
    for cost in costs:
        services.assist.store.add(AssistCost(**{**known, **cost}))


def test_costs_are_summed_by_any_fields(services: Services) -> None:
    add_costs(
        services,
        {"calls": 1, "cost_nanodollars": 5, "tokens_in": 100},
        {"model": "large", "calls": 2, "cost_nanodollars": 50, "unpriced_calls": 1, "tokens_out": 3},
        {"date": SECOND, "calls": 4, "cost_nanodollars": 7, "failed_calls": 1},
        {"date": date(2025, 10, 31), "calls": 99},
        {"date": date(2025, 11, 3), "calls": 99},
    )
    assist = services.assist
    (everything,) = assist.sum_costs(first=FIRST, last=SECOND)
    assert {name: getattr(everything, name) for name in MEASURES} == {
        "calls": 7,
        "failed_calls": 1,
        "unpriced_calls": 1,
        "tokens_in": 100,
        "tokens_out": 3,
        "cost_nanodollars": 62,
    }
    assert [(each.model, each.calls) for each in assist.sum_costs(["model"], first=FIRST, last=SECOND)] == [
        ("large", 2),
        ("small", 5),
    ]
    by_day = assist.sum_costs(["date", "system"], first=FIRST, last=SECOND)
    assert [(each.date, each.system, each.calls) for each in by_day] == [(FIRST, "jobs", 3), (SECOND, "jobs", 4)]
    assert assist.sum_costs(["purpose"], first=date(2024, 1, 1), last=date(2024, 1, 2)) == []


def test_a_span_is_a_month_by_default_and_a_year_at_most(services: Services) -> None:
    first, last = services.assist.span(None, SECOND)
    assert (last - first).days == 29
    with pytest.raises(ValueRefusedError, match="the first day, 2025-11-02, is after the last one, 2025-11-01"):
        services.assist.sum_costs(first=SECOND, last=FIRST)
    with pytest.raises(ValueRefusedError, match="more than 366 days"):
        services.assist.sum_costs(first=date(2024, 1, 1), last=FIRST)


def test_a_call_is_read_with_its_request_and_answer(services: Services) -> None:
    assist = services.assist
    refused, inline, large = (
        call(1, status=CallStatus.REFUSED, answer="no", error="not JSON"),
        call(2, follows="chat-8", attempt=2, answer="{}"),
        call(3, answer={"object": "jobs/job-1/assist/chat-6.answer.json"}),
    )
    for each in (refused, inline, large):
        assist.store.add(each)
    services.objects.put(refused.request_key, b'{"model": "small", "messages": []}')
    services.objects.put("jobs/job-1/assist/chat-6.answer.json", b'"a long text"')
    whole = assist.read_call("job-1", "chat-8")
    assert whole.call == refused
    assert (whole.request, whole.answer, whole.next_call_id) == ({"model": "small", "messages": []}, "no", "chat-7")
    assert (assist.read_call("job-1", "chat-7").request, assist.read_call("job-1", "chat-7").answer) == (None, "{}")
    assert assist.read_call("job-1", "chat-6").answer == "a long text"
    with pytest.raises(NotFoundError, match="chat-99"):
        assist.read_call("job-1", "chat-99")


@given(made=CALLS)
def test_totals_that_add_up_have_no_differences(made: list[dict[str, Any]]) -> None:
    with Services.open("memory:") as services:
        _make(services, made)
        assert Recount(services.assist).of_job("job-1") == []
        assert Recount(services.assist).of_job("child") == []
        assert Recount(services.assist).of_days(FIRST, SECOND) == []


def test_every_difference_is_found(services: Services) -> None:
    _make(services, [{"status": CallStatus.ANSWERED, "is_of_child": False, "date": FIRST, "model": "small"}])
    store = services.assist.store
    store.update(AssistTotal.key(job_id="job-1", scope="job"), AssistTotal.tokens_in.set(11))
    store.update(AssistTotal.key(job_id="job-1", scope="tree"), AssistTotal.held_nanodollars.set(107))
    day = AssistCost.key(date=FIRST, system="jobs", purpose="label", provider="openai", model="small")
    store.update(day, AssistCost.failed_calls.set(1))
    store.add(call(7, date=SECOND, model="large"))
    recount = Recount(services.assist)
    assert recount.of_job("job-1")[:3] == [
        Difference("job job-1", "calls", 1, 2),
        Difference("job job-1", "tokens_in", 11, 20),
        Difference("job job-1", "tokens_out", 1, 2),
    ]
    assert Difference("tree of job job-1", "reserved_nanodollars", 7, 0) in recount.of_job("job-1")
    assert recount.of_days(FIRST, SECOND)[:2] == [
        Difference("2025-11-01 jobs label openai small", "failed_calls", 1, 0),
        Difference("2025-11-02 jobs label openai large", "calls", 0, 1),
    ]
    with pytest.raises(NotFoundError, match="nobody"):
        recount.of_job("nobody")


def _make(services: Services, made: list[dict[str, Any]]) -> None:
    """Store calls of a job and its child, with totals that are their sums."""
    jobs, assist = services.engine, services.assist
    root = jobs.open_group(NewJob(name="root", job_id="job-1"))
    jobs.submit(NewJob(name="child", job_id="child", task="m:f", parent_job_id=root.job_id))
    sums: dict[tuple[str, ...], Used] = {}
    held: dict[tuple[str, ...], int] = {}
    for number, values in enumerate(made, start=1):
        job_id = "child" if values["is_of_child"] else "job-1"
        one = call(number, job_id=job_id, **{name: value for name, value in values.items() if name != "is_of_child"})
        assist.store.add(one)
        for key in (("total", job_id, "job"), ("total", "job-1", "tree"), ("day", one.date.isoformat(), one.model)):
            sums.setdefault(key, Used()).add(AssistTotal(job_id="x", scope="job", **dict(used_by(one))))
            for name in ("reserved_tokens", "reserved_nanodollars"):
                is_open = one.status is CallStatus.STARTED
                held[*key, name] = held.get((*key, name), 0) + getattr(one, name) * is_open
    for (kind, first, second), used in sums.items():
        if kind == "day":
            add_costs(services, {"date": first, "model": second, **dict(used)})
            continue
        tokens = used.tokens_in + used.tokens_out + held[kind, first, second, "reserved_tokens"]
        money = used.cost_nanodollars + held[kind, first, second, "reserved_nanodollars"]
        total = {"job_id": first, "scope": second, "held_tokens": tokens, "held_nanodollars": money, **dict(used)}
        assist.store.add(AssistTotal.model_validate(total))


@pytest.mark.parametrize(
    ("nanodollars", "shown"),
    [
        (0, "$0.00"),
        (999, "under $0.000001"),
        (200_000, "$0.0002"),
        (283_499, "$0.000283"),
        (123_456_789, "$0.123"),
        (999_999_999, "$1.00"),
        (1_234_567_890_000, "$1,234.57"),
    ],
)
def test_lists_show_amounts_in_few_digits(nanodollars: int, shown: str) -> None:
    assert rough_dollars(nanodollars) == shown
