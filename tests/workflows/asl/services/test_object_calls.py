"""S3, as states ask it."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workflows.asl.services.conftest import Ask

from jobtable.errors import ValueRefusedError
from jobtable.objects import ObjectStore, key_parts
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.services.buckets import ROOT, key_in_bucket, key_outside, list_bucket

GET, PUT = "aws-sdk:s3:getObject", "aws-sdk:s3:putObject"


@pytest.mark.parametrize(
    ("body", "stored"),
    [("hello", "hello"), ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'), ([], "[]"), (0, "0"), ("", ""), (None, "")],
)
def test_what_is_put_can_be_got(ask: Ask, objects: ObjectStore, body: Any, stored: str) -> None:
    digest = hashlib.md5(stored.encode(), usedforsecurity=False).hexdigest()
    assert ask(PUT, Bucket="photos", Key="a/b.txt", Body=body)["ETag"] == f'"{digest}"'
    assert objects.get("buckets/photos/a/b.txt").decode() == stored
    found = ask(GET, Bucket="photos", Key="a/b.txt")
    assert (found["Body"], found["ContentLength"]) == (stored, len(stored.encode()))
    assert (found["ETag"], found["ContentType"], found["Metadata"]) == (f'"{digest}"', "text/plain", {})
    assert found["LastModified"].endswith("Z")


@pytest.mark.parametrize(
    ("wanted", "body", "shown"),
    [("bytes=2-4", "234", "2-4"), ("bytes=7-", "789", "7-9"), ("bytes=-2", "89", "8-9"), ("bytes=8-99", "89", "8-9")],
)
def test_a_range_is_got(ask: Ask, wanted: str, body: str, shown: str) -> None:
    ask(PUT, Bucket="b", Key="k", Body="0123456789")
    found = ask(GET, Bucket="b", Key="k", Range=wanted)
    assert (found["Body"], found["ContentRange"]) == (body, f"bytes {shown}/10")


FAULTS = {
    "a missing object": (
        GET,
        {"Key": "none"},
        "S3.NoSuchKeyException",
        "specified key does not exist. (Service: S3",
    ),
    "a key that is too long": (PUT, {"Key": "k" * 2000}, "S3.S3Exception", "Status Code: 400"),
    "an empty key": (GET, {"Key": ""}, "S3.S3Exception", "cannot be empty"),
    "a version": (GET, {"Key": "k", "VersionId": "1"}, "S3.S3Exception", "not implemented: VersionId"),
    "a condition": (PUT, {"Key": "k", "IfNoneMatch": "*"}, "S3.S3Exception", "Status Code: 501"),
    "a range after the end": (GET, {"Key": "k", "Range": "bytes=5-"}, "S3.S3Exception", "Status Code: 416"),
    "a range that is none": (GET, {"Key": "k", "Range": "lines=5"}, "States.Runtime", "not a range"),
    "no key": (GET, {}, "States.Runtime", "The field 'Key' is required but was missing"),
    "a key of another type": (GET, {"Key": 5}, "States.Runtime", "must be a STRING"),
}


@pytest.mark.parametrize(("resource", "arguments", "error", "cause"), FAULTS.values(), ids=FAULTS)
def test_refusals(ask: Ask, resource: str, arguments: dict[str, Any], error: str, cause: str) -> None:
    ask(PUT, Bucket="b", Key="k", Body="abc")
    with pytest.raises(StateFault) as caught:
        ask(resource, Bucket="b", **arguments)
    assert caught.value.error == error
    assert cause in caught.value.cause


def test_an_object_that_is_larger_than_a_payload_is_refused_before_it_is_read(ask: Ask, objects: ObjectStore) -> None:
    objects.put("buckets/b/large", b"x" * 262_145)
    with pytest.raises(StateFault) as caught:
        ask(GET, Bucket="b", Key="large")
    assert caught.value.error == "States.DataLimitExceeded"
    assert ask(GET, Bucket="b", Key="large", Range="bytes=0-2")["Body"] == "xxx"


PARTS = st.sampled_from(["", ".", "..", "~", "~~", "a", "A", "%2F", "%", "\\", "\0", "ü", "buckets", "b~"])
KEYS = st.lists(PARTS | st.text(max_size=5), min_size=1, max_size=6).map("/".join)
BUCKETS = st.sampled_from(["b", "..", ".", "a/b", "../..", "~", "buckets"]) | st.text(max_size=8)


@given(bucket=BUCKETS, key=KEYS)
def test_no_bucket_or_key_names_anything_outside_its_folder(bucket: str, key: str) -> None:
    try:
        stored = key_in_bucket(bucket, key)
    except ValueRefusedError:
        return
    assert key_parts(stored)[:2] == (ROOT, bucket)  # each part is one folder: it has no slash and no leading dot
    assert not any(part in ("", ".", "..") or part.startswith(".") for part in stored.split("/"))
    assert key_outside(stored) == key


@given(first=st.tuples(BUCKETS, KEYS), second=st.tuples(BUCKETS, KEYS))
def test_other_keys_are_other_objects(first: tuple[str, str], second: tuple[str, str]) -> None:
    try:
        assert (key_in_bucket(*first) == key_in_bucket(*second)) == (first == second)
    except ValueRefusedError:
        return


def test_a_prefix_is_a_start_of_the_key(objects: ObjectStore) -> None:
    keys = ["a", "a.txt", "ab/c", "/x", "x//y", "x/z/"]
    for key in keys:
        objects.put(key_in_bucket("b", key), b"")
    objects.put(key_in_bucket("bb", "a.txt"), b"")

    def listed(prefix: str) -> list[str]:
        return [key for key, _ in list_bucket(objects, "b", prefix)]

    assert listed("") == sorted(keys)
    assert listed("a") == ["a", "a.txt", "ab/c"]
    assert listed("ab/") == ["ab/c"]
    assert listed("x/") == ["x//y", "x/z/"]
    assert listed("x//") == ["x//y"]
    assert listed("/") == ["/x"]
    assert listed("none") == []
