"""Journeys as files: the same again byte for byte, nothing from a file that was damaged or made to do harm."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.access_patterns.journeys import execution, log
from tests.journeys.stages import Scripted, script
from tests.journeys.worlds import World, world_on

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import AlreadyExistsError, ArchiveError, ConflictError
from jobtable.journeys import archive, backups
from jobtable.journeys.backups import Existing, JourneyBackups
from jobtable.journeys.entities import Journey
from jobtable.journeys.parts import JourneyStatus
from jobtable.journeys.stage import Stage
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.store.backend import Item


@pytest.fixture
def world(each_store: Store) -> World:
    return _finished(world_on(each_store))


@pytest.fixture
def quick() -> Iterator[World]:
    with Store(EmbeddedBackend(None)) as store:
        yield _finished(world_on(store))


def _finished(world: World) -> World:
    script(one__first=_log_report_and_file)
    world.runner.run("J1")
    world.work()
    assert world.journey().status is JourneyStatus.COMPLETED
    return world


def _log_report_and_file(stage: Stage) -> None:
    stage.log_info("x")
    stage.report("R", results={"a": "b" * 5000})
    stage.write_file("folder", "\u00e4 file#.bin", source=b"\x00\xff" * 999)


def backups_of(world: World) -> JourneyBackups:
    return JourneyBackups(world.jobs.store, world.jobs.objects)


def contents(world: World) -> tuple[list[Item], dict[str, bytes]]:
    """Every item and object of the journey."""
    objects = world.jobs.objects
    kept = {found.key: objects.get(found.key) for found in objects.list("journeys/J1")}
    return list(backups_of(world).list_items("J1")), kept


def test_export_wipe_import_gives_the_same_items_and_objects(world: World, tmp_path: Path) -> None:
    world.jobs.store.add(log("J1", "JOB-0", "step", 1, "L\ud7ff%#\u00e4"))
    before = contents(world)
    manifest = backups_of(world).get_journey_complete("J1", tmp_path / "j.zip")
    assert (manifest.items.count, len(manifest.objects)) == (len(before[0]), len(before[1]))
    assert backups_of(world).delete_journey("J1") == len(before[0])
    assert contents(world) == ([], {})
    done = backups_of(world).import_journey_complete(tmp_path / "j.zip")
    assert (done.items, done.objects) == (len(before[0]), len(before[1]))
    assert contents(world) == before
    assert [path.name for path in tmp_path.iterdir()] == ["j.zip"]


def test_an_import_over_a_journey_must_be_told_what_to_do(quick: World, tmp_path: Path) -> None:
    path = tmp_path / "j.zip"
    backups_of(quick).get_journey_complete("J1", path)
    before = contents(quick)
    with pytest.raises(AlreadyExistsError, match="merge or to replace"):
        backups_of(quick).import_journey_complete(path)
    assert contents(quick) == before


def test_what_is_left_of_a_journey_counts_as_there(quick: World, tmp_path: Path) -> None:
    path = tmp_path / "j.zip"
    backups_of(quick).get_journey_complete("J1", path)
    backups_of(quick).delete_journey("J1")
    quick.jobs.store.add(log("J1", "JOB-0", "step", 1, "L1"))
    with pytest.raises(AlreadyExistsError):
        backups_of(quick).import_journey_complete(path)


def test_replacing_makes_the_journey_what_the_file_says(world: World, tmp_path: Path) -> None:
    path = tmp_path / "j.zip"
    backups_of(world).get_journey_complete("J1", path)
    before = contents(world)
    world.jobs.store.batch_put([log("J1", "JOB-0", "step", n, "L") for n in range(3)])
    world.jobs.store.add(execution("J1", 1, "zero", 1, "JOB-9"))
    world.jobs.store.update(Journey.key(journey_id="J1"), Journey.overall_progress.set(7))
    world.jobs.objects.put("journeys/J1/other.txt", b"x")
    done = backups_of(world).import_journey_complete(path, Existing.REPLACE)
    assert (done.removed_items, done.removed_objects) == (4, 1)
    assert contents(world) == before


def test_merging_adds_what_is_missing_and_counts_anew(world: World, tmp_path: Path) -> None:
    path = tmp_path / "j.zip"
    backups_of(world).get_journey_complete("J1", path)
    (one,) = world.executions("one")
    world.jobs.store.delete(one)
    world.jobs.store.add(log("J1", one.job_id, "own", 1, "L1"))
    key = next(found.key for found in world.jobs.objects.list("journeys/J1"))
    world.jobs.objects.delete(key)
    changed = next(found.key for found in world.jobs.objects.list("journeys/J1"))
    world.jobs.objects.put(changed, b"changed since")
    done = backups_of(world).import_journey_complete(path, Existing.MERGE)
    assert (done.items, done.objects) == (1, 1)
    assert world.executions("one") == [one]
    assert [entry.log_id for entry in world.verbs.list_step_logs("J1", one.job_id, "own")] == ["L1"]
    assert world.jobs.objects.get(changed) == b"changed since"
    assert world.journey().creation is None
    world.check_sums()


def test_a_journey_that_runs_is_not_overwritten_deleted_or_exported_in_between(quick: World, tmp_path: Path) -> None:
    path = tmp_path / "j.zip"
    backups_of(quick).get_journey_complete("J1", path)
    quick.jobs.store.update(Journey.key(journey_id="J1"), Journey.status.set(JourneyStatus.RUNNING))
    for mode in (Existing.MERGE, Existing.REPLACE):
        with pytest.raises(ConflictError, match="while it runs"):
            backups_of(quick).import_journey_complete(path, mode)
    with pytest.raises(ConflictError, match="while it runs"):
        backups_of(quick).delete_journey("J1")


def test_a_journey_that_changes_while_it_is_exported_is_not_exported(
    quick: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = archive.write_archive

    def change_meanwhile(*arguments: Any) -> Any:
        now = quick.jobs.clock.now()
        quick.jobs.store.update(Journey.key(journey_id="J1"), Journey.updated_at.set(now))
        return real(*arguments)

    monkeypatch.setattr(backups, "write_archive", change_meanwhile)
    with pytest.raises(ConflictError, match="pause it"):
        backups_of(quick).get_journey_complete("J1", tmp_path / "j.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_paused_journey_goes_on_where_it_was_imported(tmp_path: Path) -> None:
    """In another store, which knows nothing of the jobs that have run it."""
    path = tmp_path / "j.zip"
    with Store(EmbeddedBackend(None)) as store:
        world = world_on(store)
        script(two__second=lambda step: world.runner.pause("J1"))
        world.runner.run("J1")
        world.work()
        backups_of(world).get_journey_complete("J1", path)
    with Store(EmbeddedBackend(None)) as store:
        world = world_on(store)
        backups_of(world).import_journey_complete(path, Existing.REPLACE)
        world.runner.resume("J1")
        world.work()
        assert Scripted.ran == ["two.third"]
        assert world.journey().status is JourneyStatus.COMPLETED
        world.check_sums()


class Interrupted(Exception):
    """The process died here."""


class InterruptedObjects:
    """Passes everything on, and dies at a put."""

    def __init__(self, objects: ObjectStore, puts: int) -> None:
        self._objects = objects
        self._left = puts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    def put(self, key: str, source: Any) -> Any:
        if self._left == 0:
            raise Interrupted
        self._left -= 1
        return self._objects.put(key, source)


@pytest.mark.parametrize("mode", list(Existing))
def test_an_interrupted_import_goes_on_when_it_is_run_again(quick: World, tmp_path: Path, mode: Existing) -> None:
    path, other = tmp_path / "j.zip", tmp_path / "other.zip"
    backups_of(quick).get_journey_complete("J1", path)
    quick.jobs.store.update(Journey.key(journey_id="J1"), Journey.overall_progress.set(99))
    backups_of(quick).get_journey_complete("J1", other)
    quick.jobs.store.update(Journey.key(journey_id="J1"), Journey.overall_progress.set(100))
    before = contents(quick)
    if mode is Existing.REFUSE:
        backups_of(quick).delete_journey("J1")
    else:
        for found in list(quick.jobs.objects.list("journeys/J1")):
            quick.jobs.objects.delete(found.key)
    dying: Any = InterruptedObjects(quick.jobs.objects, puts=3)
    with pytest.raises(Interrupted):
        JourneyBackups(quick.jobs.store, dying).import_journey_complete(path, mode)
    assert quick.journey().creation is not None
    with pytest.raises(ConflictError):
        quick.runner.run("J1")
    if mode is not Existing.REPLACE:
        with pytest.raises(ConflictError):
            backups_of(quick).import_journey_complete(other, mode)
    backups_of(quick).import_journey_complete(path, mode)
    assert contents(quick) == before


# --- files that were damaged, or made to do harm ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of an export."""
    with Store(EmbeddedBackend(None)) as store:
        path = tmp_path_factory.mktemp("export") / "j.zip"
        backups_of(_finished(world_on(store))).get_journey_complete("J1", path)
        return path.read_bytes()


