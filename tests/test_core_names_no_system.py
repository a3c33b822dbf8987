"""The core knows no system: outside `systems/` no word of its source, templates, scripts and styles names one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import jobtable

CORE = Path(jobtable.__file__).parent
SYSTEM_WORD = re.compile(r"sweep|journey|conversation|album|receipt", re.IGNORECASE)
ALLOWED = {
    "objects sweep": "the command that removes objects that no record names; no system has a part in it",
    'Name("sweep_id")': "the stored name of QueueJob.group_id, from the specification of the main table",
    "from jobtable.objects.orphans import": "the verb of `objects sweep`",
    "A conversation must": "how Bedrock refuses messages, in the scripted service",
    "Make sure the conversation alternates": "the same",
    "Try again with a conversation that": "the same",
}
SWEEPS_OBJECTS = {"objects/orphans.py", "objects/__init__.py", "cli/objects.py"}
"""The files of `objects sweep`, in which the word is that verb."""
ENDINGS = {".py", ".html", ".js", ".css", ".svg", ".typed", ".md"}


def sources() -> Iterator[tuple[str, str]]:
    """Yield the text of every file of the core, by its name."""
    for path in sorted(CORE.rglob("*")):
        name = path.relative_to(CORE).as_posix()
        if path.suffix in ENDINGS and not name.startswith("systems/"):
            yield name, path.read_text()


def named_in(name: str, text: str) -> list[str]:
    """Return the lines that name a system, with their numbers."""
    for phrase in ALLOWED:
        text = text.replace(phrase, "")
    if name in SWEEPS_OBJECTS:
        text = re.sub("sweep", "", text, flags=re.IGNORECASE)
    lines = enumerate(text.splitlines(), start=1)
    return [f"{name}:{number}: {line.strip()}" for number, line in lines if SYSTEM_WORD.search(line)]


def test_no_file_of_the_core_names_a_system() -> None:
    assert [line for name, text in sources() for line in named_in(name, text)] == []


def test_no_file_of_the_core_is_called_as_a_system() -> None:
    assert [name for name, _ in sources() if SYSTEM_WORD.search(name) and name not in SWEEPS_OBJECTS] == []


def test_what_is_allowed_is_needed() -> None:
    text = "".join(text for _, text in sources())
    assert [phrase for phrase in ALLOWED if phrase not in text] == []
    assert {name for name, _ in sources()} >= SWEEPS_OBJECTS


def test_names_of_systems_are_found() -> None:
    assert named_in("web/x.py", "def list_sweeps():\n    ...\n") == ["web/x.py:1: def list_sweeps():"]
    assert named_in("jobs/x.py", "see `objects sweep`\n") == []
