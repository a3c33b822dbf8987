"""Buckets in the object store: the object `KEY` of the bucket `BUCKET` lies under `buckets/BUCKET/KEY`.

The parts of a key between slashes are the parts of the object's key, each percent-encoded by `object_key`, so no bucket
or key names anything outside `buckets/BUCKET`. An empty part, which an object key cannot have, is written `~`, and a
part of tildes alone gets one more: each key of a bucket has one object, and each object one key.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobtable.errors import ObjectNotFoundError, ObjectStoreError, ObjectStoreUnavailable, ValueRefusedError
from jobtable.objects import ListedObject, ObjectStore, object_key
from jobtable.objects.keys import key_parts
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.services.service_faults import sdk_fault

ROOT = "buckets"
"""The first part of every object's key."""


def key_in_bucket(bucket: str, key: str) -> str:
    """Return the key in the object store, or raise ValueRefusedError for one that is empty or too long."""
    if not key:
        raise ValueRefusedError("the key of an object cannot be empty")
    return object_key(ROOT, bucket, *(f"{part}~" if not part.strip("~") else part for part in key.split("/")))


def key_outside(stored: str) -> str:
    """Return the key in its bucket of a key in the object store."""
    parts = key_parts(stored)[2:]
    return "/".join(part[:-1] if not part.strip("~") else part for part in parts)


def list_bucket(objects: ObjectStore, bucket: str, prefix: str = "") -> Iterator[tuple[str, ListedObject]]:
    """Yield the objects of a bucket whose keys start with a text, in the order of their keys."""
    folder, slash, _ = prefix.rpartition("/")
    root = key_in_bucket(bucket, folder) if folder else object_key(ROOT, bucket)
    if slash and not folder:
        root = object_key(ROOT, bucket, "~")
    found = ((key_outside(each.key), each) for each in objects.list(root))
    yield from sorted(((key, each) for key, each in found if key.startswith(prefix)), key=lambda pair: pair[0].encode())


def object_fault(error: Exception, request_id: str) -> StateFault:
    """Return what Step Functions reports of a failure of the object store."""
    if isinstance(error, ObjectNotFoundError):
        message = "The specified key does not exist."
        return sdk_fault("S3.NoSuchKeyException", "S3", message, request_id, 404)
    if isinstance(error, ObjectStoreUnavailable):
        return StateFault("S3.SdkClientException", f"Unable to execute HTTP request: {error}")
    if isinstance(error, ValueRefusedError | ObjectStoreError):
        return sdk_fault("S3.S3Exception", "S3", str(error), request_id)
    raise error
