"""The album executions of the demonstration: one picture, or one listing, in both styles."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path

from jobtable.app import Services
from jobtable.cli.output import say
from jobtable.demo import DemoPart, DemoState
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.entities import ExecutionStatus, WorkflowType
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.workflow_runs import TASKS

_EXECUTION = "demo-records"
_RECORDS = (
    "Nina Simone - Pastel Blues (1965)",
    "Kraftwerk - Autobahn (1974)",
    "Fela Kuti - Zombie (1976)",
    "Kate Bush - Hounds of Love (1985)",
    "Massive Attack - Mezzanine (1998)",
)
_SHELF = Path("shelf.png")


def _start_execution(services: Services, folder: Path) -> None:
    name, content = _image(folder)
    for number, workflow_type in enumerate(WorkflowType, start=1):
        services.get(Executions).start(workflow_type, content, name, execution_id=f"{_EXECUTION}-{number}")


def _image(folder: Path) -> tuple[str, bytes]:
    """Return a picture of a list of records; without the extra that reads pictures, the list as text."""
    if find_spec("rapidocr") is None or find_spec("PIL") is None:
        say("The demonstration of albums uses a listing; for a picture, pip install 'jobtable[vision]'.")
        return "shelf.txt", "\n".join(_RECORDS).encode()
    kept = folder / _SHELF  # a second start must have the same picture
    if not kept.exists():
        kept.write_bytes(_drawn())
    return kept.name, kept.read_bytes()


def _drawn() -> bytes:
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - of an extra

    image = Image.new("RGB", (1000, 140 + 80 * len(_RECORDS)), "#f4efe2")
    draw = ImageDraw.Draw(image)
    for number, record in enumerate(_RECORDS):
        draw.text((80, 80 + 80 * number), record, fill="#26221c", font=ImageFont.load_default(38))
    stored = io.BytesIO()
    image.rotate(2, expand=True, fillcolor="#8a8378").save(stored, "PNG")
    return stored.getvalue()


def _look_at_execution(services: Services) -> DemoState:
    numbers = range(1, len(WorkflowType) + 1)
    executions = [services.get(AlbumWorkflows).get_execution(f"{_EXECUTION}-{number}") for number in numbers]
    waiting = sum(each.status is ExecutionStatus.WAITING for each in executions)
    is_settled = all(each.status is not ExecutionStatus.RUNNING for each in executions)
    if waiting:
        return DemoState("WAITING", 50, f"{waiting} of {len(executions)} executions wait for a person", is_settled)
    status = "RUNNING" if not is_settled else executions[0].status.upper()
    return DemoState(status, 100 if is_settled else 25, "", is_settled)


PART = DemoPart("Album executions", "/executions", _start_execution, _look_at_execution, modules=TASKS)
