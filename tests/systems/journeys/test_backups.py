"""Journeys as files: the same again byte for byte, nothing from a file that was damaged or made to do harm."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.clouds import LateIndexes
from tests.interruptions import dies_after
from tests.systems.journeys.access_patterns import execution, journey, log
from tests.systems.journeys.stages import Scripted, script
from tests.systems.journeys.worlds import World, stage, world_on

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import AlreadyExistsError, ArchiveError, ConflictError, JobStateError, ValueRefusedError
from jobtable.jobs.engine import Jobs
from jobtable.jobs.stored.entities import InstanceJob, JobDependency, main
from jobtable.jobs.submit.definition import NewJob
from jobtable.objects import ObjectStore
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.store.backend import Item
from jobtable.systems.journeys.archives import archive, check, journey_backups
from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.archives.restore import Existing
from jobtable.systems.journeys.entities import Journey
from jobtable.systems.journeys.parts import JourneyStatus
from jobtable.systems.journeys.raw_items import position
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.running.stage_jobs import JourneyJobs
from jobtable.systems.journeys.stage import Stage
from jobtable.testing import FakeClock


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
    return JourneyBackups(world.runner)


def backups_with(store: Store, objects: ObjectStore) -> JourneyBackups:
    return JourneyBackups(JourneyRunner(Jobs(store, objects)))


def contents(world: World) -> tuple[list[Item], dict[str, bytes]]:
    """Every item of the journey and of jobs, and every object."""
    objects, store = world.jobs.objects, world.jobs.store
    kept = {found.key: objects.get(found.key) for found in objects.list()}
    items = store.ask("Scan", {"TableName": store.table_name(main), "ConsistentRead": True}, "test")["Items"]
    of_jobs = sorted((item for item in items if item["TYPE"]["S"] != "QUEUE"), key=position)
    return [*backups_of(world).list_items("J1"), *of_jobs], kept


def test_export_wipe_import_gives_the_same_items_and_objects(world: World, tmp_path: Path) -> None:
    world.jobs.store.add(log("J1", "JOB-0", "step", 1, "L\ud7ff%#\u00e4"))
    job = world.jobs.queries.get_job(world.executions("one")[0].job_id)
    world.jobs.store.add(
        InstanceJob(instance_id="i#1", job_id=job.job_id, assigned_at=job.created_at, status=job.status)
    )
    world.jobs.objects.put(f"jobs/{job.job_id}/log/1.txt", b"what it printed")
    before = contents(world)
    kinds = {item["TYPE"]["S"] for item in before[0] if "TYPE" in item}
    assert kinds >= {"JOB", "JOB_STATUS", "JOB_LOG", "JOB_DEPENDENCY", "INSTANCE_JOB"}
    exported = backups_of(world).get_journey_complete("J1", tmp_path / "j.zip")
    assert (exported.items, exported.objects) == (len(before[0]), len(before[1]))
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
    with pytest.raises(AlreadyExistsError, match="merge into it, or replace it"):
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


def test_a_running_journey_is_stopped_and_deleted_when_that_is_asked_for(quick: World) -> None:
    quick.verbs.create_journey(journey("J2"), [stage("J2", 1, "one")])
    quick.runner.run("J2")
    before = contents(quick)
    with pytest.raises(ConflictError, match="while it runs"):
        backups_of(quick).delete_journey("J2")
    assert contents(quick) == before
    assert backups_of(quick).delete_journey("J2", stop=True) > 0
    assert [item for item in contents(quick)[0] if "J2" in json.dumps(item)] == []
    assert quick.jobs.queries.get_queue("journeys").job_count == 0


def test_a_journey_whose_worker_does_not_stop_is_neither_deleted_nor_exported(
    each_store: Store, tmp_path: Path
) -> None:
    world = world_on(each_store)
    world.runner.run("J1")
    (lease,) = world.jobs.claim("journeys", limit=1, instance_id="test", lease_seconds=60)
    with pytest.raises(ConflictError, match="a worker runs job"):
        backups_of(world).get_journey_complete("J1", tmp_path / "j.zip")
    clock = FakeClock(world.jobs.clock.now())  # on which waiting takes no time
    waiting = JourneyBackups(JourneyRunner(Jobs(each_store, world.jobs.objects, clock=clock)))
    with pytest.raises(ConflictError, match="a worker runs job"):
        waiting.delete_journey("J1", stop=True)
    assert world.journey().status is JourneyStatus.CANCELLED
    assert world.journey().creation is None
    world.jobs.release(lease, "it has stopped")
    backups_of(world).delete_journey("J1", stop=True)
    assert contents(world)[0] == []


def test_a_job_of_a_journey_is_not_deleted_without_it(quick: World) -> None:
    for job in JourneyJobs(quick.jobs).list_jobs("J1"):
        with pytest.raises(JobStateError, match="`jobtable journeys delete J1`"):
            quick.jobs.delete(job.job_id, tree=True)


def test_a_job_that_an_execution_only_names_is_not_deleted(quick: World, tmp_path: Path) -> None:
    """Records of executions come from other programs too, and may name any job."""
    other = quick.jobs.submit(NewJob(name="of somebody else", task="builtins:print"))
    quick.jobs.cancel(other.job_id)
    quick.jobs.store.add(execution("J1", 1, "zero", 1, other.job_id))
    backups_of(quick).get_journey_complete("J1", tmp_path / "j.zip")
    with check.checked_archive(tmp_path / "j.zip") as exported:
        assert other.job_id in exported.execution_ids - exported.job_ids
    backups_of(quick).delete_journey("J1")
    assert quick.jobs.queries.get_job(other.job_id).name == "of somebody else"


def test_an_edge_to_a_job_of_somebody_else_is_not_taken_along(quick: World, tmp_path: Path) -> None:
    path = tmp_path / "j.zip"
    (one,) = quick.executions("one")
    other = quick.jobs.submit(NewJob(name="of somebody else", task="builtins:print"))
    edge = JobDependency(
        job_id=one.job_id, dependency_job_id=other.job_id, type="requires", created_at=other.created_at
    )
    quick.jobs.store.add(edge)
    backups_of(quick).get_journey_complete("J1", path)
    backups_of(quick).import_journey_complete(path, Existing.REPLACE)
    assert quick.jobs.store.find(JobDependency.key(job_id=one.job_id, dependency_job_id=other.job_id)) == edge
    backups_of(quick).delete_journey("J1")
    backups_of(quick).import_journey_complete(path)
    assert list(quick.jobs.queries.list_dependencies(one.job_id)) == []


def test_a_job_of_somebody_else_is_not_overwritten(quick: World, tmp_path: Path) -> None:
    path = tmp_path / "j.zip"
    (one,) = quick.executions("one")
    backups_of(quick).get_journey_complete("J1", path)
    backups_of(quick).delete_journey("J1")
    quick.jobs.submit(NewJob(name="of somebody else", task="builtins:print", job_id=one.job_id))
    before = contents(quick)
    for mode in Existing:
        with pytest.raises(ConflictError):
            backups_of(quick).import_journey_complete(path, mode)
    assert contents(quick) == before


def test_a_journey_that_changes_while_it_is_exported_is_not_exported(
    quick: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = archive.write_archive

    def change_meanwhile(*arguments: Any) -> Any:
        now = quick.jobs.clock.now()
        quick.jobs.store.update(Journey.key(journey_id="J1"), Journey.updated_at.set(now))
        return real(*arguments)

    monkeypatch.setattr(journey_backups, "write_archive", change_meanwhile)
    with pytest.raises(ConflictError, match="pause it"):
        backups_of(quick).get_journey_complete("J1", tmp_path / "j.zip")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "j.zip").write_bytes(b"the backup of yesterday")
    with pytest.raises(ConflictError, match="pause it"):
        backups_of(quick).get_journey_complete("J1", tmp_path / "j.zip")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"the backup of yesterday"]


def test_two_exports_to_one_file_do_not_meet_and_it_is_private(quick: World, tmp_path: Path) -> None:
    path = tmp_path / "j.zip"
    contents = archive.ArchiveContents("J1", list(backups_of(quick).list_items("J1")), [], [])

    def export_meanwhile() -> None:
        archive.write_archive(path, contents, quick.jobs.objects, lambda: None)

    archive.write_archive(path, contents, quick.jobs.objects, export_meanwhile)
    assert [each.name for each in tmp_path.iterdir()] == ["j.zip"]
    assert path.stat().st_mode & 0o777 == 0o600
    with check.checked_archive(path) as whole:
        assert whole.manifest.items.count == len(list(whole.items()))


def test_an_export_holds_of_each_object_no_more_than_the_directory_of_the_file(tmp_path: Path) -> None:
    objects = MemoryObjectStore()
    keys = [f"journeys/J1/stages/one/executions/JOB-{number:040d}/logs/first.json" for number in range(3000)]
    for key in keys:
        objects.put(key, b"{}")
    peaks = []
    for count in (1000, 3000):
        tracemalloc.start()
        try:
            archive.write_archive(
                tmp_path / "j.zip", archive.ArchiveContents("J1", (), (), iter(keys[:count])), objects, lambda: None
            )
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / 2000 < 700


@pytest.mark.parametrize("existing", [Existing.MERGE, Existing.REPLACE])
def test_neither_export_nor_import_holds_the_executions_and_their_jobs(tmp_path: Path, existing: Existing) -> None:
    peaks = []
    for count in (105, 255):  # what else is held differs by half a megabyte from run to run
        with Store(EmbeddedBackend(None)) as store:
            world = _finished(world_on(store))
            _add_large_executions(world, count)
            tracemalloc.start()
            try:
                backups_of(world).get_journey_complete("J1", tmp_path / "j.zip")
                backups_of(world).import_journey_complete(tmp_path / "j.zip", existing)
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / 150 < 15_000


def _add_large_executions(world: World, count: int) -> None:
    (execution,) = world.executions("one")
    job = world.jobs.queries.get_job(execution.job_id)
    large = {"text": "x" * 60_000}
    numbers = range(2, count + 2)
    world.jobs.store.batch_put(
        job.replace(job_id=f"JOB-{number}", job_config={**job.job_config, "metadata": large}) for number in numbers
    )
    world.jobs.store.batch_put(
        execution.replace(job_id=f"JOB-{number}", execution_number=number, results=large) for number in numbers
    )


def test_an_export_says_so_where_a_journey_has_more_objects_than_a_file_can_have(
    quick: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_OBJECTS", 3)
    with pytest.raises(ValueRefusedError, match="J1 has more than 3 objects"):
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


def test_a_journey_is_deleted_though_indexes_still_show_its_jobs() -> None:
    clock = FakeClock()
    with Store(LateIndexes(clock), clock=clock) as store:
        world = world_on(store)
        world.runner.run("J1")
        while world.journey().status is JourneyStatus.RUNNING:
            clock.advance(2)  # or nobody would find the next job
            world.work()
        backups_of(world).delete_journey("J1")
        assert contents(world) == ([], {})


def test_an_interrupted_deletion_goes_on_when_it_is_run_again(quick: World, tmp_path: Path) -> None:
    """Wherever the process dies: what is left can be deleted, and cannot be run."""
    path = tmp_path / "j.zip"
    backups_of(quick).get_journey_complete("J1", path)
    before = contents(quick)
    for writes in range(1000):
        delete = lambda store, objects: backups_with(store, objects).delete_journey("J1")  # noqa: E731 - used at once
        if not dies_after(quick.jobs.store, quick.jobs.objects, writes, delete):
            assert writes > 10
            break
        if writes > 0:
            with pytest.raises(ConflictError, match="incomplete"):
                quick.runner.run("J1")
        backups_of(quick).delete_journey("J1")
        assert contents(quick) == ([], {})
        backups_of(quick).import_journey_complete(path)
        assert contents(quick) == before
    assert contents(quick) == ([], {})


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
    bring_in = lambda store, objects: backups_with(store, objects).import_journey_complete(path, mode)  # noqa: E731
    assert dies_after(quick.jobs.store, quick.jobs.objects, 5, bring_in)
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
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
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
    with pytest.raises(ArchiveError), check.checked_archive(path):
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
    archive.seal(path)
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


def with_jobs(change_items: Callable[[list[Any]], Any]) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        items = [json.loads(line) for line in members["jobs.jsonl"].splitlines()]
        change_items(items)
        text = b"".join(json.dumps(item).encode() + b"\n" for item in items)
        members["jobs.jsonl"] = text
        told = {"count": len(items), "size": len(text), "sha256": hashlib.sha256(text).hexdigest()}
        with_manifest(jobs=told)(members)

    return change


def first_job(items: list[Any]) -> Any:
    return next(item for item in items if item["SK"]["S"] == "JOB")


def of_journey(journey_id: str, items: list[Any]) -> None:
    first_job(items)["job_config"]["M"]["params"]["M"]["journey_id"] = {"S": journey_id}


def of_task(task: str, items: list[Any]) -> None:
    first_job(items)["job_config"]["M"]["task"] = {"S": task}


def without_the_journey(items: list[Any]) -> None:
    items[:] = [item for item in items if item["SK"]["S"] != "METADATA"]


HOSTILE: dict[str, tuple[Callable[[dict[str, bytes]], Any], str]] = {
    "another format": (with_manifest(format="tar"), "manifest is invalid"),
    "a later version": (with_manifest(version=3), "manifest is invalid"),
    "an unknown member": (with_manifest(more=1), "manifest is invalid"),
    "another journey": (with_manifest(journey_id="J2"), "does not belong"),
    "no manifest": (lambda members: members.pop("manifest.json"), "no manifest"),
    "a path out of the archive": (with_first_object(name="../../evil"), "manifest is invalid"),
    "a key out of the journey": (with_first_object(key="journeys/J2/x.json"), "does not belong"),
    "a key out of the store": (with_first_object(key="journeys/J1/../../x"), "impossible"),
    "a size that is too small": (with_first_object(size=1), "not match the manifest"),
    "a bomb": (with_first_object(size=1 << 50), "are allowed"),
    "another checksum": (with_first_object(sha256="0" * 64), "not match the manifest"),
    "a member more": (lambda members: members.update({"objects/9999999": b"x"}), "does not match"),
    "a member less": (lambda members: members.pop("objects/0000001"), "does not match"),
    "an item of another partition": (with_items(lambda items: items[3].update(PK={"S": "JOURNEY#J2"})), "belong"),
    "a job of another journey": (with_jobs(lambda items: of_journey("J2", items)), "not an ended"),
    "a job that is to run": (
        with_jobs(lambda items: first_job(items).update(status={"S": "PENDING"})),
        "not an ended",
    ),
    "another task": (with_jobs(lambda items: of_task("builtins:print", items)), "not an ended"),
    "an item of another job": (with_jobs(lambda items: items[-1].update(PK={"S": "JOB#Z"})), "does not belong"),
    "an item of a queue": (with_jobs(lambda items: items[-1].update(PK={"S": "QUEUE#Z"})), "not an item|not belong"),
    "items without their job": (with_jobs(lambda items: items.remove(first_job(items))), "are missing"),
    "a job's item twice": (with_jobs(lambda items: items.insert(1, items[0])), "duplicate"),
    "no items of jobs": (lambda members: members.pop("jobs.jsonl"), "does not match"),
    "an item twice": (with_items(lambda items: items.insert(1, items[0])), "duplicate"),
    "no journey": (with_items(without_the_journey), "items do not match"),
    "an item without its shape": (with_items(lambda items: items[0].update(Data={"S": "x"})), "not an item"),
    "an attribute that cannot be": (with_items(lambda items: items[0].update(more={"SS": []})), "not an item.*more"),
    "a job's attribute that cannot be": (with_jobs(lambda items: items[0].update(more={"T": 1})), "not an item.*more"),
    "no item at all": (with_items(lambda items: items.insert(0, [1])), "not an item"),
    "a deep item": (with_item_text(b"[" * 100_000 + b"\n"), "not an item"),
    "an endless item": (with_item_text(b" " * (5 << 20) + b"\n"), "too large"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_was_made_to_do_harm_is_refused(exported: bytes, tmp_path: Path, name: str) -> None:
    change, match = HOSTILE[name]
    refused(rebuilt(exported, tmp_path / "made.zip", change), tmp_path / "j.zip", match)


@given(at=st.integers(1, 700), value=st.integers(0, 255))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whoever_alters_the_headers_gets_a_clear_answer(exported: bytes, tmp_path: Path, at: int, value: int) -> None:
    """Also where all checksums are right, reading gives what the manifest says, or an ArchiveError."""
    body = bytearray(exported[:-64])
    body[-at] = value
    path = tmp_path / "made.zip"
    path.write_bytes(bytes(body) + hashlib.sha256(body).hexdigest().encode())
    with contextlib.suppress(ArchiveError), check.checked_archive(path) as accepted:
        assert sum(1 for _ in accepted.items()) == accepted.manifest.items.count


def test_a_file_of_version_1_brings_no_jobs_and_leaves_those_that_are_there(quick: World, tmp_path: Path) -> None:
    path = tmp_path / "j.zip"
    backups_of(quick).get_journey_complete("J1", path)
    before = contents(quick)
    path.write_bytes(rebuilt(path.read_bytes(), tmp_path / "made.zip", to_version_1))
    done = backups_of(quick).import_journey_complete(path, Existing.REPLACE)
    assert (done.removed_items, done.removed_objects) == (0, 0)
    assert contents(quick) == before
    backups_of(quick).delete_journey("J1")
    backups_of(quick).import_journey_complete(path)
    assert contents(quick)[0] == [item for item in before[0] if "TYPE" not in item]


def to_version_1(members: dict[str, bytes]) -> None:
    del members["jobs.jsonl"]
    manifest = json.loads(members["manifest.json"]) | {"version": 1}
    del manifest["jobs"]
    manifest["objects"] = [entry for entry in manifest["objects"] if entry["key"].startswith("journeys/")]
    members["manifest.json"] = json.dumps(manifest).encode()
    names = {entry["name"] for entry in manifest["objects"]}
    for name in [name for name in members if name.startswith("objects/") and name not in names]:
        del members[name]


def test_an_unusual_method_of_packing_is_refused(exported: bytes, tmp_path: Path) -> None:
    data = rebuilt(exported, tmp_path / "made.zip", lambda members: None, method=zipfile.ZIP_LZMA)
    refused(data, tmp_path / "j.zip", "unusual way")


def test_a_rebuilt_file_without_a_change_is_accepted(exported: bytes, tmp_path: Path) -> None:
    """So that the refusals above are for what was changed."""
    (tmp_path / "j.zip").write_bytes(rebuilt(exported, tmp_path / "made.zip", lambda members: None))
    with check.checked_archive(tmp_path / "j.zip") as accepted:
        assert accepted.manifest.journey_id == "J1"
