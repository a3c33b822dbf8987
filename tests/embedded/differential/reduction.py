"""Makes a difference small: drops steps and members as long as the answers stay as different as they were."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

from tests.embedded.differential.requests import Step
from tests.embedded.differential.runner import Difference, SideBySide

_TOKEN_OF_RUN = re.compile(r"@\S+")


def signature(difference: Difference) -> tuple[str, ...]:
    """What makes two differences the same one: the operation, the codes, and the messages without their details."""
    case = difference.case
    messages = [_TOKEN_OF_RUN.sub("@", answer.message) for answer in (case.embedded, case.local)]
    words = (" ".join(message.split()[:9]) for message in messages)
    return (case.operation, str(case.embedded.code), str(case.local.code), *words)


def reduced(side: SideBySide, difference: Difference, attempts: int = 300) -> Difference:
    """A smaller sequence with the same signature."""
    wanted, best = signature(difference), difference
    is_smaller = True
    while is_smaller and attempts > 0:
        is_smaller = False
        for candidate in _smaller(list(best.steps)):
            attempts -= 1
            found = side.compare(candidate)
            if found is not None and signature(found) == wanted:
                best, is_smaller = found, True
                break
            if attempts <= 0:
                break
    return best


def _smaller(steps: list[Step]) -> Iterator[list[Step]]:
    half = len(steps) // 2
    if half > 1:
        yield steps[half:]
    for number in range(len(steps) - 1):
        yield steps[:number] + steps[number + 1 :]
    for number, (operation, request) in reversed(list(enumerate(steps))):
        for smaller in _without_one(request):
            yield [*steps[:number], (operation, smaller), *steps[number + 1 :]]


def _without_one(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in _paths(request):
        smaller = copy.deepcopy(request)
        container: Any = smaller
        for place in path[:-1]:
            container = container[place]
        del container[path[-1]]
        yield smaller


def _paths(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(node, dict | list):
        for place in list(node) if isinstance(node, dict) else range(len(node)):
            yield (*above, place)
            yield from _paths(node[place], (*above, place))
