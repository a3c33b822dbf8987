"""The lines of a batch and their results, as JSON lines in objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobtable.assist.providers import ChatAnswer, EmbedAnswer, Usage
from jobtable.errors import ValueRefusedError

LONGEST_ID = 200
"""Characters of the id of a line."""


@dataclass(frozen=True)
class BatchLine:
    """One request of a batch: messages of a chat, or a text to embed."""

    line_id: str
    """The caller's, unique within the job."""
    content: str | tuple[Mapping[str, Any], ...]
    """The text; for a chat also messages."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the caller wants to find beside the result; it is not sent."""

    @property
    def messages(self) -> tuple[Mapping[str, Any], ...]:
        return ({"role": "user", "content": self.content},) if isinstance(self.content, str) else self.content


@dataclass(frozen=True)
class LineResult:
    """What became of one line."""

    line_id: str
    answer: ChatAnswer | EmbedAnswer | None = None
    """What the provider returned, valid or not."""
    error: str | None = None
    """Why there is no valid answer."""
    may_succeed: bool = False
    """Whether the line is worth sending again."""
    output: Any = None
    """The valid answer: the text, the vector, or the JSON of the declared output."""

    @property
    def is_answered(self) -> bool:
        return self.error is None

    @property
    def text(self) -> str | None:
        return self.answer.text if isinstance(self.answer, ChatAnswer) else None


def write_lines(lines: Iterable[BatchLine]) -> tuple[bytes, int]:
    """Return lines as the content of an object, and their number; ValueRefusedError if two have one id."""
    written: list[bytes] = []
    seen: set[str] = set()
    for line in lines:
        if line.line_id in seen:
            raise ValueRefusedError(f"two lines of the batch have the id {line.line_id!r}; give each its own")
        if not 0 < len(line.line_id) <= LONGEST_ID:
            raise ValueRefusedError(f"the id of a line has {len(line.line_id):,} characters, not 1 to {LONGEST_ID}")
        seen.add(line.line_id)
        content = line.content if isinstance(line.content, str) else list(line.content)
        members = {"id": line.line_id, "content": content, **({"about": line.about} if line.about else {})}
        written.append(json.dumps(members, ensure_ascii=False).encode())
    if not written:
        raise ValueRefusedError("a batch needs at least one line")
    return b"\n".join(written), len(written)


def read_lines(content: bytes) -> list[BatchLine]:
    """Return the lines in an object."""
    return [_line(json.loads(line)) for line in content.split(b"\n")]


def _line(members: Mapping[str, Any]) -> BatchLine:
    content = members["content"]
    return BatchLine(members["id"], content if isinstance(content, str) else tuple(content), members.get("about") or {})


def write_results(results: Iterable[LineResult]) -> list[dict[str, Any]]:
    """Return results as the answer of a call. What follows from the answers of the model is left out."""
    return [_written(each) for each in results]


def _written(result: LineResult) -> dict[str, Any]:
    written: dict[str, Any] = {"id": result.line_id}
    if result.error is not None:
        written |= {"error": result.error, "may_succeed": result.may_succeed}
    if isinstance(result.answer, ChatAnswer):
        written |= {"text": result.answer.text, "finish": result.answer.finish}
    elif result.answer is not None:
        written["vector"] = list(result.answer.vectors[0])
    if result.answer is not None:
        usage = result.answer.usage
        written |= {"model": result.answer.model, "tokens": [usage.tokens_in, usage.tokens_out]}
    return written


def read_results(answer: Iterable[Mapping[str, Any]]) -> Iterator[LineResult]:
    """Yield the results in the answer of a call."""
    for each in answer:
        found: ChatAnswer | EmbedAnswer | None = None
        if "text" in each:
            found = ChatAnswer(each["text"], Usage(*each["tokens"]), each["model"], each["finish"])
        elif "vector" in each:
            found = EmbedAnswer((each["vector"],), Usage(*each["tokens"]), each["model"])
        yield LineResult(each["id"], found, error=each.get("error"), may_succeed=each.get("may_succeed", False))
