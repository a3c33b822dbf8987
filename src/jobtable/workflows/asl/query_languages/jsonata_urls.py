"""The functions of URLs of JSONata, which refuse what is malformed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from jobtable.workflows.asl.query_languages import jsonata_library as library

_RESERVED = ";/?:@&=+$,#"
"""What separates the parts of a URL: encoding a whole URL keeps these, and decoding it keeps their escapes."""
_MARKS = "-_.!~*'()"
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+|%")
"""Escapes in a row, or a sign without its digits, which is no bytes."""


def _encoder(name: str, kept: str) -> Callable[..., Any]:
    def encode(text: str | None = None) -> str | None:
        try:
            return None if text is None else quote(text, safe=_MARKS + kept)
        except UnicodeEncodeError:
            raise library.fail("D3140", name, text) from None

    return encode


def _decoder(name: str, kept: str) -> Callable[..., Any]:
    def decode(text: str | None = None) -> str | None:
        try:
            return None if text is None else _ESCAPES.sub(lambda found: _decode(found[0], kept), text)
        except ValueError:
            raise library.fail("D3140", name, text) from None

    return decode


def _decode(escapes: str, kept: str) -> str:
    """Return the characters of some escapes in a row, or their escapes if they are to be kept; raise ValueError."""
    if escapes == "%":
        raise ValueError(escapes)
    parts: list[str] = []
    at = 0
    for character in bytes.fromhex(escapes.replace("%", "")).decode():
        end = at + 3 * len(character.encode())
        parts.append(escapes[at:end] if character in kept else character)
        at = end
    return "".join(parts)


URL_FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "encodeUrl": (_encoder("encodeUrl", _RESERVED), "<s-:s>"),
    "encodeUrlComponent": (_encoder("encodeUrlComponent", ""), "<s-:s>"),
    "decodeUrl": (_decoder("decodeUrl", _RESERVED), "<s-:s>"),
    "decodeUrlComponent": (_decoder("decodeUrlComponent", ""), "<s-:s>"),
}
"""The functions by name, with their signatures."""
