"""Schemathesis over the whole API, with every check and every phase: no 5xx, no answer outside its schema."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from tests.web.conftest import Served
from tests.web.test_openapi import drive

from jobtable.access.entities import Role


def run(trials: int = 20) -> Iterator[dict[str, object]]:
    """Ask every operation in all ways that its description suggests, and so many times at random."""
    served = Served(require_token=True)
    try:
        token = served.token(Role.FULL)
        phases = ("--phases", "examples,coverage,fuzzing")
        done = drive(served.url, token, *phases, "--max-examples", str(trials), "--workers", "2")
    finally:
        served.stop()
    found = re.search(r"found (\d+) unique failures", done.stdout)
    violations = int(found[1]) if found else int(done.returncode != 0)
    if violations:
        print(done.stdout, done.stderr, file=sys.stderr)
    cases = re.search(r"(\d+) generated", done.stdout)
    yield {"fault": "api", "trials": trials, "violations": violations, "cases": int(cases[1]) if cases else 0}
