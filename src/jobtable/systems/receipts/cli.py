"""`jobtable receipts`: store what OCR has read, look at receipts, labels and validations, move the legacy table."""

from __future__ import annotations

import json
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from jobtable.app import Services
from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.opening import store_of
from jobtable.cli.options import (
    AsJson,
    Limit,
    ObjectsUrl,
    StoreUrl,
    is_missing,
    on_services,
    open_services,
    open_store,
    store_settings,
)
from jobtable.cli.output import (
    bar,
    columns,
    print_either,
    print_fields,
    print_json,
    print_list,
    print_table,
    print_text,
    to_json,
)
from jobtable.connection import connect
from jobtable.errors import TableNotFound, ValueRefusedError, missing
from jobtable.jobs.stored.entities import main
from jobtable.store import Query, Store
from jobtable.systems.receipts.contents import ReceiptContents
from jobtable.systems.receipts.entities import Receipt, ReceiptValidationSummary, ReceiptWordLabel, ValidationStatus
from jobtable.systems.receipts.labels import LabelService
from jobtable.systems.receipts.legacy.migration import Migration
from jobtable.systems.receipts.ocr import OcrResult, OcrService
from jobtable.systems.receipts.validation import ValidationService

app = new_group()
_label_row = columns(
    ReceiptWordLabel,
    "image=image_id receipt=receipt_id line=line_id word=word_id"
    " label status=validation_status by=label_proposed_by reasoning",
)

ImageId = Annotated[str, typer.Argument(metavar="IMAGE", help="Id of the image")]


@app.command(example="jobtable receipts add scan-0001.json")
def add(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON file with the image, lines, words, letters, receipts, ...")
    ],
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
    as_json: AsJson = False,
) -> None:
    """Store the OCR result of an image; storing it again writes only what is missing or differs.

    What only an older result of the image had goes, with the labels of its words and what is known of its receipts.
    """
    try:
        result = TypeAdapter(OcrResult).validate_python(json.loads(file.read_text(encoding="utf-8")))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise ValueRefusedError(f"{file}: {place} cannot be used: {problem['msg'].lower()}") from error
    except (ValueError, RecursionError) as error:
        raise ValueRefusedError(f"{file} is no JSON: {error}") from error
    with open_services(store, objects, creates=True) as services:
        stored = services.get(OcrService).store(result)
    counts = {"written": stored.written, "there already": stored.already_there, "removed": stored.removed}
    print_either(stored, lambda: print_fields(counts), as_json=as_json)


