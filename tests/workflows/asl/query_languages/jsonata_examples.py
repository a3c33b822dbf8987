"""Examples of JSONata as its documentation describes it, with their results.

A file in `jsonata/` has one subject and a list of `[expression, result]`. A result may be `{$undefined: true}`, or
`{$error: part}` with a code or another part of the message; `syntax` is a fault that is found before the evaluation.
`documents.yaml` has the variables that the expressions read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "jsonata"
DOCUMENTS = "documents"


@dataclass(frozen=True)
class Example:
    """An expression and what it is to return."""

    subject: str
    expression: str
    result: Any

    def __str__(self) -> str:
        return f"{self.subject}: {self.expression}"


@cache
def read_documents() -> dict[str, Any]:
    """Return the variables that the examples read."""
    documents: dict[str, Any] = yaml.safe_load((FOLDER / f"{DOCUMENTS}.yaml").read_text())
    return documents


def read_examples() -> Iterator[Example]:
    """Read the examples of all files, in order."""
    for path in sorted(FOLDER.glob("*.yaml")):
        if path.stem != DOCUMENTS:
            for expression, result in yaml.safe_load(path.read_text()):
                yield Example(path.stem, expression, result)
