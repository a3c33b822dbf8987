"""The documentation of the server is true and current."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from tests.web.conftest import Served

from jobtable.web.reference import render_page

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_examples_run() -> None:
    namespace: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / "guides" / "api.md").read_text(), re.DOTALL):
        exec(compile(block, "documentation", "exec", dont_inherit=True), namespace)
    submitted = asyncio.run(namespace["submit"]())
    assert submitted["status"] == "PENDING"
    (refused,) = asyncio.run(namespace["cancel"](submitted["job_id"], "none"))
    assert refused == "there is no job none"
    namespace["services"].close()


def test_the_reference_is_current(open_server: Served) -> None:
    assert (DOCS / "reference" / "rest-api.md").read_text() == render_page(open_server.app), "run `make reference`"


def test_every_topic_is_documented(open_server: Served) -> None:
    page = (DOCS / "guides" / "api.md").read_text()
    for topic in ("jobs", "job:ID", "queues", "journeys", "journey:ID", "executions", "overview"):
        assert f"`{topic}`" in page
