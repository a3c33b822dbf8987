"""Trials of a sweep a second, with one and with many worker processes; and the best of a small and a large sweep."""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from bench.measure import Contender, compare, not_measured, report
from jobtable.app import open_jobs
from jobtable.jobs.stored.entities import Job, JobMetric
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.tasks import task
from jobtable.jobs.worker.worker import Worker
from jobtable.systems.sweeps.parameters import float_range
from jobtable.systems.sweeps.planner import Planner
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.trials import TrialConfig, final_name, trial_id
from jobtable.testing.servers import cache_folder

PROCESSES = (1, 4, 8)
ROUNDS = 3
OUR_TRIALS = 2_000
SQLITE_TRIALS = 80
JOURNAL_TRIALS = 400
FEW, MANY = 100, 100_000
CHILDREN = 10_000

Work = Callable[[str, int], None]
"""Does so many trials on the storage at an address, in one process of some."""

SWEEP = Sweep(
    name="plane",
    task="bench.sweeps:bowl",
    space={"x": float_range(-5, 5), "y": float_range(-5, 5)},
    trials=OUR_TRIALS,
)


@task(inline=True)
def bowl(x: float, y: float) -> float:
    """What a trial computes: nothing that would take time."""
    return (x - 1) ** 2 + (y + 2) ** 2


def run() -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder()) as name:
        folder = Path(name)
        _trials(folder)
        _best(folder)
        _creation(folder)


# --- trials ---------------------------------------------------------------------------------------------------------


def _trials(folder: Path) -> None:
    """One process or many: the same trials, on one disk, one contender after the other."""
    try:
        import optuna  # noqa: PLC0415 - a peer
    except ImportError as error:
        not_measured("sweep trials against Optuna", error)
        return
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ours = {}
    for processes in PROCESSES:
        rounds = [_one_round(folder / f"{processes}-{number}", processes) for number in range(ROUNDS)]
        ours[processes], sqlite, journal = (statistics.median(rates) for rates in zip(*rounds, strict=True))
        bench = f"sweep trials, {processes} process(es)"
        report(bench, ours[processes], "Optuna on SQLite", sqlite, target=10.0)
        report(bench, ours[processes], "Optuna on its journal", journal)
    for processes in PROCESSES[1:]:
        report(f"sweep trials, {processes} processes", ours[processes], "jobtable, 1 process", ours[1], target=1.0)


def _one_round(folder: Path, processes: int) -> tuple[float, float, float]:
    """Our rate and those of Optuna on SQLite and on its journal, one after the other."""
    folder.mkdir()
    return (
        _our_rate(folder, processes),
        _rate(_with_optuna, f"sqlite:///{folder / 'optuna.sqlite'}", SQLITE_TRIALS, processes),
        _rate(_with_optuna, str(folder / "optuna.journal"), JOURNAL_TRIALS, processes),
    )


def _our_rate(folder: Path, processes: int) -> float:
    url = f"file:{folder / 'jobs.db'}"
    jobs = open_jobs(url)
    sweeps = Sweeps(jobs)
    sweeps.submit(SWEEP, sweep_id="s")
    rate = _rate(_with_jobtable, url, OUR_TRIALS, processes)
    completed = sweeps.get_progress("s").completed
    jobs.store.close()
    if completed != OUR_TRIALS:
        raise RuntimeError(f"{completed} of {OUR_TRIALS} trials were done")
    return rate


