"""Runs the experiments named on the command line, or all of them; prints one JSON object a line.

python -m faults [--trials N] [name ...]
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys

EXPERIMENTS = (
    "kills",
    "fillings",
    "restores",
    "backups",
    "counter",
    "fairness",
    "disk_full",
    "io_errors",
    "power_cuts",
    "differential",
    "logs",
    "machine",
    "cloud",
    "claims",
    "workers",
    "durable",
    "executions",
    "callbacks",
    "assist",
    "zombies",
    "clock_jumps",
    "poison",
    "api",
    "late_answers",
    "removed_systems",
    "pipelines",
    "journeys",
    "journey_files",
    "sweeps",
    "soak",
)


def main(arguments: list[str]) -> int:
    """Run experiments; gives the exit status, which is 1 when something that must hold did not."""
    parser = argparse.ArgumentParser(prog="python -m faults")
    parser.add_argument("--trials", type=int, help="how often; each experiment has its own default")
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(EXPERIMENTS))
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(EXPERIMENTS))
    if unknown:
        parser.error(f"there is no experiment {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
    violations = 0
    for name in options.names or EXPERIMENTS:
        experiment = importlib.import_module(f"faults.{name}")
        for outcome in experiment.run() if options.trials is None else experiment.run(options.trials):
            print(json.dumps(outcome), flush=True)
            violations += outcome["violations"]
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
