"""The examples of docs/systems/albums.md run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.systems.albums.driving import work
from tests.test_docs import python_blocks, run

from jobtable.app import open_jobs


def test_the_examples_of_executions_run(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'albums.db'}"

    def run_workers() -> None:
        jobs = open_jobs(url)
        work(jobs)
        jobs.store.close()
        jobs.objects.close()

    listing = b"Kraftwerk - Autobahn (1974)\nPink Floyd - Animals (1977)\n"
    namespace: dict[str, Any] = {"store_url": url, "listing": listing, "run_workers": run_workers}
    for block in python_blocks("docs/systems/albums.md"):
        run(block, namespace)
    assert namespace["execution"].status == "waiting"
    assert len(namespace["task"].albums) == 2
