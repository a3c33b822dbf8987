"""Object stores by URL."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, urlsplit

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import ConnectionUrlError, ValueRefusedError
from jobtable.objects.filesystem import FilesystemObjectStore
from jobtable.objects.keys import key_parts
from jobtable.objects.memory import MemoryObjectStore
from jobtable.objects.object_store import ObjectStore

_FORMS = "memory:, file:PATH or s3://BUCKET/PREFIX?region=REGION&endpoint=URL"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def open_objects(url: str, *, clock: Clock = SYSTEM_CLOCK, creates: bool = True) -> ObjectStore:
    """Open the object store at `memory:`, `file:PATH` or `s3://BUCKET/PREFIX?region=REGION&endpoint=URL`.

    With `creates=False` a missing folder is not created; an empty store in memory replaces it.
    """
    scheme, colon, rest = url.partition(":")
    if url == "memory:":
        return MemoryObjectStore(clock)
    if scheme == "file" and colon:
        folder = _path(url, rest)
        return FilesystemObjectStore(folder, clock) if creates or folder.exists() else MemoryObjectStore(clock)
    if scheme == "s3" and rest.startswith("//"):
        return _s3(url)
    raise ConnectionUrlError(f"{url!r} is not the URL of an object store; use {_FORMS}")


def _path(url: str, rest: str) -> Path:
    if rest.startswith("//"):
        rest = rest.removeprefix("//")
        if not rest.startswith("/"):
            raise ConnectionUrlError(f"{url!r} names a host; use file:PATH or file:///PATH")
    if not rest or "\0" in rest:
        raise ConnectionUrlError(f"{url!r} names no folder; use file:PATH")
    return Path(rest)


def _s3(url: str) -> ObjectStore:
    from jobtable.objects.s3 import S3ObjectStore  # noqa: PLC0415 # boto3 is an extra, and slow to import

    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        prefix = parts.path.strip("/")
        if prefix:
            key_parts(prefix)
    except (ValueError, ValueRefusedError) as error:
        raise ConnectionUrlError(f"{url!r} is invalid: {error}") from error
    unknown = options.keys() - {"region", "endpoint"}
    if unknown or not all(options.values()) or parts.fragment:
        raise ConnectionUrlError(f"{url!r} has unknown options; use {_FORMS}")
    if not _BUCKET.fullmatch(parts.netloc):
        raise ConnectionUrlError(f"{url!r}: {parts.netloc!r} is not a valid bucket name")
    endpoint = options.get("endpoint")
    if endpoint is not None and not _is_http(urlsplit(endpoint)):
        raise ConnectionUrlError(f"{url!r}: the endpoint {endpoint!r} is not an http or https URL")
    return S3ObjectStore(parts.netloc, prefix, region=options.get("region"), endpoint_url=endpoint)


def _is_http(endpoint: SplitResult) -> bool:
    return endpoint.scheme in {"http", "https"} and bool(endpoint.hostname)
