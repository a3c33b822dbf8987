"""The items of distributed Maps."""

from __future__ import annotations

import gzip
import io
import json
import math
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow.parquet
import pytest

from jobtable.objects import ObjectStore
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.services import parquet_rows
from jobtable.workflows.asl.services.buckets import key_in_bucket
from jobtable.workflows.asl.services.service_calls import ServiceCalls

Put: TypeAlias = Callable[[str, str], None]
LIST = "arn:aws:states:::s3:listObjectsV2"


@pytest.fixture
def put(objects: ObjectStore) -> Put:
    def store(key: str, content: str) -> None:
        data = content.encode()
        objects.put(key_in_bucket("b", key), gzip.compress(data) if key.endswith(".gz") else data)

    return store


def read(services: ServiceCalls, key: str, /, *, resource: str = "arn:aws:states:::s3:getObject", **config: Any) -> Any:
    where = {"Bucket": "b", "Prefix" if resource == LIST else "Key": key}
    return services.read_items({"Resource": resource, "Parameters": where, "ReaderConfig": config})


ROWS = 'id,name\n1,first\n\n2,"second, or\nlast"\n3\n4,more,than,headers\n'
READ = [
    {"id": "1", "name": "first"},
    {"id": "2", "name": "second, or\nlast"},
    {"id": "3", "name": ""},
    {"id": "4", "name": "more"},
]


