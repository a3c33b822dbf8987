"""The definition of a job, as `job_config` holds it and as a caller submits it."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from jobtable.errors import ValueRefusedError
from jobtable.jobs.tasks import is_path, task_of
from jobtable.model import Timestamp
from jobtable.system import Owner

DEFAULT_QUEUE = "default"
Gate = Literal["start", "completion"]
LONGEST_SECONDS = 10**9
"""About thirty years: more is a mistake, and may exceed the calendar."""
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Seconds = Annotated[float, Field(ge=0, le=LONGEST_SECONDS, allow_inf_nan=False)]


_ON_END = re.compile(r"^jobtable\.[\w.]+:\w+$")
"""It is called wherever a job ends, also in the server, so it cannot be any code."""


def is_on_end(text: object) -> TypeGuard[str]:
    """Return whether a text may name what happens with the end of a job."""
    return isinstance(text, str) and _ON_END.search(text) is not None


class EdgeCondition(StrEnum):
    """The outcome of a dependency that its dependent waits for."""

    STARTED = "started"
    """It runs or has run."""
    COMPLETED = "completed"
    """It is COMPLETED; any other end breaks the edge."""
    FINISHED = "finished"
    """It has ended in any way."""
    FAILED = "failed"
    """It is FAILED; any other end breaks the edge."""


class RetryPolicy(BaseModel):
    """The pause before the next attempt, which grows by a factor up to a limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    first_delay_seconds: _Seconds = 1.0
    factor: Annotated[float, Field(ge=1, le=10**9, allow_inf_nan=False)] = 2.0
    longest_delay_seconds: _Seconds = 300.0

    def delay_seconds(self, attempts: int) -> float:
        """Return the pause after that many attempts."""
        delay = min(self.first_delay_seconds, self.longest_delay_seconds)
        for _ in range(min(attempts - 1, 64)):  # a power of the factor may exceed a float
            delay = min(delay * self.factor, self.longest_delay_seconds)
        return delay


class Definition(BaseModel):
    """The complete definition of a job. Undeclared members belong to the system that made the job."""

    # NaN and infinity must not silently become null: job_config() refuses them.
    model_config = ConfigDict(extra="allow", frozen=True, ser_json_inf_nan="constants")

    task: str | None = None
    """`module:function` of a function marked with @task; None for a group."""
    params: dict[str, Any] = {}
    timeout_seconds: _Positive | None = None
    memory_mb: _Positive | None = None
    retry: RetryPolicy = RetryPolicy()
    most_interruptions: Annotated[int, Field(ge=0)] = 3
    """How many workers the job may lose; the next loss fails it."""
    grace_seconds: _Seconds = 10.0
    """How long the job may take to end by itself when asked to stop."""
    on_end: Annotated[str, Field(pattern=_ON_END.pattern)] | None = None
    """A function of this package that adds to the transaction in which the job ends; see `lifecycle/last_acts.py`."""
    max_cost: Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)] | None = None
    """The most US dollars that models asked by the job and all below it may cost, by their list prices."""
    max_tokens: Annotated[int, Field(ge=0, le=10**15)] | None = None
    """The most tokens that these requests and answers may have."""

    _problem: str | None = PrivateAttr(default=None)

    @classmethod
    def read(cls, job_config: object) -> Definition:
        """Return the definition that a job holds, or an empty one with a problem if it is malformed."""
        try:
            return cls.model_validate(job_config or {})
        except ValidationError as error:
            unreadable = cls()
            unreadable._problem = str(refusal("its job_config", error))
            return unreadable

    @property
    def problem(self) -> str | None:
        """Why the job can never run (its `job_config` is malformed), or None."""
        return self._problem

    @property
    def is_group(self) -> bool:
        """Whether the job only has children."""
        return self.task is None and self.problem is None


