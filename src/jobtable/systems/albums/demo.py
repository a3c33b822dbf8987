"""The album executions of the demonstration."""

from __future__ import annotations

from pathlib import Path

from jobtable.app import Services
from jobtable.demo import USER, DemoPart, DemoState
from jobtable.systems.albums.entities import ExecutionStatus
from jobtable.systems.albums.example import PATHS
from jobtable.systems.albums.executions import Executions
from jobtable.systems.albums.service import AlbumWorkflows

_EXECUTION = "demo-records"
_LISTING = """Nina Simone - Pastel Blues (1965)
Kraftwerk - Autobahn (1974)
Fela Kuti - Zombie (1976)
Kate Bush - Hounds of Love (1985)
Massive Attack - Mezzanine (1998)
Somebody - Something from Tomorrow (2199)
"""


def _start_execution(services: Services, folder: Path) -> None:
    for number, definition in enumerate(PATHS.values(), start=1):
        listing = _LISTING.encode()
        services.get(Executions).start(
            definition, listing, "records.txt", execution_id=f"{_EXECUTION}-{number}", user=USER
        )


def _look_at_execution(services: Services) -> DemoState:
    executions = [
        services.get(AlbumWorkflows).get_execution(f"{_EXECUTION}-{number}") for number in range(1, len(PATHS) + 1)
    ]
    waiting = sum(each.status is ExecutionStatus.WAITING for each in executions)
    is_settled = all(each.status is not ExecutionStatus.RUNNING for each in executions)
    if waiting:
        return DemoState("WAITING", 50, f"{waiting} of {len(executions)} executions wait for a person", is_settled)
    status = "RUNNING" if not is_settled else executions[0].status.upper()
    return DemoState(status, 100 if is_settled else 25, "", is_settled)


PART = DemoPart("Album executions", "/executions", _start_execution, _look_at_execution)
