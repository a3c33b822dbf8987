"""Stores by their URLs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import ConnectionUrlError, ErrorReason
from jobtable.settings import without_secret
from jobtable.store.backend import Backend
from jobtable.store.store import Store

_FORMS = (
    "memory:, file:PATH, dynamodb://REGION?prefix=NAME or dynamodb+http://HOST:PORT?prefix=NAME "
    "(dynamodb+https:// as well)"
)

S3_FORM = "s3://BUCKET/PREFIX?region=REGION"
_DYNAMODB = ("dynamodb", "dynamodb+http", "dynamodb+https")


def connect(url: str, *, clock: Clock = SYSTEM_CLOCK) -> Store:
    """Open the store that a URL names.

        memory:                    the embedded engine, until the store is closed
        file:PATH                  the embedded engine on one file, created if it does not exist; with
                                   `?durability=normal` a power cut may lose the last commits, a crash never does
        dynamodb://REGION          DynamoDB, with credentials as AWS's tools find them
        dynamodb+http://HOST:PORT  any server that speaks DynamoDB's protocol

    `?prefix=NAME` prefixes the name of every table.
    """
    scheme, colon, rest = url.partition(":")
    options = _options(url)
    prefix = options.pop("prefix", "")
    if colon and scheme in ("memory", "file"):
        backend = _embedded(url, rest.partition("?")[0], options, clock)
    elif scheme in _DYNAMODB:
        backend = _dynamodb(url, options)
    else:
        raise _no_store(url)
    return Store(backend, prefix=prefix, clock=clock)


def _no_store(url: str) -> ConnectionUrlError:
    return ConnectionUrlError(f"{without_secret(url)!r} is not the URL of a store", hint=f"write {_FORMS}")


def _options(url: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(url.partition("?")[2], keep_blank_values=True, strict_parsing="?" in url))
    except ValueError as error:
        raise ConnectionUrlError(f"{without_secret(url)!r}: the text after ? must be name=value pairs") from error


def _refuse_unknown(url: str, options: dict[str, str]) -> None:
    if options:
        raise ConnectionUrlError(f"{without_secret(url)!r}: unknown option {', '.join(sorted(options))}")


def _embedded(url: str, path: str, options: dict[str, str], clock: Clock) -> Backend:
    from jobtable.embedded import EmbeddedBackend  # noqa: PLC0415 - loaded when it is used

    durability = options.pop("durability", "full")
    _refuse_unknown(url, options)
    if durability not in ("full", "normal"):
        raise ConnectionUrlError(f"{url!r}: durability must be full or normal")
    if url.startswith("memory:"):
        if path:
            raise ConnectionUrlError(f"{url!r}: a store in memory has no path; write memory:")
        return EmbeddedBackend(None, clock=clock)
    if not path.removeprefix("//") or "\0" in unquote(path):
        raise ConnectionUrlError(f"{url!r} does not name a file; write file:PATH")
    return EmbeddedBackend(store_file(url), durability="normal" if durability == "normal" else "full", clock=clock)


def _dynamodb(url: str, options: dict[str, str]) -> Backend:
    from jobtable.dynamodb.backend import DynamoDBBackend  # noqa: PLC0415 - needs boto3, an extra

    if "/" in url.partition("?")[0].partition("://")[2].rpartition("@")[0]:
        raise ConnectionUrlError(f"{without_secret(url)!r}: write / in a key as %2F")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConnectionUrlError(f"{without_secret(url)!r}: {error}") from error
    if not host or parts.path.strip("/"):
        raise ConnectionUrlError(f"{without_secret(url)!r} does not name a region or host; write {_FORMS}")
    region = options.pop("region", None)
    _refuse_unknown(url, options)
    # The store retries, because it knows which requests may be repeated.
    if parts.scheme == "dynamodb":
        if port is not None:
            raise ConnectionUrlError(
                f"{without_secret(url)!r}: a region has no port; write dynamodb+http://HOST:PORT for an endpoint"
            )
        return DynamoDBBackend(host, max_attempts=1)
    protocol = parts.scheme.removeprefix("dynamodb+")
    at = f"[{host}]" if ":" in host else host
    endpoint = f"{protocol}://{at}:{port}" if port else f"{protocol}://{at}"
    access_key, secret_key = (key and unquote(key) for key in (parts.username, parts.password))
    return DynamoDBBackend(region, endpoint_url=endpoint, access_key=access_key, secret_key=secret_key, max_attempts=1)


def store_url(file: Path) -> str:
    """Return the URL of the embedded store on this file; its path may have any characters."""
    return "file:" + str(file).replace("%", "%25").replace("?", "%3F")


def store_file(url: str) -> Path:
    """Return the file of an embedded store that is not in memory."""
    return Path(unquote(url.removeprefix("file:").partition("?")[0].removeprefix("//")))


def default_objects_url(store_url: str) -> str:
    """Return the default place for the objects of a store: beside its file, or in memory."""
    scheme = store_url.partition(":")[0]
    if scheme == "memory":
        return "memory:"
    if scheme == "file":
        return f"file:{store_file(store_url)}.objects"
    if scheme not in _DYNAMODB:
        raise _no_store(store_url)
    raise ConnectionUrlError(
        f"the store {without_secret(store_url)!r} needs a URL for objects",
        hint=f"name one, as in {S3_FORM}",
        reason=ErrorReason.OBJECTS_UNSET,
    )
