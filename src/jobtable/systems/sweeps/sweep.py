"""The definition of a sweep, as a caller writes it and as the parent job's `job_config` stores it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from jobtable.errors import ValueRefusedError, missing
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import DEFAULT_QUEUE, RetryPolicy, find_non_finite
from jobtable.jobs.tasks import is_path, task_of
from jobtable.store import Store
from jobtable.systems.sweeps.parameters import MOST_POINTS, Choice, FloatRange, IntRange, Params
from jobtable.systems.sweeps.samplers import Direction, Grid, Optuna, OwnSampler, RandomChoice, Sampler, SamplerClass
from jobtable.systems.sweeps.space import Space
from jobtable.systems.sweeps.stoppers import Asha, Median, Stopper, is_worse

SWEEP = "sweep"
"""The job_type of a parent."""
TRAINING = "training"
"""The job_type of a trial."""
PLANNING = "planning"
"""The job_type of a job that plans trials."""

SamplerName: TypeAlias = Literal["grid", "random", "tpe", "cmaes", "gp", "qmc", "nsgaii"]
SamplerPath: TypeAlias = Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
StopperName: TypeAlias = Literal["asha", "median"]
"""Short forms of a sampler or a stopper."""

_PART, _MOST_PARTS = 500, 40
"""Independent trials are planned in parts of at least this size, in at most this many parts."""
MOST_IN_A_GENERATION = 40
"""The next generation depends on each trial of the last one; its dependencies are submitted in one transaction."""
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Sweep(BaseModel):
    """What to vary, what to run, and what is best. Sweeps with equal definitions make the same decisions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1)]
    task: str
    """`module:function` that each trial runs, or the function itself, which has @task."""
    space: Space
    objective: Annotated[str, Field(min_length=1)] = "objective"
    """The metric to optimise."""
    direction: Direction = "minimize"
    trials: Annotated[int, Field(ge=1, le=MOST_POINTS)] | None = None
    """The number of trials; optional for a grid, which ends by itself."""
    target: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """No more trials are planned once a completed one has reached this."""
    sampler: Sampler = RandomChoice()
    stopper: Stopper | None = None
    seed: int = 0
    generation_size: Annotated[int, Field(ge=1, le=MOST_IN_A_GENERATION)] = 8
    """The number of trials planned at once if results matter: at least as many as can run at once."""
    begin_with: list[Params] = []
    """The parameters of the first trials; the sampler sees them and chooses all others."""
    params: dict[str, Any] = {}
    """Parameters of the task that all trials share."""
    queue: str = DEFAULT_QUEUE
    priority: Annotated[int, Field(ge=0, le=999)] = 500
    adapt_every: Annotated[int, Field(ge=1)] | None = None
    """After every so many trials, the waiting ones are reordered, most promising first."""
    max_attempts: Annotated[int, Field(ge=1)] = 1
    """Attempts before a failing trial counts as failed."""
    retry: RetryPolicy = RetryPolicy()
    most_interruptions: Annotated[int, Field(ge=0)] = 10
    timeout_seconds: _Positive | None = None
    memory_mb: _Positive | None = None
    metrics_ttl_seconds: _Positive | None = None
    """How long reports are kept; values that decided something, and final values, stay."""

    if TYPE_CHECKING:  # callers may write more than is stored: functions, plain lists, names

        def __init__(
            self,
            *,
            name: str,
            task: str | Callable[..., Any],
            space: Space | Mapping[str, Choice | IntRange | FloatRange | list[Any]],
            objective: str = ...,
            direction: Direction = ...,
            trials: int | None = ...,
            sampler: Grid | RandomChoice | Optuna | OwnSampler | type[SamplerClass] | str = ...,
            stopper: Asha | Median | StopperName | None = ...,
            **settings: Any,
        ) -> None: ...

    @field_validator("task", mode="before")
    @classmethod
    def _path(cls, given: Any) -> Any:
        path = task_of(given).path if callable(given) else given
        if isinstance(path, str) and not is_path(path):
            raise ValueError("must have the form module:function")
        return path

    @field_validator("objective", "direction", mode="before")
    @classmethod
    def _single(cls, given: Any) -> Any:
        if type(given) is list:  # of YAML and JSON
            raise ValueError("a sweep has one objective; combine several into one number in the task")
        return given

    @field_validator("sampler", mode="before", json_schema_input_type=Sampler | SamplerName | SamplerPath)
    @classmethod
    def _named_sampler(cls, given: Any) -> Any:
        if isinstance(given, type) and issubclass(given, SamplerClass):
            given = f"{given.__module__}:{given.__qualname__}"
        if isinstance(given, str):
            return {"name": "own", "path": given} if ":" in given else {"name": given}
        return given

    @field_validator("stopper", mode="before", json_schema_input_type=Stopper | StopperName | None)
    @classmethod
    def _named_stopper(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if (place := find_non_finite({"params": self.params, "sampler": self.sampler.model_dump()})) is not None:
            raise ValueError(f"{place} is not a finite number and cannot be stored")
        if twice := sorted(set(self.space.root) & set(self.params)):
            raise ValueError(f"{', '.join(twice)} is both in the space and in params")
        if self.trials is None and not isinstance(self.sampler, Grid):
            raise ValueError(f"sampler {self.sampler.name} does not end by itself; set trials")
        self._check_beginning()
        if isinstance(self.sampler, Grid):
            try:
                self.space.combinations()
            except ValueRefusedError as error:
                raise ValueError(str(error)) from error
            if self.trials is None and self.space.has_more_combinations_than(MOST_POINTS):
                raise ValueError(f"the grid has more than {MOST_POINTS:,} points; give fewer values, or set trials")
        return self

    def _check_beginning(self) -> None:
        if self.begin_with and isinstance(self.sampler, Grid):
            raise ValueError("a grid has its own order; remove begin_with")
        if self.trials is not None and len(self.begin_with) > self.trials:
            raise ValueError(f"begin_with has {len(self.begin_with)} trials, and the sweep only {self.trials}")
        for number, params in enumerate(self.begin_with):
            try:
                self.space.restored(params)
            except ValueRefusedError as error:
                raise ValueError(f"begin_with.{number}: {error}") from error

    @property
    def is_in_generations(self) -> bool:
        """Whether results affect later trials, so that those must wait."""
        compares = self.stopper is not None and self.stopper.peers == "earlier"
        return self.sampler.learns or compares or self.target is not None

    def is_reached_by(self, value: float) -> bool:
        """Return whether a value reaches the target, so that no more trials are planned."""
        return self.target is not None and not is_worse(value, self.target, self.direction)

    def trial_count(self) -> int:
        """Return the total number of trials."""
        if not isinstance(self.sampler, Grid):
            return self.trials or 0
        return self.space.count_combinations(MOST_POINTS if self.trials is None else self.trials)

    @property
    def may_be_extended(self) -> bool:
        """Whether it can have more trials; a grid has at most one per point."""
        if self.trials is None or self.trials == MOST_POINTS:
            return False
        return not isinstance(self.sampler, Grid) or self.space.has_more_combinations_than(self.trials)

    def generation_count(self, total: int | None = None) -> int:
        """Return the number of generations, or of independent parts, that plan all or `total` trials."""
        total = self.trial_count() if total is None else total
        return -(-total // self._planned_at_once(total))

    def numbers_of(self, generation: int) -> range:
        """Return the trial numbers of a generation or part."""
        return self._numbers(generation, self.trial_count())

    def has_changed(self, generation: int, total: int) -> bool:
        """Return whether a generation or the next one has other trials than when the sweep had `total`."""
        now = self.trial_count()
        both = (generation, generation + 1)
        return any(self._numbers(each, total) != self._numbers(each, now) for each in both)

    def _numbers(self, generation: int, total: int) -> range:
        size = self._planned_at_once(total)
        return range(generation * size, min((generation + 1) * size, total))

    def _planned_at_once(self, total: int) -> int:
        if self.is_in_generations:
            return self.generation_size
        if isinstance(self.sampler, Optuna):
            return total  # its trials are one sequence
        return max(_PART, -(-total // _MOST_PARTS))

    def job_config(self) -> dict[str, Any]:
        """Return what the parent job stores."""
        return {"sweep": self.model_dump(mode="json")}


def get_parent(store: Store, sweep_id: str) -> Job:
    """Return the parent job of a sweep, or raise NotFoundError."""
    job = store.find(Job.key(job_id=sweep_id))
    if job is None:
        raise missing("sweep", sweep_id)
    if job.job_type != SWEEP:
        raise missing("sweep", sweep_id, hint=f"the job with this id has the type {job.job_type!r}")
    return job


def sweep_of(job: Job) -> Sweep:
    """Return the definition in a parent job, or raise ValueRefusedError."""
    config = job.job_config if isinstance(job.job_config, dict) else {}
    try:
        return Sweep.model_validate(config.get("sweep"))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        named = f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
        raise ValueRefusedError(f"job {job.job_id} has no valid sweep definition: {named}") from error
