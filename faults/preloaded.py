"""Small libraries that are loaded before libc, so that a program meets them as it would meet the disk."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def compiled(name: str, folder: Path) -> Path:
    """The library of that name, compiled into a folder; FileNotFoundError where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError(f"there is no C compiler to make {name} with")
    library, source = folder / f"{name}.so", Path(__file__).with_name(f"{name}.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library
