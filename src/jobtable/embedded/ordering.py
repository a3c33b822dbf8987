"""Key values as bytes that sort as DynamoDB sorts the values: strings by UTF-8 bytes, numbers by value, binary raw.

Every encoding ends itself: no encoding is a prefix of another, so encodings can follow each other in one key.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from jobtable.embedded.numbers import number_sort_bytes

KeyType = Literal["S", "N", "B"]

# Inside a value a zero byte becomes 00 FF, so 00 00 can only be an end, and it sorts before any longer value.
END = b"\x00\x00"
_ESCAPED_ZERO = b"\x00\xff"
_HASH_BYTES = 8


def _string_bytes(text: str) -> bytes:
    return text.encode().replace(b"\x00", _ESCAPED_ZERO) + END


def _binary_bytes(text: str) -> bytes:
    return base64.b64decode(text).replace(b"\x00", _ESCAPED_ZERO) + END


ENCODERS: dict[KeyType, Callable[[str], bytes]] = {"S": _string_bytes, "N": number_sort_bytes, "B": _binary_bytes}
"""For each key type: the function from a value in wire form to its bytes."""


def prefix_bytes(type_: KeyType, text: str) -> bytes:
    """The bytes that the encodings of all strings (or binary values) with this beginning have in common."""
    return ENCODERS[type_](text)[: -len(END)]


def hashed(partition: bytes) -> bytes:
    """The encoded partition behind eight bytes of a stable hash of it."""
    return hashlib.blake2b(partition, digest_size=_HASH_BYTES).digest() + partition


@lru_cache(maxsize=4096)  # the same partitions come again and again
def hashed_value(type_: KeyType, text: str) -> bytes:
    """The same for a partition of one attribute with this value."""
    return hashed(ENCODERS[type_](text))


def after_prefix(prefix: bytes) -> bytes:
    """The smallest bytes that are greater than everything that begins with `prefix` (which is not all 0xFF)."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,))


def hash_segment(segment: int, total: int) -> tuple[bytes, bytes | None]:
    """The range [low, high) of hashes that one of `total` equal segments covers; the last one is open above."""
    bounds = [-(-(number << 8 * _HASH_BYTES) // total) for number in (segment, segment + 1)]
    low = bounds[0].to_bytes(_HASH_BYTES, "big") if segment else b""
    high = bounds[1].to_bytes(_HASH_BYTES, "big") if segment + 1 < total else None
    return low, high
