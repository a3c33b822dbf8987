"""Key templates such as "METRIC#{metric_name}#{timestamp}": parsed once, rendered, and read back.

`#` separates the parts of a key. Inside a value, `#` and `%` are percent-encoded, so no value crosses a boundary.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Any

from jobtable.errors import DefinitionError, ValueRefusedError
from jobtable.model import wire
from jobtable.model.fields import utc_text
from jobtable.model.source import Source

DIGITS = frozenset("0123456789")
_TIMESTAMP_CHARACTERS = DIGITS | frozenset("-T:.Z")
_HEXADECIMAL = DIGITS | frozenset("abcdef")
_SIGN_BIT = 1 << 63


@dataclass(frozen=True, slots=True)
class KeyForm:
    """How the values of one field stand in a key: text, and back. `characters` None: any but `#`."""

    render: Callable[[Any], str]
    read: Callable[[str], Any]
    characters: frozenset[str] | None
    width: int | None
    """The number of characters, where it is the same for every value."""


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """One piece of a template: a literal, or a field with the form of its values."""

    literal: str = ""
    field: str = ""
    form: KeyForm | None = None


def escape(value: str) -> str:
    """A text as it stands in a key."""
    if not value:
        raise ValueRefusedError("a part of a key cannot be empty")
    if "%" in value or "#" in value:
        return value.replace("%", "%25").replace("#", "%23")
    return value


def unescape(text: str) -> str:
    """The value of a text in a key; refuses what escape() cannot have written."""
    if "%" not in text:
        return text
    value = text.replace("%23", "#").replace("%25", "%")
    if escape(value) != text:
        raise ValueError(f"{text!r} contains a % that is not part of %23 or %25")
    return value


class Template:
    """A key attribute's text, made from fields."""

    def __init__(self, text: str, forms: Mapping[str, Callable[[str], KeyForm]], owner: str) -> None:
        self.text = text
        self.parts = tuple(_split(text, forms, owner))
        self.fields = tuple(part.field for part in self.parts if part.form)
        self._refuse_ambiguity(owner)
        self._pattern = re.compile("".join(_pattern_of(part) for part in self.parts), re.DOTALL)

    def __str__(self) -> str:
        return self.text

    @cached_property
    def render(self) -> Callable[[Mapping[str, Any]], str]:
        """A function that gives the key text for values that the fields have accepted."""
        source = Source()
        source.line("def render(values):")
        pieces = []
        for part in self.parts:
            rendered = f"{source.names.of(part.form.render, 'render')}(values[{part.field!r}])" if part.form else ""
            pieces.append(rendered or repr(part.literal))
        source.line(f"    return {' + '.join(pieces)}")
        return source.function("render")

    def parse(self, text: str) -> dict[str, Any]:
        """The values that this key text was rendered from, or ValueError."""
        match = self._pattern.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} does not have the form {self.text!r}")
        fields = (part for part in self.parts if part.form)
        return {part.field: part.form.read(raw) for part, raw in zip(fields, match.groups(), strict=True) if part.form}

    def prefix_of(self, values: Mapping[str, Any]) -> str:
        """The text that every key begins with whose first fields have these values, up to the next field."""
        pieces = []
        for part in self.parts:
            if part.form is None:
                pieces.append(part.literal)
            elif part.field in values:
                try:
                    pieces.append(part.form.render(values[part.field]))
                except ValueRefusedError as error:
                    raise ValueRefusedError(f"{part.field} ({self.text}): {error}") from error
            else:
                break
        return "".join(pieces)

    def may_equal(self, other: Template) -> bool:
        """Whether some values make both templates the same text."""
        return _meet_as_automata(_symbols(self.parts), _symbols(other.parts), whole=True)

    def may_begin(self, other: Template, given: int) -> bool:
        """Whether a text of `other` can begin as this template does when its first `given` fields are known."""
        fields = 0
        for at, part in enumerate(self.parts):
            if part.form is not None and fields == given:
                return _meet_as_automata(_symbols(self.parts[:at]), _symbols(other.parts), whole=False)
            fields += part.form is not None
        return self.may_equal(other)

    def _refuse_ambiguity(self, owner: str) -> None:
        for part, following in zip(self.parts, self.parts[1:], strict=False):
            if part.form is None or part.form.width is not None:
                continue
            allowed = part.form.characters
            if following.form is not None or (allowed is None and following.literal[0] != "#"):
                raise DefinitionError(
                    f"{owner}: {self.text!r} is ambiguous: the end of {{{part.field}}} is unclear; put a # after it"
                )
            if allowed is not None and following.literal[0] in allowed:
                raise DefinitionError(
                    f"{owner}: {self.text!r} is ambiguous: {following.literal!r} can occur inside {{{part.field}}}"
                )
        if len(set(self.fields)) != len(self.fields):
            raise DefinitionError(f"{owner}: {self.text!r} names a field twice")


