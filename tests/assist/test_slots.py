"""Slots of providers: shared by all workers, free again after a crash, and paused for all after a rate limit."""

from __future__ import annotations

import multiprocessing
import threading
import time
from pathlib import Path

import pytest

from jobtable.app import open_jobs
from jobtable.assist.entities import ProviderSlots
from jobtable.errors import LeaseLostError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.testing import FakeClock
from tests.assist.ledgers import held_job, ledger_of, run_together

PROVIDER = "openai"
MOST = 3


def test_no_more_slots_are_taken_than_there_are(jobs: Jobs) -> None:
    ledgers = [ledger_of(jobs, held_job(jobs, job_id=f"j-{number}")) for number in range(3)]
    for ledger in ledgers[:2]:
        assert ledger.take_slot(PROVIDER, "chat-1", most=2, seconds=60) == 0
    wait = ledgers[2].take_slot(PROVIDER, "chat-1", most=2, seconds=60)
    assert 0 < wait < 60
    assert ledgers[2].take_slot("another", "chat-1", most=2, seconds=60) == 0
    assert ledgers[0].take_slot(PROVIDER, "chat-1", most=2, seconds=60) == 0, "it has its slot already"
    ledgers[1].release_slot(PROVIDER, "chat-1")
    ledgers[1].release_slot(PROVIDER, "chat-1")
    assert ledgers[2].take_slot(PROVIDER, "chat-1", most=2, seconds=60) == 0
    holders = jobs.store.get(ProviderSlots.key(provider=PROVIDER)).holders
    assert holders.keys() == {"j-0/chat-1", "j-2/chat-1"}


def test_the_slot_of_a_crashed_worker_is_free_after_its_time(jobs: Jobs, clock: FakeClock) -> None:
    one, other = (ledger_of(jobs, held_job(jobs, job_id=name)) for name in ("one", "other"))
    assert one.take_slot(PROVIDER, "chat-1", most=1, seconds=60) == 0
    clock.advance(59)
    assert other.take_slot(PROVIDER, "chat-2", most=1, seconds=60) > 0
    clock.advance(2)
    assert other.take_slot(PROVIDER, "chat-2", most=1, seconds=60) == 0
    one.release_slot(PROVIDER, "chat-1")
    assert jobs.store.get(ProviderSlots.key(provider=PROVIDER)).holders.keys() == {"other/chat-2"}


def test_a_rate_limit_pauses_everybody(jobs: Jobs, clock: FakeClock) -> None:
    one, other = (ledger_of(jobs, held_job(jobs, job_id=name)) for name in ("one", "other"))
    assert one.take_slot(PROVIDER, "chat-1", most=5, seconds=60) == 0
    one.release_slot(PROVIDER, "chat-1", pause_seconds=20)
    assert other.take_slot(PROVIDER, "chat-2", most=5, seconds=60) == pytest.approx(20)
    one.release_slot(PROVIDER, "chat-1", pause_seconds=5)
    clock.advance(15)
    assert other.take_slot(PROVIDER, "chat-2", most=5, seconds=60) == pytest.approx(5), "the longest pause counts"
    clock.advance(5)
    assert other.take_slot(PROVIDER, "chat-2", most=5, seconds=60) == 0


def test_a_release_where_nothing_was_taken_does_nothing(jobs: Jobs) -> None:
    ledger_of(jobs, held_job(jobs)).release_slot(PROVIDER, "chat-1")
    assert jobs.store.find(ProviderSlots.key(provider=PROVIDER)) is None


def test_a_lost_run_takes_no_slot_and_returns_its_own(jobs: Jobs) -> None:
    lease = held_job(jobs, job_id="j")
    ledger = ledger_of(jobs, lease)
    assert ledger.take_slot(PROVIDER, "chat-1", most=1, seconds=60) == 0
    jobs.interrupt_lost(jobs.queries.get_job("j"))
    with pytest.raises(LeaseLostError):
        ledger.take_slot(PROVIDER, "chat-1", most=1, seconds=60)
    ledger.release_slot(PROVIDER, "chat-1")
    assert jobs.store.get(ProviderSlots.key(provider=PROVIDER)).holders == {}


def test_a_name_of_a_call_may_have_any_characters(jobs: Jobs) -> None:
    ledger = ledger_of(jobs, held_job(jobs, job_id="a.b#[0] c"))
    assert ledger.take_slot("my.provider#1", "chat-1", most=1, seconds=60) == 0
    assert ledger.take_slot("my.provider#1", "chat-2", most=1, seconds=60) > 0
    ledger.release_slot("my.provider#1", "chat-1")
    assert ledger.take_slot("my.provider#1", "chat-2", most=1, seconds=60) == 0


def test_threads_hold_at_most_so_many_at_once(jobs: Jobs) -> None:
    lease = held_job(jobs)
    ledger = ledger_of(jobs, lease)
    lock = threading.Lock()
    numbers = iter(range(100))
    held, most_held = 0, 0

    def use() -> None:
        nonlocal held, most_held
        with lock:
            call_id = f"chat-{next(numbers)}"
        while ledger.take_slot(PROVIDER, call_id, most=MOST, seconds=600_000) > 0:
            time.sleep(0.01)  # the clock of the store stands still
        with lock:
            held += 1
            most_held = max(held, most_held)
        time.sleep(0.02)
        with lock:
            held -= 1
        ledger.release_slot(PROVIDER, call_id)

    run_together(use, 12)
    assert 1 <= most_held <= MOST
    assert jobs.store.get(ProviderSlots.key(provider=PROVIDER)).holders == {}


def _use(url: str, lease: Lease, number: int, folder: Path) -> None:
    """Take a slot, and write how many files of others were there while it was held."""
    with open_jobs(url) as jobs:
        ledger = ledger_of(jobs, lease)
        for turn in range(3):
            call_id = f"chat-{number}-{turn}"
            while (wait := ledger.take_slot(PROVIDER, call_id, most=MOST, seconds=600)) > 0:
                time.sleep(min(wait, 0.05))
            mine = folder / f"held-{call_id}"
            mine.touch()
            time.sleep(0.02)
            (folder / f"seen-{call_id}").write_text(str(len(list(folder.glob("held-*")))))
            mine.unlink()
            ledger.release_slot(PROVIDER, call_id)


def test_processes_hold_at_most_so_many_at_once(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'store.db'}"
    folder = tmp_path / "seen"
    folder.mkdir()
    with open_jobs(url) as jobs:
        lease = held_job(jobs)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.assist.test_slots"])
    running = [context.Process(target=_use, args=(url, lease, number, folder)) for number in range(8)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    assert [process.exitcode for process in running] == [0] * 8
    seen = [int(path.read_text()) for path in folder.glob("seen-*")]
    assert len(seen) == 24
    assert max(seen) <= MOST
