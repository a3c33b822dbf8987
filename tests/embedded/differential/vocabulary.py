"""The few names and values that requests are made of."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.embedded.differential.tables import Table

Value = dict[str, Any]

WORDS = ("a", "b", "ab", "abc", "é", "\U0001f600")
NUMBERS = ("0", "1", "-1", "2", "10", "1.50", "1e2", "-0.5", "12345678901234567890123456789012345678", "1E-130")
BYTES = ("AA==", "AQI=", "/w==", "AQID")
PLAIN_NUMBERS = ("1", "2", "10", "-1")

FAULTY_VALUES: tuple[Any, ...] = (
    {"S": ""},
    {"B": ""},
    {"N": ""},
    {"N": "abc"},
    {"N": "1e126"},
    {"N": "1E-131"},
    {"N": "123456789012345678901234567890123456789"},
    {"N": " 1"},
    {"N": "1_0"},
    {"N": "0x1"},
    {"N": "NaN"},
    {"N": "+1"},
    {"N": "01.10"},
    {"SS": []},
    {"SS": ["a", "a"]},
    {"SS": [""]},
    {"NS": ["1", "1.0"]},
    {"NS": ["x"]},
    {"NS": []},
    {"BS": []},
    {"BS": ["AA==", "AA=="]},
    {"NULL": False},
    {"S": "a", "N": "1"},
    {},
    {"L": [{}]},
    {"M": {"x": {}}},
    {"M": {"": {"S": "a"}}},
    {"L": [{"N": "x"}]},
    {"S": "x" * 1025},
    {"S": "x" * 2049},
)


def scalar(rng: Random, kind: str) -> Value:
    """A valid value of a scalar type."""
    if kind == "S":
        return {"S": rng.choice(WORDS)}
    if kind == "N":
        return {"N": rng.choice(NUMBERS)}
    if kind == "B":
        return {"B": rng.choice(BYTES)}
    if kind == "BOOL":
        return {"BOOL": rng.choice((True, False))}
    return {"NULL": True}


def some_of(rng: Random, options: tuple[str, ...]) -> list[str]:
    """One to three different ones."""
    return rng.sample(options, rng.randint(1, min(3, len(options))))


def value(rng: Random, depth: int = 2) -> Value:
    """Any valid value; rarely an empty one, which is valid except in keys."""
    kinds = ["S", "N", "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS"] + (["L", "M", "L", "M"] if depth else [])
    kind = rng.choice(kinds)
    if kind == "SS":
        return {"SS": some_of(rng, WORDS)}
    if kind == "NS":
        return {"NS": some_of(rng, ("0", "1", "-1", "2", "1.5"))}
    if kind == "BS":
        return {"BS": some_of(rng, BYTES)}
    if kind == "L":
        return {"L": [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]}
    if kind == "M":
        return {"M": {name: value(rng, depth - 1) for name in rng.sample(("a", "b", "c"), rng.randint(0, 3))}}
    if kind in ("S", "B") and rng.random() < 0.05:
        return {kind: ""}
    return scalar(rng, kind)


def sloppy_value(rng: Random) -> Value:
    """A valid value, or rarely one that is not."""
    if rng.random() < 0.015:
        faulty: Value = rng.choice(FAULTY_VALUES)
        return faulty
    return value(rng)


def usual_value(rng: Random, name: str) -> Value:
    """A value of the type that an attribute mostly has: a is a map, b a list, c a number, d a set."""
    if rng.random() < 0.3:
        return sloppy_value(rng)
    if name == "a":
        return {"M": {member: usual_value(rng, member) for member in rng.sample("abc", rng.randint(0, 3))}}
    if name == "b":
        return {"L": [value(rng, 1) for _ in range(rng.randint(0, 3))]}
    if name == "d":
        return a_set(rng)
    return scalar(rng, "N")


def a_set(rng: Random) -> Value:
    """A set of few strings or numbers."""
    kind = rng.choice(("SS", "SS", "NS"))
    return {kind: some_of(rng, ("a", "b", "c") if kind == "SS" else ("1", "2", "3"))}


def key_value(rng: Random, kind: str) -> Value:
    """A value for a key attribute, out of even fewer, so that keys meet."""
    if rng.random() < 0.02:
        return sloppy_value(rng)
    if kind == "S":
        return {"S": rng.choice(WORDS[:4])}
    if kind == "N":
        return {"N": rng.choice(PLAIN_NUMBERS)}
    return {"B": rng.choice(BYTES[:3])}


def key(rng: Random, table: Table) -> dict[str, Value]:
    """A primary key."""
    return {name: key_value(rng, kind) for name, kind in table.key_parts}


def item(rng: Random, table: Table) -> dict[str, Value]:
    """An item, mostly with the attributes that its indexes need."""
    made = key(rng, table)
    for name, kind in table.key_types.items():
        if name not in made and rng.random() < 0.75:
            made[name] = key_value(rng, kind)
    for name in ("a", "b", "c", "d"):
        if rng.random() < 0.6:
            made[name] = usual_value(rng, name)
    return made