@dataclass(frozen=True, slots=True)
class _Symbol:
    characters: frozenset[str] | None
    repeats: bool


def _symbols(parts: Sequence[TemplatePart]) -> list[_Symbol]:
    symbols: list[_Symbol] = []
    for part in parts:
        if part.form is None:
            symbols += [_Symbol(frozenset(character), False) for character in part.literal]
        elif part.form.width is not None:
            symbols += [_Symbol(part.form.characters, False)] * part.form.width
        else:
            symbols.append(_Symbol(part.form.characters, True))
    return symbols


def _meet_as_automata(left: list[_Symbol], right: list[_Symbol], *, whole: bool) -> bool:
    """Whether one text matches both or, if not `whole`, a text of the right begins with one of the left."""
    seen, todo = {(0, 0)}, [(0, 0)]
    while todo:
        i, j = todo.pop()
        if i == len(left) and (j == len(right) or not whole):
            return True
        for a, next_i in _steps(left, i):
            for b, next_j in _steps(right, j):
                if (next_i, next_j) not in seen and _meet(a, b):
                    seen.add((next_i, next_j))
                    todo.append((next_i, next_j))
    return False


def _steps(symbols: list[_Symbol], at: int) -> list[tuple[_Symbol, int]]:
    steps = [(symbols[at], at + 1)] if at < len(symbols) else []
    if at and symbols[at - 1].repeats:
        steps.append((symbols[at - 1], at))
    return steps


def _meet(a: _Symbol, b: _Symbol) -> bool:
    if a.characters is None or b.characters is None:
        return (a.characters or b.characters) != frozenset("#")
    return bool(a.characters & b.characters)


_PIECE = re.compile(r"\{([^{}]*)\}|([^{}]+)|[{}]")


def _split(text: str, forms: Mapping[str, Callable[[str], KeyForm]], owner: str) -> list[TemplatePart]:
    parts = []
    for match in _PIECE.finditer(text):
        inside, literal = match.groups()
        if literal is not None:
            if "%" in literal:
                raise DefinitionError(f"{owner}: {text!r}: a literal part cannot contain %")
            parts.append(TemplatePart(literal=literal))
            continue
        if inside is None:
            raise DefinitionError(f"{owner}: {text!r} has an unmatched brace")
        name, _, spec = inside.partition(":")
        if name not in forms:
            known = ", ".join(forms) or "none"
            raise DefinitionError(f"{owner}: {text!r} names {name!r}, which is not a field; its fields are: {known}")
        parts.append(TemplatePart(field=name, form=forms[name](spec)))
    if not parts:
        raise DefinitionError(f"{owner}: a key template cannot be empty")
    return parts


def _pattern_of(part: TemplatePart) -> str:
    if part.form is None:
        return re.escape(part.literal)
    count = "+" if part.form.width is None else f"{{{part.form.width}}}"
    allowed = part.form.characters
    return f"([^#]{count})" if allowed is None else f"([{re.escape(''.join(sorted(allowed)))}]{count})"


