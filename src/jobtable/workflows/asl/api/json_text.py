"""JSON texts in requests, and the faults of an invalid one in the words of AWS's parser."""

from __future__ import annotations

import json
import re
from typing import Any

_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_LITERALS = {"true", "false", "null"}
_DEEPEST = 1000


class JsonTextFault(ValueError):
    """A text is not JSON; the message says why."""


def read_json(text: str) -> Any:
    """Return what a JSON text says, or raise JsonTextFault."""
    if not text.strip():
        raise JsonTextFault("Invalid execution input.")
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise JsonTextFault(_words(error)) from error
    except RecursionError as error:
        raise JsonTextFault(f"Document nesting depth exceeds the maximum allowed ({_DEEPEST})") from error
    except ValueError as error:
        raise JsonTextFault(str(error)) from error


def _no_number(name: str) -> None:
    raise JsonTextFault(f"Non-standard token '{name}': enable JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS to allow")


def _words(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc):
        return "Unexpected end-of-input"
    found = error.doc[error.pos]
    if error.msg.startswith("Expecting property name"):
        return f"Unexpected character ('{found}' (code {ord(found)})): was expecting double-quote to start field name"
    word = _WORD.match(error.doc, error.pos)
    if word is not None and word[0] not in _LITERALS:
        return (
            f"Unrecognized token '{word[0]}': was expecting (JSON String, Number, Array, Object or token 'null', "
            "'true' or 'false')"
        )
    return f"Unexpected character ('{found}' (code {ord(found)})): {error.msg[:1].lower()}{error.msg[1:]}"
