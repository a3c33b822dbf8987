"""The page about writing tasks is true."""

from __future__ import annotations

from typing import Any

from tests.test_docs import ROOT, python_blocks, run

from jobtable.jobs.context import JobContext
from jobtable.jobs.log_text import MOST_HEAD_BYTES, MOST_TAIL_BYTES

PAGE = "docs/jobs-context.md"


def test_the_examples_run() -> None:
    namespace: dict[str, Any] = {"__name__": "training"}
    for block in python_blocks(PAGE):
        run(block, namespace)
    assert namespace["result"] == {"loss": 0.125}
    assert namespace["followed"] == ["the loss is 0.125"]
    assert namespace["losses"] == [0.5, 0.25, 0.125]
    assert namespace["job"].resume(best=True).record.epoch == 2
    namespace["jobs"].store.close()


def test_every_verb_of_the_context_is_told_of() -> None:
    text = (ROOT / PAGE).read_text()
    verbs = [name for name in dir(JobContext) if not name.startswith("_")]
    assert [verb for verb in verbs if f"`{verb}" not in text and verb != "is_flushing"] == []


def test_the_limits_are_those_that_the_page_names() -> None:
    assert (MOST_HEAD_BYTES, MOST_TAIL_BYTES) == (48 << 20, 16 << 20)
