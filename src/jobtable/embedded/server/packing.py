"""Bodies that are packed on their way: requests as Content-Encoding says."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable

from jobtable.embedded.server.http1 import MAX_BODY_BYTES, HttpError, HttpRequest
from jobtable.errors import request_error


def unpacked_body(request: HttpRequest) -> bytes:
    """The body of a request as it was before the client packed it."""
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding == "identity":
        return request.body
    if encoding not in _UNPACKERS:
        raise request_error("SerializationException", f"Content-Encoding {encoding!r} is not understood")
    try:
        body = _UNPACKERS[encoding](request.body)
    except EOFError:
        message = f"The request body ends before its {encoding} data does"
        raise request_error("SerializationException", message) from None
    except (OSError, zlib.error):
        raise request_error("SerializationException", f"The request body is not what {encoding} writes") from None
    if len(body) > MAX_BODY_BYTES:
        message = f"The request body exceeds {MAX_BODY_BYTES} bytes when it is unpacked"
        raise HttpError(413, "RequestEntityTooLargeException", message)
    return body


def _unzipped(packed: bytes) -> bytes:
    # Unlike zlib alone, this reads on where one text in gzip's format ends and another begins.
    return gzip.GzipFile(fileobj=io.BytesIO(packed)).read(MAX_BODY_BYTES + 1)


def _inflated(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    body = unpacking.decompress(packed, MAX_BODY_BYTES + 1)
    if unpacking.unused_data:
        raise zlib.error("something follows the end")
    if not unpacking.eof and len(body) <= MAX_BODY_BYTES:
        raise EOFError
    return body


_UNPACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": _unzipped, "deflate": _inflated}
