"""Questions are asked again: by the next run of a job, by other jobs, and while a provider is busy or fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jobtable.assist.entities import CallStatus
from jobtable.assist.job_assistant import JobAssistant
from jobtable.assist.providers import (
    Fault,
    ProviderError,
)
from jobtable.assist.sending import LONGEST_PAUSE_SECONDS, MOST_SENDS
from jobtable.errors import AnswerRefusedError, BudgetExceededError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.tasks import StopTask
from jobtable.testing import FakeClock
from jobtable.testing.assist import AssistServer, Reply, failing
from tests.assist.asking_jobs import (
    SPAM,
    VALID,
    Label,
    assistant,
    claim_again,
    claim_job,
    context_of,
    open_jobs,
    recorded_calls,
    settings_for,
    statuses,
)


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with open_jobs() as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[AssistServer]:
    with AssistServer() as running:
        yield running


def ask(jobs: Jobs, server: AssistServer, prompt: str = "Is it spam?", **how: Any) -> Any:
    """Ask in a new job; return the object, or the text."""
    return assistant(jobs, settings_for(server)).ask("label", prompt, **how).value


# --- retried jobs


def retried(jobs: Jobs, lease: Any) -> Any:
    """Let a job fail, and claim it again."""
    jobs.finish(lease, Outcome.failed("it failed"))
    clock = jobs.clock
    assert isinstance(clock, FakeClock)
    clock.advance(3_600)
    queue = str(lease.job.queue_name)
    jobs.promote_due(queue)
    return claim_again(jobs, queue)


def test_a_retried_job_does_not_pay_again(jobs: Jobs, server: AssistServer) -> None:
    lease, settings = claim_job(jobs), settings_for(server)
    server.script(Reply("no"), Reply(VALID))
    first = assistant(jobs, settings, lease).ask("label", "Is it spam?", output=Label)

    again = assistant(jobs, settings, retried(jobs, lease)).ask("label", "Is it spam?", output=Label)

    assert again == first
    assert len(server.charges) == 2


def test_a_retried_job_goes_on_after_answers_that_were_refused(jobs: Jobs, server: AssistServer) -> None:
    lease, settings = claim_job(jobs), settings_for(server)
    server.script(Reply("no"), Reply("", finish="refused"), Reply(VALID))
    with pytest.raises(AnswerRefusedError):
        assistant(jobs, settings, lease).ask("label", "Is it spam?", output=Label)

    again = assistant(jobs, settings, retried(jobs, lease)).ask("label", "Is it spam?", output=Label)

    assert again.value == SPAM
    assert len(again.call_ids) == 3
    assert len(server.charges) == 3


def test_an_answer_that_was_recorded_but_not_yet_checked_is_checked_by_the_next_run(
    jobs: Jobs, server: AssistServer
) -> None:
    lease, settings = claim_job(jobs), settings_for(server)
    server.script(Reply('{"label": "spam"}'), Reply(VALID))
    asked = assistant(jobs, settings, lease)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobtable.assist.asking.read_answer", _killed)
        with pytest.raises(KeyboardInterrupt):
            asked.ask("label", "Is it spam?", output=Label)
    assert statuses(jobs) == [CallStatus.ANSWERED]

    again = assistant(jobs, settings, retried(jobs, lease)).ask("label", "Is it spam?", output=Label)

    assert again.value == SPAM
    assert statuses(jobs) == [CallStatus.REFUSED, CallStatus.ANSWERED]
    assert len(server.charges) == 2


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_another_job_finds_an_answer_only_if_it_may(jobs: Jobs, server: AssistServer) -> None:
    assert len({ask(jobs, server, f"{cache}?", cache=cache) for cache in ("store", "job", "off") for _ in "12"}) == 3
    assert [each.prompt for each in server.questions] == ["store?", "job?", "job?", "off?", "off?"]


# --- providers that fail


def asked_with(jobs: Jobs, server: AssistServer, should_stop: Any = lambda: False, **settings: Any) -> JobAssistant:
    return JobAssistant(context_of(jobs, claim_job(jobs), should_stop), settings_for(server, **settings))


def test_a_busy_provider_is_asked_again_when_it_wants(jobs: Jobs, server: AssistServer) -> None:
    server.script(failing("rate_limited", retry_after=30), failing("overloaded"), Reply("yes"))
    began = jobs.clock.monotonic()

    assert asked_with(jobs, server).ask("check", "Well?").value == "yes"

    assert jobs.clock.monotonic() - began >= 30
    (call,) = recorded_calls(jobs)
    assert (call.status, call.tries, call.error) == (CallStatus.ANSWERED, 3, None)
    assert call.seconds >= 0
    assert len(server.charges) == 1


def test_a_provider_that_stays_away_fails_the_call(jobs: Jobs, server: AssistServer) -> None:
    server.script(*[failing("overloaded")] * 20)
    with pytest.raises(ProviderError) as raised:
        asked_with(jobs, server).ask("check", "Well?")
    assert raised.value.fault is Fault.UNAVAILABLE
    assert len(server.questions) == MOST_SENDS
    (call,) = recorded_calls(jobs)
    assert (call.status, call.tries) == (CallStatus.FAILED, MOST_SENDS)
    assert call.error
    assert call.reserved_tokens == 0


def test_a_pause_that_is_too_long_fails_the_call(jobs: Jobs, server: AssistServer) -> None:
    server.script(failing("rate_limited", retry_after=LONGEST_PAUSE_SECONDS + 1))
    with pytest.raises(ProviderError):
        asked_with(jobs, server).ask("check", "Well?")
    assert len(server.questions) == 1


@pytest.mark.parametrize("trouble", ["unauthorized", "unknown_model", "refused", "out_of_credit"])
def test_what_never_passes_is_not_tried_again(jobs: Jobs, server: AssistServer, trouble: str) -> None:
    server.script(failing(trouble))
    with pytest.raises(ProviderError):
        asked_with(jobs, server).ask("check", "Well?")
    assert len(server.questions) == 1
    assert statuses(jobs) == [CallStatus.FAILED]


def test_a_job_that_is_to_stop_stops_waiting(jobs: Jobs, server: AssistServer) -> None:
    server.script(failing("rate_limited", retry_after=500))
    began = jobs.clock.monotonic()
    asked = asked_with(jobs, server, lambda: jobs.clock.monotonic() - began > 3)
    with pytest.raises(StopTask, match="while it waited for a model"):
        asked.ask("check", "Well?")
    assert 3 < jobs.clock.monotonic() - began < 4
    assert statuses(jobs) == [CallStatus.FAILED]


def test_a_slot_is_waited_for_and_returned(jobs: Jobs, server: AssistServer) -> None:
    one, other = (asked_with(jobs, server, max_concurrent=1) for _ in "12")
    server.script(failing("overloaded"))
    assert one.ask("check", "Well?").value == "You said: Well?"
    assert other.ask("check", "And you?").value == "You said: And you?"
    stuck = asked_with(jobs, server, max_concurrent=1)
    stuck._asker._ledger.take_slot("main", "of a dead worker", most=1, seconds=100)
    began = jobs.clock.monotonic()
    assert stuck.ask("check", "Once more?").value == "You said: Once more?"
    assert jobs.clock.monotonic() - began >= 100


def test_a_failure_that_was_charged_counts_as_the_most_it_can_be(jobs: Jobs, server: AssistServer) -> None:
    server.script(Reply("lost", loses="answer", tokens_in=5, tokens_out=1))
    assert asked_with(jobs, server).ask("check", "Well?", max_output_tokens=100).value == "lost"
    (call,) = recorded_calls(jobs)
    assert call.tries == 2
    assert call.tokens_out == 100 + 1
    assert call.tokens_in > 100
    assert call.is_estimated
    assert len(server.charges) == 1  # the key was the same


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_call_says_whether_its_tokens_were_counted(jobs: Jobs, server: AssistServer, is_counted: bool) -> None:
    server.script(Reply("Well.", has_usage=is_counted))
    ask(jobs, server, "Well?")
    (call,) = recorded_calls(jobs)
    assert (call.tokens_out, call.is_estimated) == (2, not is_counted)


def test_an_answer_that_was_lost_is_fetched_from_a_service_that_keeps_it(jobs: Jobs, server: AssistServer) -> None:
    server.options.heeds_keys = False
    server.script(Reply(VALID, loses="answer"))
    server.script(failing("overloaded"), Reply(cut_after=3), operation="chat.list")

    asked = assistant(jobs, settings_for(server, keep_answers=True)).ask("label", "Is it spam?", output=Label)

    assert (asked.value, len(server.charges)) == (SPAM, 1)
    (call,) = recorded_calls(jobs)
    assert (call.status, call.tries) == (CallStatus.ANSWERED, 4)
    assert call.tokens_out == 1024 + server.charges[0].tokens_out


def test_a_budget_ends_the_question_before_anything_is_sent(jobs: Jobs, server: AssistServer) -> None:
    with pytest.raises(BudgetExceededError):
        assistant(jobs, settings_for(server), max_tokens=500).ask("check", "Well?", max_output_tokens=400)
    assert server.requests == []
