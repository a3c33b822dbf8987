"""ItemReader: the items of a distributed Map, from an object, from a list of objects, or from a manifest of objects."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import islice
from typing import Any, TextIO
from urllib.parse import unquote_plus

from jobtable.errors import JobtableError, ObjectNotFoundError
from jobtable.objects import ListedObject, ObjectStore
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.run import Json
from jobtable.workflows.asl.services.buckets import key_in_bucket, list_bucket
from jobtable.workflows.asl.services.parquet_rows import decompressed, read_rows

ITEM_READER_FAILED = "States.ItemReaderFailed"
_DELIMITERS = {"COMMA": ",", "PIPE": "|", "SEMICOLON": ";", "SPACE": " ", "TAB": "\t"}


class ReaderFault(ValueError):
    """An ItemReader cannot be followed; the message says why."""


def read_items(objects: ObjectStore, reader: Json) -> Json:
    """Return the items that an evaluated ItemReader names, or raise StateFault."""
    try:
        return _ItemReader(objects, reader).read()
    except (JobtableError, ValueError, RecursionError) as error:
        raise StateFault(ITEM_READER_FAILED, str(error)) from error


class _ItemReader:
    def __init__(self, objects: ObjectStore, reader: Json) -> None:
        self._objects = objects
        self._config: Mapping[str, Json] = reader.get("ReaderConfig") or {}
        self._arguments: Mapping[str, Json] = reader.get("Parameters") or {}
        self._action = str(reader.get("Resource", "")).rpartition(":")[2]
        self._bucket = self._argument("Bucket")
        most = self._config.get("MaxItems")
        self._most = None if most is None else int(most)
        self._input_type = self._config.get("InputType")

    def read(self) -> Json:
        """Return the items."""
        if self._action == "listObjectsV2":
            return self._listed()
        if self._action != "getObject":
            raise ReaderFault(f"The resource '{self._action}' cannot be read; use s3:getObject or s3:listObjectsV2")
        key = self._argument("Key")
        if self._config.get("ManifestType") == "ATHENA_DATA":
            return self._first(self._items_of_all(self._athena_objects(key)))
        if self._input_type == "MANIFEST" or self._config.get("ManifestType") == "S3_INVENTORY":
            return self._first(self._inventory(key))
        return self._items_of(self._bucket, key)

    # --- lists and manifests ------------------------------------------------------------------------------------------

    def _listed(self) -> Json:
        found = list_bucket(self._objects, self._bucket, str(self._arguments.get("Prefix") or ""))
        if self._config.get("Transformation") == "LOAD_AND_FLATTEN":
            return self._first(self._items_of_all((self._bucket, key) for key, _ in found))
        return self._first(_listing(key, each) for key, each in found)

    def _inventory(self, key: str) -> Iterator[Json]:
        """Yield what an S3 inventory says about each object."""
        manifest = self._json(self._bucket, key)
        if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), list):
            raise ReaderFault(f"{key} is not the manifest of an S3 inventory: it has no 'files'")
        if manifest.get("fileFormat") != "CSV":
            raise ReaderFault(f"Inventories in the format {manifest.get('fileFormat')} are not supported; use CSV")
        names = [name.strip() for name in str(manifest.get("fileSchema", "")).split(",")]
        for file in manifest["files"]:
            with self._open(self._bucket, str(file["key"])) as text:
                for row in csv.reader(text):
                    record = dict(zip(names, row, strict=False))
                    yield {**record, "Key": unquote_plus(record["Key"])} if "Key" in record else record

    def _athena_objects(self, key: str) -> Iterator[tuple[str, str]]:
        """Yield the bucket and the key of each object in the manifest of an Athena query."""
        with self._open(self._bucket, key) as text:
            for row in csv.reader(text):
                bucket, slash, name = (row[0] if row else "").removeprefix("s3://").partition("/")
                if not slash or not row[0].startswith("s3://"):
                    raise ReaderFault(
                        f"{key} is not the manifest of an Athena query: {row!r} is not the URL of an object"
                    )
                yield bucket, name

    def _items_of_all(self, found: Iterator[tuple[str, str]]) -> Iterator[Json]:
        for bucket, key in found:
            items = self._items_of(bucket, key)
            if not isinstance(items, list):
                raise ReaderFault(f"{key} is not an array and cannot be joined with the items of other objects")
            yield from items

    # --- one object ---------------------------------------------------------------------------------------------------

    def _items_of(self, bucket: str, key: str) -> Json:
        readers: dict[str | None, Callable[[str, str], Json]] = {
            "JSON": self._json,
            "JSONL": lambda *at: self._first(self._lines(*at)),
            "CSV": lambda *at: self._first(self._rows(*at)),
            "PARQUET": lambda *at: self._first(self._parquet_rows(*at)),
        }
        if self._input_type not in readers:
            known = "CSV, JSON, JSONL, PARQUET or MANIFEST"
            raise ReaderFault(f"The InputType {self._input_type} is not supported; use {known}")
        items = readers[self._input_type](bucket, key)
        if self._input_type == "JSON":
            items = _at_pointer(items, self._config.get("ItemsPointer") or "")
            if isinstance(items, list) and self._most is not None:
                return items[: self._most]
        return items

    def _json(self, bucket: str, key: str) -> Json:
        with self._open(bucket, key) as text:
            return json.load(text, parse_constant=_refuse_constant)

    def _lines(self, bucket: str, key: str) -> Iterator[Json]:
        with self._open(bucket, key) as text:
            for line in text:
                if line.strip():
                    yield json.loads(line, parse_constant=_refuse_constant)

    def _rows(self, bucket: str, key: str) -> Iterator[Json]:
        delimiter = self._config.get("CSVDelimiter", "COMMA")
        if delimiter not in _DELIMITERS:
            raise ReaderFault(f"The CSVDelimiter {delimiter} is not supported; use {', '.join(_DELIMITERS)}")
        with self._open(bucket, key) as text:
            rows = csv.reader(text, delimiter=_DELIMITERS[delimiter], strict=True)
            headers = self._headers(rows)
            for row in rows:
                if row:
                    yield {name: row[index] if index < len(row) else "" for index, name in enumerate(headers)}

    def _headers(self, rows: Iterator[list[str]]) -> list[str]:
        location = self._config.get("CSVHeaderLocation", "FIRST_ROW")
        if location == "GIVEN":
            headers = self._config.get("CSVHeaders") or []
        elif location == "FIRST_ROW":
            headers = next(rows, [])
        else:
            raise ReaderFault(f"The CSVHeaderLocation {location} is not supported; use FIRST_ROW or GIVEN")
        if not headers:
            raise ReaderFault("CSV headers cannot be empty")
        return list(headers)

    def _parquet_rows(self, bucket: str, key: str) -> Iterator[Json]:
        with self._open_bytes(bucket, key) as content, tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(content, copy)  # the rows lie behind a directory at the end
            copy.seek(0)
            yield from read_rows(copy)

    @contextmanager
    def _open(self, bucket: str, key: str) -> Iterator[TextIO]:
        with self._open_bytes(bucket, key) as content, TextIOWrapper(content, "utf-8-sig", newline="") as text:
            yield text

    @contextmanager
    def _open_bytes(self, bucket: str, key: str) -> Iterator[Any]:
        """Open an object, unpacked; a fault names it as the definition does."""
        stored, place = key_in_bucket(bucket, key), f"s3://{bucket}/{key}"
        try:
            with self._objects.open(stored) as content:
                if key.endswith(".gz"):
                    yield gzip.GzipFile(fileobj=content)
                else:
                    yield decompressed(content) if key.endswith(".zst") else content
        except ObjectNotFoundError as error:
            raise ReaderFault(f"The specified key does not exist: {place}") from error
        except JobtableError as error:
            raise ReaderFault(f"{place}: {str(error).replace(stored, place)}") from error
        except ReaderFault:
            raise
        except (ValueError, csv.Error, OSError, EOFError, RecursionError) as error:
            raise ReaderFault(f"{place}: {error}") from error

    def _first(self, items: Iterator[Json]) -> list[Json]:
        return list(islice(items, self._most))

    def _argument(self, name: str) -> str:
        value = self._arguments.get(name)
        if not isinstance(value, str) or not value:
            raise ReaderFault(f"The field '{name}' is required but was missing")
        return value


def _listing(key: str, found: ListedObject) -> dict[str, Json]:
    # Reading every object for a digest of its content would take too long.
    digest = hashlib.md5(f"{key}/{found.size}/{found.modified_at}".encode(), usedforsecurity=False).hexdigest()
    return {
        "Etag": f'"{digest}"',
        "Key": key,
        "LastModified": int(found.modified_at.timestamp()),
        "Size": found.size,
        "StorageClass": "STANDARD",
    }


def _at_pointer(value: Json, pointer: str) -> Json:
    """Return what a JSON Pointer names."""
    if not pointer:
        return value
    for part in pointer.removeprefix("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise ReaderFault(f"The ItemsPointer '{pointer}' names nothing in the object")
    return value


def _refuse_constant(name: str) -> None:
    raise ReaderFault(f"{name} is not JSON")
