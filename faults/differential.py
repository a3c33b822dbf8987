"""The embedded engine against DynamoDB Local, request by request, for long."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random

from tests.embedded.differential.peers import EmbeddedPeer, LocalPeer
from tests.embedded.differential.reduction import reduced, signature
from tests.embedded.differential.runner import SideBySide, sequence, table_sequence

from jobtable.embedded import EmbeddedBackend
from jobtable.testing.servers import dynamodb_local

_STEPS_IN_A_SEQUENCE = 30


def run(trials: int = 20_000, seed: int = 1) -> Iterator[dict[str, object]]:
    """Compare that many requests; every kind of unlisted difference is shown once on stderr, and counted."""
    with dynamodb_local(for_long=True) as url:
        backend, local = EmbeddedBackend(None), LocalPeer(url)
        try:
            yield _compare(SideBySide(EmbeddedPeer(backend), local), trials, seed)
        finally:
            local.close()
            backend.close()


def _compare(side: SideBySide, trials: int, seed: int) -> dict[str, object]:
    rng = Random(seed)
    found: set[tuple[str, ...]] = set()
    violations = 0
    while side.steps_compared < trials:
        seeds = [rng.randrange(2**32) for _ in range(_STEPS_IN_A_SEQUENCE)]
        difference = side.compare(table_sequence(seeds) if rng.random() < 0.05 else sequence(seeds))
        if difference is None:
            continue
        violations += 1
        if signature(difference) not in found:
            found.add(signature(difference))
            compared, listed = side.steps_compared, side.listed.copy()
            print(f"seeds {seeds}\n{reduced(side, difference)}\n", file=sys.stderr)
            side.steps_compared, side.listed = compared, listed
    return {
        "fault": "differential",
        "trials": side.steps_compared,
        "violations": violations,
        "listed_differences": dict(side.listed),
        "seed": seed,
    }
