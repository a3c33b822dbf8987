"""How everything here is measured: in turns, by medians, as ratios of one run.

Contenders take turns in short rounds, so that whatever else the machine does meets all of them alike.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Call = Callable[[], object]

ROUNDS = 7
ROUND_SECONDS = 0.25


@dataclass(frozen=True)
class Contender:
    """One operation to repeat. A call may do several at once: `operations` says how many."""

    name: str
    call: Call
    operations: int = 1


def compare(
    bench: str,
    ours: Contender,
    *peers: Contender,
    targets: Mapping[str, float] | None = None,
    rounds: int = ROUNDS,
) -> None:
    """Measure the operations per second of all contenders in turns, and print one line for each peer."""
    contenders = (ours, *peers)
    counts = [_calls_in_a_round(contender.call) for contender in contenders]
    rates: list[list[float]] = [[] for _ in contenders]
    for _ in range(rounds):
        for contender, count, measured in zip(contenders, counts, rates, strict=True):
            measured.append(count * contender.operations / _seconds(contender.call, count))
    our_rate, *peer_rates = (statistics.median(measured) for measured in rates)
    for peer, rate in zip(peers, peer_rates, strict=True):
        report(bench, our_rate, peer.name, rate, target=(targets or {}).get(peer.name))


def report(bench: str, ours: float, peer: str, peer_value: float, *, target: float | None = None) -> None:
    """Print one result; the ratio is ours to the peer's, more is better."""
    line: dict[str, object] = {
        "bench": bench,
        "ours": round(ours, 1),
        "peer": peer,
        "peer_value": round(peer_value, 1),
        "ratio": round(ours / peer_value, 3),
        "unit": "per second",
    }
    if target is not None:
        line["target"] = target
    print(json.dumps(line), flush=True)


def not_measured(what: str, why: object) -> None:
    """Say what is missing in this run, beside the results."""
    print(f"not measured: {what}: {why}", file=sys.stderr, flush=True)


def _calls_in_a_round(call: Call) -> int:
    count = 1
    while (seconds := _seconds(call, count)) < ROUND_SECONDS / 4:
        count *= 2
    return max(1, int(count * ROUND_SECONDS / seconds))


def _seconds(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start
