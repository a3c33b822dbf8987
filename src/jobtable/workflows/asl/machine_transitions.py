"""The transitions of a machine, with words for what leads to each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jobtable.workflows.asl.machine import Machine, State, StateType


class TransitionKind(StrEnum):
    """Why an execution goes from one state to another."""

    NEXT = "next"
    CHOICE = "choice"
    CATCH = "catch"


@dataclass(frozen=True)
class Transition:
    """From one state to another, or to the end."""

    source: str
    target: str | None
    kind: TransitionKind = TransitionKind.NEXT
    label: str = ""


def transitions_of(machine: Machine) -> Iterator[Transition]:
    """Yield the transitions between the states of a machine, without those inside its states."""
    for state in machine.states.values():
        for transition in _transitions_from(state):
            if transition.target is None or transition.target in machine.states:
                yield transition


def _transitions_from(state: State) -> Iterator[Transition]:
    fields = state.fields
    for rule in fields.get("Choices", ()):
        yield Transition(state.name, rule.get("Next"), TransitionKind.CHOICE, describe_condition(rule))
    if "Default" in fields:
        yield Transition(state.name, fields["Default"], TransitionKind.CHOICE, "otherwise")
    if state.next is not None:
        yield Transition(state.name, state.next)
    elif state.type not in (StateType.CHOICE, StateType.FAIL):
        yield Transition(state.name, None)
    for catcher in fields.get("Catch", ()):
        label = ", ".join(catcher.get("ErrorEquals", ()))
        yield Transition(state.name, catcher.get("Next"), TransitionKind.CATCH, label)


_COMPARISONS = {
    "GreaterThanEquals": "\N{GREATER-THAN OR EQUAL TO}",
    "LessThanEquals": "\N{LESS-THAN OR EQUAL TO}",
    "GreaterThan": ">",
    "LessThan": "<",
    "Equals": "=",
    "Matches": "matches",
}
_JOINED = {"And": " and ", "Or": " or "}


def describe_condition(rule: Mapping[str, Any]) -> str:
    """Return a rule of a Choice as people read it: `$.total > 100 and $.country = "DE"`."""
    if "Condition" in rule:
        return str(rule["Condition"]).removeprefix("{%").removesuffix("%}").strip()
    for name, word in _JOINED.items():
        if name in rule:
            return word.join(_in_brackets(each) for each in rule[name])
    if "Not" in rule:
        return f"not {_in_brackets(rule['Not'])}"
    variable = str(rule.get("Variable", ""))
    for name, value in rule.items():
        if name.startswith("Is"):
            return f"{variable} is {'' if value else 'not '}{name.removeprefix('Is').lower()}"
        operator = name.removesuffix("Path")
        for ending, sign in _COMPARISONS.items():
            if operator.endswith(ending):
                return f"{variable} {sign} {value if operator != name else json.dumps(value, ensure_ascii=False)}"
    return variable


def _in_brackets(rule: Mapping[str, Any]) -> str:
    text = describe_condition(rule)
    return f"({text})" if any(name in rule for name in _JOINED) else text


def describe_retry(retrier: Mapping[str, Any]) -> str:
    """Return a Retry as people read it: `States.Timeout: up to 3 more attempts, after 1 s, 2 s, ...`."""
    errors = ", ".join(retrier.get("ErrorEquals", ()))
    most = retrier.get("MaxAttempts", 3)
    interval, rate = retrier.get("IntervalSeconds", 1), retrier.get("BackoffRate", 2.0)
    longest = retrier.get("MaxDelaySeconds")
    grows = f", then {rate:g} times as long each" if rate != 1 else ""
    limit = f", at most {longest} s" if longest is not None else ""
    return f"{errors}: up to {most} more attempt{'' if most == 1 else 's'}, the first after {interval} s{grows}{limit}"
