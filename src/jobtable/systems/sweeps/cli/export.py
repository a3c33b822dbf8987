"""`jobtable sweeps export`: the trials of a sweep as a table for other programs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from jobtable.app import Services
from jobtable.cli.completion import MOST, completed
from jobtable.cli.options import AsJson, ObjectsUrl, StoreUrl, open_services
from jobtable.cli.output import first_line, print_json
from jobtable.systems.sweeps.service import Sweeps, TrialResult


def _ids(services: Services) -> Iterator[str]:
    return (sweep.job_id for sweep in services.get(Sweeps).list_sweeps().take(MOST))


SweepId = Annotated[str, typer.Argument(metavar="ID", help="The sweep's id.", autocompletion=completed(_ids))]


def export(sweep_id: SweepId, store: StoreUrl = None, objects: ObjectsUrl = None, as_json: AsJson = False) -> None:
    """Print every trial by number, as CSV with a column for each parameter, or as JSON.

    In CSV text stands as it is, all other values as JSON; of a parameter that a trial does not have, nothing.

    \b
    Example:
        jobtable sweeps export 6f1c1ad0 > trials.csv
    """
    with open_services(store, objects) as services:
        if as_json:
            print_json(list(services.get(Sweeps).list_trials(sweep_id)))
            return
        names = services.get(Sweeps).get_definition(sweep_id).space.names
        rows = csv.writer(sys.stdout, lineterminator="\n")
        rows.writerow(["number", "job_id", "status", "value", *(f"params.{name}" for name in names), "message"])
        for trial in services.get(Sweeps).list_trials(sweep_id):
            rows.writerow(_row(trial, names))


def _row(trial: TrialResult, names: list[str]) -> list[Any]:
    params = [_cell(trial.params[name]) if name in trial.params else None for name in names]
    return [trial.number, trial.job_id, trial.status, trial.value, *params, first_line(trial.message)]


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