class RollUp(BaseModel):
    """Which of a job's metrics and results are also recorded under another job, as a rule its parent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    job_id: str
    """The job under which they are recorded."""
    metrics: tuple[str, ...] = ()
    """The metrics of which every reported value is copied, with the id of the job that reported it."""
    results: dict[str, str] = {}
    """The numbers of a COMPLETED job's result that become metrics of both jobs: from the member to the metric."""
    recorded_at: Timestamp | None = None
    """The instant of the results; by default that of the job's end. No two children of one job may share it."""
    ttl_seconds: _Positive | None = None
    """How long the copies of reported values are kept."""


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn a ValidationError into a ValueRefusedError of one line."""
    try:
        yield
    except ValidationError as error:
        raise refusal(what, error) from error


def refusal(what: str, error: ValidationError) -> ValueRefusedError:
    """Return the first problem in one line that names the member."""
    problem = error.errors()[0]
    member = ".".join(map(str, problem["loc"]))
    named = f"the {member} of {what}" if member else what
    reason = problem["msg"]
    return ValueRefusedError(f"{named} cannot be {reprlib.repr(problem['input'])}: {reason[:1].lower()}{reason[1:]}")


def find_non_finite(value: object) -> str | None:
    """Return where members and lists contain NaN or an infinity, which neither JSON nor tables have; else None."""
    inside = (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    )
    for name, each in inside:
        if isinstance(each, float) and not math.isfinite(each):
            return str(name)
        if (deeper := find_non_finite(each)) is not None:
            return f"{name}.{deeper}"
    return None


@dataclass(frozen=True)
class DependsOn:
    """A dependency of a new job on an existing one."""

    job_id: str
    type: str = "requires"
    condition: EdgeCondition = EdgeCondition.COMPLETED
    gate: Gate = "start"


@dataclass(frozen=True)
class ParentWaits:
    """A dependency of the parent, which completes only after the new job has ended so."""

    type: str = "child"
    condition: EdgeCondition = EdgeCondition.COMPLETED


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """A job to submit."""

    name: str
    task: str | Callable[..., Any] | None = None
    """`module:function`, or the function itself, whose path is kept."""
    params: Mapping[str, Any] = field(default_factory=dict)
    queue: str = DEFAULT_QUEUE
    user: str = "local"
    key: str | None = None
    """The caller's key: of several submissions with one key by one user only the first creates a job."""
    job_id: str | None = None
    """An id of the caller's choice; as with a key, a second submission returns the job of the first."""
    description: str = ""
    job_type: str = "job"
    job_stage: str | None = None
    parent_job_id: str | None = None
    priority: int = 500
    tags: frozenset[str] = frozenset()
    estimated_duration: float | None = None
    max_attempts: int = 1
    timeout_seconds: float | None = None
    memory_mb: float | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    most_interruptions: int = 3
    grace_seconds: float = 10.0
    on_end: str | None = None
    """`module:function` of this package that adds to the transaction in which the job ends."""
    max_cost: float | None = None
    """The most US dollars that models asked by the job and all below it may cost, by their list prices."""
    max_tokens: int | None = None
    """The most tokens that these requests and answers may have."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """More members of job_config, for the system that makes the job; not those of a job itself, such as `retry`."""
    depends_on: tuple[DependsOn, ...] = ()
    parent_waits: ParentWaits | None = None
    owner: Owner | None = None
    """What the job belongs to, which a system starts and deletes as a whole."""
    roll_up: RollUp | None = None
    group_id: str | None = None
    """The group by which its queue lists it; by default the job under which its results are recorded."""
    not_before: datetime | None = None

    def __post_init__(self) -> None:
        edges: tuple[object, ...] = self.depends_on
        for on in edges:
            if not isinstance(on, DependsOn):
                hint = "write depends_on=(DependsOn(job_id),)"
                raise ValueRefusedError(f"job {self.name!r} cannot wait for {on!r:.100}", hint=hint)
        if callable(self.task):
            task = task_of(self.task)
            task.check_names(self.params)
            object.__setattr__(self, "task", task.path)

    def with_id(self, job_id: str) -> NewJob:
        """Return the same job with an id, without validating it again."""
        named = object.__new__(NewJob)
        named.__dict__.update(self.__dict__, job_id=job_id)
        return named

    def job_config(self) -> dict[str, Any]:
        """Return the complete definition, as the job item holds it, or raise ValueRefusedError."""
        if own := sorted(self.config.keys() & Definition.model_fields.keys()):
            raise ValueRefusedError(
                f"the config of job {self.name!r} cannot contain {', '.join(own)}; pass it to NewJob directly"
            )
        given = {name: getattr(self, name) for name in Definition.model_fields}
        if self.owner is not None:
            given["owner"] = {"system": self.owner.system, "id": self.owner.id}
        if self.roll_up is not None:
            given["roll_up"] = self.roll_up.model_dump(mode="json", exclude_defaults=True)
        with refusing(f"job {self.name!r}"):
            changed = Definition.model_validate({**self.config, **given})
        if changed.task is not None and not is_path(changed.task):
            raise ValueRefusedError(f"the task of job {self.name!r} is {changed.task!r}; write module:function")
        try:
            complete = changed.model_dump(mode="json", exclude_defaults=True)
        except ValueError as error:  # also of recursive or too deeply nested values
            raise ValueRefusedError(f"job {self.name!r} cannot be stored: {error}; params must be JSON") from error
        if complete.get("params", {}).keys() != changed.params.keys():  # pydantic replaces such names silently
            raise ValueRefusedError(f"job {self.name!r} cannot be stored: the name of a param is not valid Unicode")
        if (place := find_non_finite(complete)) is not None:
            raise ValueRefusedError(
                f"the {place} of job {self.name!r} must be a finite number; write null or text instead"
            )
        return complete


def new_job(given: object) -> NewJob:
    """Return what a program submits, or raise TypeError if it is not a NewJob."""
    if isinstance(given, NewJob):
        return given
    several = "; submit_many takes several" if isinstance(given, list | tuple) else ""
    raise TypeError(f"{given!r:.100} cannot be submitted; write NewJob(name=..., task=...){several}")
