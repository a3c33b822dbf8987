"""The page about writing tasks is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.test_docs import ROOT, python_blocks, run

from jobtable.jobs.engine import Jobs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.report.log_text import MOST_HEAD_BYTES, MOST_TAIL_BYTES
from jobtable.jobs.stored.entities import JobArtifact
from jobtable.jobs.submit.definition import NewJob

PAGE = "docs/guides/tasks.md"


SCRIPT = """
import sys
from pathlib import Path
for epoch in (1, 2):
    print(f"epoch {epoch} of 2, val_loss {float(sys.argv[1].partition('=')[2]) / epoch}")
Path("model.bin").write_text("weights")
"""


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    namespace: dict[str, Any] = {"__name__": "training"}
    for block in python_blocks(PAGE):
        run(block, namespace)
    assert namespace["result"] == {"loss": 0.125}
    assert namespace["followed"] == ["the loss is 0.125"]
    assert namespace["losses"] == [0.5, 0.25, 0.125]
    assert namespace["job"].resume(best=True).record.epoch == 2
    jobs: Jobs = namespace["jobs"]
    by_script = jobs.submit(NewJob(name="by script", task="training:train_by_script"))
    (lease,) = jobs.claim("default", limit=1, instance_id="by-hand", lease_seconds=60)
    with JobContext(jobs, lease) as job:
        namespace["train_by_script"](job, learning_rate=0.5)
    assert [metric.value for metric in jobs.queries.list_metric(by_script.job_id, "val_loss")] == [0.5, 0.25]
    (model,) = jobs.store.query(JobArtifact.key(job_id=by_script.job_id))
    assert jobs.objects.get(model.s3_key) == b"weights"
    jobs.store.close()


def test_every_verb_of_the_context_is_told_of() -> None:
    text = (ROOT / PAGE).read_text()
    verbs = [name for name in dir(JobContext) if not name.startswith("_")]
    assert [verb for verb in verbs if f"`{verb}" not in text and verb != "is_flushing"] == []


def test_the_limits_are_those_that_the_page_names() -> None:
    assert (MOST_HEAD_BYTES, MOST_TAIL_BYTES) == (48 << 20, 16 << 20)
