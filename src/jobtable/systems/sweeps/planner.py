"""Planning: one job per generation makes its trials, so any worker can plan and none must survive.

Independent trials are planned in parts, by several workers at once. Otherwise the planning job of a generation waits
until every trial of the generation before has ended. Its decisions depend only on the definition and on the records
of the earlier trials, by number. So a planning job that runs again makes the same trials, and existing ones stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from jobtable.errors import JobStateError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.field_types import MOST_URGENT, Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob, ParentWaits
from jobtable.systems.sweeps.parameters import Params
from jobtable.systems.sweeps.samplers import EndedTrial, Ending, Proposal, TrialRequest
from jobtable.systems.sweeps.stoppers import cutoffs
from jobtable.systems.sweeps.sweep import PLANNING, TRAINING, Sweep, sweep_of
from jobtable.systems.sweeps.trials import TrialConfig, config_of, final_name, find_rungs, recorded_at, trial_id

RUN_TRIAL = "jobtable.systems.sweeps.running:run_trial"
RUN_INLINE_TRIAL = "jobtable.systems.sweeps.running:run_inline_trial"
PLAN_GENERATION = "jobtable.systems.sweeps.running:plan_generation"
_ATTEMPTS = 3
Rungs: TypeAlias = dict[int, dict[str, float]]
"""Values at each rung, by trial."""
Finals: TypeAlias = dict[str | None, float]
"""The objectives of the completed trials."""


def planning_id(sweep_id: str) -> str:
    """Return the id of the group of a sweep's planning jobs."""
    return f"{sweep_id}-planning"


def planning_job_id(sweep_id: str, generation: int) -> str:
    """Return the id of the job that plans a generation."""
    return f"{planning_id(sweep_id)}-{generation:06d}"


def new_planning(sweep_id: str, user: str, sweep: Sweep, generation: int) -> NewJob:
    """Return the job that plans a generation once all trials of the generation before have ended."""
    earlier = sweep.numbers_of(generation - 1) if generation and sweep.is_in_generations else range(0)
    return NewJob(
        name=f"{sweep.name}: plan generation {generation}",
        job_id=planning_job_id(sweep_id, generation),
        job_type=PLANNING,
        task=PLAN_GENERATION,
        params={"sweep_id": sweep_id, "generation": generation},
        queue=sweep.queue,
        user=user,
        priority=MOST_URGENT,
        parent_job_id=planning_id(sweep_id),
        parent_waits=ParentWaits(PLANNING),
        max_attempts=_ATTEMPTS,
        most_interruptions=sweep.most_interruptions,
        depends_on=tuple(
            DependsOn(trial_id(sweep_id, number), "generation", EdgeCondition.FINISHED) for number in earlier
        ),
        group_id=sweep_id,
    )


