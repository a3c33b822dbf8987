"""JSON texts that people wrote, and the faults of invalid ones in the words of AWS's parser."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

DEEPEST = 1000
"""How deep AWS's parser reads."""
MOST_LEVELS = 500
"""How deep data may be nested here: what reads and writes JSON recurses, and works for other callers too."""
_LONGEST_NUMBER = 1000
_MOST_QUOTED = 500
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_LITERALS = {"true", "false", "null"}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)

PairsHook = Callable[[list[tuple[str, Any]]], Any]


class JsonTextFault(ValueError):
    """A text is not JSON; the message says why."""

    source = ""
    """Where, as the parser says it: `[Source: (String)"..."; line: 1, column: 4]`; empty if it is no one place."""


def read_json(text: str, pairs_hook: PairsHook | None = None) -> Any:
    """Return what a JSON text says, or raise JsonTextFault. The hook makes the objects from their pairs."""
    if not text.strip():
        raise JsonTextFault("Invalid execution input.")
    if is_too_deep(text):
        raise JsonTextFault(f"Document nesting depth ({depth_of(text)}) exceeds the maximum allowed ({MOST_LEVELS})")
    try:
        return json.loads(
            text,
            parse_constant=_no_number,
            parse_int=_read_integer,
            parse_float=_read_float,
            object_pairs_hook=pairs_hook,
        )
    except json.JSONDecodeError as error:
        raise _fault(error) from error


def is_too_deep(text: str) -> bool:
    """Return whether the data of a JSON text is nested too deeply."""
    # Counting is fast, and settles nearly every text.
    return text.count("[") + text.count("{") > MOST_LEVELS and depth_of(text) > MOST_LEVELS


def depth_of(text: str) -> int:
    """Return how deep the arrays and objects of a JSON text are nested, without reading it."""
    deepest = depth = 0
    for found in _TOKEN.finditer(text):
        if found[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in "]}":
            depth -= 1
    return deepest


def _no_number(name: str) -> None:
    raise JsonTextFault(f"Non-standard token '{name}': enable JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS to allow")


def _read_integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise JsonTextFault(f"Number value length ({len(text)}) exceeds the maximum allowed ({_LONGEST_NUMBER})")
    return int(text)


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise JsonTextFault(f"Numeric value ({text[:_MOST_QUOTED]}) out of range of double")
    return number


def _fault(error: json.JSONDecodeError) -> JsonTextFault:
    words, end = _words(error)
    fault = JsonTextFault(words)
    fault.source = _source(error.doc, end)
    return fault


def _words(error: json.JSONDecodeError) -> tuple[str, int]:
    """Return what is wrong, and the position after what was read of it."""
    if error.pos >= len(error.doc):
        return "Unexpected end-of-input", len(error.doc)
    found = error.doc[error.pos]
    unexpected = f"Unexpected character ('{found}' (code {ord(found)})): "
    if error.msg.startswith("Expecting property name"):
        return f"{unexpected}was expecting double-quote to start field name", error.pos + 1
    word = _WORD.match(error.doc, error.pos)
    if word is not None and word[0] not in _LITERALS:
        return (
            f"Unrecognized token '{word[0]}': was expecting (JSON String, Number, Array, Object or token 'null', "
            "'true' or 'false')"
        ), word.end()
    return f"{unexpected}{error.msg[:1].lower()}{error.msg[1:]}", error.pos + 1


def _source(text: str, end: int) -> str:
    left_out = len(text) - _MOST_QUOTED
    more = f"[truncated {left_out} chars]" if left_out > 0 else ""
    line = text.count("\n", 0, end) + 1
    column = end - (text.rfind("\n", 0, end) + 1) + 1
    return f'[Source: (String)"{text[:_MOST_QUOTED]}"{more}; line: {line}, column: {column}]'
