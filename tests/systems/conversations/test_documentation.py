"""The examples of docs/systems/conversations.md run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.test_docs import python_blocks, run

from jobtable.systems.conversations.analysis.polis_export import write_export
from jobtable.systems.conversations.example import generate_export


def test_the_examples_of_conversations_run(tmp_path: Path) -> None:
    write_export(generate_export(1, comments=10), tmp_path / "export")
    namespace: dict[str, Any] = {"store_url": f"file:{tmp_path / 'c.db'}", "export_folder": tmp_path / "export"}
    for block in python_blocks("docs/systems/conversations.md"):
        run(block, namespace)
    assert namespace["run"].status == "RUNNING"
    assert namespace["topics"] == []
    assert set(namespace["group_of"].values()) >= {0, 1}
    assert len(set(namespace["most_divisive"])) == 5
    assert namespace["layers"] == sorted(namespace["layers"], reverse=True)
