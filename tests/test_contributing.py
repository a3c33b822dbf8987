"""The recipes of CONTRIBUTING.md work: the package that they write is installed, and each part of it is used."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
_SECONDS = 240


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `notes` as the page writes it, and the metadata that an installer would write."""
    folder = tmp_path_factory.mktemp("recipes")
    written = re.findall(r"^```\w+\n(?:# |\{# )([\w/.]+)(?: #\})?\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(written) == 9
    for name, text in written:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for package in ("notes", "notes/web"):
        (folder / package / "__init__.py").touch()
    metadata = folder / "notes-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: notes\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text("[jobtable.systems]\nnotes = notes.system:SYSTEM\n")
    return folder


def run(folder: Path, *arguments: str) -> str:
    """Run Python where the package is installed, with a store of this folder, and return what it prints."""
    paths = os.pathsep.join([str(folder), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "JOBTABLE_STORE": "file:recipes.db", "COLUMNS": "200"}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def follow(folder: Path, heading: str) -> str:
    """Run the commands of a recipe and return what the last one prints."""
    recipe = PAGE.split(f"\n### {heading}\n")[1].split("\n### ")[0]
    printed = ""
    for line in re.findall(r"^\$ jobtable (.*)$", recipe, re.MULTILINE):
        printed = run(folder, "-m", "jobtable", *shlex.split(line))
    return printed


def test_an_entity_is_stored(folder: Path) -> None:
    script = """
from jobtable import connect
from notes.entities import Note, notes

with connect("memory:") as store:
    store.tables.create(notes)
    store.add(Note(topic="keys#1", number=7, text="Values are escaped"))
    print(store.get(Note.key(topic="keys#1", number=7)).text)
"""
    assert run(folder, "-c", script) == "Values are escaped\n"
    reference = json.loads(run(folder, "-m", "jobtable", "tables", "reference", "--json"))
    assert "Note" in {each["entity"] for each in reference}


def test_a_page_shows_what_a_command_has_stored(folder: Path) -> None:
    assert "Notes" in follow(folder, "An entity")
    assert follow(folder, "A command") == "1\n"
    script = """
from fastapi.testclient import TestClient

from jobtable import Services
from jobtable.settings import Settings
from jobtable.web.application import create_app

with Services.open("file:recipes.db") as services:
    with TestClient(create_app(services, Settings()), base_url="http://127.0.0.1") as client:
        answer = client.get("/notes/keys")
        print(answer.status_code, answer.text)
"""
    printed = run(folder, "-W", "ignore::DeprecationWarning", "-c", script)
    assert printed.startswith("200 ")
    assert "<li>Values are escaped</li>" in printed


def test_a_sweep_asks_the_sampler(folder: Path) -> None:
    follow(folder, "A sampler")
    best = json.loads(run(folder, "-m", "jobtable", "sweeps", "best", "halving", "-n", "4", "--json"))
    assert [each["params"]["x"] for each in best] == [0.125, 0.25, 0.5, 1]


def test_a_journey_runs_the_stage(folder: Path) -> None:
    assert "Hand-over" in follow(folder, "A stage")


def test_every_place_exists() -> None:
    places = set(re.findall(r"`((?:src|jobs|web|cli|tests|docs|faults)/[\w/]+(?:\.\w+)?)/?`", PAGE))
    core = {place for place in places if place.startswith(("jobs/", "web/", "cli/"))}
    assert {place for place in places - core if "NAME" not in place and not (ROOT / place).exists()} == set()
    in_a_system = {"web/pages.py", "web/templates", "web/api.py"}
    assert {each for each in core - in_a_system if not (ROOT / "src/jobtable" / each).exists()} == set()
    journeys = ROOT / "src/jobtable/systems/journeys"
    assert {each for each in in_a_system if not (journeys / each).exists()} == set()
