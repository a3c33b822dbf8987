"""The cases of the States Language: definitions with their input, what the world answers, and what must come of it.

A file in `cases/` has one subject and a list of cases:

    name: a sentence
    definition: the machine
    input: the input, {} by default
    type: STANDARD or EXPRESS
    answers: what tasks answer, by name; a list, one for each attempt, whose last one repeats
    machines: nested machines, definitions by name
    objects: what ItemReaders read in the bucket `b`, by key; a text as it is, anything else as JSON
    events: things that happen from outside, [{after: seconds, abort: {error, cause}}, {after: 0, redrive: true}]
    expect:
      status: SUCCEEDED, FAILED, TIMED_OUT or ABORTED
      output, error, cause
      events: the history without ExecutionStarted; each `Type`, `Type NAME` or {Type: {some of its details}}
      previous: their previous event ids
      count: how many events there are, for histories that are too long to write down
      seconds: how long it took

An activity exists if it has answers, a machine if it is one of `machines`; a function has the version 1 and the alias
`live`. The names of answers: `greet` of a function, `activity:paint`, `dynamodb:putItem` of a service. An answer is the
output, or a mapping with one of these members, and `after: SECONDS`:

    $output, $error (and $cause), $echo (the payload comes back), $never (nothing comes),
    $refused (and $cause: nothing runs; for a function, nobody has registered it),
    $large (a text of so many characters),
    $submitted (what the service answers at once when a token is awaited), $beats (seconds of heartbeats)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """One case of a file."""

    subject: str
    name: str
    definition: dict[str, Any]
    expect: dict[str, Any]
    input: Any = field(default_factory=dict)
    type: str = "STANDARD"
    answers: dict[str, list[Any]] = field(default_factory=dict)
    machines: dict[str, Any] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.subject}: {self.name}"


@cache
def read_cases(folder: Path = FOLDER) -> tuple[Case, ...]:
    """Read the cases of all files, in order; once, as several modules run them all."""
    return tuple(
        Case(path.stem, **members)
        for path in sorted(folder.glob("*.yaml"))
        for members in yaml.load(path.read_text(), Loader=CaseLoader)
    )


def object_content(value: Any) -> bytes:
    """Return the bytes of an object of a case."""
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def compact(event_type: str, details: dict[str, Any]) -> str:
    """Return an event as cases write it: its type and, of states, the name."""
    name = details.get("name")
    if name is None:
        return event_type
    index = details.get("index")
    return f"{event_type} {name}" if index is None else f"{event_type} {name} {index}"


def expected_end(case: Case) -> list[Any]:
    """Return the status, error, cause and output that a case expects."""
    return [case.expect["status"], *(case.expect.get(name) for name in ("error", "cause", "output"))]


def find_faults(case: Case, history: Sequence[tuple[int, int, str, dict[str, Any]]]) -> list[str]:
    """Compare a history, as ids, previous ids, types and details, with the one that a case expects."""
    expect = case.expect
    faults = []
    if [event_id for event_id, *_ in history] != list(range(1, len(history) + 1)):
        faults.append(f"the ids are {[event_id for event_id, *_ in history]}")
    if "events" in expect:
        faults += find_differences(expect["events"], [(kind, details) for _, _, kind, details in history[1:]])
    previous = [each for _, each, _, _ in history[1:]]
    if previous != expect.get("previous", previous):
        faults.append(f"the previous ids are {previous}")
    if len(history) != expect.get("count", len(history)):
        faults.append(f"there are {len(history)} events")
    return faults


def find_differences(expected: list[Any], events: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Compare a history with the one a case expects; the events are types with their details."""
    found = [compact(*event) for event in events]
    wanted = [each if isinstance(each, str) else next(iter(each)) for each in expected]
    same = len(found) == len(wanted) and all(_same(f, w) for f, w in zip(found, wanted, strict=True))
    if not same:
        return ["expected:", *wanted, "found:", *found]
    differences = []
    for each, (event_type, details) in zip(expected, events, strict=True):
        if isinstance(each, dict):
            members = next(iter(each.values()))
            for name, value in members.items():
                actual = _read(details.get(name), value)
                if actual != value:
                    differences.append(f"{event_type}.{name}: expected {value!r}, found {actual!r}")
    return differences


def _same(found: str, wanted: str) -> bool:
    return found == wanted or found.partition(" ")[0] == wanted


def _read(actual: Any, expected: Any) -> Any:
    """Read JSON text where the case has a value that is no text."""
    if isinstance(actual, str) and not isinstance(expected, str):
        return json.loads(actual)
    if isinstance(actual, dict) and isinstance(expected, dict):
        return {name: _read(value, expected.get(name, "")) for name, value in actual.items()}
    return actual


class CaseLoader(yaml.CSafeLoader):
    """YAML without timestamps: they are text in definitions."""


CaseLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
