"""Receipts on the command line."""

from __future__ import annotations

import json
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
    assert "No receipts match." in cli.run("receipts", "list").stderr


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


def test_a_missing_table_says_how_it_is_made(cli: CommandLine) -> None:
    cli.make_store()
    missing = cli.run("receipts", "migrate", "--dry-run", code=ExitCode.FAILED)
    assert "create it with `jobtable tables create`" in missing.stderr
