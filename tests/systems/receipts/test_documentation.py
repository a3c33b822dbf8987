"""The examples of the page about receipts run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "systems" / "receipts.md"


def test_the_examples_run() -> None:
    namespace: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, "docs/systems/receipts.md", "exec", dont_inherit=True), namespace)
    assert namespace["contents"].lines == [namespace["line"]]
    assert namespace["report"].finished
    namespace["store"].close()
