"""The state behind both protocols: the script, the log of requests, and what was charged."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from jobtable.testing.assist.replies import Question, Reply, Script, fitting_text, fitting_vectors


@dataclass(frozen=True)
class Request:
    """One HTTP request, as it arrived."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    """With names in lower case."""
    body: bytes
    connection: int = 0
    """The client's port."""

    @property
    def key(self) -> str | None:
        return self.headers.get("idempotency-key")


@dataclass(frozen=True)
class Response:
    """What is sent back, and how its sending fails, if it does."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    garbled: bytes | None = None
    """Sent in place of the body."""
    cut_after: int | None = None
    is_lost: bool = False
    """The connection closes without a byte."""

    @property
    def was_done(self) -> bool:
        """Whether the service did what was asked, even if its answer is lost."""
        return bool(self.body) or not self.is_lost


LOST = Response(200, b"", is_lost=True)
"""The request never arrived."""


def delivered(made: Any, reply: Reply, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer, and how its delivery fails."""
    body = made if isinstance(made, bytes) else json.dumps(made).encode()
    return Response(
        200,
        body,
        {**(headers or {"x-request-id": f"req_{digest(body)}"}), **reply.headers},
        garbled=None if reply.body is None else reply.body.encode(),
        cut_after=reply.cut_after,
        is_lost=reply.loses == "answer",
    )


def digest(content: bytes) -> str:
    """Return what ids are made of."""
    return hashlib.sha256(content).hexdigest()[:24]


@dataclass(frozen=True)
class Charge:
    """One answer that the service put on the bill."""

    key: str | None
    kind: str
    model: str
    tokens_in: int
    tokens_out: int
    batch_id: str | None = None
    custom_id: str | None = None


@dataclass
class Options:
    """What kind of service it is."""

    keys: tuple[str, ...] | None = None
    """The API keys that it accepts; None if it asks for none, as local servers do."""
    models: tuple[str, ...] | None = None
    """The models that it has; None if it has every model."""
    heeds_keys: bool = True
    """Whether it answers an Idempotency-Key once; if not, it charges every answer, as OpenAI itself may."""
    lacks: frozenset[str] = frozenset()
    """What it refuses with status 400: `json_schema`, `json_object`, `temperature`, `max_tokens`,
    `max_completion_tokens`; over Bedrock `tool_choice` and `tools`."""
    dimensions: int = 8
    most_tokens: int = 128_000
    """The longest prompt."""
    polls_of_batch: int = 2
    """How often a batch is retrieved until its lines are done; it is complete at the next look."""
    lines_until_expiry: int | None = None
    """How many lines of a batch are done when it expires; None if it completes."""


class Service:
    """Decides what becomes of each request. Safe to use from several threads."""

    def __init__(self, script: Iterable[Reply] | Script = (), options: Options | None = None) -> None:
        self.options = options or Options()
        self.requests: list[Request] = []
        """Every request, in the order in which they arrived."""
        self.questions: list[Question] = []
        """Every valid question, also those whose answer was already known."""
        self.charges: list[Charge] = []
        self.stored: list[dict[str, Any]] = []
        """The completions that clients asked to store."""
        self.lock = threading.RLock()
        self._function = script if callable(script) else None
        self._queues: dict[str, deque[Reply]] = defaultdict(deque)
        self._queues["ask"].extend(() if callable(script) else script)
        self._releases: dict[str, threading.Event] = defaultdict(threading.Event)
        self._closing = threading.Event()

    def script(self, *replies: Reply, operation: str = "ask") -> None:
        """Add replies for the next questions, or for the next requests of another operation, as `batches.create`."""
        with self.lock:
            self._queues[operation].extend(replies)

    def next_reply(self, operation: str) -> Reply | None:
        """Take the next scripted reply of an operation."""
        with self.lock:
            queue = self._queues[operation]
            return queue.popleft() if queue else None

    def reply_to(self, question: Question) -> Reply:
        """Decide what becomes of a question: the next of the queue, or what the function returns."""
        with self.lock:
            self.questions.append(question)
            scripted = self.next_reply("ask")
        if scripted is None and self._function is not None:
            scripted = self._function(question)
        return scripted or Reply()

    def wait_as_told(self, reply: Reply) -> None:
        """Hold the answer back, if the reply says so."""
        if reply.held is not None:
            self._releases[reply.held].wait()
        self._closing.wait(reply.delay_seconds)

    def release(self, name: str) -> None:
        """Let the answers go that are held under a name, and those that will be."""
        self._releases[name].set()

    def close(self) -> None:
        """Let everything go."""
        self._closing.set()
        with self.lock:
            for each in self._releases.values():
                each.set()

    def text_of(self, question: Question, reply: Reply) -> str:
        return fitting_text(question) if reply.text is None else reply.text

    def vectors_of(self, question: Question, reply: Reply) -> list[list[float]]:
        return fitting_vectors(question.texts, self.options.dimensions) if reply.vectors is None else reply.vectors

    def charge(self, question: Question, tokens_in: int, tokens_out: int) -> None:
        charge = Charge(
            question.key,
            question.kind,
            question.model,
            tokens_in,
            tokens_out,
            batch_id=question.batch_id,
            custom_id=question.custom_id,
        )
        with self.lock:
            self.charges.append(charge)

    def state(self) -> dict[str, Any]:
        """Return everything that was recorded, for a server in a process of its own."""
        with self.lock:
            return {
                "charges": [asdict(each) for each in self.charges],
                "questions": [asdict(each) for each in self.questions],
                "requests": [{**asdict(each), "body": each.body.decode("latin-1")} for each in self.requests],
            }
