"""Runs the jobs of a sweep as workers would, in one process and by one random order, with workers that die."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.jobs.engines import LEASE_SECONDS, engine
from tests.running import NEVER
from tests.systems.sweeps import sweep_tasks

from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.worker.inline import Report, StopFlag, run_task
from jobtable.store import Store
from jobtable.systems.sweeps.service import Sweeps, TrialResult
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.testing import FakeClock


@dataclass
class Driver:
    """An engine on a store, and the workers on it."""

    jobs: Jobs
    clock: FakeClock

    @classmethod
    def on(cls, store: Store) -> Driver:
        clock = FakeClock()
        return cls(engine(store, clock), clock)

    def run(self, *, random: Random | None = None, deaths: float = 0.0, most: int | None = None) -> int:
        """Claim and run until nothing is left, or that many runs were made; gives the number of runs.

        With `random` some jobs are claimed at once and run in any order; a part of the workers dies on the way.
        """
        random = random or Random(0)
        runs = 0
        while most is None or runs < most:
            leases = self.jobs.claim(
                "default", limit=random.randint(1, 5), instance_id="here", lease_seconds=LEASE_SECONDS
            )
            if not leases and not self._recovered():
                return runs
            random.shuffle(leases)
            for lease in leases:
                self.run_one(lease, dies_after=random.randint(1, 12) if random.random() < deaths else None)
                runs += 1
        return runs

    def run_one(self, lease: Lease, *, dies_after: int | None = None, is_asked_to_end: bool = False) -> Report:
        """Run a claimed job; a worker that dies after so many epochs says nothing of how it ended."""
        stop = StopFlag()
        if is_asked_to_end:
            stop.ask()
        with JobContext(self.jobs, lease, should_stop=stop.should_stop, flush_seconds=NEVER) as context:
            sweep_tasks.DEATH.after = dies_after
            report = run_task(lease.job.definition, stop, lambda: context)
            sweep_tasks.DEATH.after = None
        if dies_after is None:
            self.jobs.finish(lease, report.outcome())
        return report

    def _recovered(self) -> bool:
        """Let the time pass after which the jobs of dead workers go on, and retries come due."""
        observer = self.jobs.observer()
        observer.recover()
        self.clock.advance(LEASE_SECONDS * 2)
        return bool(observer.recover()) or self.jobs.promote_due("default") > 0


@dataclass(frozen=True)
class Finished:
    """A sweep that has ended, and all that came of it."""

    sweep_id: str
    parent: Job
    trials: list[TrialResult]
    best: TrialResult | None


def finish(driver: Driver, sweep: Sweep, *, random: Random | None = None, deaths: float = 0.0) -> Finished:
    """Submit a sweep and run it to its end."""
    sweeps = Sweeps(driver.jobs)
    parent = sweeps.submit(sweep, sweep_id="s")
    driver.run(random=random, deaths=deaths)
    parent = driver.jobs.queries.get_job(parent.job_id)
    return Finished(parent.job_id, parent, list(sweeps.list_trials("s")), sweeps.find_best("s"))
