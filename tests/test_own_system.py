"""A system of another package, installed from a wheel beside the wheel of jobtable, is part of `jobtable up`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.web.conftest import browser

__all__ = ["browser"]

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "own_system"
_SECONDS = 240


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of programs that find both wheels, and nothing of this checkout."""
    wheels, place = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("installed")
    for source in (ROOT, EXAMPLE):
        _pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(source))
    _pip("install", "--no-deps", "--target", str(place), *map(str, wheels.iterdir()))
    return {**os.environ, "PYTHONPATH": str(place), "COLUMNS": "200"}


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, timeout=_SECONDS)


def _jobtable(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "jobtable", *arguments]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=_SECONDS)
    return done.stdout


@pytest.fixture(scope="module")
def address(installed: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where `jobtable up` serves a new store; the commands of this module use the same one."""
    folder = tmp_path_factory.mktemp("data")
    installed["JOBTABLE_STORE"] = f"file:{folder / 'jobtable.db'}"
    command = [sys.executable, "-m", "jobtable", "up", "--port", "0"]
    with subprocess.Popen(command, env=installed, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield _address(process)
        finally:
            process.terminate()
            process.communicate(timeout=_SECONDS)


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"Jobtable is at (\S+)", line):
            return found[1]
    raise AssertionError("the server did not start")


def test_is_short() -> None:
    files = [each for each in EXAMPLE.rglob("*") if each.is_file() and each.suffix in {".py", ".html", ".toml"}]
    assert 0 < sum(len(each.read_text().splitlines()) for each in files) < 150


def test_the_page_about_it_quotes_it() -> None:
    page = (ROOT / "docs" / "systems" / "own.md").read_text()
    quoted = re.findall(r"```python\n# (\S+)\n(.*?)```", page, re.DOTALL)
    assert {name for name, _ in quoted} == {
        f"evals/{each}.py" for each in ("system", "entities", "tasks", "web/pages", "cli")
    }
    for name, code in quoted:
        assert code in (EXAMPLE / name).read_text(), name


def test_comes_from_the_wheels(installed: dict[str, str]) -> None:
    where = "import evals.system, jobtable; print(evals.system.__file__, jobtable.__file__)"
    done = subprocess.run([sys.executable, "-c", where], env=installed, check=True, capture_output=True, text=True)
    assert all(each.startswith(installed["PYTHONPATH"]) for each in done.stdout.split())


def test_its_command_is_listed_and_its_table_created(installed: dict[str, str], tmp_path: Path) -> None:
    assert "evals" in _jobtable(installed, "--help")
    created = _jobtable(installed, "tables", "create", "--store", f"file:{tmp_path / 'own.db'}", "--system", "evals")
    assert "Evaluations" in created


def test_a_prompt_is_scored_and_shown(installed: dict[str, str], address: str, browser: Browser) -> None:
    page = browser.new_page(base_url=address)
    page.set_default_timeout(_SECONDS * 1000)
    page.goto("/")
    page.get_by_role("link", name="Evaluations").click()
    expect(page.get_by_text("No evaluations yet")).to_be_visible()
    job_id = _jobtable(installed, "evals", "run", "Name the city").strip()
    deadline = time.monotonic() + _SECONDS
    while "COMPLETED" not in _jobtable(installed, "jobs", "show", job_id):
        assert time.monotonic() < deadline, "the worker of `jobtable up` has not run the job"
        time.sleep(0.5)
    page.reload()
    row = page.get_by_role("row").filter(has_text="Name the city")
    expect(row).to_contain_text("100%")
    page.close()
