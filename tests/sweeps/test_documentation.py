"""The page about sweeps is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jobtable.sweeps.file import parse_sweep
from jobtable.sweeps.sweep import Sweep

PAGE = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_run() -> None:
    namespace: dict[str, Any] = {"__name__": "sweep_examples"}
    for block in blocks("python"):
        exec(compile(block, "docs/sweeps.md", "exec", dont_inherit=True), namespace)
    assert (namespace["progress"].total, namespace["best"]) == (30, None)
    assert namespace["newest"].job_id == "first-try"
    (text,) = blocks("yaml")
    assert parse_sweep(text, "docs/sweeps.md", name="-") == namespace["sweep"]


def test_every_member_of_a_definition_is_documented() -> None:
    missing = [name for name in Sweep.model_fields if f"`{name}`" not in PAGE and name != "name"]
    assert missing == []
