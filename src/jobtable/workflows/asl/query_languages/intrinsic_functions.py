"""What the intrinsic functions do."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

from jobtable.workflows.asl.query_languages.expression_errors import to_text
from jobtable.workflows.asl.query_languages.java_random import JavaRandom

_MOST_CHARACTERS = 10_000
_MOST_ELEMENTS = 1_000
_LEAST_INTEGER, _GREATEST_INTEGER = -(2**31), 2**31 - 1
_ALGORITHMS = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}
_BASE64_NOISE = re.compile(r"[^A-Za-z0-9+/]")


class IntrinsicError(Exception):
    """The arguments of an intrinsic function do not suit it."""


def invoke(name: str, arguments: list[Any], random: Random) -> Any:
    """Return the value of a function, or raise IntrinsicError."""
    if name in _DRAWING:
        return _DRAWING[name](arguments, random)
    return _FUNCTIONS[name](arguments)


def _need(holds: bool, why: str) -> None:
    if not holds:
        raise IntrinsicError(why)


def _count(arguments: list[Any], count: int) -> None:
    _need(len(arguments) == count, f"it takes {count} arguments, not {len(arguments)}")


def _list(value: Any) -> list[Any]:
    _need(isinstance(value, list), "the first argument must be an array")
    return list(value)


def _text(value: Any) -> str:
    _need(isinstance(value, str), "the argument must be a string")
    _need(len(value) <= _MOST_CHARACTERS, f"the string is longer than {_MOST_CHARACTERS} characters")
    return str(value)


def _number(value: Any) -> float:
    _need(isinstance(value, int | float) and not isinstance(value, bool), "the argument must be a number")
    return value  # type: ignore[no-any-return]


def _whole(value: Any) -> int:
    """A number without its fraction, as AWS reads the arguments of all functions but MathAdd."""
    number = _number(value)
    _need(math.isfinite(number), "the number is out of range")
    return int(number)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else to_text(value)


# --- arrays -----------------------------------------------------------------------------------------------------------


def _partition(arguments: list[Any]) -> list[Any]:
    _count(arguments, 2)
    array, size = _list(arguments[0]), _whole(arguments[1])
    _need(size > 0, "the chunk size must be positive")
    return [array[start : start + size] for start in range(0, len(array), size)]


def _contains(arguments: list[Any]) -> bool:
    _count(arguments, 2)
    # AWS compares the texts: `true` and "true" are the same.
    wanted = _as_text(arguments[1])
    return any(_as_text(each) == wanted for each in _list(arguments[0]))


def _range(arguments: list[Any]) -> list[int]:
    _count(arguments, 3)
    first, last, step = (_whole(each) for each in arguments)
    _need(step != 0, "the step must not be zero")
    values = range(first, last + (1 if step > 0 else -1), step)
    _need(len(values) <= _MOST_ELEMENTS, f"the array would have more than {_MOST_ELEMENTS} elements")
    return list(values)


def _get_item(arguments: list[Any]) -> Any:
    _count(arguments, 2)
    array, index = _list(arguments[0]), _whole(arguments[1])
    if not array and index >= 0:
        return None
    _need(0 <= index < len(array), f"the index must be from 0 to {len(array) - 1}, not {index}")
    return array[index]


def _length(arguments: list[Any]) -> int:
    _count(arguments, 1)
    return len(_list(arguments[0]))


def _unique(arguments: list[Any]) -> list[Any]:
    _count(arguments, 1)
    return list({to_text(each): each for each in reversed(_list(arguments[0]))}.values())[::-1]


# --- texts ------------------------------------------------------------------------------------------------------------


def _format(arguments: list[Any]) -> str:
    _need(bool(arguments) and isinstance(arguments[0], str), "the template must be a string")
    template, values = arguments[0], iter(arguments[1:])
    parts: list[str] = []
    at = used = 0
    while at < len(template):
        character = template[at]
        if character == "\\" and template[at + 1 : at + 2] in {"{", "}", "\\"}:
            parts.append(template[at + 1])
            at += 2
        elif character == "{":
            _need(template[at + 1 : at + 2] == "}", "matching '}' not found for '{'")
            parts.append(_as_text(next(values, "")))
            used += 1
            at += 2
        else:
            _need(character != "}", "matching '{' not found for '}'")
            parts.append(character)
            at += 1
    _need(used == len(arguments) - 1, "number of arguments do not match the occurrences of {}")
    return "".join(parts)


def _split(arguments: list[Any]) -> list[str]:
    _count(arguments, 2)
    _need(all(isinstance(each, str) for each in arguments), "both arguments must be strings")
    text, delimiters = arguments
    pattern = "[" + re.escape(delimiters) + "]" if delimiters else r"(?!)"
    return [part for part in re.split(pattern, text) if part]


def _encode(arguments: list[Any]) -> str:
    _count(arguments, 1)
    return base64.b64encode(_text(arguments[0]).encode("utf-8", "replace")).decode()


def _decode(arguments: list[Any]) -> str:
    _count(arguments, 1)
    letters = _BASE64_NOISE.sub("", _text(arguments[0]))
    letters = letters[:-1] if len(letters) % 4 == 1 else letters
    return base64.b64decode(letters + "=" * (-len(letters) % 4)).decode("utf-8", "replace")


def _hash(arguments: list[Any]) -> str:
    _count(arguments, 2)
    data, algorithm = _text(_as_text(arguments[0])), arguments[1]
    _need(isinstance(algorithm, str) and algorithm in _ALGORITHMS, f"the algorithm must be one of {[*_ALGORITHMS]}")
    return hashlib.new(_ALGORITHMS[algorithm], data.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


# --- JSON -------------------------------------------------------------------------------------------------------------


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _to_json(arguments: list[Any]) -> Any:
    _count(arguments, 1)
    _need(isinstance(arguments[0], str), "the argument must be a string")
    if not arguments[0].strip():
        return None
    try:
        return json.loads(arguments[0], parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise IntrinsicError(f"the string is not JSON, {error}") from None


def _to_string(arguments: list[Any]) -> str:
    _count(arguments, 1)
    return to_text(arguments[0])


def _merge(arguments: list[Any]) -> dict[str, Any]:
    _count(arguments, 3)
    first, second, is_deep = arguments
    _need(isinstance(first, dict) and isinstance(second, dict), "the first two arguments must be objects")
    _need(is_deep is not True, "only the shallow merge is supported; the third argument must be false")
    return {**first, **second}


# --- numbers ----------------------------------------------------------------------------------------------------------


def _add(arguments: list[Any]) -> int:
    _count(arguments, 2)
    total = 0
    for each in arguments:
        number = _number(each)
        _need(math.isfinite(number), "the number is out of range")
        rounded = math.floor(number + 0.5) if isinstance(number, float) else number
        total += rounded
        _need(_LEAST_INTEGER <= rounded <= _GREATEST_INTEGER, "the number must have at most 32 bits")
    _need(_LEAST_INTEGER <= total <= _GREATEST_INTEGER, "the sum must have at most 32 bits")
    return total


def _draw(arguments: list[Any], random: Random) -> int:
    _need(len(arguments) in {2, 3}, f"it takes 2 or 3 arguments, not {len(arguments)}")
    start, end = _whole(arguments[0]), _whole(arguments[1])
    _need(start < end, "the end must be greater than the start")
    _need(start >= _LEAST_INTEGER and end <= _GREATEST_INTEGER, "the numbers must have at most 32 bits")
    if len(arguments) == 2:
        return random.randrange(start, end)
    seeded = JavaRandom(_whole(arguments[2]))
    return start + (
        seeded.next_below(end - start) if end - start < 1 << 31 else int(seeded.next_float() * (end - start))
    )


def _uuid(arguments: list[Any], random: Random) -> str:
    _count(arguments, 0)
    return str(UUID(int=random.getrandbits(128), version=4))


_FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "Array": list,
    "ArrayContains": _contains,
    "ArrayGetItem": _get_item,
    "ArrayLength": _length,
    "ArrayPartition": _partition,
    "ArrayRange": _range,
    "ArrayUnique": _unique,
    "Base64Decode": _decode,
    "Base64Encode": _encode,
    "Format": _format,
    "Hash": _hash,
    "JsonMerge": _merge,
    "JsonToString": _to_string,
    "MathAdd": _add,
    "StringSplit": _split,
    "StringToJson": _to_json,
}
_DRAWING: dict[str, Callable[[list[Any], Random], Any]] = {"MathRandom": _draw, "UUID": _uuid}