def _rate(work: Work, address: str, trials: int, processes: int) -> float:
    """Trials a second of some processes together, from the moment in which all of them are ready."""
    if work is _with_optuna:
        _study(address)  # processes that create one at the same time get in each other's way
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(processes + 1)
    share = -(-trials // processes)
    started = [context.Process(target=_work, args=(work, address, share, ready)) for _ in range(processes)]
    for process in started:
        process.start()
    ready.wait()
    begin = time.perf_counter()
    for process in started:
        process.join()
    if any(process.exitcode for process in started):
        raise RuntimeError(f"one of {processes} processes failed at {address}")
    return share * processes / (time.perf_counter() - begin)


def _work(work: Work, address: str, trials: int, ready: Barrier) -> None:
    import optuna  # noqa: PLC0415 - imported before the clock runs

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ready.wait()
    work(address, trials)


def _with_jobtable(address: str, trials: int) -> None:
    Worker(partial(open_jobs, address), ["default"], mode="inline", until_empty=True).run()


def _with_optuna(address: str, trials: int) -> None:
    study: Any = _study(address)
    study.optimize(lambda t: bowl(t.suggest_float("x", -5, 5), t.suggest_float("y", -5, 5)), n_trials=trials)


def _study(address: str) -> object:
    import optuna  # noqa: PLC0415 - a peer
    from optuna.storages.journal import JournalFileBackend  # noqa: PLC0415

    storage: optuna.storages.BaseStorage
    if address.startswith("sqlite:"):
        storage = optuna.storages.RDBStorage(address, engine_kwargs={"connect_args": {"timeout": 60}})
    else:
        storage = optuna.storages.JournalStorage(JournalFileBackend(address))
    sampler = optuna.samplers.RandomSampler()
    return optuna.create_study(storage=storage, study_name="plane", load_if_exists=True, sampler=sampler)


# --- the best, and many ---------------------------------------------------------------------------------------------


def _best(folder: Path) -> None:
    """The best configuration of a sweep of a hundred trials and of a hundred thousand."""
    few, many = (_swept(folder, size) for size in (FEW, MANY))
    peer = f"{FEW:,} runs"
    compare(
        f"best of a sweep of {MANY:,} runs",
        Contender("jobtable", lambda: many.find_best("s")),
        Contender(peer, lambda: few.find_best("s")),
        targets={peer: 0.5},
    )


def _swept(folder: Path, size: int) -> Sweeps:
    """A sweep that looks as if so many trials had ended; what is measured are reads."""
    jobs = open_jobs(f"file:{folder / f'best-{size}.db'}?durability=normal")
    sweeps = Sweeps(jobs)
    parent = sweeps.submit(SWEEP, sweep_id="s")
    name = final_name(SWEEP.objective)
    jobs.store.batch_put(
        JobMetric(
            job_id="s",
            metric_name=name,
            timestamp=jobs.clock.now(),
            value=(number * 7919) % size,
            child_job_id=trial_id("s", number),
        )
        for number in range(size)
    )
    place = TrialConfig(sweep_id="s", objective=SWEEP.objective, number=0, recorded_at=parent.created_at)
    config = {"params": {"x": 0.5, "y": 0.5}, "sweep": place.model_dump(mode="json")}
    best = trial_id("s", 0)
    jobs.store.put(
        Job(
            job_id=best,
            name=best,
            created_at=parent.created_at,
            created_by="bench",
            status=Status.COMPLETED,
            job_config=config,
        )
    )
    return sweeps


def _creation(folder: Path) -> None:
    """The children of a large sweep, each with two edges and counted by its parent, against plain jobs."""
    jobs = open_jobs(f"file:{folder / 'creation.db'}")
    sweep = SWEEP.model_copy(update={"trials": CHILDREN})
    Sweeps(jobs).submit(sweep, sweep_id="s")
    planner = Planner(jobs)
    begin = time.perf_counter()
    made = sum(planner.plan("s", part, is_inline=True) for part in range(sweep.generation_count()))
    rate = made / (time.perf_counter() - begin)
    begin = time.perf_counter()
    plain = jobs.submit_many(NewJob(name="plain", task=SWEEP.task, params={"x": 1.0, "y": 1.0}) for _ in range(made))
    plain_rate = len(plain) / (time.perf_counter() - begin)
    jobs.store.close()
    report(f"children of a sweep of {made:,}, made at once", rate, "plain jobs, submitted at once", plain_rate)