@pytest.mark.parametrize(
    ("key", "content", "config", "items"),
    [
        ("a.json", "[1, 2, 3]", {"InputType": "JSON"}, [1, 2, 3]),
        ("a.json", "[1, 2, 3]", {"InputType": "JSON", "MaxItems": 2}, [1, 2]),
        ("a.json", '{"a": 1, "b": 2}', {"InputType": "JSON"}, {"a": 1, "b": 2}),
        ("a.json", '{"a/b": [{"c": [5]}]}', {"InputType": "JSON", "ItemsPointer": "/a~1b/0/c"}, [5]),
        ("a.jsonl", '{"a": 1}\n\n2\n', {"InputType": "JSONL"}, [{"a": 1}, 2]),
        ("a.jsonl.gz", "1\n2\n3", {"InputType": "JSONL", "MaxItems": 2}, [1, 2]),
        ("a.csv", ROWS, {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"}, READ),
        ("a.csv", "\ufeff" + ROWS, {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW", "MaxItems": 1}, READ[:1]),
        (
            "a.csv",
            "1;x\r\n2;y\r\n",
            {"InputType": "CSV", "CSVHeaderLocation": "GIVEN", "CSVHeaders": ["n"], "CSVDelimiter": "SEMICOLON"},
            [{"n": "1"}, {"n": "2"}],
        ),
        ("a.tsv", "n\tm\n1\t2", {"InputType": "CSV", "CSVDelimiter": "TAB"}, [{"n": "1", "m": "2"}]),
    ],
)
def test_items_of_an_object(
    services: ServiceCalls, put: Put, key: str, content: str, config: dict[str, Any], items: Any
) -> None:
    put(key, content)
    assert read(services, key, **config) == items


def test_a_list_of_objects(services: ServiceCalls, put: Put) -> None:
    for key in ("in/2.txt", "in/1.txt", "out/3.txt"):
        put(key, key)
    first, second = read(services, "in/", resource=LIST)
    assert (first["Key"], second["Key"], first["Size"]) == ("in/1.txt", "in/2.txt", 8)
    assert set(first) == {"Etag", "Key", "LastModified", "Size", "StorageClass"}
    assert first["Etag"] != second["Etag"]
    assert isinstance(first["LastModified"], int)
    assert len(read(services, "", resource=LIST, MaxItems=2)) == 2
    assert read(services, "none/", resource=LIST) == []


def test_the_items_of_listed_objects(services: ServiceCalls, put: Put) -> None:
    put("in/2.json", "[3]")
    put("in/1.json", "[1, 2]")
    joined = {"Transformation": "LOAD_AND_FLATTEN", "InputType": "JSON"}
    assert read(services, "in/", resource=LIST, **joined) == [1, 2, 3]
    put("in/3.json", "{}")
    with pytest.raises(StateFault, match="is not an array and cannot be joined"):
        read(services, "in/", resource=LIST, **joined)


def test_the_inventory_of_a_bucket(services: ServiceCalls, put: Put) -> None:
    put("data/1.csv.gz", '"photos","a+b%2Fc.jpg","5"\n"photos","d.jpg","6"\n')
    files = [{"key": "data/1.csv.gz", "size": 5}]
    put("manifest.json", json.dumps({"fileFormat": "CSV", "fileSchema": "Bucket, Key, Size", "files": files}))
    items = [{"Bucket": "photos", "Key": "a b/c.jpg", "Size": "5"}, {"Bucket": "photos", "Key": "d.jpg", "Size": "6"}]
    assert read(services, "manifest.json", InputType="MANIFEST") == items
    assert read(services, "manifest.json", ManifestType="S3_INVENTORY", InputType="CSV", MaxItems=1) == items[:1]


def test_the_manifest_of_an_athena_query(services: ServiceCalls, put: Put) -> None:
    put("out/1.csv", "n\n1\n")
    put("out/2.csv", "n\n2\n")
    put("manifest.csv", "s3://b/out/1.csv\ns3://b/out/2.csv\n")
    assert read(services, "manifest.csv", ManifestType="ATHENA_DATA", InputType="CSV") == [{"n": "1"}, {"n": "2"}]


@pytest.mark.parametrize(
    ("content", "config", "cause"),
    [
        (None, {"InputType": "JSON"}, "The specified key does not exist: s3://b/k"),
        ("[1,", {"InputType": "JSON"}, "s3://b/k: Expecting value"),
        ("[NaN]", {"InputType": "JSON"}, "NaN is not JSON"),
        ("[" * 100_000, {"InputType": "JSON"}, "recursion"),
        ("{}", {"InputType": "JSON", "ItemsPointer": "/none"}, "names nothing"),
        ("1\nx", {"InputType": "JSONL"}, "Expecting value"),
        ("", {"InputType": "CSV"}, "CSV headers cannot be empty"),
        ("a", {"InputType": "CSV", "CSVHeaderLocation": "GIVEN"}, "CSV headers cannot be empty"),
        ("a", {"InputType": "CSV", "CSVHeaderLocation": "LAST_ROW"}, "LAST_ROW is not supported"),
        ("a", {"InputType": "CSV", "CSVDelimiter": "DOT"}, "DOT is not supported"),
        ('a\n"b', {"InputType": "CSV"}, "unexpected end of data"),
        ("\udcff", {"InputType": "CSV"}, "can't decode"),
        ("x", {"InputType": "PARQUET"}, "s3://b/k: Parquet"),
        ("x", {"InputType": "ORC"}, "ORC is not supported; use CSV, JSON, JSONL, PARQUET or MANIFEST"),
        ("[]", {"InputType": "MANIFEST"}, "not the manifest of an S3 inventory"),
        ('{"files": [], "fileFormat": "ORC"}', {"InputType": "MANIFEST"}, "use CSV"),
        ("http://b/k", {"InputType": "CSV", "ManifestType": "ATHENA_DATA"}, "not the manifest of an Athena query"),
    ],
)
def test_what_cannot_be_read(
    services: ServiceCalls, objects: ObjectStore, content: str | None, config: dict[str, Any], cause: str
) -> None:
    if content is not None:
        objects.put(key_in_bucket("b", "k"), content.encode(errors="surrogateescape"))
    with pytest.raises(StateFault) as caught:
        read(services, "k", **config)
    assert caught.value.error == "States.ItemReaderFailed"
    assert cause in caught.value.cause
    assert "buckets/" not in caught.value.cause


def test_a_key_that_cannot_be_is_shown_as_it_was_written(services: ServiceCalls) -> None:
    with pytest.raises(StateFault) as caught:
        read(services, "k" * 1_000, InputType="JSON")
    assert "buckets" not in caught.value.cause


# --- Parquet ----------------------------------------------------------------------------------------------------------

NOON = datetime(2025, 11, 1, 12, tzinfo=UTC)
COLUMNS: dict[str, list[Any]] = {
    "n": [1, 2, None],
    "x": [0.5, math.nan, -1.0],
    "name": ["first", "K\u00f6ln", ""],
    "at": [NOON, None, NOON],
    "day": [NOON.date(), None, None],
    "price": [Decimal("9.50"), Decimal("3.00"), None],
    "raw": [b"\x00", b"", None],
    "tags": [["a", "b"], [], None],
    "who": [{"id": 1, "born": NOON.date()}, None, None],
    "took": [timedelta(seconds=1.5), None, None],
    "ok": [True, False, None],
}
FIRST = {
    "n": 1,
    "x": 0.5,
    "name": "first",
    "at": "2025-11-01T12:00:00+00:00",
    "day": "2025-11-01",
    "price": 9.5,
    "raw": "AA==",
    "tags": ["a", "b"],
    "who": {"id": 1, "born": "2025-11-01"},
    "took": 1.5,
    "ok": True,
}


def parquet_file(columns: dict[str, list[Any]], **options: Any) -> bytes:
    written = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), written, **options)
    return written.getvalue()


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "zstd"])
def test_rows_of_a_parquet_file(services: ServiceCalls, objects: ObjectStore, compression: str) -> None:
    objects.put(key_in_bucket("b", "a.parquet"), parquet_file(COLUMNS, compression=compression, row_group_size=2))
    first, second, third = read(services, "a.parquet", InputType="PARQUET")
    assert first == FIRST
    assert (second["x"], second["price"], second["name"]) == (None, 3, "K\u00f6ln")
    assert {name for name, value in third.items() if value is not None} == {"x", "name", "at"}
    assert json.loads(json.dumps([first, second, third], allow_nan=False)) == [first, second, third]
    assert read(services, "a.parquet", InputType="PARQUET", MaxItems=1) == [first]


