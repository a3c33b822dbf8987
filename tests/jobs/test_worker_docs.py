"""The page about workers is true."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from jobtable.jobs.worker.holding import WorkerReport
from jobtable.jobs.worker.inline import BATCH_SIZE, MOST_RESULT_BYTES
from jobtable.jobs.worker.worker import Worker

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "workers.md").read_text()


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works, add, square = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mathtasks.py").write_text(add)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "examples"}
    exec(works, namespace)
    exec(square, namespace)
    namespace["jobs"].store.close()  # type: ignore[attr-defined]  # the example's Jobs
    sys.modules.pop("mathtasks", None)


def test_every_option_and_number_is_told() -> None:
    for name in inspect.signature(Worker).parameters:
        assert f"`{name}" in PAGE, name
    for field in fields(WorkerReport):
        assert f"`{field.name}`" in PAGE, field.name
    assert f"{MOST_RESULT_BYTES:,}" in PAGE
    assert f"up to {BATCH_SIZE} at once" in PAGE
