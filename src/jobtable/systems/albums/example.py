"""An example workflow: extracts the albums of a listing, checks them, shows them to a person, and estimates prices.

The listing is text with one album per line, `Artist - Album (1973)`, or CSV with the columns artist, album and year.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import ValidationError

from jobtable.errors import ValueRefusedError
from jobtable.jobs.tasks import task
from jobtable.systems.albums.definitions import CONTINUE, FAIL, CostRates, HumanStep, Step, WorkflowDefinition
from jobtable.systems.albums.entities import Album, Execution, WorkflowType
from jobtable.systems.albums.executions import Executions
from jobtable.systems.albums.service import AlbumWorkflows

if TYPE_CHECKING:
    from jobtable.jobs.report.context import JobContext

_LINE = re.compile(r"(?P<artist>.+?) [-\u2013\u2014] (?P<album>.+?) \((?P<year>\d{4})\)")
_FIRST_LONG_PLAYER = 1948
_ANSWER_WITHIN = timedelta(hours=1)


def _steps(on_timeout: str) -> tuple[Step | HumanStep, ...]:
    return (
        Step("extract", "jobtable.systems.albums.example:extract_albums"),
        Step("check-years", "jobtable.systems.albums.example:check_years"),
        HumanStep("validate", _ANSWER_WITHIN, on_timeout),
        Step("apply-answer", "jobtable.systems.albums.example:apply_answer"),
        Step("price", "jobtable.systems.albums.example:estimate_prices"),
    )


# AWS list prices of a state transition or a durable operation, and of a gigabyte-second of Lambda.
STEP_FUNCTIONS = WorkflowDefinition(
    WorkflowType.STEP_FUNCTIONS, _steps(FAIL), CostRates(per_step=0.000025, per_second=0.0000166667)
)
DURABLE_FUNCTIONS = WorkflowDefinition(
    WorkflowType.DURABLE_FUNCTIONS, _steps(CONTINUE), CostRates(per_step=0.000008, per_second=0.0000166667)
)
PATHS = {
    WorkflowType.STEP_FUNCTIONS: "jobtable.systems.albums.example:STEP_FUNCTIONS",
    WorkflowType.DURABLE_FUNCTIONS: "jobtable.systems.albums.example:DURABLE_FUNCTIONS",
}


@task
def extract_albums(job: JobContext, execution_id: str) -> dict[str, int]:
    """Store an album for each entry of the listing that names one."""
    records = AlbumWorkflows(job.jobs.store)
    execution = records.get_execution(execution_id)
    try:
        listing = job.jobs.objects.get(execution.image_s3_key).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueRefusedError(f"{execution.image_s3_key} is not text: {error}") from error
    albums = list(_albums(job, execution, listing))
    if not albums:
        raise ValueRefusedError(f"{execution.image_s3_key} names no albums; write each as Artist - Album (1973)")
    return {"albums": records.put_albums(albums)}


def _albums(job: JobContext, execution: Execution, listing: str) -> Iterator[Album]:
    index = 0
    for number, row in enumerate(_rows(listing), start=1):
        try:
            if row is None:
                raise ValueRefusedError("it does not have the form Artist - Album (1973)")
            year = int(row[2])
            yield Album(
                execution_id=execution.execution_id,
                workflow_type=execution.workflow_type,
                album_index=index + 1,
                artist=row[0].strip(),
                album_name=row[1].strip(),
                year=year,
                year_original=year,
                created_at=execution.created_at,
                updated_at=execution.created_at,
            )
            index += 1
        except (ValidationError, ValueError) as error:
            job.warning(f"entry {number} is skipped: {' '.join(str(error).split())}")


def _rows(listing: str) -> Iterator[tuple[str, str, str] | None]:
    """Yield artist, album and year of each entry, or None for one in another form."""
    lines = [line.strip() for line in listing.splitlines() if line.strip()]
    if lines and {"artist", "album", "year"} <= set(lines[0].lower().split(",")):
        for row in csv.DictReader([lines[0].lower(), *lines[1:]]):
            yield row["artist"] or "", row["album"] or "", row["year"] or ""
        return
    for line in lines:
        found = _LINE.fullmatch(line)
        yield (found["artist"], found["album"], found["year"]) if found else None


@task
def check_years(job: JobContext, execution_id: str) -> dict[str, int]:
    """Validate the years of albums: not before the first long player, not in the future."""
    records = AlbumWorkflows(job.jobs.store)
    this_year = job.jobs.clock.now().year
    plausible = 0
    for album in records.list_albums(execution_id):
        is_plausible = _FIRST_LONG_PLAYER <= album.year <= this_year
        records.put_albums([album.replace(year_validated=is_plausible)])
        plausible += is_plausible
    return {"plausible": plausible}


@task
def apply_answer(job: JobContext, execution_id: str) -> dict[str, int]:
    """Apply the answer of the person; albums that it leaves out are deleted."""
    records = AlbumWorkflows(job.jobs.store)
    execution = records.get_execution(execution_id)
    answered = Executions(job.jobs).find_answer(execution_id)
    if answered is None or answered.validated_data is None:
        return {"confirmed": 0, "removed": 0}
    answer = {album.album_index: album for album in answered.validated_data}
    removed = [album for album in records.list_albums(execution_id) if album.album_index not in answer]
    updated_at = answered.completed_at or execution.updated_at
    confirmed = [
        album.replace(
            album_name=said.album_name, artist=said.artist, year=said.year, year_validated=True, updated_at=updated_at
        )
        for album in records.list_albums(execution_id)
        if (said := answer.get(album.album_index))
    ]
    job.jobs.store.batch_delete(removed)
    return {"confirmed": records.put_albums(confirmed), "removed": len(removed)}


@task
def estimate_prices(job: JobContext, execution_id: str) -> dict[str, float]:
    """Estimate the price of each album by its age, and store the list as an artifact of the job."""
    records = AlbumWorkflows(job.jobs.store)
    this_year = job.jobs.clock.now().year
    priced = []
    for album in records.list_albums(execution_id):
        age = max(0, this_year - album.year)
        price = round(8.0 + 0.6 * age, 2)
        confidence = 0.8 if album.year_validated else 0.3
        priced.append(album.replace(price_estimate=price, price_confidence=confidence, price_source="age"))
    records.put_albums(priced)
    lines = [f"{each.artist} - {each.album_name} ({each.year}): {each.price_estimate}" for each in priced]
    job.artifact("albums.txt", "\n".join(lines).encode())
    return {"albums": len(priced), "total": round(sum(each.price_estimate or 0.0 for each in priced), 2)}
