"""No two modules of one name in different meanings: a name recurs only for one subject, in another layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import jobtable

ROOT = Path(jobtable.__file__).parent
PARTS = {
    *(
        "api",
        "cli",
        "commands",
        "demo",
        "example",
        "inbox_source",
        "pages",
        "remote",
        "run_api",
        "running",
        "service",
        "system",
        "web",
    ),
}
"""The parts that every system may have, and the core at most once."""
KINDS = {"__main__", "entities", "verbs"}
"""What each package may have: its program, what it stores, and the protocols of its verbs."""
SURFACES = {"cli", "entities", "remote", "testing", "testing/assist", "web", "web/api", "web/pages"}
"""The folders that offer or store what one module of the same name, elsewhere, does."""
REQUESTS = {
    *("backend", "batches", "conditions", "expressions", "projections", "queries", "tables", "transactions"),
    "updates",
}
"""What the store asks of DynamoDB, and the embedded engine answers."""
ENDS = {"dynamodb", "embedded", "embedded/expressions", "model", "store"}
"""The folders of those who ask and those who answer."""


def modules() -> Iterator[str]:
    """Yield the path of every module and package, without its suffix."""
    for path in ROOT.rglob("*.py"):
        module = path.parent if path.stem == "__init__" else path.with_suffix("")
        if module != ROOT:
            yield module.relative_to(ROOT).as_posix()


def find_ambiguous(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the names that stand for several subjects, with their modules."""
    by_name = defaultdict(list)
    for path in paths:
        by_name[path.rpartition("/")[2]].append(path)
    return {name: sorted(found) for name, found in by_name.items() if not is_one_subject(name, found)}


def is_one_subject(name: str, paths: list[str]) -> bool:
    """Return whether modules of one name have one owner, and at most one of them is more than a surface."""
    places = {place_of(path) for path in paths}
    behind = {folder for _, folder in places if folder not in SURFACES}
    if name in KINDS or (name in REQUESTS and behind <= ENDS):
        return True
    if name in PARTS:
        return len([owner for owner, _ in places if not owner]) <= 1
    return len({owner for owner, _ in places}) == 1 and len(behind) <= 1


def place_of(path: str) -> tuple[str, str]:
    """Return whose a module is, the core's or a system's, and its folder there; a package may name its main module."""
    folder, _, name = path.rpartition("/")
    if folder.rpartition("/")[2] == name:
        folder = folder.rpartition("/")[0]
    if not folder.startswith("systems/"):
        return "", folder
    _, system, *rest = folder.split("/")
    return system, "/".join(rest)


def test_no_name_stands_for_several_subjects() -> None:
    assert find_ambiguous(modules()) == {}


def test_what_is_allowed_is_needed() -> None:
    names = {path.rpartition("/")[2] for path in modules()}
    assert (PARTS | KINDS | REQUESTS) - names == set()
    assert {folder for folder in SURFACES | ENDS if not (ROOT / folder).is_dir()} == {"entities"}


@pytest.mark.parametrize(
    "paths",
    [
        ["jobs/lifecycle/endings", "workflows/asl/interpreter/endings"],
        ["embedded/storage/views", "workflows/asl/progress/views"],
        ["web/pages/comparison", "systems/albums/comparison"],
        ["store/queries", "embedded/queries", "jobs/read/queries"],
        ["systems/sweeps/queries", "systems/albums/queries"],
        ["web/api", "workflows/asl/api", "systems/sweeps/web/api"],
    ],
)
def test_two_subjects_of_one_name_are_found(paths: list[str]) -> None:
    assert find_ambiguous([*paths, "jobs/engine"]) == {paths[0].rpartition("/")[2]: sorted(paths)}


@pytest.mark.parametrize(
    "paths",
    [
        ["access/tokens", "cli/tokens", "remote/tokens", "web/api/tokens", "web/pages/tokens"],
        ["jobs/worker", "jobs/worker/worker", "cli/worker"],
        ["systems/receipts/labels", "systems/receipts/entities/labels"],
        ["systems/sweeps/service", "systems/albums/service"],
        ["store/queries", "embedded/queries"],
    ],
)
def test_one_subject_in_several_layers_keeps_its_name(paths: list[str]) -> None:
    assert find_ambiguous(paths) == {}