def key_form(kind: wire.WireType, spec: str, owner: str) -> KeyForm:
    """The form of a field's values in a key, from its type and the format behind the colon."""
    if isinstance(kind, wire.Int):
        return _int_form(spec, owner)
    if isinstance(kind, wire.Float | wire.DecimalNumber):
        return _real_form(spec, owner, float if isinstance(kind, wire.Float) else Decimal)
    if spec:
        raise DefinitionError(f"{owner}: only numbers can have a format in a key; remove {spec!r}")
    if isinstance(kind, wire.Instant):
        return KeyForm(utc_text, wire.read_timestamp, _TIMESTAMP_CHARACTERS, 27)
    if isinstance(kind, wire.Day):
        return KeyForm(date.isoformat, _strictly(date.fromisoformat, date.isoformat), DIGITS | {"-"}, 10)
    if isinstance(kind, wire.UuidText):
        return KeyForm(escape, str, _HEXADECIMAL | {"-"}, 36)
    if isinstance(kind, wire.EnumValue):
        return _choice_form(kind.enum)
    if isinstance(kind, wire.Text):
        return KeyForm(escape, unescape, None, None)
    raise DefinitionError(f"{owner}: a {type(kind).__name__} cannot be used in a key template")


def _strictly(read: Callable[[str], Any], render: Callable[[Any], str]) -> Callable[[str], Any]:
    def strict(text: str) -> Any:
        value = read(text)
        if render(value) != text:
            raise ValueError(f"{text!r} is not in canonical form")
        return value

    return strict


def _choice_form(enum: type[Enum]) -> KeyForm:
    texts = {member: escape(str(member.value)) for member in enum}
    members = {text: member for member, text in texts.items()}

    def read(text: str) -> Enum:
        if text not in members:
            raise ValueError(f"{text!r} is not a value of {enum.__name__}")
        return members[text]

    return KeyForm(texts.__getitem__, read, None, None)


def _int_form(spec: str, owner: str) -> KeyForm:
    if spec == "d":
        return KeyForm(_plain_int, _strictly(int, _plain_int), DIGITS, None)
    if not re.fullmatch(r"0[1-9][0-9]?d", spec):
        raise DefinitionError(f"{owner}: an integer in a key needs a width, {{name:05d}}, or, unsorted, {{name:d}}")
    width = int(spec[1:-1])
    limit = 10**width
    padded = f"%0{width}d"

    def render(value: int) -> str:
        if not 0 <= value < limit:
            raise ValueRefusedError(f"{value} does not fit {width} digits of a key")
        return padded % value

    return KeyForm(render, int, DIGITS, width)


def _plain_int(value: int) -> str:
    if value < 0:
        raise ValueRefusedError(f"{value} is negative; keys cannot contain negative numbers")
    return str(value)


def _real_form(spec: str, owner: str, kind: type[float] | type[Decimal]) -> KeyForm:
    """`1.`: digits before the point padded to that width, then all that follow. `ordered`: any float, 16 digits."""
    if spec == "ordered" and kind is float:
        return KeyForm(_ordered_float, _strictly(_read_ordered_float, _ordered_float), _HEXADECIMAL, 16)
    if not re.fullmatch(r"[1-9][0-9]?\.", spec):
        raise DefinitionError(
            f"{owner}: a real number in a key needs a sortable format: {{name:1.}} for one digit before the point "
            "and no negative numbers, or, for any float, {name:ordered}"
        )
    width = int(spec[:-1])

    def render(value: float | Decimal) -> str:
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        number = number or Decimal(0)  # there is a negative zero as well
        if not number.is_finite() or number < 0 or number >= 10**width:
            raise ValueRefusedError(f"{value} does not fit a key with {width} digits before the point")
        whole, _, fraction = f"{number:f}".partition(".")
        return f"{whole.zfill(width)}.{fraction.rstrip('0') or '0'}"

    return KeyForm(render, _strictly(kind, render), DIGITS | {"."}, None)


def _ordered_float(value: float) -> str:
    """A float as hexadecimal digits that sort as the floats do: negative ones with all bits turned."""
    if not math.isfinite(value):
        raise ValueRefusedError(f"{value} cannot be used in a key")
    (bits,) = struct.unpack(">Q", struct.pack(">d", value + 0.0))
    return f"{bits ^ (2 * _SIGN_BIT - 1 if bits & _SIGN_BIT else _SIGN_BIT):016x}"


def _read_ordered_float(text: str) -> float:
    bits = int(text, 16)
    raw = bits ^ (_SIGN_BIT if bits & _SIGN_BIT else 2 * _SIGN_BIT - 1)
    (value,) = struct.unpack(">d", struct.pack(">Q", raw))
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not an ordered float")
    return float(value)
