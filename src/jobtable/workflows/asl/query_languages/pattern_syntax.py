"""Regular expressions, compiled to the instructions of a machine that never backtracks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

_MOST_INSTRUCTIONS = 5_000
_MOST_NESTED = 100
_COUNT = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}")
_GROUP_NAME = re.compile(r"\?P?<([A-Za-z_]\w*)>")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_LOOKS = (("?=", False, False), ("?!", False, True), ("?<=", True, False), ("?<!", True, True))
_HEX = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")


class Letter:
    """Consumes one character of a set."""

    __slots__ = ("_known", "_test")

    def __init__(self, source: str, flags: int) -> None:
        self._test = re.compile(source, flags).fullmatch
        self._known: dict[str, bool] = {}

    def accepts(self, character: str) -> bool:
        known = self._known.get(character)
        if known is None:
            known = self._known[character] = self._test(character) is not None
        return known


@dataclass(frozen=True)
class Split:
    """Goes on at both places; the first one is preferred."""

    first: int
    second: int


@dataclass(frozen=True)
class Jump:
    """Goes on elsewhere."""

    target: int


@dataclass(frozen=True)
class Save:
    """Notes the position: the start (even) or the end (odd) of a group."""

    slot: int


@dataclass(frozen=True)
class Edge:
    """Holds at a kind of position: `^`, `$`, `b` or `B`."""

    kind: str
    is_multiline: bool


@dataclass(frozen=True)
class Look:
    """Holds if a program matches here, or not."""

    program: Program
    is_behind: bool
    is_negative: bool


@dataclass(frozen=True)
class Accept:
    """The end of a match."""


Instruction: TypeAlias = Letter | Split | Jump | Save | Edge | Look | Accept


@dataclass
class Program:
    """The instructions of a regular expression."""

    instructions: list[Instruction] = field(default_factory=list)
    group_count: int = 0


def compile_program(text: str, *, ignores_case: bool, is_multiline: bool, dot_is_all: bool) -> Program:
    """Return the program of a regular expression, or raise ValueError."""
    flags = re.ASCII | (re.IGNORECASE if ignores_case else 0) | re.DOTALL
    compiler = _Compiler(text, flags, is_multiline=is_multiline, dot_is_all=dot_is_all)
    return compiler.compile()


_Part: TypeAlias = Callable[[], None]
"""Emits the instructions of a part; called once for each copy that a quantifier makes."""


class _Compiler:
    def __init__(self, text: str, flags: int, *, is_multiline: bool, dot_is_all: bool) -> None:
        self.text = text
        self.at = 0
        self.flags = flags
        self.is_multiline = is_multiline
        self.dot_is_all = dot_is_all
        self.depth = 0
        self.group_count = 0
        self.program = Program()

    def compile(self) -> Program:
        part = self.alternatives()
        if self.at < len(self.text):
            raise ValueError("unbalanced parenthesis")
        part()
        self.emit(Accept())
        self.program.group_count = self.group_count
        return self.program

    def emit(self, instruction: Instruction) -> int:
        if len(self.program.instructions) >= _MOST_INSTRUCTIONS:
            raise ValueError("the regular expression is too large")
        self.program.instructions.append(instruction)
        return len(self.program.instructions) - 1

    def replace(self, place: int, instruction: Instruction) -> None:
        self.program.instructions[place] = instruction

    @property
    def here(self) -> int:
        return len(self.program.instructions)

    def alternatives(self) -> _Part:
        self.depth += 1
        if self.depth > _MOST_NESTED:
            raise ValueError("too deeply nested")
        parts = [self.sequence()]
        while self.text[self.at : self.at + 1] == "|":
            self.at += 1
            parts.append(self.sequence())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else lambda: self.emit_alternatives(parts)

    def emit_alternatives(self, parts: list[_Part]) -> None:
        ends = []
        for part in parts[:-1]:
            split = self.emit(Accept())
            part()
            ends.append(self.emit(Accept()))
            self.replace(split, Split(split + 1, self.here))
        parts[-1]()
        for end in ends:
            self.replace(end, Jump(self.here))

    def sequence(self) -> _Part:
        parts: list[_Part] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            parts.append(self.repeated(self.atom()))

        def emit() -> None:
            for part in parts:
                part()

        return emit

    def repeated(self, part: _Part) -> _Part:
        while True:
            bounds = self.quantifier()
            if bounds is None:
                return part
            is_greedy = self.text[self.at : self.at + 1] != "?"
            self.at += not is_greedy
            part = self.repeat(part, *bounds, is_greedy=is_greedy)

    def quantifier(self) -> tuple[int, int | None] | None:
        symbol = self.text[self.at : self.at + 1]
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if symbol in simple:
            self.at += 1
            return simple[symbol]
        found = _COUNT.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] else None
        if most is not None and most < least:
            raise ValueError("a quantifier's bounds are out of order")
        return least, most

    def repeat(self, part: _Part, least: int, most: int | None, *, is_greedy: bool) -> _Part:
        def choose(place: int, inside: int, after: int) -> None:
            self.replace(place, Split(inside, after) if is_greedy else Split(after, inside))

        def emit() -> None:
            for _ in range(least):
                part()
            if most is None:
                split = self.emit(Accept())
                part()
                self.emit(Jump(split))
                choose(split, split + 1, self.here)
                return
            splits = []
            for _ in range(most - least):
                splits.append(self.emit(Accept()))
                part()
            for split in splits:
                choose(split, split + 1, self.here)

        return emit

    def atom(self) -> _Part:
        character = self.text[self.at]
        self.at += 1
        if character == "(":
            return self.group()
        if character == "[":
            return self.letter(self.bracket())
        if character == "\\":
            return self.escape()
        if character == ".":
            return self.letter("." if self.dot_is_all else r"[^\n\r]")
        if character in "^$":
            edge = Edge(character, self.is_multiline)
            return lambda: self.note(edge)
        if character in "*+?":
            raise ValueError("nothing to repeat")
        return self.letter(re.escape(character))

    def note(self, instruction: Instruction) -> None:
        self.emit(instruction)

    def letter(self, source: str) -> _Part:
        try:
            letter = Letter(source, self.flags)
        except re.error as error:
            raise ValueError(str(error)) from None
        return lambda: self.note(letter)

    def bracket(self) -> str:
        """Read a set, and return it as Python writes it."""
        parts = ["^"] if self.text[self.at : self.at + 1] == "^" else []
        self.at += len(parts)
        while self.at < len(self.text):
            character = self.text[self.at]
            self.at += 1
            if character == "]":
                return {"": r"[^\0-\U0010ffff]", "^": r"[\0-\U0010ffff]"}.get("".join(parts)) or f"[{''.join(parts)}]"
            if character == "\\":
                parts.append(self.escape_in_set())
            elif character == "-":
                parts.append("\\-" if parts and parts[-1] == "-" else "-")
            else:
                parts.append(re.escape(character))
        raise ValueError("a character set is not closed")

    def escape_in_set(self) -> str:
        if found := _HEX.match(self.text, self.at):
            self.at = found.end()
            return re.escape(chr(int(found[1] or found[2], 16)))
        character = self.text[self.at : self.at + 1]
        self.at += 1
        if character in set("dDwWsS"):
            return "\\" + character
        return "\\x08" if character == "b" else re.escape(_CONTROLS.get(character, character))

    def escape(self) -> _Part:
        if self.at >= len(self.text):
            raise ValueError("a backslash at the end")
        character = self.text[self.at]
        if found := _HEX.match(self.text, self.at):
            self.at = found.end()
            return self.letter(re.escape(chr(int(found[1] or found[2], 16))))
        self.at += 1
        if character in "dDwWsS":
            return self.letter("\\" + character)
        if character in "bB":
            edge = Edge(character, self.is_multiline)
            return lambda: self.note(edge)
        if character in "123456789k":
            raise ValueError("backreferences are not supported")
        return self.letter(re.escape(_CONTROLS.get(character, character)))

    def group(self) -> _Part:
        rest = self.text[self.at : self.at + 3]
        for sign, is_behind, is_negative in (
            ("?=", False, False),
            ("?!", False, True),
            ("?<=", True, False),
            ("?<!", True, True),
        ):
            if rest.startswith(sign):
                self.at += len(sign)
                return self.look(is_behind=is_behind, is_negative=is_negative)
        slot = None
        if rest.startswith("?:"):
            self.at += 2
        else:
            if found := _GROUP_NAME.match(self.text, self.at):
                self.at = found.end()
            elif rest.startswith("?"):
                raise ValueError("unknown kind of group")
            self.group_count += 1
            slot = self.group_count * 2
        part = self.alternatives()
        self.close()

        def emit() -> None:
            if slot is not None:
                self.emit(Save(slot))
            part()
            if slot is not None:
                self.emit(Save(slot + 1))

        return emit

    def close(self) -> None:
        if self.text[self.at : self.at + 1] != ")":
            raise ValueError("a group is not closed")
        self.at += 1

    def look(self, *, is_behind: bool, is_negative: bool) -> _Part:
        part = self.alternatives()
        self.close()
        outer, self.program = self.program, Program()
        part()
        self.emit(Accept())
        inner, self.program = self.program, outer
        look = Look(inner, is_behind, is_negative)
        return lambda: self.note(look)
