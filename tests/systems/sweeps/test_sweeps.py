"""Sweeps from their submission to their end, on every backend."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clouds import LateIndexes
from tests.jobs.engines import check_records, engine
from tests.systems.sweeps import sweep_tasks
from tests.systems.sweeps.driving import Driver, finish

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import (
    BackendUnavailable,
    ConflictError,
    JobStateError,
    LeaseLostError,
    NotFoundError,
    ValueRefusedError,
)
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.lifecycle.runs import Runs
from jobtable.jobs.stored.entities import Job, main
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import DependsOn, NewJob
from jobtable.store import Store
from jobtable.store.capacity import Units
from jobtable.systems.sweeps import running, samplers
from jobtable.systems.sweeps.adaptation import Adaptation
from jobtable.systems.sweeps.desk import SweepDesk
from jobtable.systems.sweeps.parameters import float_range
from jobtable.systems.sweeps.planner import Planner
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.trials import TrialRecords, trial_id
from jobtable.testing import FakeClock

MANY = 1_200
PLANE = {"x": float_range(-5, 5), "y": float_range(-5, 5)}


def plane(task: Any = sweep_tasks.descend, **changes: Any) -> Sweep:
    return Sweep(**{"name": "plane", "task": task, "space": PLANE, "objective": "loss", "trials": 24, **changes})


ASHA = {"name": "asha", "last_epoch": 9}
TPE = {"name": "tpe", "options": {"n_startup_trials": 8}}


def made(task: Any = sweep_tasks.descend, **changes: Any) -> Any:
    """What a sweep comes to when nobody interferes."""
    with Store(EmbeddedBackend(None)) as store:
        return finish(Driver.on(store), plane(task, **changes))


# --- the same decisions ---------------------------------------------------------------------------------------------

KINDS: dict[str, dict[str, Any]] = {
    "random with ASHA": {"stopper": ASHA},
    "TPE with ASHA": {"sampler": TPE, "stopper": ASHA},
    "CMA-ES with the median": {"sampler": "cmaes", "stopper": {"name": "median", "fewest_peers": 4, "every": 2}},
    "TPE": {"sampler": TPE, "task": sweep_tasks.bowl},
}
UNDISTURBED: dict[str, Any] = {}


def undisturbed(kind: str) -> Any:
    if kind not in UNDISTURBED:
        UNDISTURBED[kind] = made(**KINDS[kind])
    return UNDISTURBED[kind]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32))
def test_neither_order_nor_death_changes_a_decision(kind: str, seed: int) -> None:
    """Workers that run the trials in any order, and die at any point, come to the same sweep."""
    expected = undisturbed(kind)
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        got = finish(driver, plane(**KINDS[kind]), random=Random(seed), deaths=0.3)
        check_records(driver.jobs)
    assert got.parent.status is Status.COMPLETED
    assert [(t.params, t.status, t.value) for t in got.trials] == [
        (t.params, t.status, t.value) for t in expected.trials
    ]
    assert got.best == expected.best


def test_the_undisturbed_sweeps_stop_some_and_learn() -> None:
    """The comparison above means something: trials are stopped, and others run to their end."""
    for kind in ("random with ASHA", "TPE with ASHA", "CMA-ES with the median"):
        statuses = Counter(trial.status for trial in undisturbed(kind).trials)
        assert statuses[Status.STOPPED] >= 5, kind
        assert statuses[Status.COMPLETED] >= 8, kind
    assert undisturbed("TPE").trials != undisturbed("random with ASHA").trials


def test_seeds_differ() -> None:
    assert made(seed=1, trials=4).trials != made(seed=2, trials=4).trials


GENETIC = {"name": "nsgaii", "options": {"population_size": 6}}


@pytest.mark.parametrize("sampler", ["random", "qmc", TPE, "cmaes", GENETIC])
def test_a_sweep_begins_with_what_it_is_told_to_try_and_learns_from_it(sampler: Any) -> None:
    given = [{"x": number, "y": -2.5} for number in range(-4, 6)]  # the first generation, and two of the second
    trials = made(sweep_tasks.bowl, sampler=sampler, begin_with=given).trials
    assert [trial.params for trial in trials[:10]] == given
    others = made(sweep_tasks.bowl, sampler=sampler).trials
    assert ([t.params for t in trials[16:]] == [t.params for t in others[16:]]) is (sampler == "random")
    assert {trial.status for trial in trials} == {Status.COMPLETED}


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_no_more_is_planned_when_the_target_was_reached(direction: str) -> None:
    """How far it comes depends on no timing: what reaches the target is looked for between generations."""
    common = {"task": sweep_tasks.fail_below, "direction": direction}
    values = [trial.value for trial in made(**common).trials]
    best_of = min if direction == "minimize" else max
    target = best_of(value for value in values[:16] if value is not None)
    planned = 8 if target in values[:8] else 16
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        finished = finish(driver, plane(**common, target=target), random=Random(1), deaths=0.3)
        assert finished.parent.status is Status.COMPLETED
        assert [trial.value for trial in finished.trials] == values[:planned]
        sweeps = Sweeps(driver.jobs)
        progress = sweeps.get_progress("s")
        assert (progress.made, progress.total, progress.open) == (planned, 24, 0)
        assert (progress.target, progress.has_reached_target) == (target, True)
        with pytest.raises(JobStateError, match=r"reached its target of .*; submit another sweep"):
            sweeps.extend("s", trials=8)
        assert sweeps.extend("s", total=24) == 24, "as it is already"
        sweeps.resume("s")
        driver.run()
        assert sweeps.get_progress("s").made == planned


def test_a_sequence_goes_on_in_the_next_generation() -> None:
    trials = made(sweep_tasks.bowl, sampler="qmc", target=-1.0).trials
    assert len({str(trial.params) for trial in trials}) == 24


@pytest.mark.parametrize(("sampler", "calls"), [("random", 0), ("qmc", 1), (TPE, 1)])
def test_trials_are_read_again_only_for_a_sampler_that_looks_back(sampler: Any, calls: int) -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        finish(driver, plane(stopper=ASHA, sampler=sampler, target=-1.0))
        sweep = Sweeps(driver.jobs).get_definition("s")
        with store.capacity.measure() as spent:
            proposals, limits = Planner(driver.jobs)._decide("s", sweep, range(16, 24))
        assert (len(proposals), bool(limits)) == (8, True)
        assert spent.get("batch.BatchGetItem", Units()).calls == calls


# --- the records ----------------------------------------------------------------------------------------------------


def test_the_records_are_those_of_the_specification(each_store: Store) -> None:
    driver = Driver.on(each_store)
    jobs = driver.jobs
    sweep_id = Sweeps(jobs).submit(plane(sweep_tasks.bowl, trials=3), sweep_id="s", user="ada").job_id
    driver.run(most=1)
    parent = jobs.queries.get_job(sweep_id)
    assert (parent.job_type, parent.status, parent.created_by) == ("sweep", Status.RUNNING, "ada")
    assert isinstance(parent.job_config, dict)
    assert parent.job_config["sweep"]["space"]["x"] == {
        "type": "float",
        "low": -5,
        "high": 5,
        "log": False,
        "step": None,
        "when": {},
    }
    children = [job for job in jobs.queries.list_children(parent) if job.job_type == "training"]
    assert [job.job_id for job in children] == [trial_id("s", number) for number in range(3)]
    assert sorted(edge.job_id for edge in jobs.queries.list_dependents("s")) == [job.job_id for job in children]
    for job in children:
        (waits,) = jobs.queries.list_dependencies(job.job_id)
        assert (waits.type, waits.gate, waits.condition) == ("parent_sweep", "start", "started")
        assert set(job.definition.params) == {"x", "y"}
    awaited = [edge for edge in jobs.queries.list_dependencies("s") if edge.type == "child_training"]
    assert {(edge.gate, edge.condition) for edge in awaited} == {("completion", "finished")}
    assert len(awaited) == 3
    queued = jobs.queries.list_queued_of_group("default", "s")
    assert {place.job_id for place in queued} >= {job.job_id for job in children}
    driver.run()
    finals = list(jobs.queries.list_metric("s", "loss.final"))
    assert [metric.child_job_id for metric in finals] == [job.job_id for job in children]
    for metric in finals:
        (own,) = jobs.queries.list_metric(str(metric.child_job_id), "loss.final")
        assert own.value == metric.value
    assert jobs.queries.get_job("s").status is Status.COMPLETED
    best = Sweeps(jobs).find_best("s")
    assert best is not None
    assert best.value == min(metric.value for metric in finals)
    check_records(jobs)


def test_reports_stand_under_the_child_and_the_sweep_and_may_expire() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        finish(driver, plane(trials=2, metrics_ttl_seconds=3600))
        reports = list(driver.jobs.queries.list_metric("s", "loss"))
        assert Counter(report.child_job_id for report in reports) == {trial_id("s", 0): 9, trial_id("s", 1): 9}
        assert all(report.time_to_live is not None for report in reports)
        own = list(driver.jobs.queries.list_metric(trial_id("s", 0), "loss"))
        assert [report.epoch for report in own] == list(range(1, 10))
        (final, _) = driver.jobs.queries.list_metric("s", "loss.final")
        assert final.time_to_live is None
        assert final.value == own[-1].value


def test_the_best_is_the_best_final_value_and_no_report_on_the_way() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        finished = finish(driver, plane(trials=6, direction="maximize"))
        on_the_way = driver.jobs.queries.find_best_metric("s", "loss", highest=True)
        assert finished.best is not None
        assert on_the_way is not None
        assert finished.best.value is not None
        assert finished.best.value == max(trial.value for trial in finished.trials if trial.value is not None)
        assert on_the_way.value > finished.best.value


def test_what_is_best_is_read_at_the_same_price_at_any_size() -> None:
    prices = set()
    for size in (10, 400):
        with Store(EmbeddedBackend(None)) as store:
            driver = Driver.on(store)
            finish(driver, plane(sweep_tasks.bowl, trials=size))
            with store.capacity.measure() as spent:
                Sweeps(driver.jobs).find_best("s")
            prices.add(sum(units.read for units in spent.values()))
    assert len(prices) == 1


def test_trials_are_read_from_any_number_on_at_the_price_of_those_that_are_asked_for() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        every = finish(driver, plane(trials=110, generation_size=40, stopper=ASHA, params={"epochs": 2})).trials
        assert {trial.status for trial in every} == {Status.COMPLETED, Status.STOPPED}
        assert [trial.number for trial in every if trial.value is not None] == list(range(110))
        prices = []
        for first in (0, 100):
            with store.capacity.measure() as spent:
                some = list(islice(sweeps.list_trials("s", first=first), 10))
            assert some == every[first : first + 10]
            prices.append(sum(units.read for units in spent.values()))
        assert prices[1] < prices[0]
        for first, expected in ((-1, every), (109, every[109:]), (110, []), (1_000_000, [])):
            assert list(sweeps.list_trials("s", first=first)) == expected


# --- failures -------------------------------------------------------------------------------------------------------


def test_failed_trials_are_retried_recorded_and_resumed() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        finished = finish(driver, plane(sweep_tasks.fail_below, max_attempts=2, sampler=TPE))
        failed = [trial for trial in finished.trials if trial.status is Status.FAILED]
        assert 0 < len(failed) < 24
        assert all("x is below 0" in str(trial.message) for trial in failed)
        assert {driver.jobs.queries.get_job(trial.job_id).attempts for trial in failed} == {2}
        progress = sweeps.get_progress("s")
        assert (progress.failed, progress.completed, progress.open) == (len(failed), 24 - len(failed), 0)
        assert progress.status is Status.COMPLETED
        assert sweeps.resume("s") == len(failed)
        resumed = sweeps.get_progress("s")
        assert (resumed.open, resumed.status) == (len(failed), Status.RUNNING)
        driver.run()
        assert sweeps.get_progress("s") == progress
        check_records(driver.jobs)


@pytest.mark.parametrize("stopper", [None, {**ASHA, "first_epoch": 2}])
def test_a_trial_that_stops_itself_is_not_resumed(stopper: Any) -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        finished = finish(driver, plane(sweep_tasks.give_up, stopper=stopper))
        stopped = [trial for trial in finished.trials if trial.status is Status.STOPPED]
        assert [trial.number for trial in stopped] == [t.number for t in finished.trials if t.params["x"] < 0] != []
        assert {(trial.message, trial.value) for trial in stopped} == {
            ("x is below 0", trial.params["x"]) for trial in stopped
        }
        assert Sweeps(driver.jobs).resume("s") == 0


def test_a_trial_that_stops_itself_because_it_was_asked_to_is_resumed() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(plane(sweep_tasks.give_up, trials=1), sweep_id="s")
        driver.run(most=1)
        (lease,) = driver.jobs.claim("default", limit=1, instance_id="a", lease_seconds=30)
        sweeps.stop("s")
        driver.run_one(lease, is_asked_to_end=True)
        assert [trial.status for trial in sweeps.list_trials("s")] == [Status.STOPPED]
        assert sweeps.resume("s") == 1


@pytest.mark.parametrize("objective", ["x" * 1_000, "\u00e9" * 500, "#" * 400])
def test_an_objective_that_no_key_can_hold_is_refused_before_anything_runs(objective: str) -> None:
    with Store(EmbeddedBackend(None)) as store:
        sweeps = Sweeps(Driver.on(store).jobs)
        with pytest.raises(ValueRefusedError, match=r"cannot record the objective .*: .* 1024"):
            sweeps.submit(plane(objective=objective), sweep_id="s")
        assert list(sweeps.list_sweeps()) == []


def test_a_stopped_sweep_is_resumed_with_trials_that_no_index_shows_yet() -> None:
    clock = FakeClock()
    with Store(LateIndexes(clock, seconds=60), clock=clock) as store:
        driver = Driver(engine(store, clock), clock)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(plane(trials=6), sweep_id="s")
        clock.advance(61)
        driver.run(most=1)
        sweeps.stop("s")
        try:
            resumed = sweeps.resume("s")
        except ConflictError:  # it may say that it is too early, but not that there is nothing to resume
            clock.advance(61)
            resumed = sweeps.resume("s")
        assert resumed == 6
        clock.advance(61)
        driver.run()
        assert sweeps.get_progress("s").completed == 6
        check_records(driver.jobs)


def test_only_trials_are_resumed_and_no_job_that_waits_for_the_sweep() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(plane(trials=2), sweep_id="s")
        report = driver.jobs.submit(NewJob(name="report", task="x:y", depends_on=(DependsOn("s"),)))
        driver.run(most=1)
        sweeps.stop("s")
        assert sweeps.resume("s") == 2
        assert driver.jobs.queries.get_job(report.job_id).status is Status.CANCELLED


def test_a_value_nearer_to_zero_than_a_table_has_numbers_is_zero() -> None:
    finished = made(sweep_tasks.vanish, trials=4, stopper=ASHA)
    assert {trial.status for trial in finished.trials} == {Status.COMPLETED}
    assert finished.best.value == 0


def test_a_trial_that_is_run_again_or_deleted_does_not_hold_up_the_planning() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(plane(sweep_tasks.fail_below, sampler=TPE, trials=16), sweep_id="s")
        driver.run(most=9)
        assert sweeps.resume("s") > 0
        driver.jobs.delete(next(t.job_id for t in sweeps.list_trials("s") if t.status is Status.COMPLETED))
        assert Planner(driver.jobs).plan("s", 1, is_inline=True) == 8
        driver.run()
        assert driver.jobs.queries.get_job("s").status is Status.COMPLETED
        assert len(list(sweeps.list_trials("s"))) == 15


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        (sweep_tasks.diverge, "loss is nan, which cannot be compared"),
        (sweep_tasks.explode, "loss is inf at epoch 3, which cannot be compared"),
        (sweep_tasks.say_nothing, "neither returned nor reported loss"),
    ],
)
def test_a_trial_without_a_value_fails_at_once(task: Any, problem: str) -> None:
    finished = made(task, trials=1, max_attempts=5, stopper=ASHA)
    (trial,) = finished.trials
    assert trial.status is Status.FAILED
    assert problem in str(trial.message)
    assert finished.best is None


def test_a_sweep_that_cannot_be_planned_fails_and_says_why() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        finished = finish(driver, plane("tests.systems.sweeps.sweep_tasks:nothing"))
        assert finished.parent.status is Status.FAILED
        planning = driver.jobs.queries.get_job("s-planning-000000")
        assert "has no nothing" in str(planning.message)
        check_records(driver.jobs)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"space": {**PLANE, "z": [1]}}, "unexpected keyword argument 'z'; it takes (x: 'float', y: 'float'"),
        ({"params": {"epohcs": 3}}, "unexpected keyword argument 'epohcs'"),
        ({"space": {"x": [1, 2]}}, "missing a required argument: 'y'"),
    ],
)
def test_a_sweep_whose_task_takes_other_parameters_fails_before_all_its_trials_do(
    changes: dict[str, Any], problem: str
) -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        assert finish(driver, plane(**changes)).trials == []
        progress = Sweeps(driver.jobs).get_progress("s")
        assert progress.status is Status.FAILED
        assert problem in str(progress.problem)


def test_what_a_lost_worker_records_is_refused() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        Sweeps(driver.jobs).submit(plane(trials=1), sweep_id="s")
        driver.run(most=1)
        (lost,) = driver.jobs.claim("default", limit=1, instance_id="a", lease_seconds=30)
        driver.run()
        before = list(driver.jobs.queries.list_metric("s", "loss.final"))
        with pytest.raises(LeaseLostError):
            TrialRecords(store, lost).keep({"loss.final": -1.0})
        assert list(driver.jobs.queries.list_metric("s", "loss.final")) == before


def test_a_sweep_is_concluded_even_if_the_last_worker_died_before_it_could(monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(plane(sweep_tasks.bowl, trials=3), sweep_id="s")
        driver.run(most=1)
        leases = driver.jobs.claim("default", limit=3, instance_id="a", lease_seconds=30)
        with monkeypatch.context() as patch:
            patch.setattr(Runs, "_advance", lambda runs, job_ids: None)
            assert driver.jobs.finish_many([(lease, Outcome.completed({"loss": 1.0})) for lease in leases]) == []
        progress = sweeps.get_progress("s")
        assert (progress.completed, progress.open, progress.status) == (3, 0, Status.RUNNING)
        driver.jobs.observer().recover()
        assert sweeps.get_progress("s").status is Status.COMPLETED
        check_records(driver.jobs)


@pytest.mark.parametrize(("task", "heeds"), [(sweep_tasks.bowl, False), (sweep_tasks.obey, True)])
def test_a_trial_that_was_asked_to_end_has_a_value_unless_it_heeds_it(task: Any, heeds: bool) -> None:
    """A worker that drains keeps what comes to its end by itself, and gives the rest back."""
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        Sweeps(driver.jobs).submit(plane(task, trials=1), sweep_id="s")
        driver.run(most=1)
        (lease,) = driver.jobs.claim("default", limit=1, instance_id="a", lease_seconds=30)
        report = driver.run_one(lease, is_asked_to_end=True)
        assert report.knew_of_stop is heeds
        assert ("loss" in json.loads(report.result)) is not heeds


# --- stopping, resuming, submitting again ---------------------------------------------------------------------------


def test_a_stopped_sweep_goes_on_where_it_was_and_ends_as_if_it_had_not_been() -> None:
    expected = undisturbed("TPE with ASHA")
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(plane(**KINDS["TPE with ASHA"]), sweep_id="s")
        driver.run(most=13)
        assert sweeps.stop("s").status is Status.STOPPED
        assert sweeps.get_progress("s").open == 0
        assert driver.run() == 0
        assert sweeps.resume("s") > 0
        assert driver.jobs.queries.get_job("s").status is Status.RUNNING
        driver.run()
        check_records(driver.jobs)
        assert [(t.params, t.status, t.value) for t in sweeps.list_trials("s")] == [
            (t.params, t.status, t.value) for t in expected.trials
        ]
        assert driver.jobs.queries.get_job("s").status is Status.COMPLETED


@pytest.mark.parametrize("runs", [0, 13])
def test_a_stopped_sweep_is_not_resumed_before_its_runs_have_ended(runs: int) -> None:
    """A trial, or the planning, that ends behind the resumption would be missing in what is decided from then on."""
    expected = undisturbed("TPE with ASHA")
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        sweeps.submit(plane(**KINDS["TPE with ASHA"]), sweep_id="s")
        driver.run(most=runs)
        (lease,) = driver.jobs.claim("default", limit=1, instance_id="a", lease_seconds=30)
        sweeps.stop("s")
        with pytest.raises(JobStateError, match=f"{lease.job.job_id} was asked to stop and has not ended yet"):
            sweeps.resume("s")
        assert sweeps.get_progress("s").status is Status.STOPPED
        driver.jobs.finish(lease, Outcome.stopped())
        sweeps.resume("s")
        driver.run()
        assert [(t.params, t.status, t.value) for t in sweeps.list_trials("s")] == [
            (t.params, t.status, t.value) for t in expected.trials
        ]


def test_a_submission_that_was_interrupted_is_finished_by_the_same_one() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        for _ in range(2):
            sweeps.submit(plane(trials=3), sweep_id="s")
        driver.run()
        sweeps.submit(plane(trials=3), sweep_id="s")
        assert driver.run() == 0
        assert sweeps.get_progress("s").completed == 3
        with pytest.raises(ConflictError, match="another definition"):
            sweeps.submit(plane(trials=3, seed=1), sweep_id="s")


def test_another_kind_of_job_is_no_sweep_and_does_not_become_one() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        driver.jobs.open_group(NewJob(name="nightly", job_id="g"))
        verbs = (sweeps.get_progress, sweeps.find_best, sweeps.get_definition, sweeps.stop, sweeps.resume)
        for verb in (*verbs, partial(sweeps.extend, total=3)):
            with pytest.raises(NotFoundError, match="there is no sweep g; the job with this id has the type 'job'"):
                verb("g")
            with pytest.raises(NotFoundError, match="there is no sweep nope"):
                verb("nope")
        with pytest.raises(ConflictError, match="job g is not a sweep but a 'job'; use another id"):
            sweeps.submit(plane(trials=3), sweep_id="g")
        assert [job.job_id for job in driver.jobs.queries.list_jobs()] == ["g"]


def test_a_sweep_whose_sampler_does_not_take_its_options_is_not_submitted() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        with pytest.raises(ValueRefusedError, match="sampler tpe has no option n_start;"):
            Sweeps(driver.jobs).submit(plane(sampler={"name": "tpe", "options": {"n_start": 3}}))
        assert list(driver.jobs.queries.list_jobs()) == []


def test_a_sweep_whose_sampler_is_not_installed_is_not_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplers, "find_spec", lambda module: None)
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        with pytest.raises(ValueRefusedError, match="sampler tpe needs optuna, which is not installed: pip"):
            Sweeps(driver.jobs).submit(plane(sampler=TPE))
        assert list(driver.jobs.queries.list_jobs()) == []


def test_a_sweep_is_deleted_with_all_that_belongs_to_it() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        finish(driver, plane(trials=10, stopper=ASHA, sampler=TPE))
        assert driver.jobs.delete(trial_id("s", 3)) > 0
        assert trial_id("s", 3) not in {metric.child_job_id for metric in driver.jobs.queries.list_metrics("s")}
        driver.jobs.delete("s", tree=True)
        left = store.backend.execute("Scan", {"TableName": main.name})["Items"]
        assert {item["TYPE"]["S"] for item in left} <= {"QUEUE", "DEPENDENCY_GRAPH"}
        assert list(driver.jobs.objects.list("")) == []


def test_a_worker_takes_a_sweep_under_the_id_of_a_deleted_one_for_what_it_is() -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        finish(driver, plane(sweep_tasks.bowl, trials=2))
        driver.jobs.delete("s", tree=True)
        driver.clock.advance(1)
        finished = finish(driver, plane(sweep_tasks.bowl, trials=2, space={**PLANE, "x": float_range(6, 7)}))
        assert [trial.status for trial in finished.trials] == [Status.COMPLETED] * 2


def test_a_worker_that_runs_trials_of_ever_new_sweeps_does_not_keep_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "_MOST_KEPT", 3)
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweeps = Sweeps(driver.jobs)
        for number in range(5):
            sweeps.submit(plane(sweep_tasks.bowl, trials=2), sweep_id=f"s{number}")
            driver.run()
        assert {trial.status for n in range(5) for trial in sweeps.list_trials(f"s{n}")} == {Status.COMPLETED}
        assert len(running._DEFINITIONS[driver.jobs]) <= 3


class CutOffError(Exception):
    """The process is gone."""


def test_thousands_of_trials_are_made_by_one_operation_that_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        Sweeps(driver.jobs).submit(plane(sweep_tasks.bowl, trials=MANY), sweep_id="s")
        left = iter(range(15))
        commit = type(store.transaction()).commit

        def cut_off(tx: Any) -> None:
            if next(left, None) is None:
                raise CutOffError
            commit(tx)

        planner = Planner(driver.jobs)
        with monkeypatch.context() as patch:
            patch.setattr(type(store.transaction()), "commit", cut_off)
            with pytest.raises(CutOffError):
                planner.plan("s", 0, is_inline=True)
        some = Sweeps(driver.jobs).get_progress("s").open
        assert 0 < some < 500
        assert [planner.plan("s", part, is_inline=True) for part in (0, 1, 0, 2, 1)] == [
            500,
            500,
            500,
            MANY - 1000,
            500,
        ]
        progress = Sweeps(driver.jobs).get_progress("s")
        assert (progress.open, progress.made, progress.total) == (MANY, MANY, MANY)
        assert driver.jobs.queries.list_dependents("s").count() == MANY
        assert len({trial.params["x"] for trial in Sweeps(driver.jobs).list_trials("s")}) == MANY
        assert driver.jobs.queries.get_queue("default").job_count == MANY + 5


# --- order ----------------------------------------------------------------------------------------------------------


def test_promising_trials_come_first() -> None:
    """What runs early lies nearer to the best than what runs late, and the results are the same."""
    plain, adapted = made(sweep_tasks.bowl, trials=120), made(sweep_tasks.bowl, trials=120, adapt_every=10)
    assert [(t.params, t.value) for t in plain.trials] == [(t.params, t.value) for t in adapted.trials]
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        sweep = plane(sweep_tasks.bowl, trials=120)
        Sweeps(driver.jobs).submit(sweep, sweep_id="s")
        driver.run(most=31)
        assert Adaptation(driver.jobs).adapt("s", sweep) > 0
        assert Adaptation(driver.jobs).adapt("s", sweep) == 0
        raised = [place for place in driver.jobs.queries.list_ready("default") if place.priority > 500]
        waiting = driver.jobs.queries.list_ready("default").count()
        assert len(raised) == waiting // 4
        jobs = store.batch_get([Job.key(job_id=place.job_id) for place in raised])
        losses = [sweep_tasks.bowl(**job.definition.params) for job in jobs if job is not None]
        assert sum(losses) / len(losses) < 10 < sum(t.value for t in plain.trials) / 120


def test_a_trial_does_not_fail_because_others_could_not_be_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(adaptation: Adaptation, sweep_id: str, sweep: Sweep) -> int:
        raise NotFoundError("there is no job s-000001")  # it was deleted just now

    monkeypatch.setattr(Adaptation, "adapt", fail)
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        finished = finish(driver, plane(sweep_tasks.bowl, trials=1, adapt_every=1))
        assert [trial.status for trial in finished.trials] == [Status.COMPLETED]
        (line,) = driver.jobs.queries.list_logs(trial_id("s", 0))
        assert "could not reorder the waiting trials: there is no job s-000001" in line.message


def test_asha_by_whoever_is_there_stops_from_the_first_generation_on() -> None:
    finished = made(stopper={**ASHA, "peers": "now"})
    statuses = [trial.status for trial in finished.trials]
    assert Status.STOPPED in statuses[:8]
    assert finished.parent.status is Status.COMPLETED


def test_a_sweep_waits_for_a_store_that_is_away_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()

    def hesitant(verb: Callable[..., Any]) -> Callable[..., Any]:
        """The same, but not the first time."""

        def ask(*arguments: Any, **more: Any) -> Any:
            if verb.__name__ not in asked:
                asked.add(verb.__name__)
                raise BackendUnavailable("away")
            return verb(*arguments, **more)

        return ask

    verbs = ("get_definition", "plan", "find_earlier_runs", "keep_rung", "list_others_at")
    for verb in verbs:
        monkeypatch.setattr(SweepDesk, verb, hesitant(getattr(SweepDesk, verb)))
    with Store(EmbeddedBackend(None)) as store:
        driver = Driver.on(store)
        finished = finish(driver, plane(trials=6, stopper={**ASHA, "peers": "now"}), random=Random(1), deaths=0.5)
        assert asked == set(verbs)
        assert {trial.status for trial in finished.trials} <= {Status.COMPLETED, Status.STOPPED}
