"""The functions of JSONata that Step Functions adds, and those of the library that must be bounded or repeatable."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from jobtable.workflows.asl.query_languages import jsonata_library as library
from jobtable.workflows.asl.query_languages.bounded_patterns import Match, Pattern
from jobtable.workflows.asl.query_languages.java_random import JavaRandom
from jobtable.workflows.asl.query_languages.jsonata_numbers import NUMBER_FUNCTIONS
from jobtable.workflows.asl.query_languages.jsonata_urls import URL_FUNCTIONS
from jobtable.workflows.asl.query_languages.jsonata_values import (
    MOST_BYTES,
    MemoryExceededError,
    from_json,
    to_plain,
    to_text,
)
from jobtable.workflows.asl.query_languages.scope import Scope

_MOST_RANGE = 360_145
_ALGORITHMS = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}
_GROUP = re.compile(r"\$(\$|\d+|)")


def functions_of(scope: Scope) -> dict[str, Any]:
    """Return the functions that an expression can call besides the library's own; `$eval` is not one of them."""
    drawing: dict[str, tuple[Callable[..., Any], str]] = {
        "random": (lambda seed=None: _random(scope, seed), "<n?:n>"),
        "uuid": (lambda: str(UUID(int=scope.random.getrandbits(128), version=4)), "<:s>"),
        "shuffle": (lambda values=None: _shuffle(scope, values), "<a:a>"),
        "millis": (lambda: _millis(scope.now), "<:n>"),
        "now": (
            lambda picture=None, timezone=None: library.format_millis(_millis(scope.now), picture, timezone),
            "<s?s?:s>",
        ),
    }
    return {name: library.make_function(*each) for name, each in {**_FUNCTIONS, **drawing}.items()} | {"eval": None}


def _millis(instant: datetime) -> int:
    return int(instant.astimezone(UTC).timestamp() * 1000)


def _shuffle(scope: Scope, values: list[Any] | None) -> list[Any] | None:
    return None if values is None else scope.random.sample(list(values), len(values))


def _random(scope: Scope, seed: float | None) -> float:
    return scope.random.random() if seed is None else JavaRandom(int(seed)).next_float()


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member appears twice")
    return members


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _parse(text: str | None = None) -> Any:
    if text is None:
        return None
    if library.is_null(text):
        raise library.fail("T0410", 1, "parse")
    try:
        value = json.loads(text, object_pairs_hook=_unique_members, parse_constant=_refuse_constant)
        return from_json(value)
    except (ValueError, RecursionError, OverflowError) as error:
        raise library.fail("D3137", f"Invalid JSON: {error}") from None


def _partition(values: list[Any] | None = None, size: float | None = None) -> Any:
    if values is None:
        return None
    if any(library.is_null(each) for each in values[:1]) and len(values) == 1:
        raise library.fail("T0412", 1, "partition", "values")
    length = len(values) if size is None else int(size)
    if length < 0:
        raise library.fail("D3137", "Second argument must be zero or greater")
    if length == 0 or not values:
        return None
    return [values[start : start + length] for start in range(0, len(values), length)]


def _range(start: float | None = None, end: float | None = None, step: float | None = None) -> Any:
    if start is None or end is None or step is None or int(step) == 0:
        return None
    values = range(int(start), int(end) + (1 if step > 0 else -1), int(step))
    if len(values) > _MOST_RANGE:
        raise MemoryExceededError
    return library.make_sequence(list(values)) if values else None


