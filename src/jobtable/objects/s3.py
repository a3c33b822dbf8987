"""Objects in an S3 bucket, under a prefix of it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from jobtable.errors import (
    ConnectionUrlError,
    ObjectNotFoundError,
    ObjectStoreError,
    ObjectStoreUnavailable,
    ValueRefusedError,
)
from jobtable.objects.keys import content_type, folder_of, is_key, key_parts
from jobtable.objects.object_store import CHUNK_SIZE, ListedObject, ObjectInfo, Source, check_range, chunks, measured

try:
    from boto3.session import Session
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError
    from botocore.exceptions import ConnectionError as NotConnectedError
except ImportError as error:
    raise ConnectionUrlError("S3 needs boto3: pip install 'jobtable[aws]'") from error

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

PART_SIZE = 16 << 20
"""An object over this size is uploaded in parts of it, one at a time; so this is what a put takes of memory."""

CONNECT_SECONDS = 5
READ_SECONDS = 20
"""How long a server that was asked may be silent. Large objects go in parts, and each part is answered by itself."""
ATTEMPTS = 3
"""How often something is tried that may succeed later.

A server that never answers costs a minute, which is as long as workers wait for object storage: one that holds a job's
last output is free for the next job after two, where an upload was under way before.
"""

MAX_PARTS = 10_000
MAX_URL_TIME = timedelta(days=7)
_LAST_BYTE = 2**63 - 1
_SHA256 = "sha256"
_MISSING = {"NoSuchKey", "NotFound", "404"}
_PASSING = {"SlowDown", "RequestTimeout", "Throttling", "ThrottlingException", "TooManyRequests"}
_SERVER_FAILED = 500


class S3ObjectStore:
    """An ObjectStore in a bucket; credentials and region by AWS's usual rules where none are given.

    The SHA-256 of an object is kept in its metadata, and the server checks it as the bytes arrive. A stream is first
    copied to a temporary file, because its SHA-256 and size must be known before it is sent.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        region: str | None = None,
        endpoint_url: str | None = None,
        credentials: tuple[str, str] | None = None,
    ) -> None:
        config = Config(
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            # Servers other than AWS's rarely answer to bucket names as host names. On AWS, left to itself, the client
            # signs URLs as new buckets do not take them, and for a host that sends them on to another one.
            signature_version="s3v4",
            s3={"addressing_style": "path" if endpoint_url else "virtual"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        access_key, secret_key = credentials or (None, None)
        self._bucket = bucket
        self._folder = folder_of(prefix)
        self._where = f"s3://{bucket}/{prefix}" + (f" at {endpoint_url}" if endpoint_url else "")
        try:
            self._client = Session().client(
                "s3",
                region_name=region,
                endpoint_url=endpoint_url,
                aws_access_key_id=access_key,
                aws_secret_access_key=secret_key,
                config=config,
            )
        except (BotoCoreError, ValueError) as error:
            raise ConnectionUrlError(f"cannot use {self._where}: {error}") from error

    @property
    def bucket(self) -> str:
        return self._bucket

    def put(self, key: str, source: Source) -> ObjectInfo:
        name = self._name(key)
        with _seekable(source) as stream:
            digest, size = measured(stream)
            stream.seek(0)
            options: dict[str, Any] = {
                "Bucket": self._bucket,
                "Key": name,
                "ContentType": content_type(key),
                "Metadata": {_SHA256: digest.hex()},
            }
            with self._errors(f"put {key}"):
                if size <= PART_SIZE:
                    checksum = base64.b64encode(digest).decode()
                    # As bytes: of a file that has grown meanwhile, more would be sent than was announced.
                    self._client.put_object(Body=stream.read(size), ChecksumSHA256=checksum, **options)
                else:
                    self._put_parts(stream, size, digest, options)
        return ObjectInfo(key, size, digest.hex(), content_type(key))

    def get(self, key: str) -> bytes:
        return self._read(key)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        check_range(start, length)
        if length == 0 or start > _LAST_BYTE:
            self._head(key)
            return b""
        try:
            # Of a range that ends behind what it can count to, a server may make the whole object.
            return self._read(key, Range=f"bytes={start}-{min(start + length - 1, _LAST_BYTE)}")
        except _RangeBehindTheEnd:
            return b""

    def open(self, key: str) -> BinaryIO:
        return self._opened(key)

    def head(self, key: str) -> ObjectInfo:
        found = self._head(key)
        kept = found["Metadata"].get(_SHA256)
        if kept is not None:
            return ObjectInfo(key, found["ContentLength"], kept, content_type(key))
        with self.open(key) as stream:  # put by another program
            digest, size = measured(stream)
        return ObjectInfo(key, size, digest.hex(), content_type(key))

    def describe(self, key: str) -> ListedObject:
        found = self._head(key)
        return ListedObject(key, found["ContentLength"], found["LastModified"])

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        return self._listed(self._folder + folder_of(prefix))

    def delete(self, key: str) -> None:
        with contextlib.suppress(ObjectNotFoundError), self._errors(f"delete {key}", missing=key):
            self._client.delete_object(Bucket=self._bucket, Key=self._name(key))

    def url(self, key: str, *, expires_in: timedelta = timedelta(hours=1)) -> str | None:
        if not timedelta(seconds=1) <= expires_in <= MAX_URL_TIME:
            raise ValueRefusedError(f"expires_in must be from a second to 7 days, not {expires_in}")
        parameters = {"Bucket": self._bucket, "Key": self._name(key)}
        with self._errors(f"sign a URL of {key}"):
            url: str = self._client.generate_presigned_url(
                "get_object", Params=parameters, ExpiresIn=int(expires_in.total_seconds())
            )
        return url

    def remove_unfinished(self, before: datetime) -> int:
        removed = 0
        with self._errors("remove unfinished uploads"):
            pages = self._client.get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._folder):
                for upload in page.get("Uploads", []):
                    if upload["Initiated"] < before:
                        self._client.abort_multipart_upload(
                            Bucket=self._bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                        )
                        removed += 1
        return removed

    def close(self) -> None:
        self._client.close()

    def _name(self, key: str) -> str:
        key_parts(key)
        return self._folder + key

    def _head(self, key: str) -> Any:
        with self._errors(f"read {key}", missing=key):
            return self._client.head_object(Bucket=self._bucket, Key=self._name(key))

    def _opened(self, key: str, **options: Any) -> BinaryIO:
        with self._errors(f"get {key}", missing=key):
            answer = self._client.get_object(Bucket=self._bucket, Key=self._name(key), **options)
        return io.BufferedReader(_Body(answer["Body"], f"{key} in {self._where}"), CHUNK_SIZE)

    def _read(self, key: str, **options: Any) -> bytes:
        """Read an answer to its end. The client repeats requests, but not one whose answer breaks off."""
        for _ in range(ATTEMPTS - 1):
            stream = self._opened(key, **options)
            with stream, contextlib.suppress(ObjectStoreUnavailable):
                return stream.read()
        with self._opened(key, **options) as stream:
            return stream.read()

    def _listed(self, folder: str) -> Iterator[ListedObject]:
        with self._errors(f"list {folder or 'all objects'}"):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=folder):
                for entry in page.get("Contents", []):
                    key = entry["Key"].removeprefix(self._folder)
                    if is_key(key):  # another program may have put objects under names of its own
                        yield ListedObject(key, entry["Size"], entry["LastModified"])

    def _put_parts(self, stream: BinaryIO, size: int, digest: bytes, options: dict[str, Any]) -> None:
        target = {"Bucket": self._bucket, "Key": options["Key"]}
        upload = self._client.create_multipart_upload(ChecksumAlgorithm="SHA256", **options)["UploadId"]
        try:
            parts, sent = self._send_parts(stream, max(PART_SIZE, -(-size // MAX_PARTS)), upload, target)
            if sent == digest:
                self._client.complete_multipart_upload(UploadId=upload, MultipartUpload={"Parts": parts}, **target)
                return
        except BaseException:
            # The error that is being raised says more than one of the clean-up would.
            with contextlib.suppress(BotoCoreError, ClientError):
                self._client.abort_multipart_upload(UploadId=upload, **target)
            raise
        self._client.abort_multipart_upload(UploadId=upload, **target)
        raise ObjectStoreError(f"cannot put {options['Key']} in {self._where}: its source changed meanwhile")

    def _send_parts(
        self, stream: BinaryIO, part_size: int, upload: str, target: dict[str, str]
    ) -> tuple[Sequence[CompletedPartTypeDef], bytes]:
        """The parts as S3 wants to hear of them, and the SHA-256 of what was sent."""
        parts: list[CompletedPartTypeDef] = []
        sent = hashlib.sha256()
        while data := stream.read(part_size):
            sent.update(data)
            checksum = base64.b64encode(hashlib.sha256(data).digest()).decode()
            part = self._client.upload_part(
                Body=data, PartNumber=len(parts) + 1, UploadId=upload, ChecksumSHA256=checksum, **target
            )
            parts.append({"PartNumber": len(parts) + 1, "ETag": part["ETag"], "ChecksumSHA256": checksum})
        return parts, sent.digest()

    @contextlib.contextmanager
    def _errors(self, action: str, missing: str | None = None) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            answer = error.response.get("Error", {})
            code, message = answer.get("Code", ""), answer.get("Message", "")
            if missing is not None and code in _MISSING:
                raise ObjectNotFoundError(f"there is no object {missing!r} in {self._where}") from error
            kind = _RangeBehindTheEnd if code == "InvalidRange" else _kind_of(error)
            raise kind(f"cannot {action} in {self._where}: {code}: {message}") from error
        except BotoCoreError as error:
            raise _kind_of(error)(f"cannot {action} in {self._where}: {error}") from error


def _kind_of(error: ClientError | BotoCoreError) -> type[ObjectStoreError]:
    """Whether the same may succeed later: the server is overloaded or failed, or the connection did."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        is_passing = status >= _SERVER_FAILED or error.response.get("Error", {}).get("Code") in _PASSING
    else:
        is_passing = isinstance(error, HTTPClientError | NotConnectedError | IncompleteReadError)
    return ObjectStoreUnavailable if is_passing else ObjectStoreError


class _RangeBehindTheEnd(ObjectStoreError):
    """The object ends before the range begins."""


class _Body(io.RawIOBase):
    """A response's body as a raw stream, whose errors are those of this package."""

    def __init__(self, body: StreamingBody, what: str) -> None:
        self._body = body
        self._what = what

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._body.read(len(buffer))
        except BotoCoreError as error:
            raise _kind_of(error)(f"cannot read {self._what} to its end: {error}") from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._body.close()
        super().close()


@contextlib.contextmanager
def _seekable(source: Source) -> Iterator[BinaryIO]:
    if isinstance(source, bytes):
        yield io.BytesIO(source)
    elif isinstance(source, Path):
        with source.open("rb") as stream:
            yield stream
    else:
        with tempfile.TemporaryFile(prefix="jobtable-put-") as copy:
            for chunk in chunks(source):
                copy.write(chunk)
            copy.seek(0)
            yield copy
