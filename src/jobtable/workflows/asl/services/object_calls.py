"""S3: getObject and putObject on the object store.

The object store keeps bytes: the type of an object follows from the suffix of its key, and it has no metadata, versions
or owners. What would depend on them is refused as not implemented.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from jobtable.errors import ObjectNotFoundError, ObjectStoreError, ValueRefusedError
from jobtable.objects import ObjectStore
from jobtable.objects.keys import content_type
from jobtable.workflows.asl.interpreter.strand import dump, write_instant
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.run import MOST_PAYLOAD_BYTES, CallService, Json
from jobtable.workflows.asl.services.buckets import key_in_bucket, object_fault
from jobtable.workflows.asl.services.service_faults import (
    members_of_request,
    optional_text,
    required_text,
    sdk_fault,
    unusable_parameters,
)

_KNOWN = {
    "getObject": frozenset({"Bucket", "Key", "Range", "ExpectedBucketOwner", "RequestPayer", "ChecksumMode"}),
    "putObject": frozenset(
        {
            "ACL",
            "Body",
            "Bucket",
            "BucketKeyEnabled",
            "ContentType",
            "ExpectedBucketOwner",
            "Key",
            "RequestPayer",
            "SSEKMSKeyId",
            "ServerSideEncryption",
            "StorageClass",
        }
    ),
}
"""What a call may have: members about access, encryption and storage classes mean nothing here."""
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


def call_objects(objects: ObjectStore, command: CallService, request_id: str) -> Json:
    """Get or put an object and return the answer as Step Functions passes it on."""
    arguments = members_of_request(command)
    bucket, key = required_text(arguments, "Bucket"), required_text(arguments, "Key")
    for name in arguments:
        if name not in _KNOWN[command.action]:
            message = f"A header you provided implies functionality that is not implemented: {name}"
            raise sdk_fault("S3.S3Exception", "S3", message, request_id, 501)
    try:
        stored = key_in_bucket(bucket, key)
        if command.action == "putObject":
            return _put(objects, stored, arguments.get("Body"))
        return _get(objects, stored, arguments, request_id)
    except (ObjectNotFoundError, ObjectStoreError, ValueRefusedError) as error:
        raise object_fault(error, request_id) from error


def etag(content: bytes) -> str:
    """Return the ETag of an object with this content."""
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _put(objects: ObjectStore, stored: str, body: Json) -> Json:
    content = _content(body)
    objects.put(stored, content)
    return {"ETag": etag(content), "ServerSideEncryption": "AES256"}


def _content(body: Json) -> bytes:
    """Return what is stored: a text as it is, another value as JSON."""
    if body is None:
        return b""
    text = body if isinstance(body, str) else dump(body)
    return text.encode(errors="replace")


def _get(objects: ObjectStore, stored: str, arguments: Mapping[str, Json], request_id: str) -> Json:
    found = objects.describe(stored)
    wanted = optional_text(arguments, "Range")
    start, length = (0, found.size) if wanted is None else _range(arguments, wanted, found.size, request_id)
    if length > MOST_PAYLOAD_BYTES:
        raise StateFault(
            "States.DataLimitExceeded",
            "The state/task 'aws-sdk:s3' returned a result with a size exceeding the maximum number of bytes"
            " service limit.",
        )
    content = objects.get(stored) if wanted is None else objects.get_range(stored, start, length)
    answer: dict[str, Json] = {
        "AcceptRanges": "bytes",
        "Body": content.decode(errors="replace"),
        "ContentLength": len(content),
        "ContentType": content_type(stored),
        "LastModified": write_instant(found.modified_at),
        "Metadata": {},
        "ServerSideEncryption": "AES256",
    }
    if wanted is None:
        answer["ETag"] = etag(content)
    else:
        answer["ContentRange"] = f"bytes {start}-{start + len(content) - 1}/{found.size}"
    return answer


def _range(arguments: Mapping[str, Json], text: str, size: int, request_id: str) -> tuple[int, int]:
    """Return the start and the length of a range such as `bytes=0-99`, `bytes=100-` or `bytes=-100`."""
    found = _RANGE.fullmatch(text)
    if found is None or not (found[1] or found[2]):
        raise unusable_parameters(arguments, f"The value '{text}' for the field 'Range' is not a range of bytes")
    if not found[1]:
        length = min(int(found[2]), size)
        return size - length, length
    start = int(found[1])
    end = min(int(found[2]), size - 1) if found[2] else size - 1
    if start >= size:
        message = "The requested range is not satisfiable"
        raise sdk_fault("S3.S3Exception", "S3", message, request_id, 416)
    return start, max(0, end - start + 1)
