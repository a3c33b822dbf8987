"""Compressed bodies of requests and responses."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable
from functools import lru_cache

from jobtable.embedded.server.http1 import MAX_BODY_BYTES, HttpError, HttpRequest
from jobtable.errors import request_error

LEAST_PACKED_BYTES = 4096  # shorter answers are not compressed
_LEVEL = 1
"""Most clients are on this machine, where time costs more than bytes."""
_GZIP_FORMAT = zlib.MAX_WBITS | 16
_GZIP_BEGINNING = b"\x1f\x8b"
_PIECE_BYTES = 4096  # as much is copied again between one compressed text and the next
_WEIGHT = re.compile(r";\s*q\s*=\s*(-?\d+(?:\.\d*)?)\s*(?:;|$)")


def unpacked_body(request: HttpRequest) -> bytes:
    """Return the decompressed body of a request, or raise.

    The service answers an invalid one with status 500, after which clients send the same again.
    """
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding == "identity":
        return request.body
    if encoding not in _UNPACKERS:
        raise request_error("SerializationException", f"Content-Encoding {encoding!r} is not supported")
    try:
        body = _UNPACKERS[encoding](request.body)
    except EOFError:
        message = f"The request body ends before its {encoding} data does"
        raise request_error("SerializationException", message) from None
    except zlib.error:
        raise request_error("SerializationException", f"The request body is not valid {encoding} data") from None
    if len(body) > MAX_BODY_BYTES:
        message = f"The unpacked request body exceeds {MAX_BODY_BYTES} bytes"
        raise HttpError(413, "RequestEntityTooLargeException", message)
    return body


def _unzipped(packed: bytes) -> bytes:
    """Decompress one or more gzip texts; like the service, ignore what follows them."""
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
    """Return the encoding that the client prefers among the supported ones; the first of equals."""
    weights: dict[str, float] = {}
    for entry in accepted.lower().split(","):
        name = entry.partition(";")[0].strip()
        found = _WEIGHT.search(entry)
        weights[name] = max(weights.get(name, 0.0), min(float(found[1]), 1.0) if found else 1.0)
    liked = {name: weight for name, weight in weights.items() if name in PACKERS}
    liked |= {name: weights.get("*", 0.0) for name in PACKERS if name not in weights}
    best = max(liked, key=liked.__getitem__)
    return best if liked[best] > 0 else None


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, _LEVEL, mtime=0),
    "deflate": lambda body: zlib.compress(body, _LEVEL),
}
