"""Object keys, built from parts so that no part can leave its position.

A key is its parts, each percent-encoded, joined by `/`. Characters without a meaning to a shell, a URL or a filesystem
stay; every other one becomes `%XX` per UTF-8 byte, and so does a leading dot. So a key has no empty, hidden or relative
part, and each tuple of parts has exactly one key.
"""

from __future__ import annotations

import mimetypes
import re
from urllib.parse import unquote_to_bytes

from jobtable.errors import ValueRefusedError

MAX_KEY_BYTES = 900
"""S3 takes 1,024 bytes for a key; the rest is for the prefix inside a bucket."""

MAX_PART_BYTES = 255
"""The longest name that common filesystems take; in it an upper-case letter takes three bytes (see filesystem.py)."""

DEFAULT_CONTENT_TYPE = "application/octet-stream"

_UNSAFE = re.compile(rb"^\.|[^A-Za-z0-9._~=,@+-]")
_KEY = re.compile(r"(?:[A-Za-z0-9_~=,@+%-][A-Za-z0-9._~=,@+%-]*)(?:/[A-Za-z0-9_~=,@+%-][A-Za-z0-9._~=,@+%-]*)*")
_UPPER_CASE = re.compile("[A-Z]")

# Python's own table only: the machine's would make the content type differ from one machine to the next.
_CONTENT_TYPES = mimetypes.MimeTypes(filenames=())
for _type, _ending in (
    ("application/jsonl", ".jsonl"),
    ("application/vnd.apache.parquet", ".parquet"),
    ("application/yaml", ".yaml"),
    ("image/webp", ".webp"),
    ("text/markdown", ".md"),
    ("text/plain", ".log"),
):
    _CONTENT_TYPES.add_type(_type, _ending)


def object_key(*parts: str | int) -> str:
    """Return the key of these parts: `object_key("evals", eval_id, "logs", f"{step}.json")`."""
    if not parts:
        raise ValueRefusedError("an object key needs at least one part")
    key = "/".join(_encoded(str(part)) for part in parts)
    if len(key) > MAX_KEY_BYTES:
        raise ValueRefusedError(
            f"the object key {key[:80]!r}... has {len(key)} bytes; at most {MAX_KEY_BYTES} are allowed"
        )
    return key


def key_parts(key: str) -> tuple[str, ...]:
    """Return the parts of a key; raise ValueRefusedError for a text that `object_key` would not return."""
    if _KEY.fullmatch(key):
        try:
            parts = tuple(unquote_to_bytes(part).decode() for part in key.split("/"))
            if object_key(*parts) == key:
                return parts
        except ValueError:
            pass  # bytes that are no text, or a part that is too long: no key either
    raise ValueRefusedError(f"{key[:200]!r} is not an object key; build keys with jobtable.objects.object_key")


def is_key(text: str) -> bool:
    """Return whether `object_key` returns this text for some parts."""
    try:
        key_parts(text)
    except ValueRefusedError:
        return False
    return True


def folder_of(prefix: str) -> str:
    """Return the common start of all keys under a prefix of whole parts; empty for the empty prefix."""
    if not prefix:
        return ""
    key_parts(prefix)
    return f"{prefix}/"


def content_type(key: str) -> str:
    """Return the content type that follows from the suffix of a key."""
    guessed, encoding = _CONTENT_TYPES.guess_type(f"/{key}")
    return DEFAULT_CONTENT_TYPE if guessed is None or encoding else guessed


def _encoded(part: str) -> str:
    try:
        data = part.encode()
    except UnicodeEncodeError as error:
        raise ValueRefusedError(f"the object key part {part!r} is not valid Unicode") from error
    if not data:
        raise ValueRefusedError("a part of an object key cannot be empty")
    encoded = _UNSAFE.sub(lambda unsafe: b"%%%02X" % unsafe[0][0], data).decode()
    size = len(encoded) + 2 * len(_UPPER_CASE.findall(encoded))
    if size > MAX_PART_BYTES:
        raise ValueRefusedError(
            f"the object key part {part[:80]!r}... has {size} bytes as a file name; at most {MAX_PART_BYTES} fit"
        )
    return encoded
