"""Bodies that are packed on their way: requests as Content-Encoding says, answers as Accept-Encoding wishes."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable
from functools import lru_cache

from jobtable.embedded.server.http1 import MAX_BODY_BYTES, HttpError, HttpRequest
from jobtable.errors import request_error

LEAST_PACKED_BYTES = 4096
"""Shorter answers are sent as they are, whatever the client accepts."""
_LEVEL = 1
"""Most clients are on this machine, where time is dearer than bytes."""
_GZIP_FORMAT = zlib.MAX_WBITS | 16
_GZIP_BEGINNING = b"\x1f\x8b"
_PIECE_BYTES = 4096
"""As much is copied again where one text ends and another begins."""
_WEIGHT = re.compile(r";\s*q\s*=\s*(-?\d+(?:\.\d*)?)\s*(?:;|$)")


def unpacked_body(request: HttpRequest) -> bytes:
    """The body of a request as it was before the client packed it.

    What cannot be unpacked is refused. The service answers it with status 500, on which clients send the same again.
    """
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
    except zlib.error:
        raise request_error("SerializationException", f"The request body is not what {encoding} writes") from None
    if len(body) > MAX_BODY_BYTES:
        message = f"The request body exceeds {MAX_BODY_BYTES} bytes when it is unpacked"
        raise HttpError(413, "RequestEntityTooLargeException", message)
    return body


def _unzipped(packed: bytes) -> bytes:
    """What one or more texts in gzip's format hold; what follows them is passed over, as by the service."""
    body, at = bytearray(), 0
    while at == 0 or packed.startswith(_GZIP_BEGINNING, at):
        unpacking = zlib.decompressobj(_GZIP_FORMAT)
        while not unpacking.eof:
            piece = packed[at : at + _PIECE_BYTES]
            if not piece:
                raise EOFError
            body += unpacking.decompress(piece, MAX_BODY_BYTES + 1 - len(body))
            if len(body) > MAX_BODY_BYTES:
                return bytes(body)
            at += len(piece) - len(unpacking.unused_data)
    return bytes(body)


def _inflated(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    body = unpacking.decompress(packed, MAX_BODY_BYTES + 1)
    if unpacking.unused_data:
        raise zlib.error("something follows the end")
    if not unpacking.eof and len(body) <= MAX_BODY_BYTES:
        raise EOFError
    return body


_UNPACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": _unzipped, "deflate": _inflated}


@lru_cache(maxsize=16)
def packing_for(accepted: str) -> str | None:
    """The encoding that a client likes best, of those it accepts and that are known here; the first of equals."""
    weights: dict[str, float] = {}
    for entry in accepted.lower().split(","):
        name = entry.partition(";")[0].strip()
        weights[name] = max(weights.get(name, 0.0), _weight(entry))
    liked = {name: weight for name, weight in weights.items() if name in _PACKERS}
    liked |= {name: weights.get("*", 0.0) for name in _PACKERS if name not in weights}
    best = max(liked, key=liked.__getitem__)
    return best if liked[best] > 0 else None


def _weight(entry: str) -> float:
    found = _WEIGHT.search(entry)
    return min(float(found[1]), 1.0) if found else 1.0


def packed(body: bytes, encoding: str) -> bytes:
    """The bytes of an answer in an encoding that packing_for found."""
    return _PACKERS[encoding](body)


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, _LEVEL, mtime=0),
    "deflate": lambda body: zlib.compress(body, _LEVEL),
}
