"""Copies of this checkout that a test may change, and the environment of programs that run from one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
_COPIED = ("src", "tests", "docs", "examples", "bench", "faults")
_IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", "pictures")
_SECONDS = 1800


@dataclass(frozen=True)
class Checkout:
    """A copy, with the entry points that its own pyproject.toml declares."""

    folder: Path

    @classmethod
    def copied_to(cls, folder: Path, *, without: Collection[str] = ()) -> Checkout:
        """Copy this checkout without the folders and the tests of some systems."""
        for name in _COPIED:
            shutil.copytree(ROOT / name, folder / name, ignore=_IGNORED)
        for page in ROOT.glob("*.*"):
            if page.is_file():
                shutil.copy(page, folder)
        for name in without:
            shutil.rmtree(folder / "src" / "jobtable" / "systems" / name)
            shutil.rmtree(folder / "tests" / "systems" / name)
        made = cls(folder)
        made._declare([f"jobtable.systems.{name}." for name in without])
        return made

    def _declare(self, left_out: Sequence[str]) -> None:
        """Write the metadata that an installer would write."""
        declared = tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]["entry-points"]
        points = [
            f"{name} = {value}"
            for name, value in declared["jobtable.systems"].items()
            if not value.startswith(tuple(left_out))
        ]
        metadata = self.folder / "src" / "jobtable-0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: jobtable\nVersion: 0\n")
        (metadata / "entry_points.txt").write_text("\n".join(["[jobtable.systems]", *points, ""]))

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which Python finds the copy instead of this checkout."""
        return {**os.environ, "PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": ""}

    def run(self, *arguments: str) -> str:
        """Run Python with these arguments in the copy and return what it prints; AssertionError if it fails."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stdout[-10_000:]}\n{done.stderr[-5_000:]}"
        return done.stdout

    def test(self, *paths: str, workers: int = 0) -> None:
        """Run tests of the copy."""
        self.run("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", str(workers), *paths)
