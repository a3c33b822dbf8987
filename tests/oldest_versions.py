"""Prints the oldest version of each dependency that pyproject.toml allows, as constraints for pip."""

from __future__ import annotations

import tomllib
from itertools import chain
from pathlib import Path


def oldest_versions() -> list[str]:
    """Such as pydantic==2.10, one for each dependency of the core and of the extras."""
    project = tomllib.loads(Path(__file__).parent.with_name("pyproject.toml").read_text())["project"]
    wanted = chain(project["dependencies"], *project["optional-dependencies"].values())
    return sorted({each.replace(">=", "==") for each in wanted if ">=" in each})


if __name__ == "__main__":
    print("\n".join(oldest_versions()))
