"""Exported journeys that are cut or altered anywhere: every one of them is refused before the first write."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jobtable.app import Services
from jobtable.errors import ArchiveError
from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.archives.restore import Existing
from jobtable.systems.journeys.entities import Journey
from jobtable.systems.journeys.example.rule_book import example_rules
from jobtable.systems.journeys.journey_template import DEFAULT_TEMPLATE
from jobtable.systems.journeys.parts import JourneySource
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.service import Journeys


def run(trials: int = 500, seed: int = 1) -> Iterator[dict[str, object]]:
    """Damage an export that many times, each time in another way."""
    chance = random.Random(seed)
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="jobtable-files-") as folder, Services.open("memory:") as services:
        path = Path(folder) / "journey.zip"
        whole = _export(services, path, chance)
        services.get(JourneyBackups).delete_journey("J")
        for number in range(trials):
            kind, damaged = _damaged(whole, chance)
            path.write_bytes(damaged)
            try:
                services.get(JourneyBackups).import_journey_complete(path, Existing.REPLACE)
                problems.append(f"trial {number}: a file was accepted although it was damaged: {kind}")
            except ArchiveError:
                pass  # as it must be
            if (
                services.store.find(Journey.key(journey_id="J")) is not None
                or any(services.objects.list())
                or any(services.engine.queries.list_jobs())
            ):
                problems.append(f"trial {number}: something of a damaged file was stored: {kind}")
        path.write_bytes(whole)
        services.get(JourneyBackups).import_journey_complete(path)
    for problem in problems:
        print(problem, file=sys.stderr)
    yield {"fault": "journey_files", "trials": trials, "violations": len(problems), "bytes": len(whole), "seed": seed}


def _export(services: Services, path: Path, chance: random.Random) -> bytes:
    now = services.store.clock.now()
    journey = Journey(
        journey_id="J",
        name="Damaged",
        created_by="faults",
        oda_component_type="PRODUCTCATALOG",
        source=JourneySource(schema_id="s", schema_name="s"),
        created_at=now,
        updated_at=now,
    )
    services.get(Journeys).create_journey(journey, DEFAULT_TEMPLATE.stages("J", now), example_rules("J", "faults", now))
    services.get(JourneyRunner).run("J")
    services.get(JourneyRunner).cancel("J")
    (job_id,) = services.get(Journeys).get_journey("J").current_jobs.values()
    for number in range(8):
        services.objects.put(f"journeys/J/{number}.bin", chance.randbytes(chance.randrange(20_000)))
        services.objects.put(f"jobs/{job_id}/artifacts/{number}/it", chance.randbytes(chance.randrange(5_000)))
    services.get(JourneyBackups).get_journey_complete("J", path)
    return path.read_bytes()


def _damaged(whole: bytes, chance: random.Random) -> tuple[str, bytes]:
    """The file, damaged in one of seven ways, and which one."""
    at, length = chance.randrange(len(whole)), chance.randint(1, 5_000)
    behind = whole[at + length :]
    kinds = {
        f"cut at {at}": whole[:at],
        f"a bit flipped at {at}": whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :],
        f"{length} bytes removed at {at}": whole[:at] + behind,
        f"{length} bytes inserted at {at}": whole[:at] + chance.randbytes(length) + whole[at:],
        f"{length} zeros at {at}": whole[:at] + b"\0" * len(whole[at : at + length]) + behind,
        f"{length} bytes appended": whole + chance.randbytes(length),
        f"the beginning cut at {at}": whole[at + 1 :],
    }
    kind = chance.choice(list(kinds))
    return (kind, kinds[kind]) if kinds[kind] != whole else (kind, whole[:-1])