@app.command("list", example="jobtable receipts list --limit 20")
@on_services
def list_receipts(
    ocr: OcrService,
    image: Annotated[str | None, typer.Option(metavar="ID", help="Only receipts on this image")] = None,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List receipts, by image."""
    found = ocr.list_all_receipts() if image is None else ocr.list_receipts(image)
    print_list(found, _receipt_row, as_json=as_json, empty="No receipts match.", limit=limit)


@app.command(example="jobtable receipts show 3f52804b-2fad-4e00-92c8-b593da3a8ed3 1")
@on_services
def show(
    ocr: OcrService,
    image_id: ImageId,
    receipt_id: Annotated[int, typer.Argument(metavar="RECEIPT", min=0, help="Number of the receipt on the image")],
    as_json: AsJson = False,
) -> None:
    """Show a receipt: merchant, text, and the labels of its words."""
    contents = ocr.read_receipt(image_id, receipt_id)
    if as_json:
        print_json({name: to_json(value) for name, value in vars(contents).items()})
        return
    if contents.receipt is not None:
        print_fields(_receipt_row(contents.receipt))
    if contents.metadata is not None:
        merchant = contents.metadata
        print_fields(
            {"merchant": merchant.merchant_name, "address": merchant.address, "sure": merchant.match_confidence}
        )
    rows = _line_rows(contents)
    if rows:
        print_text("")
        print_table(rows)


def _line_rows(contents: ReceiptContents) -> list[dict[str, Any]]:
    labels: dict[tuple[int, int], list[str]] = {}
    for label in contents.labels:
        labels.setdefault((label.line_id, label.word_id), []).append(label.label)
    words = {(word.line_id, word.word_id): word.text for word in contents.words}
    told: dict[int, list[str]] = {}
    for place, names in labels.items():
        told.setdefault(place[0], []).append(f"{words.get(place, '?')}: {', '.join(names)}")
    return [{"line": each.line_id, "text": each.text, "labels": told.get(each.line_id)} for each in contents.lines]


@app.command(example="jobtable receipts labels --status NEEDS_REVIEW")
@on_services
def labels(
    services: Services,
    status: Annotated[str | None, typer.Option(help="Only labels with this validation status, as in VALID")] = None,
    label: Annotated[str | None, typer.Option(help="Only labels with this name, as in MERCHANT_NAME")] = None,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List the labels of words, by status or by name."""
    found = _labels(LabelService(services.jobs.store), status, label)
    chosen = (each for each in found if status in (None, each.validation_status))
    print_list(chosen, _label_row, as_json=as_json, empty="No labels match.", limit=limit)


def _labels(service: LabelService, status: str | None, label: str | None) -> Query[ReceiptWordLabel]:
    if label is not None:
        return service.list_by_label(label)
    return service.list_everywhere() if status is None else service.list_by_status(status)


@app.command(example="jobtable receipts validations --status NEEDS_REVIEW")
@on_services
def validations(
    services: Services,
    status: Annotated[list[str] | None, typer.Option(help="Only validations with this status; repeatable")] = None,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List validations of receipts by status."""
    service = ValidationService(services.jobs.store)
    found = chain.from_iterable(service.list_by_status(each) for each in status or ValidationStatus)
    print_list(found, _validation_row, as_json=as_json, empty="No validations match.", limit=limit)


@app.command(example="jobtable receipts delete 3f52804b-2fad-4e00-92c8-b593da3a8ed3 --yes")
@on_services
def delete(ocr: OcrService, image_id: ImageId, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete an image with its receipts and all their data."""
    confirm(f"Delete image {image_id} with all its receipts?", yes=yes)
    deleted = ocr.delete_image(image_id)
    if not deleted:
        raise missing("image", image_id)
    done = {"image_id": image_id, "items": deleted}
    print_either(done, lambda: print_text(f"{image_id} deleted ({deleted} items)"), as_json=as_json)


@app.command(example="jobtable receipts migrate --store dynamodb://eu-central-1 --dry-run")
def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read everything, but write nothing")] = False,
    store: StoreUrl = None,
    to: Annotated[str | None, typer.Option(metavar="URL", help="Store of the main table, if it is another one")] = None,
    as_json: AsJson = False,
) -> None:
    """Copy the receipts of the legacy table into the main table.

    What stands in the main table is never overwritten, and nothing is taken out of the legacy table. An interrupted
    run goes on where it stopped.
    """
    with (
        open_store(store) as source,
        _main_table_store(to or store, dry_run=dry_run) as target,
        bar("Looking at items") as shown,
    ):
        report = Migration(source, target).run(lambda report: shown.reach(report.read), dry_run=dry_run)
    if as_json:
        print_json(report)
        return
    if report.kinds:
        print_table([{"kind": kind, **report.kinds[kind].model_dump()} for kind in sorted(report.kinds)])
    for problem in report.problems.values():
        print_text(f"{problem.count} items: {problem.reason}, for example {problem.examples[0]}", "yellow")


def _main_table_store(store: str | None, *, dry_run: bool) -> Store:
    """The store of the main table, with the table; to a dry run one in memory, if there is none yet to look into."""
    settings = store_settings(store, creates=True)
    if dry_run and is_missing(settings):
        return _empty_store()
    with ExitStack() as cleanup:
        opened = cleanup.enter_context(store_of(settings))
        try:
            if dry_run:
                opened.tables.describe(main)
            else:
                opened.tables.create(main)
        except TableNotFound:
            return _empty_store()
        cleanup.pop_all()
        return opened


def _empty_store() -> Store:
    store = connect("memory:")
    store.tables.create(main)
    return store


def _receipt_row(receipt: Receipt) -> dict[str, Any]:
    return {
        "image": receipt.image_id,
        "receipt": receipt.receipt_id,
        "size": f"{receipt.width} x {receipt.height}",
        "added": receipt.timestamp_added,
        "picture": f"s3://{receipt.s3_bucket}/{receipt.s3_key}",
    }


def _validation_row(summary: ReceiptValidationSummary) -> dict[str, Any]:
    return {
        "image": summary.image_id,
        "receipt": summary.receipt_id,
        "status": summary.overall_status,
        "time": summary.validation_timestamp,
        "fields": list(summary.field_summary),
        "reasoning": summary.overall_reasoning,
    }