class Planner:
    """Makes the trials of sweeps; planning twice makes nothing twice."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def plan(self, sweep_id: str, generation: int, *, is_inline: bool) -> int:
        """Make the trials of a generation; return their number, 0 if the target was reached.

        `is_inline` says whether the sweep's task may run in a worker's own process. JobStateError for an ended sweep.
        """
        parent = self._jobs.queries.get_job(sweep_id)
        if parent.is_final:
            raise JobStateError(f"sweep {sweep_id} is {parent.status} and gets no more trials")
        sweep = sweep_of(parent)
        has_next = generation + 1 < sweep.generation_count()
        following = new_planning(sweep_id, parent.created_by, sweep, generation + 1)
        if has_next and not sweep.is_in_generations:
            self._jobs.submit(following)  # for another worker, at the same time
        proposals, limits = self._decide(sweep_id, sweep, sweep.numbers_of(generation))
        runs = RUN_INLINE_TRIAL if is_inline else RUN_TRIAL
        self._jobs.submit_many(_new_trials(parent, sweep, generation, proposals, limits, runs))
        if proposals and has_next and sweep.is_in_generations:
            self._jobs.submit(following)
        return len(proposals)

    def _decide(self, sweep_id: str, sweep: Sweep, numbers: range) -> tuple[list[Proposal], dict[int, float]]:
        """Return the parameters of trials, and what they must reach at each rung, given the records of earlier ones."""
        count = numbers.start if sweep.is_in_generations else 0
        finals = self._finals(sweep_id, sweep) if count else {}
        if self._has_reached_target(sweep_id, sweep, count, finals):
            return [], {}
        rungs = self._rungs(sweep_id, sweep) if count else {}
        earlier = self._earlier(sweep_id, sweep, count, rungs, finals)
        given = [sweep.space.restored(params) for params in sweep.begin_with[numbers.start : numbers.stop]]
        request = TrialRequest(sweep.space, sweep.seed, sweep.direction, earlier, numbers.start, len(numbers), given)
        return sweep.sampler.propose(request), _cutoffs(sweep_id, sweep, count, rungs)

    def _finals(self, sweep_id: str, sweep: Sweep) -> Finals:
        if not sweep.sampler.looks_back and sweep.target is None:
            return {}
        metrics = self._jobs.queries.list_metric(sweep_id, final_name(sweep.objective))
        return {metric.child_job_id: metric.value for metric in metrics}

    def _has_reached_target(self, sweep_id: str, sweep: Sweep, count: int, finals: Finals) -> bool:
        """Return whether one of the first trials reached the target; one that was retried does not count."""
        ids = (trial_id(sweep_id, number) for number in range(count))
        good = (job_id for job_id in ids if job_id in finals and sweep.is_reached_by(finals[job_id]))
        found = self._jobs.queries.read_jobs(good)
        return any(job is not None and job.status is Status.COMPLETED for job in found)

    def _earlier(self, sweep_id: str, sweep: Sweep, count: int, rungs: Rungs, finals: Finals) -> list[EndedTrial]:
        """Return the results of the first trials by number, except deleted ones, if the sampler looks back."""
        if count == 0 or not sweep.sampler.looks_back:
            return []
        found = self._jobs.queries.read_jobs(trial_id(sweep_id, number) for number in range(count))
        return [_ended_trial(sweep, job, finals.get(job.job_id), rungs) for job in found if job is not None]

    def _rungs(self, sweep_id: str, sweep: Sweep) -> Rungs:
        found: Rungs = defaultdict(dict)
        if sweep.stopper is not None:
            for rung, metric in find_rungs(self._jobs.store, sweep_id, sweep.objective):
                found[rung][str(metric.child_job_id)] = metric.value
        return found


def _cutoffs(sweep_id: str, sweep: Sweep, count: int, rungs: Rungs) -> dict[int, float]:
    """Return what the next trials must reach at each rung, by all trials of earlier generations."""
    if sweep.stopper is None or sweep.stopper.peers == "now":
        return {}
    earlier = [trial_id(sweep_id, number) for number in range(count)]
    values = {rung: [by_trial[trial] for trial in earlier if trial in by_trial] for rung, by_trial in rungs.items()}
    return cutoffs(sweep.stopper, values, sweep.direction)


def _ended_trial(sweep: Sweep, job: Job, final: float | None, rungs: Rungs) -> EndedTrial:
    params = sweep.space.restored(job.definition.params)
    reports = {rung: values[job.job_id] for rung, values in sorted(rungs.items()) if job.job_id in values}
    memory = config_of(job).memory
    if job.status is Status.COMPLETED:
        if final is None:
            raise ValueRefusedError(f"trial {job.job_id} is COMPLETED but has no {final_name(sweep.objective)}")
        return EndedTrial(params, "completed", final, reports, memory)
    # A trial that was retried long after its generation has no result either.
    ending: Ending = "stopped" if job.status is Status.STOPPED and reports else "failed"
    return EndedTrial(params, ending, None, reports, memory)


def _new_trials(
    parent: Job, sweep: Sweep, generation: int, proposals: Sequence[Proposal], limits: Mapping[int, float], runs: str
) -> Iterator[NewJob]:
    for number, proposal in zip(sweep.numbers_of(generation), proposals, strict=False):
        config = TrialConfig(
            sweep_id=parent.job_id,
            objective=sweep.objective,
            number=number,
            recorded_at=recorded_at(parent.created_at, number),
            generation=generation,
            cutoffs=dict(limits),
            memory=dict(proposal.memory),
            metrics_ttl_seconds=sweep.metrics_ttl_seconds,
        )
        yield _new_trial(parent, sweep, config, proposal.params, runs)


def _new_trial(parent: Job, sweep: Sweep, config: TrialConfig, params: Params, runs: str) -> NewJob:
    return NewJob(
        name=f"{sweep.name} {config.number}",
        job_id=trial_id(parent.job_id, config.number),
        job_type=TRAINING,
        task=runs,
        params=params,
        queue=sweep.queue,
        user=parent.created_by,
        priority=sweep.priority,
        parent_job_id=parent.job_id,
        parent_waits=ParentWaits("child_training", EdgeCondition.FINISHED),
        depends_on=(DependsOn(parent.job_id, "parent_sweep", EdgeCondition.STARTED),),
        max_attempts=sweep.max_attempts,
        retry=sweep.retry,
        most_interruptions=sweep.most_interruptions,
        timeout_seconds=sweep.timeout_seconds,
        memory_mb=sweep.memory_mb,
        config={
            "sweep_id": parent.job_id,
            "sweep": config.model_dump(mode="json", exclude_defaults=True),
            **({} if sweep.metrics_ttl_seconds is None else {"metrics_ttl_seconds": sweep.metrics_ttl_seconds}),
        },
        group_id=parent.job_id,
    )