def refused(data: bytes, path: Path, match: str = "") -> None:
    """Check that an import refuses the file, and that it has written nothing."""
    path.write_bytes(data)
    with Store(EmbeddedBackend(None)) as store:
        world = world_on(store)
        backups_of(world).delete_journey("J1")
        with pytest.raises(ArchiveError, match=match):
            backups_of(world).import_journey_complete(path, Existing.REPLACE)
        assert contents(world) == ([], {})


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_refused(exported: bytes, tmp_path: Path, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(exported) - 1), "at")
    length = data.draw(st.integers(1, 300), "length")
    kind = data.draw(st.sampled_from(["cut", "behead", "flip", "remove", "insert", "append", "repeat"]), "kind")
    damaged = {
        "cut": lambda: exported[:at],
        "behead": lambda: exported[at + 1 :],
        "flip": lambda: exported[:at] + bytes([exported[at] ^ (1 << length % 8)]) + exported[at + 1 :],
        "remove": lambda: exported[:at] + exported[at + length :],
        "insert": lambda: exported[:at] + b"\x00" * length + exported[at:],
        "append": lambda: exported + b"x" * length,
        "repeat": lambda: exported[: at + length] + exported[at:] + b"!",
    }[kind]()
    path = tmp_path / "damaged.zip"
    path.write_bytes(damaged)
    with pytest.raises(ArchiveError), archive.checked_archive(path):
        pytest.fail("it was accepted")