def test_many_parquet_files_are_one_list(services: ServiceCalls, objects: ObjectStore) -> None:
    rows = 2_500
    for name in ("1", "2"):
        objects.put(key_in_bucket("b", f"out/{name}"), parquet_file({"n": list(range(rows))}))
    objects.put(key_in_bucket("b", "m.csv"), b"s3://b/out/1\ns3://b/out/2\n")
    expected = [{"n": n} for n in range(rows)] * 2
    assert read(services, "m.csv", ManifestType="ATHENA_DATA", InputType="PARQUET") == expected
    assert read(services, "out/", resource=LIST, Transformation="LOAD_AND_FLATTEN", InputType="PARQUET") == expected


def test_a_row_group_that_is_too_large_is_refused(
    services: ServiceCalls, objects: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_rows, "_MOST_GROUP_BYTES", 50)
    objects.put(key_in_bucket("b", "k"), parquet_file({"n": list(range(1_000))}))
    with pytest.raises(StateFault, match=r"s3://b/k: row group 0 has [\d,]+ bytes; at most 50 are allowed"):
        read(services, "k", InputType="PARQUET")


def test_what_zstandard_compressed_is_read(services: ServiceCalls, objects: ObjectStore) -> None:
    objects.put(key_in_bucket("b", "a.jsonl.zst"), pyarrow.compress(b"1\n2\n", "zstd", asbytes=True))
    assert read(services, "a.jsonl.zst", InputType="JSONL") == [1, 2]
    objects.put(key_in_bucket("b", "bad.zst"), b"x")
    with pytest.raises(StateFault, match=r"s3://b/bad\.zst: "):
        read(services, "bad.zst", InputType="JSONL")


def test_without_pyarrow_the_extra_is_named(
    services: ServiceCalls, objects: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.lib", None)
    objects.put(key_in_bucket("b", "a.parquet"), parquet_file({"n": [1]}))
    with pytest.raises(StateFault) as caught:
        read(services, "a.parquet", InputType="PARQUET")
    assert caught.value.error == "States.ItemReaderFailed"
    assert "s3://b/a.parquet: a Parquet file cannot be read without pyarrow" in caught.value.cause
    assert "pip install 'jobtable[parquet]'" in caught.value.cause


def test_other_resources_and_missing_arguments_are_refused(services: ServiceCalls) -> None:
    with pytest.raises(StateFault, match="The resource 'headObject' cannot be read"):
        read(services, "k", resource="arn:aws:states:::s3:headObject", InputType="JSON")
    with pytest.raises(StateFault, match="The field 'Bucket' is required"):
        services.read_items({"Resource": LIST, "Parameters": {}, "ReaderConfig": {}})
