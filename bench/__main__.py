"""Runs the benchmarks named on the command line, or all of them; prints one JSON object a line."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = (
    "round_trip",
    "in_process",
    "transactions",
    "over_http",
    "typed_against_local",
    "receipts",
    "scale",
    "pages",
    "viewers",
    "jobs",
    "metrics",
    "steps",
    "durable",
    "machines",
    "journey_units",
    "sweeps",
    "local_vectors",
)


def main(names: list[str]) -> None:
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        raise SystemExit(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    for name in names or BENCHMARKS:
        importlib.import_module(f"bench.{name}").run()


if __name__ == "__main__":
    main(sys.argv[1:])
