"""Queues, objects, receipts and settings on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.cli.conftest import CommandLine
from tests.cli.exporting import check_that_a_missing_folder_is_refused, check_that_only_files_are_replaced

from jobtable import connect
from jobtable.cli.output import ExitCode
from jobtable.system import declared


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
    assert "orphans deleted" in cli.run("objects", "sweep", "--grace", "0s", "--yes").stdout
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


def test_a_dry_run_of_a_sweep_creates_nothing(cli: CommandLine, tmp_path: Path) -> None:
    cli.make_store()
    assert cli.json("objects", "sweep", "--dry-run")["objects"] == 0
    assert not (tmp_path / "jobs.db.objects").exists()
    prefixes = ["jobs", *(prefix for _, prefixes in declared("objects") for prefix in prefixes)]
    for orphan in (f"{prefix}/a/log/1.txt" for prefix in prefixes):
        (tmp_path / "there" / orphan).parent.mkdir(parents=True)
        (tmp_path / "there" / orphan).write_text("1")
    trial = cli.json("objects", "sweep", "--dry-run", "--grace", "0s", "--objects", f"file:{tmp_path / 'there'}")
    assert (trial["objects"], trial["orphans"]) == (len(prefixes), len(prefixes))
    with connect(cli.store) as store:
        assert store.tables.names() == []


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
    check_that_a_missing_folder_is_refused(cli, "export", "jobtable")
    unknown = cli.run("export", "jobs", "jobs.jsonl", code=ExitCode.NOT_FOUND)
    assert "there is no table jobs; the tables are jobtable, " in unknown.stderr


def test_what_is_no_file_is_not_replaced(cli: CommandLine) -> None:
    check_that_only_files_are_replaced(cli, "export", "jobtable")


def test_a_file_is_exported_to_where_a_link_leads(cli: CommandLine) -> None:
    cli.run("tables", "create", "--system", "jobs")
    Path("link").symlink_to("file")
    cli.run("export", "jobtable", "link")
    assert Path("link").is_symlink()
    assert Path("file").read_text().startswith("{")
