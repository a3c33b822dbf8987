"""Each system has walls: without its folder and its tests, everything else works and passes its tests.

The tests that are run here are a short selection; `make faults ARGS=removed_systems` runs all of them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.checkouts import ROOT, Checkout

SYSTEMS = sorted(each.name for each in (ROOT / "src/jobtable/systems").iterdir() if (each / "system.py").exists())
SELECTION = ("tests/golden", "tests/access_patterns", "tests/test_app.py", "tests/cli/test_main.py")


@pytest.mark.parametrize("removed", [*([name] for name in SYSTEMS), SYSTEMS], ids=" ".join)
def test_the_rest_works_without(removed: list[str], tmp_path: Path) -> None:
    copy = Checkout.copied_to(tmp_path, without=removed)
    listed = copy.run("-c", "from jobtable.system import registered; print(*(each.name for each in registered()))")
    assert not {*removed} & {*listed.split()}
    copy.run("-m", "tests.access_patterns")  # writes the generated pages again, with the server and the command line
    copy.test(*SELECTION)


def test_no_test_imports_a_system_but_its_own() -> None:
    for file in sorted((ROOT / "tests").rglob("*.py")):
        place = file.relative_to(ROOT / "tests").parts
        own = place[1] if place[0] == "systems" else None
        imported = re.findall(r"^(?:from|import) (?:jobtable|tests)\.systems\.(\w+)", file.read_text(), re.MULTILINE)
        assert {*imported} & {*SYSTEMS} <= {own}, file
