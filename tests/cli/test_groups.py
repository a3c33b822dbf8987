"""Queues, objects, receipts and settings on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.cli.conftest import CommandLine
from tests.systems.receipts.legacy.table import legacy_items
from tests.systems.receipts.pictures import NOON, ocr_result

from jobtable import connect
from jobtable.cli.output import ExitCode, to_json
from jobtable.jobs.stored.entities import main
from jobtable.systems.receipts.entities import Image, ReceiptWordLabel
from jobtable.systems.receipts.labels import LabelService
from jobtable.systems.receipts.legacy.entities import legacy
from jobtable.systems.receipts.validation import ValidationService


def test_queues_are_created_changed_paused_resumed_and_shown(cli: CommandLine) -> None:
    cli.make_store()
    assert "There are no queues yet" in cli.run("queues", "list").stderr
    made = cli.json("queues", "create", "gpu", "--max-concurrent-jobs", "2", "--description", "big ones")
    assert (made["max_concurrent_jobs"], made["description"]) == (2, "big ones")
    cli.run("queues", "create", "gpu", code=ExitCode.CONFLICT)
    assert cli.json("queues", "change", "gpu", "--priority", "900")["priority"] == 900
    assert cli.json("queues", "pause", "gpu")["paused_at"] is not None
    assert "paused" in cli.run("queues", "list").stdout
    assert cli.json("queues", "resume", "gpu")["paused_at"] is None
    urgent = cli.json("jobs", "submit", "--task", "m:f", "--queue", "gpu", "--priority", "700")["job_id"]
    usual = cli.json("jobs", "submit", "--task", "m:f", "--queue", "gpu")["job_id"]
    shown = cli.json("queues", "show", "gpu")
    assert [place["job_id"] for place in shown["next"]] == [urgent, usual]
    assert shown["queue"]["job_count"] == 2
    assert urgent in cli.run("queues", "show", "gpu").stdout
    cli.run("queues", "show", "none", code=ExitCode.NOT_FOUND)


def test_an_empty_queue_is_deleted(cli: CommandLine) -> None:
    cli.run("jobs", "submit", "--task", "tests.cli.tasks:train", "--queue", "gpu")
    refused = cli.run("queues", "delete", "gpu", "--yes", code=ExitCode.CONFLICT)
    assert "queue gpu cannot be deleted: 1 job waits or runs in it" in refused.stderr
    cli.run("jobs", "cancel", cli.json("jobs", "list")[0]["job_id"])
    assert cli.run("queues", "delete", "gpu", "--yes").stdout == "gpu deleted\n"
    missing = cli.run("queues", "delete", "gpu", "--yes", code=ExitCode.NOT_FOUND)
    assert missing.stderr == "Error: there is no queue gpu; `jobtable queues list` lists them\n"


def test_only_orphans_that_are_old_enough_are_swept(cli: CommandLine) -> None:
    job_id = cli.json("jobs", "submit", "--task", "tests.cli.tasks:train")["job_id"]
    cli.work()
    folder = Path(cli.store.removeprefix("file:") + ".objects")
    for orphan in ("jobs/gone/log/1.txt", f"jobs/{job_id}/artifacts/1/lost.txt", "elsewhere/kept.txt"):
        (folder / orphan).parent.mkdir(parents=True, exist_ok=True)
        (folder / orphan).write_text("12345")
    young = cli.json("objects", "sweep", "--yes")
    assert (young["orphans"], young["objects"]) == (0, 5)
    trial = cli.json("objects", "sweep", "--grace", "0s", "--dry-run")
    assert (trial["orphans"], trial["orphan_bytes"], trial["is_dry_run"]) == (2, 10, True)
    assert "orphans removed" in cli.run("objects", "sweep", "--grace", "0s", "--yes").stdout
    left = {each["key"] for each in cli.json("objects", "list")}
    assert "elsewhere/kept.txt" in left
    assert len([key for key in left if key.startswith(f"jobs/{job_id}/")]) == 2
    assert [each["key"] for each in cli.json("objects", "list", "--prefix", "elsewhere/")] == ["elsewhere/kept.txt"]


def test_what_a_job_has_made_is_written_to_files(cli: CommandLine, tmp_path: Path) -> None:
    job_id = cli.json("jobs", "submit", "--task", "tests.cli.tasks:train")["job_id"]
    cli.work()
    for kind, content in (("checkpoints", b"weights"), ("artifacts", b"content")):
        (made,) = cli.json("jobs", kind, job_id)
        cli.run("objects", "get", made["s3_key"], str(tmp_path / "got"))
        assert (tmp_path / "got").read_bytes() == content
    for wrong, code in ((f"jobs/{job_id}/none", ExitCode.NOT_FOUND), ("../secret", ExitCode.FAILED)):
        cli.run("objects", "get", wrong, str(tmp_path / "got"), code=code)
    assert (tmp_path / "got").read_bytes() == content
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".got")] == []


def test_a_grace_time_is_a_number_and_a_unit(cli: CommandLine) -> None:
    cli.make_store()
    for wrong in ("1", "h", "-1h", "1y", "", "99999999999999d"):
        refused = cli.run("objects", "sweep", f"--grace={wrong}", code=ExitCode.USAGE)
        assert "--grace" in refused.stderr
    assert cli.json("objects", "sweep", "--grace", "90s", "--yes")["orphans"] == 0


def test_receipts_are_added_listed_shown_and_deleted(cli: CommandLine) -> None:
    result = ocr_result("scan-1", receipts=2)
    Path("scan.json").write_text(json.dumps(to_json(result)))
    assert cli.json("receipts", "add", "scan.json")["written"] > 20
    assert cli.json("receipts", "add", "scan.json")["written"] == 0
    assert [each["receipt_id"] for each in cli.json("receipts", "list")] == [1, 2]
    assert len(cli.json("receipts", "list", "--image", "scan-1")) == 2
    label = ReceiptWordLabel(
        image_id="scan-1",
        receipt_id=1,
        line_id=1,
        word_id=2,
        label="TOTAL",
        timestamp_added=NOON,
        validation_status="VALID",
    )
    with connect(cli.store) as store:
        LabelService(store).add([label])
        ValidationService(store).start("scan-1", 2, version="1")
    for options in (["--status", "VALID"], ["--label", "TOTAL"], []):
        assert [each["label"] for each in cli.json("receipts", "labels", *options)] == ["TOTAL"]
    assert cli.json("receipts", "labels", "--label", "TOTAL", "--status", "INVALID") == []
    assert [each["receipt_id"] for each in cli.json("receipts", "validations")] == [2]
    assert "w2: TOTAL" in cli.run("receipts", "show", "scan-1", "1").stdout
    assert len(cli.json("receipts", "show", "scan-1", "1")["words"]) == 4
    cli.run("receipts", "show", "scan-1", "3", code=ExitCode.NOT_FOUND)
    assert cli.json("receipts", "delete", "scan-1", "--yes")["items"] > 20
    cli.run("receipts", "delete", "scan-1", "--yes", code=ExitCode.NOT_FOUND)
    assert "no such receipts" in cli.run("receipts", "list").stderr


def test_a_scan_that_is_not_understood_is_told_in_one_line(cli: CommandLine) -> None:
    for content, said in (
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("{}", "image cannot be used"),
        ('{"image": {"width": 0}}', "image."),
        (json.dumps({"image": to_json(ocr_result("a").image), "linse": []}), "linse cannot be used"),
    ):
        Path("scan.json").write_text(content)
        refused = cli.run("receipts", "add", "scan.json", code=ExitCode.FAILED)
        assert said in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


def test_receipts_are_migrated_once(cli: CommandLine) -> None:
    with connect(cli.store) as store:
        store.tables.create(legacy, main)
        store.batch_put(legacy_items(2))
    trial = cli.json("receipts", "migrate", "--dry-run")
    assert trial["kinds"]["IMAGE"]["read"] > 0
    done = cli.json("receipts", "migrate")
    assert done["finished"] is True
    assert done["kinds"] == trial["kinds"]
    assert "IMAGE" in cli.run("receipts", "migrate").stdout
    with connect(cli.store) as store:
        assert store.query(Image.by_type()).count() == done["kinds"]["IMAGE"]["migrated"]


@pytest.mark.parametrize("is_there", [False, True])
def test_a_dry_run_of_a_migration_creates_nothing(cli: CommandLine, tmp_path: Path, is_there: bool) -> None:
    with connect(cli.store) as store:
        store.tables.create(legacy)
        store.batch_put(legacy_items(2))
    new = f"file:{tmp_path / 'new' / 'new.db'}"
    if is_there:
        connect(new).close()
    trial = cli.json("receipts", "migrate", "--dry-run", "--to", new)
    assert (tmp_path / "new").exists() == is_there
    if is_there:
        with connect(new) as store:
            assert store.tables.names() == []
    cli.json("receipts", "migrate", "--dry-run")
    with connect(cli.store) as store:
        assert store.tables.names() == [legacy.name]
    assert cli.json("receipts", "migrate", "--to", new) == trial


def test_a_dry_run_of_a_sweep_creates_nothing(cli: CommandLine, tmp_path: Path) -> None:
    cli.make_store()
    assert cli.json("objects", "sweep", "--dry-run")["objects"] == 0
    assert not (tmp_path / "jobs.db.objects").exists()
    for orphan in ("jobs/a/log/1.txt", "journeys/a/b/c/log/d/1", "conversations/a/b/votes.csv", "uploads/a/b.png"):
        (tmp_path / "there" / orphan).parent.mkdir(parents=True)
        (tmp_path / "there" / orphan).write_text("1")
    trial = cli.json("objects", "sweep", "--dry-run", "--grace", "0s", "--objects", f"file:{tmp_path / 'there'}")
    assert (trial["objects"], trial["orphans"]) == (4, 4)
    with connect(cli.store) as store:
        assert store.tables.names() == []


def test_a_missing_table_says_how_it_is_made(cli: CommandLine) -> None:
    cli.make_store()
    missing = cli.run("receipts", "migrate", "--dry-run", code=ExitCode.FAILED)
    assert "create it with `jobtable tables create`" in missing.stderr


def test_settings_are_shown_with_where_they_come_from(cli: CommandLine) -> None:
    Path("jobtable.toml").write_text("slots = 3")
    rows = {row["setting"]: row for row in cli.json("config", "show", "--objects", "s3://bucket")}
    assert rows["store"] == {"setting": "store", "value": cli.store, "from": "JOBTABLE_STORE"}
    assert rows["objects"] == {"setting": "objects", "value": "s3://bucket", "from": "--objects"}
    assert rows["slots"] == {"setting": "slots", "value": 3, "from": os.path.join(os.getcwd(), "jobtable.toml")}
    assert rows["port"]["from"] == "default"
    assert "beside the store" in cli.run("config", "show").stdout
    shown = json.dumps(cli.json("config", "show", "--store", "dynamodb+http://key:secret@host:1?prefix=a"))
    assert "secret" not in shown
    assert "dynamodb+http://key:***@host:1?prefix=a" in shown


def test_a_table_is_exported_and_imported_elsewhere(cli: CommandLine) -> None:
    job_id = cli.json("jobs", "submit", "--task", "m:f")["job_id"]
    exported = cli.json("export", "jobtable", "jobs.jsonl")
    assert exported["items"] > 3
    refused = cli.run("import", "jobs.jsonl", code=ExitCode.CONFLICT)
    assert "is not empty; choose `--existing merge` or `--existing replace`" in refused.stderr
    cli.run("import", "jobs.jsonl", "--existing", "merge")
    assert cli.json("import", "jobs.jsonl", "--store", "file:copy.db") == exported
    assert cli.json("jobs", "show", job_id, "--store", "file:copy.db") == cli.json("jobs", "show", job_id)
    Path("jobs.jsonl").write_bytes(Path("jobs.jsonl").read_bytes()[:-10])
    cut = cli.run("import", "jobs.jsonl", "--store", "file:other.db", code=ExitCode.FAILED)
    assert "cut off or altered" in cut.stderr


def test_files_that_cannot_be_used_are_told_in_one_line(cli: CommandLine) -> None:
    cli.run("tables", "create", "--system", "jobs")
    missing = cli.run("import", "missing.jsonl", code=ExitCode.FAILED)
    assert missing.stderr == "Error: missing.jsonl: No such file or directory\n"
    for command in (["export", "jobtable"], ["journeys", "export", "JRN-1"]):
        nowhere = cli.run(*command, "no/folder/file", code=ExitCode.FAILED)
        assert nowhere.stderr.startswith("Error: no/folder/file cannot be written: the folder ")
        assert len(nowhere.stderr.splitlines()) == 1
    unknown = cli.run("export", "jobs", "jobs.jsonl", code=ExitCode.NOT_FOUND)
    assert "there is no table jobs; the tables are jobtable, " in unknown.stderr


@pytest.mark.parametrize("command", [["export", "jobtable"], ["journeys", "export", "JRN-1"]])
def test_what_is_no_file_is_not_replaced(cli: CommandLine, command: list[str]) -> None:
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    for name in ("pipe", "link"):
        assert "would be replaced: name a file" in cli.run(*command, name, code=ExitCode.FAILED).stderr
    assert Path("pipe").is_fifo()
    assert Path("link").is_symlink()
    assert "not the standard output: name one" in cli.run(*command, "-", code=ExitCode.FAILED).stderr
    assert not Path("-").exists()


def test_a_file_is_exported_to_where_a_link_leads(cli: CommandLine) -> None:
    cli.run("tables", "create", "--system", "jobs")
    Path("link").symlink_to("file")
    cli.run("export", "jobtable", "link")
    assert Path("link").is_symlink()
    assert Path("file").read_text().startswith("{")
