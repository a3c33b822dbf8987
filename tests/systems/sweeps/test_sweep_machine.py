"""Random sequences of all that can happen to a sweep, compared with the same sweep when nobody interferes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.jobs.engines import LEASE_SECONDS, DisturbedBackend, check_records
from tests.systems.sweeps import sweep_tasks
from tests.systems.sweeps.driving import Driver, finish

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConflictError, JobStateError, LeaseLostError, NotFoundError, ValueRefusedError
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.stored.field_types import FINAL, Status
from jobtable.store import Store
from jobtable.systems.sweeps.adaptation import Adaptation
from jobtable.systems.sweeps.parameters import choice, float_range, int_range
from jobtable.systems.sweeps.service import Sweeps, TrialResult
from jobtable.systems.sweeps.sweep import Sweep

ASHA = {"name": "asha", "last_epoch": 9, "factor": 2}
TPE = {"name": "tpe", "options": {"n_startup_trials": 3}}
KINDS: dict[str, dict[str, Any]] = {
    "random": {},
    "random with ASHA": {"stopper": ASHA},
    "a grid with the median": {
        "sampler": "grid",
        "space": {"x": int_range(-4, 3, step=3), "y": choice(1, 2.5), "epochs": choice(3, 9).only_if(x=-1)},
        "stopper": {"name": "median", "fewest_peers": 2},
    },
    "TPE with ASHA": {"sampler": TPE, "stopper": ASHA},
    "TPE, retried": {"sampler": TPE, "max_attempts": 2, "direction": "maximize"},
    "CMA-ES": {"sampler": {"name": "cmaes", "options": {"n_startup_trials": 2}}},
    "NSGA-II with the median": {"sampler": "nsgaii", "stopper": {"name": "median", "fewest_peers": 2, "every": 3}},
    "QMC with ASHA": {"sampler": "qmc", "stopper": ASHA},
}
INDEPENDENT = {"random"}
"""Kinds whose trials depend on no other trial."""
PICK = st.integers(0, 1000)


def sweep_of_kind(kind: str) -> Sweep:
    changes = {"space": {"x": float_range(-5, 5), "y": float_range(-5, 5)}, **KINDS[kind]}
    common = {"name": kind, "task": sweep_tasks.struggle, "objective": "loss", "trials": 9, "generation_size": 3}
    return Sweep(**{**common, **changes})


def told(trial: TrialResult) -> tuple[Any, ...]:
    return trial.params, trial.status, trial.value


@cache
def undisturbed(kind: str) -> dict[int, tuple[Any, ...]]:
    """What every trial comes to when nobody interferes."""
    with Store(EmbeddedBackend(None)) as store:
        return {trial.number: told(trial) for trial in finish(Driver.on(store), sweep_of_kind(kind)).trials}


class SweepMachine(RuleBasedStateMachine):
    """Workers that come, go and die, and people who stop, resume, retry, cancel and delete, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.backend = DisturbedBackend(EmbeddedBackend(None))
        self.store = Store(self.backend)
        self.driver = Driver.on(self.store)
        self.jobs = self.driver.jobs
        self.observer = self.jobs.observer()
        self.sweeps = Sweeps(self.jobs)
        self.leases: list[Lease] = []

    @initialize(kind=st.sampled_from(sorted(KINDS)), trials=st.integers(1, 8))
    def choose(self, kind: str, trials: int) -> None:
        self.kind = kind
        self.sweep = sweep_of_kind(kind).model_copy(update={"trials": trials})
        self.submit()

    def teardown(self) -> None:
        with self.store:
            self.see_it_to_its_end()

    def attempt(self, act: Callable[[], object]) -> bool:
        """What may be refused, because of what others have done meanwhile; says whether it was done."""
        try:
            act()
        except (JobStateError, ConflictError, NotFoundError, LeaseLostError):
            return False
        return True

    def trials(self) -> list[TrialResult]:
        return list(self.sweeps.list_trials("s"))

    # --- workers ----------------------------------------------------------------------------------------------------

    @rule(limit=st.integers(1, 4))
    def claim(self, limit: int) -> None:
        self.leases += self.jobs.claim("default", limit=limit, instance_id="here", lease_seconds=LEASE_SECONDS)

    @precondition(lambda self: self.leases)
    @rule(number=PICK, dies_after=st.none() | st.integers(1, 18))
    def run_one(self, number: int, dies_after: int | None) -> None:
        lease = self.leases.pop(number % len(self.leases))
        self.attempt(lambda: self.driver.run_one(lease, dies_after=dies_after))

    @rule()
    def hear(self) -> None:
        """Workers look at what is asked of their jobs, and end those that are to end."""
        seen = self.jobs.look_at(self.leases)
        held = [(lease, job) for lease, job in zip(self.leases, seen, strict=True) if job is not None]
        self.leases = [lease for lease, job in held if job.requested is None]
        ended = [(lease, Outcome.stopped("it was asked to")) for lease, job in held if job.requested is not None]
        self.jobs.finish_many(ended)

    @precondition(lambda self: self.leases)
    @rule(number=PICK)
    def give_back(self, number: int) -> None:
        lease = self.leases.pop(number % len(self.leases))
        self.attempt(lambda: self.jobs.release(lease, "drained"))

    @rule(seed=PICK, runs=st.integers(1, 6))
    def work(self, seed: int, runs: int) -> None:
        self.attempt(lambda: self.driver.run(random=Random(seed), most=runs))

    @rule()
    def workers_die(self) -> None:
        self.leases = []
        self.observer.recover()
        self.driver.clock.advance(LEASE_SECONDS + 1)
        self.observer.recover()
        self.jobs.promote_due("default")

    # --- people -----------------------------------------------------------------------------------------------------

    @rule()
    def submit(self) -> None:
        self.attempt(lambda: self.sweeps.submit(self.sweep, sweep_id="s"))

    @rule()
    def stop(self) -> None:
        self.attempt(lambda: self.sweeps.stop("s"))

    @rule()
    def resume(self) -> None:
        self.attempt(lambda: self.sweeps.resume("s"))

    @rule(more=st.integers(1, 4))
    def extend(self, more: int) -> None:
        """In all it gets as many trials as the undisturbed one."""
        total = min(self.sweeps.get_progress("s").total + more, len(undisturbed(self.kind)))
        with suppress(ValueRefusedError):  # it has got more meanwhile
            self.attempt(lambda: self.sweeps.extend("s", total=total))

    @rule()
    def adapt(self) -> None:
        self.attempt(lambda: Adaptation(self.jobs).adapt("s", self.sweep))

    @precondition(lambda self: self.trials())
    @rule(number=PICK)
    def retry(self, number: int) -> None:
        found = self.trials()
        self.attempt(lambda: self.jobs.retry(found[number % len(found)].job_id))

    @precondition(lambda self: self.kind in INDEPENDENT and self.trials())
    @rule(number=PICK)
    def cancel_trial(self, number: int) -> None:
        found = self.trials()
        self.attempt(lambda: self.jobs.cancel(found[number % len(found)].job_id))

    @precondition(lambda self: self.kind in INDEPENDENT and self.trials())
    @rule(number=PICK)
    def delete_trial(self, number: int) -> None:
        found = self.trials()
        self.attempt(lambda: self.jobs.delete(found[number % len(found)].job_id))

    @rule()
    def delete(self) -> None:
        if self.attempt(lambda: self.jobs.delete("s", tree=True)):
            self.leases = []
            self.driver.clock.advance(1)
            self.submit()

    @rule(
        writes=st.integers(0, 6),
        act=st.sampled_from(["claim", "stop", "resume", "submit", "extend", "adapt", "workers die"]),
    )
    def disturb_the_next(self, writes: int, act: str) -> None:
        """Let one of these things happen between what the next rule reads and what it writes."""
        acts: dict[str, Callable[[], None]] = {
            "claim": lambda: self.claim(2),
            "stop": self.stop,
            "resume": self.resume,
            "submit": self.submit,
            "extend": lambda: self.extend(2),
            "adapt": self.adapt,
            "workers die": self.workers_die,
        }
        self.backend.disturb(acts[act], writes=writes)

    # --- what holds -------------------------------------------------------------------------------------------------

    @invariant()
    def records_are_right(self) -> None:
        check_records(self.jobs)

    @invariant()
    def trials_are_those_of_the_undisturbed_sweep(self) -> None:
        expected = undisturbed(self.kind)
        for trial in self.trials():
            params, status, value = expected[trial.number]
            assert trial.params == params
            if trial.status is Status.COMPLETED:
                assert (status, value) == (Status.COMPLETED, trial.value)

    @invariant()
    def counts_are_exact(self) -> None:
        progress = self.sweeps.get_progress("s")
        count = Counter(trial.status if trial.status in FINAL else None for trial in self.trials())
        ended = (progress.completed, progress.stopped, progress.failed, progress.cancelled)
        assert ended == tuple(count[s] for s in (Status.COMPLETED, Status.STOPPED, Status.FAILED, Status.CANCELLED))
        assert progress.open == count[None]

    @invariant()
    def the_best_is_the_best(self) -> None:
        finals = [trial.value for trial in self.trials() if trial.status is Status.COMPLETED]
        best = self.sweeps.find_best("s")
        wanted = max if self.sweep.direction == "maximize" else min
        assert (best and best.value) == (wanted(value for value in finals if value is not None) if finals else None)

    def see_it_to_its_end(self) -> None:
        """Whatever has happened: with workers, and resumed, the sweep comes to what it comes to undisturbed."""
        self.backend.disturb(None)
        self.workers_die()
        self.workers_die()
        self.sweeps.resume("s")
        self.driver.run()
        expected = undisturbed(self.kind)
        self.sweeps.extend("s", total=len(expected))
        self.driver.run()
        trials = self.trials()
        assert self.sweeps.get_progress("s").status is Status.COMPLETED
        assert {t.number: told(t) for t in trials} == {t.number: expected[t.number] for t in trials}
        check_records(self.jobs)


TestSweepMachine = SweepMachine.TestCase
TestSweepMachine.settings = settings(
    max_examples=10, stateful_step_count=15, suppress_health_check=[HealthCheck.too_slow]
)
