"""All tests of the product without one of its systems: what is left must not miss it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.checkouts import Checkout
from tests.test_removed_systems import SYSTEMS


def run(trials: int = len(SYSTEMS)) -> Iterator[dict[str, object]]:
    """Remove each system in turn, in a copy, and run every test that is left."""
    for name in SYSTEMS[:trials]:
        with tempfile.TemporaryDirectory() as folder:
            copy = Checkout.copied_to(Path(folder), without=[name])
            copy.run("-m", "tests.access_patterns")
            failure = ""
            try:
                copy.test("tests", workers=2)
            except AssertionError as error:
                failure = str(error)[-2_000:]
        yield {"fault": "removed_systems", "removed": name, "violations": int(bool(failure)), "failure": failure}
