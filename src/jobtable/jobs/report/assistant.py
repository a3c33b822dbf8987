"""What a task asks of models, as the context offers it. `jobtable.assist` implements it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

if TYPE_CHECKING:
    from pydantic import BaseModel

    from jobtable.jobs.report.context import JobContext

T = TypeVar("T")

Message: TypeAlias = Mapping[str, Any]
"""`{"role": "system" | "user" | "assistant", "content": text}`."""
Prompt: TypeAlias = str | Sequence[Message]
Data: TypeAlias = str | Sequence[str] | Mapping[str, str]
"""Texts of other people on which a prompt works: one, a list, or a mapping from their names."""
Cache: TypeAlias = Literal["job", "store", "off"]
"""Who finds a recorded answer to the same request: the same job when it is retried, every job, or nobody."""

IMPLEMENTATION = "jobtable.assist.job_assistant:JobAssistant"
"""Loaded when a task first asks, because jobs know nothing of models."""


@dataclass(frozen=True)
class Assisted(Generic[T]):
    """A valid answer, and where it comes from."""

    value: T
    was_asked: bool
    """Whether a model was asked, now or when the answer was recorded; false if the way without a model was taken."""
    provider: str = "none"
    model: str | None = None
    call_ids: tuple[str, ...] = ()
    """The records of its calls, the last of which has the answer."""
    cost_nanodollars: int = 0
    """What this answer cost, now or when it was recorded."""


@dataclass(frozen=True)
class Embedded:
    """Vectors of texts, in their order, and the model that made them."""

    vectors: list[list[float]]
    provider: str
    model: str
    dimensions: int
    cost_nanodollars: int = 0


class Asking(TypedDict, total=False):
    """How to ask a model."""

    without: Callable[[], Any]
    """Returns the value where no provider is set; without it, that is NoModelError."""
    data: Data
    """What other people wrote: sent after the prompt, marked as data, whose instructions the model must not follow."""
    provider: str | None
    model: str | None
    temperature: float
    """0 by default."""
    max_output_tokens: int
    """1,024 by default."""
    tries: int
    """How many requests one question may take in one run, 3 by default: an invalid answer is sent back with its fault.

    A provider that is busy or fails for some time is asked again besides.
    """
    cache: Cache
    """`job` by default."""


class Embedding(TypedDict, total=False):
    """How to make vectors."""

    provider: str | None
    model: str | None
    cache: Cache
    """`store` by default."""
    on_progress: Callable[[int, int], None]
    """Called with the number of texts done and of all, after each batch; by default that is the job's progress."""


class Assistant(Protocol):
    """Asks models on behalf of one run of a job. Every call is recorded under the job before its answer is used."""

    def ask(
        self, purpose: str, prompt: Prompt, *, output: type[BaseModel] | None = None, **how: Unpack[Asking]
    ) -> Assisted[Any]:
        """Ask a model; return its text, or with `output` an object of that class.

        AnswerRefusedError if no answer is valid. BudgetExceededError if the request might exceed the budget of the job
        or of a job above it: nothing was sent.
        """
        ...

    def embed(self, texts: Sequence[str], **how: Unpack[Embedding]) -> Embedded:
        """Return a vector for each text.

        NoModelError if neither a provider is set nor the extra `embeddings` installed.
        """
        ...


def assistant_of(job: JobContext) -> Assistant:
    """Return the assistant of a run."""
    import pkgutil  # noqa: PLC0415 - few tasks ask

    made: Assistant = pkgutil.resolve_name(IMPLEMENTATION)(job)
    return made
