"""Images with all their words and letters, stored and read back as wholes, against boto3 on DynamoDB Local."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
from boto3.dynamodb.conditions import Key as KeyCondition
from tests.systems.receipts.pictures import ocr_result

from bench.measure import not_measured, report
from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.stored.entities import main
from jobtable.store.store import Store
from jobtable.store.tables import create_request
from jobtable.systems.receipts.ocr import OcrResult, OcrService
from jobtable.testing.servers import ServerUnavailable, cache_folder, dynamodb_local

IMAGES, PEER_IMAGES = 200, 10
ITEMS_AN_IMAGE = 1 + 10 + 100 + 500
PEER = "boto3 on DynamoDB Local"


def run() -> None:
    try:
        with dynamodb_local(for_long=True) as url:
            peer_stored, peer_read = _with_boto3(url)
    except ServerUnavailable as error:
        not_measured("images against DynamoDB Local", error)
        return
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder()) as folder:
        stored, read = _with_jobtable(Path(folder, "receipts.db"))
    report(f"items of {IMAGES} images stored, typed and durable", stored, PEER, peer_stored)
    report(f"items of {IMAGES} images read, typed", read, PEER, peer_read)


def _image(number: int) -> OcrResult:
    """An image with 10 lines, 100 words and 500 letters."""
    return ocr_result(f"image-{number:05d}", lines=10, words=10, letters=5, receipts=0)


def _with_jobtable(path: Path) -> tuple[float, float]:
    """Items stored and items read per second."""
    results = [_image(number) for number in range(IMAGES)]
    with Store(EmbeddedBackend(path)) as store:
        store.tables.create(main)
        service = OcrService(store)
        stored = _rate(IMAGES, lambda number: service.store(results[number]))

        def read_back(number: int) -> None:
            if list(service.read_image(results[number].image.image_id).letters) != results[number].letters:
                raise RuntimeError(f"image {number} is not what was stored")

        return stored, _rate(IMAGES, read_back)


def _with_boto3(url: str) -> tuple[float, float]:
    local = boto3.resource(
        "dynamodb", endpoint_url=url, region_name="us-east-1", aws_access_key_id="b", aws_secret_access_key="b"
    )
    table = local.create_table(**create_request(main, main.name))
    images = [[_python_item(entity) for entity in _image(n).under_the_image()] for n in range(PEER_IMAGES)]

    def store(number: int) -> None:
        with table.batch_writer() as batch:
            for item in images[number]:
                batch.put_item(Item=item)

    def read(number: int) -> None:
        request: dict[str, Any] = {"KeyConditionExpression": KeyCondition("PK").eq(f"IMAGE#image-{number:05d}")}
        while True:
            response = table.query(**request)
            if "LastEvaluatedKey" not in response:
                return
            request["ExclusiveStartKey"] = response["LastEvaluatedKey"]

    return _rate(PEER_IMAGES, store), _rate(PEER_IMAGES, read)


def _rate(images: int, act: Callable[[int], object]) -> float:
    start = time.perf_counter()
    for number in range(images):
        act(number)
    return images * ITEMS_AN_IMAGE / (time.perf_counter() - start)


def _python_item(entity: Any) -> dict[str, Any]:
    """An entity as boto3's tables take it."""
    item = type(entity).__schema__.codec.encode(entity)
    return {name: _plain(value) for name, value in item.items()}


def _plain(wire: dict[str, Any]) -> Any:
    ((tag, value),) = wire.items()
    if tag == "M":
        return {name: _plain(each) for name, each in value.items()}
    return Decimal(value) if tag == "N" else value