def _hash(text: str | None = None, algorithm: str | None = None) -> str | None:
    if text is None or algorithm is None:
        return None
    if algorithm not in _ALGORITHMS:
        raise library.fail("D3137", f"Unsupported hash algorithm: {algorithm}")
    return hashlib.new(_ALGORITHMS[algorithm], text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def text_of(value: Any = None, is_pretty: bool | None = None) -> str | None:
    """Return what `$string` and `&` make of a value; None of what is undefined."""
    if value is None or isinstance(value, str):
        return value
    return "" if library.is_callable(value) else to_text(value, is_pretty=bool(is_pretty))


def _sort(values: list[Any] | None = None, comparator: Any = None) -> Any:
    if values is None or len(values) <= 1:
        return values
    is_number = [isinstance(each, int | float) and not isinstance(each, bool) for each in values]
    if comparator is None and not all(is_number) and not all(isinstance(each, str) for each in values):
        raise library.fail("D3070")
    return library.sort(values, comparator)


def _from_millis(millis: float | None = None, picture: str | None = None, timezone: str | None = None) -> str | None:
    return None if millis is None else library.format_millis(int(millis), picture, timezone)


def _pad(text: str | None = None, width: float | None = None, filler: str | None = None) -> str | None:
    if text is None or width is None:
        return text
    count = abs(int(width)) - len(text)
    if count <= 0:
        return text
    if count > MOST_BYTES:
        raise MemoryExceededError
    filler = filler or " "
    padding = (filler * (count // len(filler) + 1))[:count]
    return padding + text if width < 0 else text + padding


def _join(texts: list[str] | None = None, separator: str | None = None) -> str | None:
    if texts is None:
        return None
    separator = separator or ""
    if sum(map(len, texts)) + len(separator) * len(texts) > MOST_BYTES:
        raise MemoryExceededError
    return separator.join(texts)


def _replace(
    text: str | None = None, pattern: Any = None, replacement: Any = None, limit: float | None = None
) -> str | None:
    if text is None:
        return None
    if pattern == "":
        raise library.fail("D3010")
    if limit is not None and limit < 0:
        raise library.fail("D3011")
    matches = pattern.finditer(text) if isinstance(pattern, Pattern) else _places(text, str(pattern))
    parts: list[str] = []
    at = size = 0
    for number, match in enumerate(matches):
        if limit is not None and number >= limit:
            break
        if match.start() == match.end():
            raise library.fail("D1004")
        new = _replacement(replacement, match, is_literal=isinstance(pattern, str))
        parts += [text[at : match.start()], new]
        at = match.end()
        size += len(parts[-2]) + len(new)
        if size > MOST_BYTES:
            raise MemoryExceededError
    return "".join([*parts, text[at:]])


def _places(text: str, part: str) -> Any:
    at = text.find(part)
    while at >= 0:
        yield Match(text, (at, at + len(part)))
        at = text.find(part, at + len(part))


def _replacement(replacement: Any, match: Match, *, is_literal: bool) -> str:
    if isinstance(replacement, str):
        return replacement if is_literal else _GROUP.sub(lambda found: _group(found[1], match), replacement)
    groups = [group or "" for group in match.groups()]
    described = {"match": match.group(), "start": match.start(), "end": match.end(), "groups": groups}
    value = library.apply(replacement, [described])
    if not isinstance(value, str):
        raise library.fail("D3012")
    return value


def _group(reference: str, match: Match) -> str:
    """Resolve `$$`, `$0` or `$1`: the longest number that names a group; what is left of it is text."""
    if reference in {"", "$"}:
        return "$"
    count = len(match.groups())
    for length in range(len(reference), 0, -1):
        if int(reference[:length]) <= count:
            return (match.group(int(reference[:length])) or "") + reference[length:]
    return reference[len(str(count)) :] if count else reference[1:]


def _to_millis(text: str | None = None, picture: str | None = None) -> Any:
    if text is None:
        return None
    try:
        return library.parse_time(text, picture)
    except (ValueError, OverflowError):
        raise library.fail("D3110", text) from None


def _distinct(values: Any = None) -> Any:
    if not isinstance(values, list) or len(values) <= 1:
        return values
    found: dict[str, Any] = {}
    for each in values:
        key = "" if library.is_callable(each) else json.dumps(to_plain(each), sort_keys=True)
        found.setdefault(key, each)
    return library.make_sequence(list(found.values()))


def _spread(value: Any = None) -> Any:
    if isinstance(value, list):
        parts = [part for each in value for part in _parts(each)]
        return library.make_sequence(parts)
    return library.make_sequence(_parts(value)) if isinstance(value, dict) else value


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [{name: member} for name, member in value.items()]
    return [part for each in value for part in _parts(each)] if isinstance(value, list) else [value]


_FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "parse": (_parse, "<s?:x>"),
    "partition": (_partition, "<an?:a>"),
    "range": (_range, "<nnn?:a>"),
    "hash": (_hash, "<ss?:s>"),
    "string": (text_of, "<x-b?:s>"),
    **NUMBER_FUNCTIONS,
    **URL_FUNCTIONS,
    "sort": (_sort, "<af?:a>"),
    "fromMillis": (_from_millis, "<n-s?s?:s>"),
    "pad": (_pad, "<s-ns?:s>"),
    "join": (_join, "<a<s>s?:s>"),
    "replace": (_replace, "<s-(sf)(sf)n?:s>"),
    "toMillis": (_to_millis, "<s-s?:n>"),
    "distinct": (_distinct, "<x:x>"),
    "spread": (_spread, "<x-:a<o>>"),
}