def test_a_damaged_file_writes_nothing(exported: bytes, tmp_path: Path) -> None:
    refused(exported[:-1], tmp_path / "j.zip", "cut or altered")
    refused(b"", tmp_path / "j.zip", "0 bytes")
    refused(b"PK" * 100, tmp_path / "j.zip", "cut or altered")


def rebuilt(exported: bytes, path: Path, change: Callable[[dict[str, bytes]], None], **options: Any) -> bytes:
    """The export with changed members, and with all checksums of the file right again."""
    path.write_bytes(exported)
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", options.get("method", zipfile.ZIP_DEFLATED)) as new:
        for name, content in members.items():
            new.writestr(name, content)
        new.comment = b"0" * 64
    archive._seal(path)
    return path.read_bytes()


def with_manifest(**changes: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members["manifest.json"] = json.dumps(json.loads(members["manifest.json"]) | changes).encode()

    return change


def with_first_object(**changes: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        manifest["objects"][0] |= changes
        members["manifest.json"] = json.dumps(manifest).encode()

    return change


def with_item_text(text: bytes) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members["items.jsonl"] = text
        manifest = json.loads(members["manifest.json"])
        told = {"count": text.count(b"\n"), "size": len(text), "sha256": hashlib.sha256(text).hexdigest()}
        members["manifest.json"] = json.dumps(manifest | {"items": told}).encode()

    return change


def with_items(change_items: Callable[[list[Any]], Any]) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        items = [json.loads(line) for line in members["items.jsonl"].splitlines()]
        change_items(items)
        with_item_text(b"".join(json.dumps(item).encode() + b"\n" for item in items))(members)

    return change


def without_the_journey(items: list[Any]) -> None:
    items[:] = [item for item in items if item["SK"]["S"] != "METADATA"]


HOSTILE: dict[str, tuple[Callable[[dict[str, bytes]], Any], str]] = {
    "another format": (with_manifest(format="tar"), "not understood"),
    "a later version": (with_manifest(version=2), "not understood"),
    "an unknown member": (with_manifest(more=1), "not understood"),
    "another journey": (with_manifest(journey_id="J2"), "does not belong"),
    "no manifest": (lambda members: members.pop("manifest.json"), "no manifest"),
    "a path out of the archive": (with_first_object(name="../../evil"), "not understood"),
    "a key out of the journey": (with_first_object(key="journeys/J2/x.json"), "does not belong"),
    "a key out of the store": (with_first_object(key="journeys/J1/../../x"), "cannot be"),
    "a size that is too small": (with_first_object(size=1), "not what the manifest says"),
    "a bomb": (with_first_object(size=1 << 50), "are allowed"),
    "another checksum": (with_first_object(sha256="0" * 64), "not what the manifest says"),
    "a member more": (lambda members: members.update({"objects/9999999": b"x"}), "not the same"),
    "a member less": (lambda members: members.pop("objects/0000001"), "not the same"),
    "an item of another partition": (with_items(lambda items: items[3].update(PK={"S": "JOURNEY#J2"})), "belong"),
    "an item twice": (with_items(lambda items: items.insert(1, items[0])), "twice"),
    "no journey": (with_items(without_the_journey), "items are not"),
    "an item without its shape": (with_items(lambda items: items[0].pop("Data")), "no item"),
    "no item at all": (with_items(lambda items: items.insert(0, [1])), "no item"),
    "a deep item": (with_item_text(b"[" * 100_000 + b"\n"), "no item"),
    "an endless item": (with_item_text(b" " * (5 << 20) + b"\n"), "larger than it can be"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_was_made_to_do_harm_is_refused(exported: bytes, tmp_path: Path, name: str) -> None:
    change, match = HOSTILE[name]
    refused(rebuilt(exported, tmp_path / "made.zip", change), tmp_path / "j.zip", match)


@given(at=st.integers(1, 700), value=st.integers(0, 255))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whoever_alters_the_headers_gets_a_clear_answer(exported: bytes, tmp_path: Path, at: int, value: int) -> None:
    """Also where all checksums are right, reading gives what the manifest says, or an ArchiveError."""
    body = bytearray(exported[:-64])
    body[-at] = value
    path = tmp_path / "made.zip"
    path.write_bytes(bytes(body) + hashlib.sha256(body).hexdigest().encode())
    with contextlib.suppress(ArchiveError), archive.checked_archive(path) as accepted:
        assert sum(1 for _ in accepted.items()) == accepted.manifest.items.count


def test_an_unusual_method_of_packing_is_refused(exported: bytes, tmp_path: Path) -> None:
    data = rebuilt(exported, tmp_path / "made.zip", lambda members: None, method=zipfile.ZIP_LZMA)
    refused(data, tmp_path / "j.zip", "unusual method")


def test_a_rebuilt_file_without_a_change_is_accepted(exported: bytes, tmp_path: Path) -> None:
    """So that the refusals above are for what was changed."""
    (tmp_path / "j.zip").write_bytes(rebuilt(exported, tmp_path / "made.zip", lambda members: None))
    with archive.checked_archive(tmp_path / "j.zip") as accepted:
        assert accepted.manifest.journey_id == "J1"
